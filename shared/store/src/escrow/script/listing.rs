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
    kind: Timeless,
    source: [include_str!("../list.lua")],
    when_full: Run,
    marks: [confirmed],
    /// All of the payee's account.
    keys: struct ListKeys<'a>: &'a str { account, escrows },
    args: struct ListArgs<'a>: &'a str { number },
}

/// Last part of the id of a row that lists an escrow.
const CREATED: &str = "created";

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

/// Adds an escrow to the list of the payee's account.
/// Safe to retry.
pub(crate) async fn list_with_payee(
    store: &Store,
    payee: &Party,
    mode: Mode,
    number: u64,
) -> Result<(), StoreError> {
    let realm = payee.realm(mode);
    let keys = ListKeys {
        account: &realm.record(),
        escrows: &realm.escrows(),
    };
    let args = ListArgs {
        number: &number.to_string(),
    };
    let reply = store.reply(&LIST, keys, args).await?;
    reply.expect_one_of(&["listed"])
}
