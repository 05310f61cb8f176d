//! Index of each wallet's funded or disputed escrows that its account pays, which prevent the deletion of its agent
//! (decision D15). What another account pays does not: anybody could keep an agent so. It arrives in the user wallet.
//!
//! An earlier version also added those that another account pays, before they were funded: a deletion that meets one
//! removes the entry.

use crate::escrow::Escrow;
use crate::script::change::Scope;
use crate::{Store, StoreError};

/// Number of escrows checked concurrently.
const AT_ONCE: usize = 100;

/// Removes the entries of escrows that are not open or that another account pays, [`AT_ONCE`] at most. Returns whether
/// there was one.
/// Safe to retry.
pub(crate) async fn forget_over(store: &Store, scope: &Scope<'_>, owner: &str) -> Result<bool, StoreError> {
    let set = scope.realm().open_escrows(owner);
    let mut some = redis::cmd("SRANDMEMBER");
    some.arg(&set).arg(AT_ONCE);
    let numbers: Vec<u64> = store.command(&some).await?;
    let mut forgotten = false;
    for number in numbers {
        if !is_open(store, scope.account, number).await? {
            let _: i64 = store.command(redis::cmd("SREM").arg(&set).arg(number)).await?;
            forgotten = true;
        }
    }
    Ok(forgotten)
}

/// Whether the escrow holds money of this payer.
async fn is_open(store: &Store, payer: &str, number: u64) -> Result<bool, StoreError> {
    let place = Escrow::place(store, number).await?;
    let Some(realm) = place.filter(|realm| realm.account() == payer) else {
        return Ok(false);
    };
    let record = realm.escrow(number);
    let status: Option<String> = store
        .command(redis::cmd("HGET").arg(record).arg("status"))
        .await?;
    Ok(matches!(status.as_deref(), Some("funded" | "disputed")))
}
