//! `GET /calls/export`: the matching calls, newest first, as a CSV file that is streamed.

use super::filter::{self, CallFilter};
use super::view::{COLUMNS, CallNames, CallView};
use crate::call_trail;
use crate::spreadsheet::{CsvFile, lines};
use crate::state::Call;
use bytes::Bytes;
use endpoint::{Answer, Problem, Reply};
use futures::{Stream, stream};
use history::trail::calls::{CallsPosition, STEP_MAX};

/// Maximum number of entries of the trail that an export reads. An export that would read more is refused, so that no
/// file is silently incomplete.
pub(crate) const EXPORT_MAX: u64 = 100_000;

/// Streams the export.
///
/// # Errors
/// 400, also if there are more than [`EXPORT_MAX`] entries to read; 409 or 503 without a turn; 503.
pub async fn export(call: Call) -> Answer {
    let filter = CallFilter::from_query(&call.query(&filter::names())?)?;
    let read = call.large_read().await?;
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
    let file = CsvFile::new(&call, "calls");
    file.stream(read, &COLUMNS, Reply::begun(rows(call, filter)).await?)
}

/// The rows of the calls, some hundred in each chunk. An error is the last item.
fn rows(call: Call, filter: CallFilter) -> impl Stream<Item = Result<Bytes, Problem>> + Send + 'static {
    let begin = (call, filter, Some(CallsPosition::START));
    stream::try_unfold(begin, |(call, filter, place)| async move {
        let Some(place) = place else { return Ok(None) };
        let (chunk, next) = chunk(&call, &filter, place).await?;
        Ok(Some((chunk, (call, filter, next))))
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
    let rows = step.calls.iter().map(|call| {
        let view = CallView::new(call, &names);
        COLUMNS.map(|(_, cell)| cell(&view))
    });
    Ok((Bytes::from(lines(rows)?), step.next))
}
