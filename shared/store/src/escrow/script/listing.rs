//! Twin of `list.lua`: a payee of another account finds a new escrow in its own list. It learns of it by a row in
//! transit that the script writes which makes the escrow; so no crash leaves an escrow that the payee does not see
//! (decision D28).

use super::LIST;
use crate::escrow::Party;
use crate::script::change::unexpected_reply;
use crate::transit::Transit;
use crate::{Store, StoreError};
use domain::mode::Mode;
use domain::number::Number;

/// The last word in the id of a row that lists an escrow.
const CREATED: &str = "created";

/// The row for an escrow that is about to be made.
pub(crate) fn row(number: Number, mode: Mode, (payer, payee): (&Party, &Party)) -> Transit {
    Transit {
        id: format!("escrow:{number}:{CREATED}"),
        from_account: payer.account.clone(),
        to_account: payee.account.clone(),
        mode: mode.as_str().to_owned(),
        to_owner: payee.owner.clone(),
        to_wallet: payee.wallet,
        credit: None,
        escrow: None,
        intent: None,
        audit: None,
        lists: Some(number.get()),
    }
}

/// Lists an escrow with the account of its payee, and where it is open among the open ones of
/// the payee's wallet.
///
/// # Errors
/// [`StoreError`]; safe to retry.
pub(crate) async fn list_with_payee(
    store: &Store,
    payee: &Party,
    mode: Mode,
    (number, is_open): (u64, bool),
) -> Result<(), StoreError> {
    let account = payee.keys();
    let open = account.open_escrows(mode, &payee.owner);
    let keys = [account.record(), account.escrows(mode), open];
    let number = number.to_string();
    let args = [number.as_str(), if is_open { "1" } else { "" }];
    let keys = keys.each_ref().map(String::as_str);
    let reply: Vec<String> = store.script(&LIST, &keys, &args).await?;
    match reply.first().map(String::as_str) {
        Some("listed") => Ok(()),
        _ => unexpected_reply(&LIST),
    }
}
