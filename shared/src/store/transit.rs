//! What has left one account and has not arrived in another yet (decision D28). A row is written by the script that
//! takes the money, in the sender's bucket, and taken away after the receiver's script has marked it as arrived; between
//! the two the money is in transit, and the worker carries on wherever a crash left it.

use super::keys::{AccountKeys, Bucket};
use super::{Store, StoreError};
use crate::domain::mode::Mode;
use serde::{Deserialize, Serialize};

/// A row, as stored.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Transit {
    /// What it is called: the id of the sender's transaction, or `escrow:<number>:<what became of it>`.
    pub id: String,
    /// The account that it comes from.
    pub from_account: String,
    /// The account that it goes to.
    pub to_account: String,
    /// `live` or `test`.
    pub mode: String,
    /// The owner of the wallet that it is for.
    pub to_owner: String,
    /// The number of that wallet.
    pub to_wallet: u64,
    /// The money that arrives there; none for a mere notice.
    pub credit: Option<Credit>,
    /// The escrow that is over for the receiving wallet.
    pub escrow: Option<u64>,
    /// The receiver's own intent, when the receiver asked for it: the arguments that its script takes.
    pub intent: Option<IntentParts>,
    /// The receiver's audit entry.
    pub audit: String,
}

/// Money on its way.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Credit {
    /// The amount in nano-USD.
    pub nanos: u64,
    /// `transfer_in` or `escrow_release`.
    pub kind: String,
    /// The words of the transaction, without its owner: see `NewTransaction`.
    pub transaction: String,
    /// The other side.
    pub counterparty: String,
    /// The currency.
    pub currency: String,
    /// The memo.
    pub memo: Option<String>,
}

/// An intent to be written where it belongs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct IntentParts {
    /// `int_…`
    pub id: String,
    /// Its kind.
    pub kind: String,
    /// The agent or `user` that it is listed under.
    pub agent: String,
    /// See `NewIntent::heads`.
    pub heads: String,
    /// See `NewIntent::fields`.
    pub fields: Vec<String>,
}

impl Transit {
    /// The rows that wait in a bucket.
    ///
    /// # Errors
    /// [`StoreError`], also for a row that makes no sense.
    pub async fn waiting(store: &Store, bucket: Bucket) -> Result<Vec<Self>, StoreError> {
        let rows: Vec<String> = store.command(redis::cmd("HVALS").arg(bucket.transit())).await?;
        let nonsense = |_| StoreError::Nonsense("transit row".to_owned());
        rows.iter()
            .map(|row| serde_json::from_str(row).map_err(nonsense))
            .collect()
    }

    /// The mode.
    #[must_use]
    pub fn mode(&self) -> Option<Mode> {
        Mode::parse(&self.mode)
    }

    /// The keys of the account that it comes from.
    #[must_use]
    pub fn from_keys(&self) -> AccountKeys {
        AccountKeys::of(&self.from_account)
    }
}
