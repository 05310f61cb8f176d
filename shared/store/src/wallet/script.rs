//! Twin of `wallet/open.lua`: the account's own wallet, opened at first need.

use crate::keys::USER;
use crate::script::change::{AuditEvent, CHANGE_ATTEMPTS, Scope, unexpected_reply};
use crate::script::script;
use crate::wallet::{NewWalletPlace, Wallet};
use crate::{Store, StoreError};
use serde_json::json;

script! {
    /// Opens the user wallet.
    pub static OPEN = "wallet_open",
    kind: Change,
    source: [include_str!("open.lua")],
    when_full: Refuse,
    marks: [confirmed],
    keys: struct OpenKeys: String { wallet, place },
    args: struct OpenArgs<'a>: &'a str { number, id, place },
}

/// Returns the user wallet of the account and mode in `scope`; opens it if there is none.
/// Safe to retry.
pub async fn find_or_open_user_wallet(store: &Store, scope: &Scope<'_>) -> Result<Wallet, StoreError> {
    let realm = scope.realm();
    if let Some(wallet) = Wallet::find_by_owner(store, &realm, USER).await? {
        return Ok(wallet);
    }
    for _ in 0..CHANGE_ATTEMPTS {
        let new = NewWalletPlace::draw(store, scope, USER).await?;
        let data = json!({ "wallet": new.id, "walletId": new.number.get() });
        let event = AuditEvent::new("wallet.opened", data);
        let number = new.number.to_string();
        let keys = OpenKeys {
            wallet: realm.wallet(USER),
            place: new.place_key,
        };
        let args = OpenArgs {
            number: &number,
            id: &new.id,
            place: &new.place_text,
        };
        let mut reply = scope.execute(store, &OPEN, event, keys, args).await?;
        match reply.word()?.as_str() {
            "opened" | "exists" => break,
            "taken" => {}
            _ => return reply.unexpected(),
        }
    }
    let wallet = Wallet::find_by_owner(store, &realm, USER).await?;
    wallet.map_or_else(|| unexpected_reply(&OPEN), Ok)
}
