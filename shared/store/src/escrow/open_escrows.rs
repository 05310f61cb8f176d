//! The note of each wallet's escrows that are funded or disputed, which keep its agent from being deleted (decision
//! D15).
//!
//! For a payee of another account the note is written before the escrow is funded and taken away after it is over, so
//! it can name escrows that are not open: whoever meets one that stands in the way looks, and takes the note away.

use crate::escrow::Escrow;
use crate::keys::AccountKeys;
use crate::script::change::Scope;
use crate::{Store, StoreError};

/// Escrows looked at in one go.
const AT_ONCE: usize = 100;

/// Takes away the notes of escrows that are not open, [`AT_ONCE`] at most; true when there was one.
///
/// # Errors
/// [`StoreError`]; safe to retry.
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
