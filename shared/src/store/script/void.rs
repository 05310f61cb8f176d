//! Twin of `void.lua`: make sure that an authorize whose answer was lost never charges.

use super::change::{CLOCK, RESOLVE};
use super::hold::HoldName;
use super::{Script, WhenFull};
use crate::store::{Store, StoreError};
use std::sync::LazyLock;
use std::time::Duration;

/// The script.
pub static VOID: LazyLock<Script> = LazyLock::new(|| {
    let parts = [CLOCK, RESOLVE, include_str!("void.lua")];
    Script::new("void", WhenFull::Run, &parts)
});

/// How long a voided id stays refused. A command that was sent before cannot arrive later than its connection lives
/// after the server went on; an hour is far beyond that.
pub const TOMBSTONE_LIFE: Duration = Duration::from_secs(3600);

/// What the void met.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Voided {
    /// The authorize had run; its charge was given back.
    Refunded,
    /// It had not run, and never will.
    Barred,
}

/// Voids the hold `name`. Safe to repeat.
///
/// # Errors
/// [`StoreError`]; repeat it until it succeeds.
pub async fn void(store: &Store, name: &HoldName) -> Result<Voided, StoreError> {
    void_as(&VOID, store, name).await
}

/// Like [`void`] with another script: the tests check that a changed one is noticed.
///
/// # Errors
/// As [`void`].
pub async fn void_as(script: &Script, store: &Store, name: &HoldName) -> Result<Voided, StoreError> {
    let keys = name.keys();
    let life = TOMBSTONE_LIFE.as_millis().to_string();
    let reply: Vec<String> = store
        .script(script, &keys.to_resolve(), &[&name.allow_id, &life])
        .await?;
    match reply.first().map(String::as_str) {
        Some("refunded") => Ok(Voided::Refunded),
        Some("voided") => Ok(Voided::Barred),
        _ => Err(StoreError::Nonsense("void".to_owned())),
    }
}
