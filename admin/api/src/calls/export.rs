//! `GET /calls/export`: the matching calls, newest first, as a CSV file that is streamed.

use super::filter::{self, CallFilter};
use super::view::{COLUMNS, CallNames, CallView};
use crate::call_trail;
use crate::spreadsheet::{CONTENT_TYPE, lines};
use crate::state::Call;
use bytes::Bytes;
use endpoint::{Answer, Problem, Reply};
use futures::{Stream, StreamExt, TryStreamExt, stream};
use history::trail::calls::{CallsPosition, STEP_MAX};

/// Maximum number of entries of the trail that an export reads. An export that would read more is refused, so that no
/// file is silently incomplete.
pub(crate) const EXPORT_MAX: u64 = 100_000;

/// Why an export ended early.
#[derive(Debug)]
struct CutOff;

impl std::fmt::Display for CutOff {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("the calls cannot be read")
    }
}

impl std::error::Error for CutOff {}

/// Streams the export.
///
/// # Errors
/// 400, also if there are more than [`EXPORT_MAX`] entries to read; 503.
pub async fn export(call: Call) -> Answer {
    let filter = CallFilter::of_query(&call.query(&filter::names())?)?;
    call_trail::for_call(&call).seal().await?;
    let selection = filter.selection(call.state.store.clock_spread_ms());
    let entries = call_trail::for_call(&call).count_calls(&selection).await?;
    if entries > EXPORT_MAX {
        let message = format!(
            "from and to, or chargedFrom and chargedTo, must enclose at most {EXPORT_MAX} records for an export; these are \
             {entries}."
        );
        return Err(Problem::validation(message));
    }
    let name = format!("calls_{}_{}.csv", call.caller.account, call.caller.mode);
    let header = Bytes::from(lines([COLUMNS])?);
    let rows = rows(call, filter);
    Reply::stream(&name, CONTENT_TYPE, stream::iter([Ok(header)]).chain(rows))
}

/// The rows of the calls, some hundred in each chunk. An error is the last item.
fn rows(call: Call, filter: CallFilter) -> impl Stream<Item = Result<Bytes, CutOff>> + Send + 'static {
    let account = call.caller.account.clone();
    let begin = (call, filter, Some(CallsPosition::START));
    let chunks = stream::try_unfold(begin, |(call, filter, place)| async move {
        let Some(place) = place else { return Ok(None) };
        let (chunk, next) = chunk(&call, &filter, place).await?;
        Ok::<_, Problem>(Some((chunk, (call, filter, next))))
    });
    chunks.map_err(move |problem| {
        tracing::error!(account, ?problem, "an export of calls was cut off");
        CutOff
    })
}

async fn chunk(
    call: &Call,
    filter: &CallFilter,
    place: CallsPosition,
) -> Result<(Bytes, Option<CallsPosition>), Problem> {
    let spread_ms = call.state.store.clock_spread_ms();
    let mut step = call_trail::for_call(call)
        .calls(&filter.selection(spread_ms), place, STEP_MAX)
        .await?;
    step.calls.retain(|call| filter.fits(call));
    let names = CallNames::read(call, &step.calls).await?;
    let rows = step.calls.iter().map(|call| CallView::new(call, &names).cells());
    Ok((Bytes::from(lines(rows)?), step.next))
}
