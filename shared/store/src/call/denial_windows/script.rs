//! Twin of `denial_window.lua`: writes the record of an ended rate window (decision D70).

use crate::call::denial_windows::Counted;
use crate::script::change::{CHANGE, Event, Scope};
use crate::script::names::{Names, inputs};
use crate::script::{Script, WhenFull};
use crate::{Store, StoreError};
use domain::denial_window::KIND;
use domain::mode::Mode;
use std::sync::LazyLock;

/// The script. Runs on a full store: it removes about as many bytes as it writes, and the record can be archived.
pub static DENIAL_WINDOW: LazyLock<Script> = LazyLock::new(|| {
    let inputs = Names::of_change(WindowKeys::NAMES, WindowArgs::NAMES);
    let parts = [CHANGE, include_str!("../denial_window.lua")];
    Script::new("denial_window", WhenFull::Run, inputs, &parts)
});

inputs! {
    /// The key. `counted_denials` are those of the bucket.
    struct WindowKeys: String { counted_denials }
}
inputs! {
    /// The arguments; `ends` is in ms.
    struct WindowArgs<'a>: &'a str { field, count, ends }
}

/// Outcome of recording a window.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Recorded {
    /// The record is written and the count removed.
    Done,
    /// The window is still open on the store's clock; nothing changed.
    Early,
    /// Another worker recorded it, or the account does not exist; nothing changed.
    Changed,
}

/// Writes the record of `counted`, which must hold more denials than have records of their own.
/// Safe to retry.
pub async fn record(store: &Store, counted: &Counted) -> Result<Recorded, StoreError> {
    let scope = Scope {
        account: &counted.account,
        // Virtual keys have no test mode.
        mode: Mode::Live,
        actor: &counted.key_id,
    };
    let event = Event {
        kind: KIND,
        agent: Some(&counted.agent),
        data: counted.data(),
    };
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
        "recorded" => Ok(Recorded::Done),
        "early" => Ok(Recorded::Early),
        "changed" | "no_account" => Ok(Recorded::Changed),
        _ => reply.unexpected(),
    }
}
