//! Finds the wallet that a request names (decisions D3, D61).

use crate::state::Call;
use domain::id::RANDOM_LEN;
use endpoint::{Code, Problem, WalletName};
use serde_json::{Value, json};
use store::keys::USER;
use store::script::change::Scope;
use store::wallet::script::find_or_open_user_wallet;
use store::wallet::{Wallet, WalletPlace, WalletStatus};
use store::{Store, StoreError};

/// Maximum number of attempts of a change whose wallets change between the read and the script.
pub const WALLET_ATTEMPTS: usize = 4;

/// A wallet and its place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FoundWallet {
    /// Account, mode, owner and number of the wallet.
    pub place: WalletPlace,
    /// Record of the wallet; it may be closed.
    pub wallet: Wallet,
}

impl FoundWallet {
    /// Returns whether it belongs to the caller's account.
    pub(crate) fn is_of(&self, call: &Call) -> bool {
        self.place.account == call.caller.account
    }

    /// Checks that it belongs to the caller's account. `field` named it.
    ///
    /// # Errors
    /// 403 `NOT_A_PARTY`.
    pub(crate) fn require_own(&self, call: &Call, field: &str) -> Result<(), Problem> {
        if self.is_of(call) {
            return Ok(());
        }
        let message = format!("{field}: this wallet is not yours.");
        Err(Problem::new(Code::NotAParty, message))
    }

    /// Returns whether its agent was deleted, which is final.
    pub fn is_closed(&self) -> bool {
        self.wallet.status == WalletStatus::Closed
    }
}

/// Finds the wallet that `field` of a body names, in the caller's mode. A number or id may belong to another account.
///
/// # Errors
/// 404 if there is none, 503.
pub(crate) async fn require_wallet(
    call: &Call,
    field: &str,
    name: &WalletName,
) -> Result<FoundWallet, Problem> {
    let found = find_wallet(&call.state.store, &call.scope(), name).await?;
    found.ok_or_else(|| {
        let hint = match name {
            WalletName::Owner(owner) if owner.bytes().all(|byte| byte.is_ascii_digit()) => {
                " The number of a wallet is sent without quotes; in quotes it names an agent."
            }
            _ => "",
        };
        let message = format!("{field}: there is no wallet `{}`.{hint}", name.text());
        Problem::new(Code::NotFound, message)
    })
}

/// Finds the wallet with this name in the mode of `scope`; `None` if there is none. An agent or `user` refers to the
/// account of `scope`, a number or id to any account.
pub async fn find_wallet(
    store: &Store,
    scope: &Scope<'_>,
    name: &WalletName,
) -> Result<Option<FoundWallet>, StoreError> {
    match name {
        WalletName::Owner(owner) => find_by_owner(store, scope, owner).await,
        WalletName::Number(_) | WalletName::Id(_) => match WalletPlace::find(store, &name.text()).await? {
            Some(place) if place.mode == scope.mode => {
                let wallet = Wallet::at(store, &place).await?;
                Ok(wallet.map(|wallet| FoundWallet { place, wallet }))
            }
            _ => Ok(None),
        },
    }
}

async fn find_by_owner(
    store: &Store,
    scope: &Scope<'_>,
    owner: &str,
) -> Result<Option<FoundWallet>, StoreError> {
    let wallet = match owner {
        USER => Some(find_or_open_user_wallet(store, scope).await?),
        agent => Wallet::find_by_owner(store, &scope.realm(), agent).await?,
    };
    Ok(wallet.map(|wallet| FoundWallet {
        place: WalletPlace {
            account: scope.account.to_owned(),
            mode: scope.mode,
            owner: wallet.owner.clone(),
            number: wallet.number,
        },
        wallet,
    }))
}

/// Finds the place of the wallet that the parameter `walletId` of a query names, of any account and mode; `None` if
/// there is none.
///
/// # Errors
/// 400 for a text that is neither a number nor an id, 503.
pub(crate) async fn find_wallet_place(call: &Call, text: &str) -> Result<Option<WalletPlace>, Problem> {
    let name = WalletName::from_path(text).ok_or_else(|| {
        let message = format!(
            "walletId must be the number of a wallet or its id, `wal_` and {RANDOM_LEN} letters and digits."
        );
        Problem::validation(message)
    })?;
    Ok(WalletPlace::find(&call.state.store, &name.text()).await?)
}

/// Returns the name as it stands in a fingerprint: a number is not text there, since an agent may have the same digits
/// as its id.
pub(crate) fn canonical(name: &WalletName) -> Value {
    match name {
        WalletName::Number(number) => json!(number),
        WalletName::Id(_) | WalletName::Owner(_) => json!(name.text()),
    }
}
