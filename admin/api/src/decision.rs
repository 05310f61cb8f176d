//! `GET /decisions/{id}`: why a call was approved or denied, and its outcome (decisions D40, D48, D56). Read from the
//! call's entries in the audit trail or, for a call in flight, from its hold.

mod doc;

pub(crate) use doc::section;
pub(crate) use measured::BillingView;

mod explain;
mod measured;

use self::explain::Explained;
use crate::call_trail;
use crate::state::{ApiState, Call};
use domain::decision::{VOIDED, hold_id};
use domain::denial_window;
use domain::entry::{Entry, Sealed};
use domain::id::Kind;
use domain::mode::Mode;
use endpoint::{Answer, Code, Problem, Reply, operations};
use store::StoreError;
use store::audit::chain::Head;
use store::call::denial_windows;
use store::call::open_holds;

operations! {
    /// Operations on decisions.
    ROUTES: ApiState, Management;

    GET "/decisions/{id}", key(Read, Viewer), Both, PerMinute, get;
}

endpoint::answer! { DecisionAnswer, decision: Explained }

/// An entry and its hash.
#[derive(Debug)]
struct Recorded {
    entry: Entry,
    hash: String,
}

/// `GET /decisions/{id}`
pub async fn get(call: Call) -> Answer {
    let id = call.param("id");
    let missing = || Problem::new(Code::NotFound, "There is no decision of this id.");
    if !Kind::Allow.has_form(id) && !Kind::Deny.has_form(id) {
        return Err(missing());
    }
    // The hold is read first: a call that ends between the two reads then has its entry.
    let hold = open_hold(&call, id).await?;
    let mut entries = recorded(&call, id).await?;
    let mut open = hold;
    if entries.is_empty() && open.is_none() {
        (entries, open) = window(&call, id).await?;
    }
    if entries.is_empty() && open.is_none() {
        entries = lost_approval(&call, id).await?;
    }
    let is_open = entries.is_empty();
    if let (true, Some(entry)) = (is_open, open) {
        entries.push(Recorded {
            entry,
            hash: String::new(),
        });
    }
    let decision = Explained::from_entries(&entries, is_open).ok_or_else(missing)?;
    Reply::ok(&DecisionAnswer::new(decision))
}

/// Returns the entries of the decision, oldest first.
async fn recorded(call: &Call, id: &str) -> Result<Vec<Recorded>, Problem> {
    let trail = call_trail::for_call(call);
    let mut found: Vec<Recorded> = trail
        .decision(id)
        .await?
        .iter()
        .filter_map(Recorded::from_sealed)
        .collect();
    found.retain(|recorded| recorded.entry.decision_id() == id);
    Ok(found)
}

/// Returns the entries of an approval that did not reach the edge, which then denied the call with
/// `service_unavailable`: the caller knows the id of the hold with the prefix of a denial.
async fn lost_approval(call: &Call, id: &str) -> Result<Vec<Recorded>, Problem> {
    let Some(hold_id) = hold_id(id) else {
        return Ok(Vec::new());
    };
    let found = recorded(call, &hold_id).await?;
    let is_lost = found.iter().any(|recorded| recorded.entry.kind == VOIDED);
    Ok(if is_lost { found } else { Vec::new() })
}

/// Returns the record of the rate window that counted the denial `id`, or for an open window the entry that its record
/// would be if it were written now (decision D70).
async fn window(call: &Call, id: &str) -> Result<(Vec<Recorded>, Option<Entry>), Problem> {
    let Some(record_id) = denial_window::record_of(id).filter(|_| call.caller.mode == Mode::Live) else {
        return Ok((Vec::new(), None));
    };
    // The count is read first: a count that becomes a record between the two reads then has its entry. The id may be
    // that of the record itself.
    let (store, account) = (&call.state.store, &call.caller.account);
    let mut open = denial_windows::open(store, account, &record_id).await?;
    if open.is_none() && Kind::Deny.has_form(id) {
        open = denial_windows::open(store, account, id).await?;
    }
    let recorded = recorded(call, &record_id).await?;
    Ok((recorded, open.and_then(|counted| counted.entry())))
}

impl Recorded {
    fn from_sealed(sealed: &Sealed) -> Option<Self> {
        let entry = Entry::of_json(&sealed.json)?;
        let head = Head {
            seq: entry.seq,
            hash: Some(sealed.hash),
        };
        Some(Self {
            entry,
            hash: head.text(),
        })
    }
}

/// Returns the call in flight with this id, as the entry that it would have if it ended now.
async fn open_hold(call: &Call, id: &str) -> Result<Option<Entry>, Problem> {
    if call.caller.mode == Mode::Test {
        return Ok(None);
    }
    let account = &call.caller.account;
    match open_holds::text(&call.state.store, account, id).await? {
        None => Ok(None),
        Some(text) => {
            explain::entry_of_hold(id, account, &text).map_err(|()| StoreError::unexpected("hold").into())
        }
    }
}
