//! Twin of `wallet/open.lua`: the account's own wallet, opened when it is first needed.

use super::change::{CHANGE, Event, Scope, nonsense};
use super::{Script, WhenFull};
use crate::clock::now_ms;
use crate::domain::id::Kind;
use crate::store::keys::USER;
use crate::store::wallet::{Wallet, WalletPlace};
use crate::store::{Store, StoreError};
use serde_json::json;
use std::sync::LazyLock;

/// Opens the user wallet.
pub static OPEN: LazyLock<Script> = LazyLock::new(|| {
    Script::new(
        "wallet_open",
        WhenFull::Refuse,
        &[CHANGE, include_str!("wallet/open.lua")],
    )
});

/// The user wallet of the account and mode in `scope`; it is opened when there is none yet.
///
/// # Errors
/// [`StoreError`]; it may be repeated.
pub async fn user_wallet(store: &Store, scope: &Scope<'_>) -> Result<Wallet, StoreError> {
    let account = scope.keys();
    if let Some(wallet) = Wallet::of_owner(store, &account, scope.mode, USER).await? {
        return Ok(wallet);
    }
    let number = WalletPlace::next_number(store).await?;
    let no_entropy = |error: crate::entropy::NoEntropy| StoreError::Nonsense(error.to_string());
    let id = Kind::Wallet.mint(now_ms()).map_err(no_entropy)?;
    let lookups = WalletPlace::write(store, scope, USER, number, &id).await?;
    let event = Event {
        kind: "wallet.opened",
        agent: None,
        data: json!({ "wallet": id, "walletId": number }),
    };
    let keys = [account.wallet(scope.mode, USER)];
    let number = number.to_string();
    let reply = scope.run(store, &OPEN, event, &keys, &[&number, &id]).await?;
    match reply.first().map(String::as_str) {
        Some("opened") => {}
        Some("exists") => WalletPlace::forget(store, &lookups).await?,
        _ => return nonsense(&OPEN),
    }
    let wallet = Wallet::of_owner(store, &account, scope.mode, USER).await?;
    wallet.map_or_else(|| nonsense(&OPEN), Ok)
}
