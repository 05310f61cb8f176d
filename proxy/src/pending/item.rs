//! What waits for the store, as the journal has it: one settlement or void, and the ledger that it belongs to.

use domain::entry::How;
use domain::money::Nanos;
use serde::{Deserialize, Serialize};
use std::sync::Arc;
use store::call::hold::{AsOf, HoldName};
use store::call::settle::Settle;
use store::keys::{AccountKeys, Bucket};
use store::sanity::StoreRecord;

/// The ledger that a hold belongs to. Only that one can say that there is no such hold, and only where the account has come as
/// far as when it was asked for.
#[derive(Debug, Clone)]
pub struct Origin {
    /// The record of the store that was asked.
    pub ledger: Arc<StoreRecord>,
    /// How far the account had come.
    pub as_of: AsOf,
}

/// Something that has to reach the store.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(tag = "do", rename_all = "snake_case")]
pub enum Item {
    /// Resolve a hold.
    Settle {
        /// Account, agent, run and decision id.
        name: [String; 4],
        /// Nano-USD charged.
        estimate_nanos: u64,
        /// Nano-USD to be charged.
        cost_nanos: u64,
        /// How the call ended, as the audit log calls it; a journal of an earlier version does not say.
        #[serde(default)]
        how: Option<String>,
        /// The epoch of the ledger that the hold belongs to; a journal of an earlier version does not say.
        #[serde(default)]
        epoch: Option<String>,
        /// How far the account had come with the hold.
        #[serde(default)]
        as_of: AsOf,
    },
    /// Make sure that a lost authorize never charges.
    Void {
        /// Account, agent, run and decision id.
        name: [String; 4],
        /// The epoch of the ledger that was asked; a journal of an earlier version does not say.
        #[serde(default)]
        epoch: Option<String>,
        /// How far the account was known to have come before.
        #[serde(default)]
        as_of: AsOf,
    },
}

impl Item {
    /// A settlement of a hold of this ledger.
    #[must_use]
    pub fn settle(settle: Settle, origin: &Origin) -> Self {
        let Settle {
            name,
            estimate,
            cost,
            how,
        } = settle;
        Self::Settle {
            name: to_words(name),
            estimate_nanos: estimate.get(),
            cost_nanos: cost.get(),
            how: Some(how.as_str().to_owned()),
            epoch: Some(origin.ledger.epoch.clone()),
            as_of: origin.as_of,
        }
    }

    /// The void of an authorize that this ledger was asked for.
    #[must_use]
    pub fn void(name: HoldName, origin: &Origin) -> Self {
        Self::Void {
            name: to_words(name),
            epoch: Some(origin.ledger.epoch.clone()),
            as_of: origin.as_of,
        }
    }

    fn words(&self) -> &[String; 4] {
        let (Self::Settle { name, .. } | Self::Void { name, .. }) = self;
        name
    }

    /// The id of the call's account.
    #[must_use]
    pub fn account(&self) -> &str {
        &self.words()[0]
    }

    /// The bucket of its account.
    #[must_use]
    pub fn bucket(&self) -> Bucket {
        AccountKeys::of(self.account()).bucket()
    }

    /// The hold.
    #[must_use]
    pub fn name(&self) -> HoldName {
        let [account, agent, run, allow_id] = self.words().clone();
        HoldName {
            account,
            agent,
            run,
            allow_id,
        }
    }

    /// Whether it belongs to the ledger with this epoch. Where the journal does not say, the account does: its id is random.
    #[must_use]
    pub fn is_of(&self, ledger: &str) -> bool {
        let (Self::Settle { epoch, .. } | Self::Void { epoch, .. }) = self;
        epoch.as_ref().is_none_or(|epoch| epoch == ledger)
    }

    /// How far the account has come where the store can say that there is no hold.
    #[must_use]
    pub const fn as_of(&self) -> AsOf {
        let (Self::Settle { as_of, .. } | Self::Void { as_of, .. }) = self;
        *as_of
    }

    /// The settlement, unless it is a void.
    #[must_use]
    pub fn to_settle(&self) -> Option<Settle> {
        let Self::Settle {
            estimate_nanos,
            cost_nanos,
            how,
            ..
        } = self
        else {
            return None;
        };
        Some(Settle {
            name: self.name(),
            estimate: Nanos::from_stored(*estimate_nanos),
            cost: Nanos::from_stored(*cost_nanos),
            how: to_how(how.as_deref(), *estimate_nanos, *cost_nanos),
        })
    }
}

fn to_words(name: HoldName) -> [String; 4] {
    [name.account, name.agent, name.run, name.allow_id]
}

/// How a call ended; told from its cost where the journal does not say.
fn to_how(word: Option<&str>, estimate_nanos: u64, cost_nanos: u64) -> How {
    word.and_then(How::parse).unwrap_or(match cost_nanos {
        cost if cost == estimate_nanos => How::Estimated,
        0 => How::Released,
        _ => How::Settled,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_journal_of_an_earlier_version_is_read() {
        for (cost, how) in [
            (100, How::Estimated),
            (0, How::Released),
            (30, How::Settled),
            (170, How::Settled),
        ] {
            let line = format!(
                r#"{{"do":"settle","name":["acct_1","bot","r","allow_1"],"estimate_nanos":100,"cost_nanos":{cost}}}"#
            );
            let item: Item = serde_json::from_str(&line).unwrap();
            assert_eq!(item.to_settle().unwrap().how, how, "{cost}");
            assert!(item.is_of("any ledger") && item.as_of() == AsOf::default());
        }
        assert_eq!(to_how(Some("released"), 0, 0), How::Released);
        assert_eq!(to_how(None, 0, 0), How::Estimated);
    }

    #[test]
    fn a_line_of_the_journal_says_all_of_it() {
        let item = Item::Settle {
            name: ["acct_1", "bot", "r", "allow_1"].map(str::to_owned),
            estimate_nanos: 100,
            cost_nanos: 170,
            how: Some("settled".to_owned()),
            epoch: Some("abc".to_owned()),
            as_of: AsOf {
                generation: 2,
                version: 9,
            },
        };
        let line = serde_json::to_string(&item).unwrap();
        assert_eq!(serde_json::from_str::<Item>(&line).unwrap(), item);
        assert!(item.is_of("abc") && !item.is_of("abd"));
    }
}
