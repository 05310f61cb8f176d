//! Index of each wallet's funded or disputed escrows, which prevent the deletion of its agent (decision D15).
//!
//! For a payee in another account the entry is added before the funding and removed after the end, so it can name
//! escrows that are not open: a deletion that meets one checks it and removes the entry.

use crate::escrow::Escrow;
use crate::keys::AccountKeys;
use crate::script::change::Scope;
use crate::{Store, StoreError};

/// Escrows checked at once.
const AT_ONCE: usize = 100;

/// Removes the entries of escrows that are not open, [`AT_ONCE`] at most. Returns whether there was one.
/// Safe to retry.
pub(crate) async fn forget_over(store: &Store, scope: &Scope<'_>, owner: &str) -> Result<bool, StoreError> {
    let set = AccountKeys::new(scope.account).open_escrows(scope.mode, owner);
    let mut some = redis::cmd("SRANDMEMBER");
    some.arg(&set).arg(AT_ONCE);
    let numbers: Vec<u64> = store.command(&some).await?;
    let mut forgotten = false;
    for number in numbers {
        if !is_open(store, number).await? {
            let _: i64 = store.command(redis::cmd("SREM").arg(&set).arg(number)).await?;
            forgotten = true;
        }
    }
    Ok(forgotten)
}

/// Whether the escrow holds money.
async fn is_open(store: &Store, number: u64) -> Result<bool, StoreError> {
    let Some((account, mode)) = Escrow::place(store, number).await? else {
        return Ok(false);
    };
    let record = AccountKeys::new(&account).escrow(mode, number);
    let status: Option<String> = store
        .command(redis::cmd("HGET").arg(record).arg("status"))
        .await?;
    Ok(matches!(status.as_deref(), Some("funded" | "disputed")))
}
