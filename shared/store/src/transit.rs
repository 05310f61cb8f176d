//! Transit: rows for money or notices that have left one account and not arrived in another (decision D28). The script
//! that debits writes the row in the sender's bucket; it is removed after the receiver's script has marked its arrival.
//! In between the money is in transit, and the transit worker continues after a crash.

pub mod script;

use crate::keys::{AccountKeys, Bucket};
use crate::{Store, StoreError};
use domain::mode::Mode;
use serde::{Deserialize, Serialize};

/// Most rows of a bucket that are read at once.
pub const WAITING_MAX: usize = 100;

/// A row.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Transit {
    /// Id: the sender's transaction id, or `escrow:<number>:<outcome>`.
    pub id: String,
    /// Sending account.
    pub from_account: String,
    /// Receiving account.
    pub to_account: String,
    /// `live` or `test`.
    pub mode: String,
    /// Owner of the receiving wallet.
    pub to_owner: String,
    /// Number of that wallet.
    pub to_wallet: u64,
    /// The money; `None` for a mere notice.
    pub credit: Option<Credit>,
    /// Number of the escrow that ends for the receiving wallet.
    pub escrow: Option<u64>,
    /// The receiver's intent, if the receiver made the request: arguments of its script.
    pub intent: Option<IntentParts>,
    /// The receiver's audit entry; `None` if it records nothing.
    pub audit: Option<String>,
    /// Number of an escrow that the receiving account lists; then nothing else happens. Such a row has no audit entry,
    /// so an earlier version cannot parse it and leaves it to this one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lists: Option<u64>,
}

/// Money in transit.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Credit {
    /// The amount in nano-USD.
    pub nanos: u64,
    /// `transfer_in` or `escrow_release`.
    pub kind: String,
    /// Id of the transaction to be, `txn_…`.
    pub transaction: String,
    /// Counterparty.
    pub counterparty: String,
    /// The currency.
    pub currency: String,
    /// The memo.
    pub memo: Option<String>,
}

/// An intent to be written in the receiver's account.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct IntentParts {
    /// `int_…`
    pub id: String,
    /// Kind of request.
    pub kind: String,
    /// Agent id or `user` that lists it.
    pub agent: String,
    /// See `NewIntent::heads`.
    pub heads: String,
    /// See `NewIntent::fields`.
    pub fields: Vec<String>,
}

impl Transit {
    /// Reads some of a bucket's rows, [`WAITING_MAX`] at most and others each time, and the count of all. A malformed
    /// row is returned as an error of its own, so that it does not hold up the others.
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

    /// Returns the keys of the sending account.
    #[must_use]
    pub(crate) fn from_keys(&self) -> AccountKeys {
        AccountKeys::new(&self.from_account)
    }
}
