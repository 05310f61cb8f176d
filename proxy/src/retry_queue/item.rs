//! A queued settlement or void with the ledger that it belongs to, in the format of the journal.

use domain::entry::HoldOutcome;
use domain::measured::Measured;
use domain::money::Nanos;
use serde::{Deserialize, Serialize};
use std::sync::Arc;
use store::call::hold::HoldName;
use store::call::settle::Settle;
use store::keys::{AccountKeys, Bucket};
use store::sanity::StoreRecord;
use store::versions::AccountVersion;

/// The ledger of a hold. Only that ledger can report the hold as missing, and only if the account's version is at least
/// that of the request.
#[derive(Debug, Clone)]
pub struct HoldOrigin {
    /// Record of the store that executed `authorize.lua`.
    pub ledger: Arc<StoreRecord>,
    /// Version of the account at that time.
    pub as_of: AccountVersion,
}

/// A settlement or void that the store has not accepted.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(tag = "do", rename_all = "snake_case")]
pub enum RetryItem {
    /// Settles a hold.
    Settle {
        /// Account, agent, run and decision id.
        name: [String; 4],
        /// The current charge.
        estimate_nanos: u64,
        /// The final charge.
        cost_nanos: u64,
        /// The call's end, as in the audit trail.
        #[serde(rename = "how", with = "hold_outcome")]
        outcome: HoldOutcome,
        /// The current charge if the last extension of the hold, whose reply was lost, took effect.
        #[serde(default)]
        extension_nanos: Option<u64>,
        /// Measurements in their stored form; `None` of a call without an answer.
        #[serde(default)]
        measured: Option<String>,
        /// Epoch of the hold's ledger.
        epoch: String,
        /// Version of the account with the hold.
        as_of: AccountVersion,
    },
    /// Refunds the hold of an execution whose reply was lost, or prevents it.
    Void {
        /// Account, agent, run and decision id.
        name: [String; 4],
        /// Epoch of the ledger.
        epoch: String,
        /// Last known version of the account before the execution.
        as_of: AccountVersion,
    },
}

impl RetryItem {
    /// Creates a settlement.
    pub fn settle(settle: Settle, origin: &HoldOrigin) -> Self {
        let Settle {
            name,
            estimate,
            cost,
            outcome,
            extension,
            measured,
            // Only an edge queues settlements.
            ended_by: _,
        } = settle;
        Self::Settle {
            name: to_words(name),
            estimate_nanos: estimate.get(),
            cost_nanos: cost.get(),
            outcome,
            extension_nanos: extension.map(Nanos::get),
            measured: measured.as_ref().map(Measured::to_word),
            epoch: origin.ledger.epoch.clone(),
            as_of: origin.as_of,
        }
    }

    /// Creates a void.
    pub fn void(name: HoldName, origin: &HoldOrigin) -> Self {
        Self::Void {
            name: to_words(name),
            epoch: origin.ledger.epoch.clone(),
            as_of: origin.as_of,
        }
    }

    fn words(&self) -> &[String; 4] {
        let (Self::Settle { name, .. } | Self::Void { name, .. }) = self;
        name
    }

    /// Returns the id of the account.
    pub fn account(&self) -> &str {
        &self.words()[0]
    }

    /// Returns the bucket of the account.
    pub fn bucket(&self) -> Bucket {
        AccountKeys::new(self.account()).bucket()
    }

    /// Returns the name of the hold.
    pub fn name(&self) -> HoldName {
        let [account, agent, run, allow_id] = self.words().clone();
        HoldName {
            account,
            agent,
            run,
            allow_id,
        }
    }

    /// Returns the charge of the call; zero for a void.
    pub const fn cost(&self) -> Nanos {
        match self {
            Self::Settle { cost_nanos, .. } => Nanos::from_stored(*cost_nanos),
            Self::Void { .. } => Nanos::ZERO,
        }
    }

    /// Returns whether the hold belongs to the ledger with this epoch.
    pub fn is_of(&self, ledger: &str) -> bool {
        let (Self::Settle { epoch, .. } | Self::Void { epoch, .. }) = self;
        epoch == ledger
    }

    /// Returns the account version from which on the store can report the hold as missing.
    pub const fn as_of(&self) -> AccountVersion {
        let (Self::Settle { as_of, .. } | Self::Void { as_of, .. }) = self;
        *as_of
    }

    /// Returns the settlement; `None` for a void.
    pub fn to_settle(&self) -> Option<Settle> {
        let Self::Settle {
            estimate_nanos,
            cost_nanos,
            outcome,
            extension_nanos,
            measured,
            ..
        } = self
        else {
            return None;
        };
        Some(Settle {
            name: self.name(),
            estimate: Nanos::from_stored(*estimate_nanos),
            cost: Nanos::from_stored(*cost_nanos),
            outcome: *outcome,
            extension: extension_nanos.map(Nanos::from_stored),
            measured: measured.as_deref().and_then(Measured::parse),
            ended_by: None,
        })
    }
}

fn to_words(name: HoldName) -> [String; 4] {
    [name.account, name.agent, name.run, name.allow_id]
}

/// The outcome of a call in a journal. A word of a later version makes the line unreadable, so that it is left to that
/// version.
mod hold_outcome {
    use super::HoldOutcome;
    use serde::de::{Deserialize, Deserializer, Error};
    use serde::ser::Serializer;

    pub fn serialize<S: Serializer>(outcome: &HoldOutcome, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(outcome.as_str())
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<HoldOutcome, D::Error> {
        let word = String::deserialize(deserializer)?;
        HoldOutcome::parse(&word).ok_or_else(|| D::Error::custom("an unknown outcome"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_item_is_read_back_from_its_line() {
        let item = RetryItem::Settle {
            name: ["acct_1", "bot", "r", "allow_1"].map(str::to_owned),
            estimate_nanos: 100,
            cost_nanos: 170,
            outcome: HoldOutcome::Settled,
            extension_nanos: Some(250),
            measured: Some("chat.completions,0,,9,0,12,812,,completed,0".to_owned()),
            epoch: "abc".to_owned(),
            as_of: AccountVersion {
                generation: 2,
                version: 9,
            },
        };
        let line = serde_json::to_string(&item).unwrap();
        assert_eq!(serde_json::from_str::<RetryItem>(&line).unwrap(), item);
        assert!(item.is_of("abc") && !item.is_of("abd"));
        let settle = item.to_settle().unwrap();
        assert_eq!(settle.extension, Nanos::new(250));
        let measured = settle.measured.unwrap();
        assert_eq!((measured.input_tokens, measured.latency_ms), (Some(9), Some(812)));
        let of_a_later_version = line.replace("\"settled\"", "\"adjusted\"");
        assert_ne!(of_a_later_version, line);
        assert!(serde_json::from_str::<RetryItem>(&of_a_later_version).is_err());
    }
}
