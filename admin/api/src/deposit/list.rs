//! `GET /wallet/deposits`: the deposits of an account and mode, newest first, found by their entries in the audit
//! trail.

use super::DepositView;
use crate::call_trail;
use crate::state::Call;
use domain::entry::Sealed;
use endpoint::{Answer, Problem, Reply};
use serde::Deserialize;
use store::audit::chain::EntryFilter;
use store::deposit::{Deposit, DepositState};
use store::filtered_page::FilteredPage;
use store::page::{Page, PageRequest, PageStart};

/// The type of the entry that a deposit begins with.
const REQUESTED: &str = "deposit.requested";
/// Most deposits that are read for a page.
pub(super) const READ_MAX: usize = 1000;
/// Deposits that are read in one go.
const STEP: usize = 200;

/// The parts of an entry that the list needs.
#[derive(Deserialize)]
struct Requested {
    seq: u64,
    data: Data,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Data {
    reference: String,
    transaction_id: String,
    /// `blocked` where there is no deposit.
    outcome: Option<String>,
}

/// `GET /wallet/deposits`
///
/// # Errors
/// 400, 429 while the account reads as many lists as it may, 503.
pub async fn list(call: Call) -> Answer {
    let query = call.list_query(&["state"])?;
    let states = DepositState::ALL.iter().map(|state| state.as_str());
    let state = query.value("state", states, DepositState::parse)?;
    let paging = call.paging(&query, "deposits")?;
    let _permit = call.state.large_lists.acquire(&call.caller.account).await?;
    let FilteredPage { part, is_partial } = search(&call, state, paging.page()).await?;
    Reply::ok(
        &paging
            .listing(&part, |deposit| {
                DepositView::new(deposit, deposit.state, deposit.confirmed.map(|(at, _)| at))
            })
            .partial(Some(is_partial)),
    )
}

/// The deposits of a page that fit. The total counts those that fit up to the end of the page.
async fn search(
    call: &Call,
    state: Option<DepositState>,
    page: PageRequest<'_>,
) -> Result<FilteredPage<Deposit>, Problem> {
    let (skip, mut next) = match page.start {
        PageStart::Offset(offset) => (offset, None),
        PageStart::After(position) => (0, Some(position.to_owned())),
    };
    let filter = EntryFilter {
        agent: None,
        kind: Some(REQUESTED),
        from_ms: None,
        to_ms: None,
    };
    let trail = call_trail::for_call(call);
    let (mut found, mut total, mut read) = (Vec::new(), 0_usize, 0);
    while found.len() < page.limit && read < READ_MAX {
        let start = next.as_deref().map_or(PageStart::Offset(0), PageStart::After);
        let limit = STEP.min(READ_MAX - read);
        let entries = trail.list(filter, PageRequest { limit, start }).await?;
        read += entries.records.len();
        next = entries.next;
        let (made, deposits) = deposits_of(call, &entries.records).await?;
        for (at, deposit) in deposits.into_iter().enumerate() {
            let Some((requested, deposit)) = made.get(at).zip(deposit) else {
                continue;
            };
            let is_it = deposit.id == requested.data.transaction_id;
            if !is_it || state.is_some_and(|state| state != deposit.state) {
                continue;
            }
            total += 1;
            if total <= skip {
                continue;
            }
            found.push(deposit);
            if found.len() == page.limit {
                // The next page begins behind this entry, if there is another one.
                let goes_on = next.is_some() || at + 1 < made.len();
                next = goes_on.then(|| requested.seq.to_string());
                break;
            }
        }
        if next.is_none() {
            break;
        }
    }
    let is_partial = next.is_some();
    let part = Page {
        records: found,
        total: total as u64,
        next,
    };
    Ok(FilteredPage { part, is_partial })
}

/// The entries that made a deposit, and the deposit of each as it now is.
async fn deposits_of(
    call: &Call,
    entries: &[Sealed],
) -> Result<(Vec<Requested>, Vec<Option<Deposit>>), Problem> {
    let mut made = Vec::with_capacity(entries.len());
    for entry in entries {
        match serde_json::from_str::<Requested>(&entry.json) {
            Ok(requested) if requested.data.outcome.as_deref() == Some("blocked") => {}
            Ok(requested) => made.push(requested),
            // One that was tampered with hides no other one.
            Err(error) => tracing::error!(%error, "an entry of a deposit that cannot be read"),
        }
    }
    let references: Vec<String> = made.iter().map(|made| made.data.reference.clone()).collect();
    let deposits = Deposit::read_all(&call.state.store, &call.realm(), &references).await?;
    Ok((made, deposits))
}
