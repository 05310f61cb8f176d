//! `/audit`: the hash-chained trail of all events, its export and its signed checkpoint (specification §4.3, decisions
//! D25, D50).

mod doc;
mod verify;

pub(crate) use doc::section;
pub use verify::verify;

use crate::call_trail;
use crate::state::{ApiState, Call};
use audit_verify::checkpoint::{self, Checkpoints, NotSigned};
use clock::now_ms;
use domain::entry::Sealed;
use domain::timestamp::iso_from_ms;
use endpoint::doc::is;
use endpoint::{
    Answer, Code, Paging, Problem, QueryParams, Reply, TimeRange, has_offset, operations, whole_number,
};
use futures::TryStreamExt;
use history::export::{CONTENT_TYPE, ExportError, TrailExport};
use serde::Serialize;
use serde_json::value::RawValue;
use std::sync::Arc;
use store::audit::chain::EntryFilter;
use store::audit::checkpoint_key;
use store::keys::Realm;
use telemetry::error_chain;
use utoipa::ToSchema;

operations! {
    /// Operations on the audit trail.
    ROUTES: ApiState, Management;

    GET "/audit",            key(Read, Viewer), Both, PerDay,    list, Query;
    GET "/audit/export",     key(Read, Viewer), Both, PerMinute, export, Query;
    GET "/audit/verify",     key(Read, Viewer), Both, PerMinute, verify;
    GET "/audit/checkpoint", key(Read, Viewer), Both, PerMinute, checkpoint, Query;
}

/// Longest name of a type of entry.
const TYPE_MAX: usize = 64;
/// Query parameter with the entry before which a list starts.
const BEFORE: &str = "before";
/// Header with the number of entries when an export began, and the hash of the last one.
const SIZE_HEADER: &str = "x-service-audit-size";
/// See [`SIZE_HEADER`].
const HEAD_HEADER: &str = "x-service-audit-head";

#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = Checkpoint)]
struct CheckpointView {
    success: bool,
    /// Number of entries that it covers.
    #[schema(example = 118)]
    size: u64,
    /// Hash of the last of them.
    #[schema(value_type = is::PreviousHash)]
    hash: String,
    /// The signed note, as in docs/reference/audit.md.
    #[schema(example = "tollgate/acct_.../live\n118\n...\n")]
    note: String,
    #[schema(example = "MCowBQYDK2VwAyEA...")]
    public_key: String,
    #[schema(example = "tollgate/acct_.../live")]
    key_name: String,
    /// The key in the form that verifiers of signed notes read.
    #[schema(example = "tollgate/acct_.../live+1a2b3c4d+AQ...")]
    verifier_key: String,
    #[schema(value_type = is::Time)]
    at: String,
}

/// `GET /audit`
pub async fn list(call: Call) -> Answer {
    let query = call.list_query(&["agentId", "type", "from", "to", BEFORE])?;
    let agent = query.agent_id("agentId")?;
    let paging = paging(&call, &query)?;
    let TimeRange { from_ms, to_ms } = TimeRange::from_query(&query)?;
    let filter = EntryFilter {
        agent,
        kind: query.get("type"),
        from_ms,
        to_ms,
    };
    // Another text must not become the name of a key of the index.
    if filter.kind.is_some_and(|kind| !is_type(kind)) {
        return Err(Problem::validation(
            "type must be one type of entries, such as agent.frozen.",
        ));
    }
    let mut part = call_trail::for_call(&call).list(filter, paging.page()).await?;
    let entries = std::mem::take(&mut part.records);
    let records = entries.into_iter().map(raw).collect::<Result<_, _>>()?;
    Reply::ok(&paging.listing_of(&part, records))
}

/// Returns the requested page: `before` is the number of the entry after which the page starts, newest first.
fn paging(call: &Call, query: &QueryParams) -> Result<Paging, Problem> {
    let paging = call.paging(&query.clone().without(BEFORE), "logs")?;
    let Some(before) = number(query, BEFORE)? else {
        return Ok(paging);
    };
    if query.get("cursor").is_some() || has_offset(query) {
        let message = "before says where the page starts; give neither offset nor cursor with it.";
        return Err(Problem::validation(message));
    }
    Ok(paging.after(before.to_string()))
}

/// `GET /audit/export`
///
/// # Errors
/// 400; 409 or 503 without a turn; 503.
pub async fn export(call: Call) -> Answer {
    let query = call.query(&["after"])?;
    let after = number(&query, "after")?.unwrap_or(0);
    let read = call.large_read().await?;
    let head = call_trail::for_call(&call).seal().await?;
    let realm = call.realm();
    let (account, mode) = (realm.account().to_owned(), realm.mode());
    let name = format!("audit_{account}_{mode}.jsonl");
    let export = TrailExport {
        store: call.state.store.clone(),
        archive: Arc::clone(&call.state.archive),
        realm,
        after,
        head,
    };
    let begun = Reply::begun(export.lines()).await.map_err(|error| match error {
        ExportError::Store(error) => error.into(),
        broken => {
            tracing::error!(account, %mode, error = %broken, "the audit trail cannot be exported");
            Problem::new(
                Code::ServiceUnavailable,
                format!("{broken}; GET /audit/verify shows where."),
            )
        }
    })?;
    let lines = begun.inspect_err(move |error: &ExportError| {
        tracing::error!(account, %mode, error = %error_chain(error), "an export of the audit trail was cut off");
    });
    let reply = Reply::stream(read, &name, CONTENT_TYPE, lines)?;
    Ok(reply
        .header(SIZE_HEADER, &head.seq.to_string())
        .header(HEAD_HEADER, &head.text()))
}

/// `GET /audit/checkpoint`
///
/// # Errors
/// 400; 409 if the trail contradicts the archive's checkpoint; 503, also if the archive cannot be read.
pub async fn checkpoint(call: Call) -> Answer {
    let query = call.query(&["size"])?;
    let size = number(&query, "size")?;
    let trail = call_trail::for_call(&call);
    let key = checkpoint_key::key(&call.state.store, &call.state.keyring).await;
    let key = key.map_err(|error| {
        tracing::error!(error = %error_chain(&error), "no key to sign a checkpoint with");
        Code::ServiceUnavailable
    })?;
    let realm = &call.realm();
    let refuse = |refusal| refused(realm, &refusal);
    let checkpoints = Checkpoints::new(&call.state.archive, key.public(), realm);
    let last = checkpoints.largest().await;
    let last = last.map_err(refuse)?.map(|largest| largest.checkpoint);
    let now = checkpoint::end(&trail, last.as_ref()).await.map_err(refuse)?;
    let head = match size {
        None => now,
        Some(size) => {
            let earlier = checkpoint::earlier(&trail, last.as_ref(), now, size).await;
            earlier.map_err(refuse)?.ok_or_else(|| {
                let message = format!("size must be a whole number from 0 to {}.", now.seq);
                Problem::validation(message)
            })?
        }
    };
    // Nobody is given an earlier state that looks like the present one.
    let checkpoint = checkpoint::of_earlier(realm, head, now);
    Reply::ok(&CheckpointView {
        success: true,
        size: head.seq,
        hash: head.text(),
        note: key.sign(&checkpoint),
        public_key: key.public().text(),
        verifier_key: key.public().verifier(&checkpoint.origin),
        key_name: checkpoint.origin,
        at: iso_from_ms(now_ms()),
    })
}

/// Returns the refusal to sign a trail that contradicts the last checkpoint, or could not be compared with it.
fn refused(realm: &Realm, refusal: &NotSigned) -> Problem {
    let (account, mode) = (realm.account(), realm.mode());
    tracing::error!(account, %mode, error = %error_chain(refusal), "no checkpoint is signed");
    match refusal.is_tampering() {
        true => Problem::new(Code::Conflict, format!("No checkpoint is signed: {refusal}.")),
        false => {
            let message =
                "No checkpoint is signed: the store or the archive cannot be read. Try again shortly.";
            Problem::new(Code::ServiceUnavailable, message)
        }
    }
}

/// Returns the entry exactly as it was hashed.
fn raw(entry: Sealed) -> Result<Box<RawValue>, Problem> {
    RawValue::from_string(entry.json).map_err(|error| {
        tracing::error!(%error, "an audit entry that is no JSON");
        Code::Internal.into()
    })
}

/// Returns whether a word can be the type of an entry, such as `agent.frozen`.
fn is_type(word: &str) -> bool {
    let known = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'.' || byte == b'_';
    (1..=TYPE_MAX).contains(&word.len()) && word.bytes().all(known)
}

fn number(query: &QueryParams, name: &str) -> Result<Option<u64>, Problem> {
    let bad = || Problem::validation(format!("{name} must be a whole number from 0 on."));
    let number = query.get(name).map(|text| whole_number(text).ok_or_else(bad));
    number.transpose()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_with_type() {
        for good in ["agent.frozen", "decision.denied", "a_b.c2"] {
            assert!(is_type(good), "{good}");
        }
        for bad in ["", "*", "a/b", "a b", "a:b", "é", &"x".repeat(TYPE_MAX + 1)] {
            assert!(!is_type(bad), "{bad}");
        }
    }
}
