//! `GET /calls`: the proxied calls of an account, approved and denied, read from the audit trail; and their export.

mod doc;
mod export;
pub(crate) mod filter;
mod view;

pub(crate) use doc::section;
pub use export::export;

use self::filter::CallFilter;
use self::view::{CallNames, CallView};
use crate::call_trail;
use crate::state::{ApiState, Call};
use domain::call_record::CallRecord;
use endpoint::{Answer, Problem, Reply, operations};
use history::trail::calls::{CallsPosition, STEP_MAX};
use store::StoreError;
use store::page::{Page, PageRequest, PageStart};

operations! {
    /// Operations on calls.
    ROUTES: ApiState, Management;

    GET "/calls",        key(Read, Viewer), Both, PerMinute, list, Query;
    GET "/calls/export", key(Read, Viewer), Both, PerMinute, export, Query;
}

/// Maximum number of entries of the trail that are read for a page.
const READ_MAX: usize = 2000;

/// A page of calls, and whether some calls were not read.
struct SearchResult {
    part: Page<CallRecord>,
    is_partial: bool,
}

struct CallPage {
    found: Vec<CallRecord>,
    /// Number of leading calls in `found` that ended late.
    late: usize,
    /// Start of the rest; `None` if there is none.
    rest: Option<CallsPosition>,
}

/// `GET /calls`
///
/// # Errors
/// 400, 429 while the account reads as many lists as it may, 503.
pub async fn list(call: Call) -> Answer {
    let query = call.list_query(&filter::names())?;
    let filter = CallFilter::from_query(&query)?;
    let paging = call.paging(&query, "calls")?;
    let _permit = call.state.large_lists.acquire(&call.caller.account).await?;
    let SearchResult { part, is_partial } = search(&call, &filter, paging.page()).await?;
    let names = CallNames::read(&call, &part.records).await?;
    Reply::ok(
        &paging
            .listing(&part, |call| CallView::new(call, &names))
            .partial(Some(is_partial)),
    )
}

/// Finds the calls of a page that match. After an offset the total counts all matches that were read; after a position,
/// only those on the page.
async fn search(call: &Call, filter: &CallFilter, page: PageRequest<'_>) -> Result<SearchResult, Problem> {
    let (skip, enough, place) = match page.start {
        PageStart::Offset(offset) => (offset, usize::MAX, CallsPosition::START),
        PageStart::After(position) => {
            let place = CallsPosition::parse(position).ok_or(StoreError::BadPosition)?;
            (0, page.limit, place)
        }
    };
    let CallPage {
        mut found,
        late,
        rest,
    } = read(call, filter, place, enough).await?;
    let is_cut = found.len() > skip.saturating_add(page.limit);
    let is_partial = rest.is_some() || found.len() > enough;
    let total = found.len().min(enough) as u64;
    found.drain(..skip.min(found.len()));
    found.truncate(page.limit);
    let next = match found.last().filter(|_| is_cut) {
        Some(last) if skip.saturating_add(found.len()) <= late => {
            Some(CallsPosition::Late(last.day, last.seq))
        }
        Some(last) => Some(CallsPosition::Below(last.seq)),
        None => rest,
    };
    let part = Page {
        records: found,
        total,
        next: next.map(|next| next.to_string()),
    };
    Ok(SearchResult { part, is_partial })
}

/// The calls that fit from `place` on, until there are more than `enough` or [`READ_MAX`] entries were read.
async fn read(
    call: &Call,
    filter: &CallFilter,
    place: CallsPosition,
    enough: usize,
) -> Result<CallPage, Problem> {
    let trail = call_trail::for_call(call);
    trail.seal().await?;
    let selection = filter.selection(call.state.store.clock_spread_ms());
    let (mut found, mut late) = (Vec::new(), 0);
    let (mut entries, mut rest) = (0, Some(place));
    while let Some(start) = rest.filter(|_| found.len() <= enough && entries < READ_MAX) {
        let most = STEP_MAX.min(READ_MAX - entries);
        // If every entry fits the filter, one more than shown is enough.
        let most = match filter.is_of_the_index() {
            true => most.min(enough.saturating_sub(found.len()).saturating_add(1)),
            false => most,
        };
        let step = trail.calls(&selection, start, most).await?;
        found.extend(step.calls.into_iter().filter(|call| filter.fits(call)));
        if step.is_late {
            late = found.len();
        }
        entries += step.cost;
        rest = step.next;
    }
    Ok(CallPage { found, late, rest })
}
