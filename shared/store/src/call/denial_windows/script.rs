//! Twin of `denial_window.lua`: writes the record of an ended rate window (decision D70).

use crate::call::denial_windows::CountedDenials;
use crate::script::change::{AuditEvent, Scope};
use crate::script::script;
use crate::{Store, StoreError};
use domain::denial_window::KIND;

script! {
    /// Records an ended rate window. Runs on a full store: it removes about as many bytes as it writes, and the record
    /// can be archived.
    pub static DENIAL_WINDOW = "denial_window",
    kind: Change,
    source: [include_str!("../denial_window.lua")],
    when_full: Run,
    /// `counted_denials` is the hash of the bucket.
    keys: struct WindowKeys: String { counted_denials },
    /// `ends` is in ms.
    args: struct WindowArgs<'a>: &'a str { field, count, ends },
}

/// Outcome of recording a window.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WindowRecorded {
    /// The record is written and the count removed.
    Done,
    /// The window is still open on the store's clock; nothing changed.
    Early,
    /// Another worker recorded it, or the account does not exist; nothing changed.
    Changed,
}

/// Writes the record of `counted`, which must hold more denials than have records of their own.
/// Safe to retry.
pub async fn record(store: &Store, counted: &CountedDenials) -> Result<WindowRecorded, StoreError> {
    // Virtual keys have no test mode.
    let scope = Scope::live(&counted.account, &counted.key_id);
    let event = AuditEvent::new(KIND, counted.details()).with_agent(counted.agent.as_str());
    let keys = WindowKeys {
        counted_denials: scope.keys().bucket().counted_denials(),
    };
    let args = WindowArgs {
        field: &counted.field,
        count: &counted.count.to_string(),
        ends: &counted.ends_ms.to_string(),
    };
    let mut reply = scope.execute(store, &DENIAL_WINDOW, event, keys, args).await?;
    match reply.word()?.as_str() {
        "recorded" => Ok(WindowRecorded::Done),
        "early" => Ok(WindowRecorded::Early),
        "changed" | "no_account" => Ok(WindowRecorded::Changed),
        _ => reply.unexpected(),
    }
}
