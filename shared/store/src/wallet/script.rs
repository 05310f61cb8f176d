//! Twin of `wallet/open.lua`: the account's own wallet, opened at first need.

use crate::keys::USER;
use crate::script::change::{ATTEMPTS, CHANGE, Event, Scope, unexpected_reply};
use crate::script::{Script, WhenFull};
use crate::wallet::{NewPlace, Wallet};
use crate::{Store, StoreError};
use serde_json::json;
use std::sync::LazyLock;

/// Opens the user wallet.
pub static OPEN: LazyLock<Script> = LazyLock::new(|| {
    Script::new(
        "wallet_open",
        WhenFull::Refuse,
        &[CHANGE, include_str!("open.lua")],
    )
    .of_names()
});

/// Returns the user wallet of the account and mode in `scope`; opens it if there is none.
///
/// # Errors
/// [`StoreError`]; safe to retry.
pub async fn user_wallet(store: &Store, scope: &Scope<'_>) -> Result<Wallet, StoreError> {
    let account = scope.keys();
    if let Some(wallet) = Wallet::of_owner(store, &account, scope.mode, USER).await? {
        return Ok(wallet);
    }
    for _ in 0..ATTEMPTS {
        let new = NewPlace::draw(store, scope, USER).await?;
        let event = Event {
            kind: "wallet.opened",
            agent: None,
            data: json!({ "wallet": new.id, "walletId": new.number.get() }),
        };
        let number = new.number.to_string();
        let keys = [account.wallet(scope.mode, USER), new.key];
        let args = [number.as_str(), &new.id, &new.text];
        let reply = scope.execute(store, &OPEN, event, &keys, &args).await?;
        match reply.first().map(String::as_str) {
            Some("opened" | "exists") => break,
            Some("taken") => {}
            _ => return unexpected_reply(&OPEN),
        }
    }
    let wallet = Wallet::of_owner(store, &account, scope.mode, USER).await?;
    wallet.map_or_else(|| unexpected_reply(&OPEN), Ok)
}
