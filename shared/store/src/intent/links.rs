//! Links of an escrow call's intent: the escrow, in the payer's account, and the mutually exclusive intents of release
//! and dispute, each in its caller's account.

use crate::escrow::Escrow;
use crate::{Store, StoreError};
use domain::mode::Mode;
use domain::money::Nanos;

/// Maximum number of siblings that are read.
pub const SIBLINGS_MAX: usize = 100;

/// An escrow as an intent shows it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EscrowLink {
    /// Unique in the store.
    pub number: u64,
    /// As read now, not as of the intent.
    pub status: String,
    /// Set at its creation; never changes.
    pub amount: Nanos,
    /// The release and dispute intents on it, oldest first, each once.
    pub siblings: Vec<Sibling>,
}

/// Location of an intent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sibling {
    /// Account id, `acct_…`.
    pub account: String,
    /// The intent's id.
    pub intent: String,
}

impl EscrowLink {
    /// Reads the escrow `number`; `None` if it does not exist in this mode.
    pub async fn read(store: &Store, mode: Mode, number: u64) -> Result<Option<Self>, StoreError> {
        let unexpected_reply = || StoreError::unexpected("escrow");
        let Some(realm) = Escrow::payer_realm(store, number)
            .await?
            .filter(|place| place.mode() == mode)
        else {
            return Ok(None);
        };
        let mut query = redis::pipe();
        query
            .cmd("HMGET")
            .arg(realm.escrow(number))
            .arg(&["status", "amount"]);
        query
            .cmd("LRANGE")
            .arg(realm.escrow_siblings(number))
            .arg(0)
            .arg(SIBLINGS_MAX);
        let (fields, items): (Vec<Option<String>>, Vec<String>) = store.pipeline(&query).await?;
        let [Some(status), Some(amount)] = fields.as_slice() else {
            return Ok(None);
        };
        let siblings = items.iter().map(|item| Sibling::parse(item));
        let mut siblings: Vec<Sibling> = siblings.collect::<Option<_>>().ok_or_else(unexpected_reply)?;
        // A call retried after a crash may have added its intent twice.
        let mut seen = std::collections::HashSet::new();
        siblings.retain(|sibling| seen.insert(sibling.intent.clone()));
        Ok(Some(Self {
            number,
            status: status.clone(),
            amount: Nanos::from_stored(amount.parse().map_err(|_| unexpected_reply())?),
            siblings,
        }))
    }
}

impl Sibling {
    /// Parses `<account> <intent id>`.
    fn parse(item: &str) -> Option<Self> {
        let (account, intent) = item.split_once(' ')?;
        Some(Self {
            account: account.to_owned(),
            intent: intent.to_owned(),
        })
    }
}
