//! From the name of a wallet in a request to the wallet (decisions D3, D61).

use crate::problem::{Code, Problem};
use crate::routes::{Call, WalletName};
use shared::store::keys::USER;
use shared::store::script::wallet::user_wallet;
use shared::store::wallet::{Wallet, WalletPlace};

/// A wallet and where it stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Found {
    /// Whose it is.
    pub(super) place: WalletPlace,
    /// As it was just now; it may be closed.
    pub(super) wallet: Wallet,
}

impl Found {
    /// Whether it belongs to the caller's account.
    pub(super) fn is_of(&self, call: &Call) -> bool {
        self.place.account == call.caller.account
    }
}

/// The wallet that `name` in the field `field` names, in the caller's mode; a number or id may be another account's.
///
/// # Errors
/// 404 when there is none, 503.
pub(super) async fn find(call: &Call, field: &str, name: &WalletName) -> Result<Found, Problem> {
    let store = &call.app.store;
    let found = match name {
        WalletName::Owner(owner) => of_owner(call, owner).await?,
        WalletName::Number(_) | WalletName::Id(_) => match WalletPlace::find(store, &name.text()).await? {
            Some(place) if place.mode == call.caller.mode => {
                let wallet = Wallet::at(store, &place).await?;
                wallet.map(|wallet| Found { place, wallet })
            }
            _ => None,
        },
    };
    found.ok_or_else(|| {
        let message = format!("{field}: there is no wallet `{}`.", name.text());
        Problem::new(Code::NotFound, message)
    })
}

async fn of_owner(call: &Call, owner: &str) -> Result<Option<Found>, Problem> {
    let (store, mode) = (&call.app.store, call.caller.mode);
    let wallet = match owner {
        USER => Some(user_wallet(store, &call.scope()).await?),
        agent => Wallet::of_owner(store, &call.keys(), mode, agent).await?,
    };
    Ok(wallet.map(|wallet| Found {
        place: WalletPlace {
            account: call.caller.account.clone(),
            mode,
            owner: wallet.owner.clone(),
            number: wallet.number,
        },
        wallet,
    }))
}
