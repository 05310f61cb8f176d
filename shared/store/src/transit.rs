//! What has left one account and has not arrived in another yet (decision D28). A row is written by the script that
//! takes the money, in the sender's bucket, and taken away after the receiver's script has marked it as arrived;
//! between the two the money is in transit, and the worker carries on wherever a crash left it.

pub mod script;

use crate::keys::{AccountKeys, Bucket};
use crate::{Store, StoreError};
use domain::mode::Mode;
use serde::{Deserialize, Serialize};

/// Rows of a bucket that are read in one go.
pub const WAITING_MAX: usize = 100;

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
    /// The receiver's audit entry; none for what it does not record.
    pub audit: Option<String>,
    /// The escrow that the receiving account lists from now on, and nothing else happens. An earlier version cannot
    /// read such a row, which has no audit entry, and leaves it to this one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lists: Option<u64>,
}

/// Money on its way.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Credit {
    /// The amount in nano-USD.
    pub nanos: u64,
    /// `transfer_in` or `escrow_release`.
    pub kind: String,
    /// The id of the transaction that it will be, `txn_…`.
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
    /// Some of the rows that wait in a bucket, [`WAITING_MAX`] at most and others each time, and how many wait in all.
    /// A row that makes no sense stands for itself: it does not hold up the others.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn waiting(
        store: &Store,
        bucket: Bucket,
    ) -> Result<(Vec<Result<Self, StoreError>>, u64), StoreError> {
        let rows = bucket.transit();
        let total: u64 = store.command(redis::cmd("HLEN").arg(&rows)).await?;
        if total == 0 {
            return Ok((Vec::new(), 0));
        }
        let mut some = redis::cmd("HRANDFIELD");
        some.arg(&rows).arg(WAITING_MAX).arg("WITHVALUES");
        let some: Vec<(String, String)> = store.command(&some).await?;
        let unexpected_reply = |_| StoreError::UnexpectedReply("transit row".to_owned());
        let parse = |(_, row): &(String, String)| serde_json::from_str(row).map_err(unexpected_reply);
        Ok((some.iter().map(parse).collect(), total))
    }

    /// `live` or `test`.
    #[must_use]
    pub fn mode(&self) -> Option<Mode> {
        Mode::parse(&self.mode)
    }

    /// The keys of the account that it comes from.
    #[must_use]
    pub fn from_keys(&self) -> AccountKeys {
        AccountKeys::new(&self.from_account)
    }
}
