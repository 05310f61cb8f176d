//! Twin of `list.lua`: adds a new escrow to the list of a payee in another account. The script that creates the escrow
//! writes a transit row for it, so no crash leaves an escrow that the payee does not see (decision D28).

use crate::escrow::Party;
use crate::script::script;
use crate::transit::Transit;
use crate::{Store, StoreError};
use domain::mode::Mode;
use domain::number::Number;

script! {
    /// Adds an escrow to the list of a payee in another account.
    pub static LIST = "escrow_list",
    source: [include_str!("../list.lua")],
    when_full: Run,
    marks: [of_names],
    /// All of the payee's account.
    keys: struct ListKeys<'a>: &'a str { account, escrows, open_escrows },
    args: struct ListArgs<'a>: &'a str { number, is_open },
}

/// Last part of the id of a row that lists an escrow.
const CREATED: &str = "created";

/// Returns the row for a new escrow.
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

/// Adds an escrow to the list of the payee's account and, while it is open, to the open escrows of the payee's wallet.
/// Safe to retry.
pub(crate) async fn list_with_payee(
    store: &Store,
    payee: &Party,
    mode: Mode,
    (number, is_open): (u64, bool),
) -> Result<(), StoreError> {
    let account = payee.keys();
    let keys = ListKeys {
        account: &account.record(),
        escrows: &account.escrows(mode),
        open_escrows: &account.open_escrows(mode, &payee.owner),
    };
    let args = ListArgs {
        number: &number.to_string(),
        is_open: if is_open { "1" } else { "" },
    };
    let reply = store.reply(&LIST, keys, args).await?;
    reply.is_one_of(&["listed"])
}
