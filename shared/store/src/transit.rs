//! Transit: rows for money or notices that have left one account and not yet arrived in another (decision D28). The
//! script that debits writes the row in the sender's bucket; the row is removed after the receiver's script has marked
//! its arrival. In between the money is in transit, and after a crash the transit worker delivers it.

pub mod script;

use crate::keys::{AccountKeys, Bucket};
use crate::{Store, StoreError};
use clock::now_ms;
use domain::mode::Mode;
use serde::{Deserialize, Serialize};

/// Maximum number of rows of a bucket that are read at once.
pub const WAITING_MAX: usize = 100;
/// Maximum number of ids of a bucket that are listed at once. If there are more, each read lists others.
pub const IDS_MAX: usize = 10_000;

/// Audit entry of money from another account.
pub(crate) const TRANSFER_RECEIVED: &str = "transfer.received";
/// Audit entry of the payee in another account for the release of an escrow.
pub(crate) const ESCROW_RELEASED: &str = "escrow.released";
/// The same for its refund to the payer.
pub(crate) const ESCROW_REFUNDED: &str = "escrow.refunded";
/// The same for its dispute.
pub(crate) const ESCROW_DISPUTED: &str = "escrow.disputed";
/// Every type of audit entry that an arrival writes. Nothing else writes these, so they do not count as the doing of
/// the account that receives (decision D71).
pub const ARRIVAL_ENTRIES: [&str; 4] = [
    TRANSFER_RECEIVED,
    ESCROW_RELEASED,
    ESCROW_REFUNDED,
    ESCROW_DISPUTED,
];

/// Rows in transit of a bucket.
#[derive(Debug, Default)]
pub struct TransitRows {
    /// The ids of all rows, at most [`IDS_MAX`].
    pub ids: Vec<String>,
    /// The rows that were read, by id.
    pub rows: Vec<(String, Result<Transit, StoreError>)>,
}

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
    /// Number of an escrow that the receiving account adds to its list, without any other effect or audit entry.
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
    /// Sender, as the receiver's transaction shows it.
    pub counterparty: String,
    /// `USD` or `USDC`.
    pub currency: String,
    /// The sender's text.
    pub memo: Option<String>,
}

/// An intent to be written in the receiver's account.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct IntentParts {
    /// `int_…`
    pub id: String,
    /// Kind of request.
    pub kind: String,
    /// Agent id, or `user`, whose list it is added to.
    pub agent: String,
    /// See `NewIntent::heads`.
    pub heads: String,
    /// See `NewIntent::fields`.
    pub fields: Vec<String>,
}

impl Transit {
    /// Reads at most [`WAITING_MAX`] of the rows of a bucket whose ids are `due`, different ones each time. A malformed
    /// row is returned as a separate error, so that it does not delay the others. Takes the store O(n) in the ids.
    pub async fn waiting(
        store: &Store,
        bucket: Bucket,
        due: impl Fn(&str) -> bool,
    ) -> Result<TransitRows, StoreError> {
        let rows = bucket.transit();
        let listed = redis::cmd("HRANDFIELD").arg(&rows).arg(IDS_MAX).to_owned();
        let ids: Vec<String> = store.command(&listed).await?;
        let mut due: Vec<&String> = ids.iter().filter(|id| due(id)).collect();
        if due.is_empty() {
            return Ok(TransitRows {
                ids,
                rows: Vec::new(),
            });
        }
        let first = usize::try_from(now_ms()).unwrap_or(0) % due.len();
        due.rotate_left(first);
        due.truncate(WAITING_MAX);
        let mut read = redis::cmd("HMGET");
        read.arg(&rows).arg(&due);
        let found: Vec<Option<String>> = store.command(&read).await?;
        let unexpected_reply = |_| StoreError::unexpected("transit row");
        // A row that no longer exists was delivered by another worker.
        let rows = due.into_iter().zip(found).filter_map(|(id, row)| {
            let row = serde_json::from_str(&row?).map_err(unexpected_reply);
            Some((id.clone(), row))
        });
        let rows = rows.collect();
        Ok(TransitRows { ids, rows })
    }

    /// `live` or `test`.
    pub fn mode(&self) -> Option<Mode> {
        Mode::parse(&self.mode)
    }

    /// Returns the keys of the sending account.
    pub(crate) fn sender_keys(&self) -> AccountKeys {
        AccountKeys::new(&self.from_account)
    }
}
