//! A hold: the charge of an approved call that is not settled yet, with the keys that its scripts use.

use crate::keys::{Bucket, Realm};
use crate::script::names::inputs;
use domain::entry::{run_of_word, run_word};
use domain::money::Nanos;
use domain::period::Period;

/// Fragment that checks whether a missing hold is conclusive: the store may lack writes.
pub(crate) const LOST_WRITES: (&str, &str) = ("lost_writes.lua", include_str!("lost_writes.lua"));
pub(crate) const END_HOLD: (&str, &str) = ("end_hold.lua", include_str!("end_hold.lua"));

inputs! {
    /// The keys of the scripts that end a hold: `settle`, `void` and `reap`.
    pub(crate) struct EndKeys<'a>: &'a str { account, agent, run, hold, due, kept_index, kept_hold, audit_log }
}

/// Names of a call in the ledger. Every script that ends its hold derives its keys from them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HoldName {
    /// Account id, `acct_…`.
    pub account: String,
    /// Agent id.
    pub agent: String,
    /// Run id, chosen by the caller or generated.
    pub run: String,
    /// Decision id, `allow_…`; chosen by the edge.
    pub allow_id: String,
}

/// Keys of a hold, all in the account's bucket. Computed once per call, for both of its scripts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HoldKeys {
    pub(crate) realm: Realm,
    pub(crate) agent: String,
    pub(crate) run: String,
    pub(crate) hold: String,
    pub(crate) kept_hold: String,
    pub(crate) audit: String,
}

impl HoldName {
    /// Computes the keys of this hold.
    pub fn keys(&self) -> HoldKeys {
        self.keys_in(Bucket::from_account(&self.account))
    }

    /// Computes the keys of this hold. `bucket` must be that of its account.
    pub fn keys_in(&self, bucket: Bucket) -> HoldKeys {
        let realm = Realm::live_in(bucket, &self.account);
        HoldKeys {
            agent: realm.agent(&self.agent),
            run: realm.run(&self.agent, &self.run),
            hold: bucket.hold(&self.allow_id),
            kept_hold: bucket.kept_hold(&self.allow_id),
            audit: realm.audit(),
            realm,
        }
    }
}

impl HoldKeys {
    /// Returns the keys of `settle`, `void` and `reap`.
    pub(crate) fn to_end(&self) -> EndKeys<'_> {
        let singles = self.realm.bucket().single_keys();
        EndKeys {
            account: self.realm.keys().name(),
            agent: &self.agent,
            run: &self.run,
            hold: &self.hold,
            due: &singles.due,
            kept_index: &singles.kept,
            kept_hold: &self.kept_hold,
            audit_log: &self.audit,
        }
    }
}

/// An open or kept hold, as stored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Hold {
    /// The names of the call.
    pub name: HoldName,
    /// Charged estimate.
    pub estimate: Nanos,
    /// Day and month that were charged.
    pub period: Period,
    /// True if the caller named the run; only named runs have records.
    pub run_named: bool,
    /// Snapshot of the checks, parsed by [`RecordedCheck`](domain::entry::RecordedCheck).
    pub checks: String,
    /// Id of the virtual key.
    pub key_id: String,
    /// Version of the price table that the estimate follows (decision D48).
    pub price_version: String,
    /// Requested model, cut to [`MODEL_MAX`] bytes.
    pub model: String,
}

/// Longest model name kept in a hold, in bytes.
pub const MODEL_MAX: usize = 128;

/// Composes the part of the stored text and audit line that `authorize` copies unchanged. The model is last, since it
/// may contain spaces.
pub fn memo(name: &HoldName, key_id: &str, price_version: &str, model: &str) -> String {
    let end = (0..=MODEL_MAX.min(model.len()))
        .rev()
        .find(|end| model.is_char_boundary(*end))
        .unwrap_or(0);
    let HoldName {
        account,
        agent,
        run,
        allow_id: _,
    } = name;
    [
        account,
        agent,
        run_word(run),
        key_id,
        price_version,
        &model[..end],
    ]
    .join(" ")
}

impl Hold {
    /// Parses the stored text of the hold `allow_id`; `None` for a tombstone or malformed text.
    pub fn parse(allow_id: &str, text: &str) -> Option<Self> {
        let mut words = text.splitn(12, ' ');
        let mut next = || words.next();
        if next()? != "H" {
            return None;
        }
        let estimate = Nanos::new(next()?.parse().ok()?)?;
        let period = Period {
            day: next()?.parse().ok()?,
            month: next()?.parse().ok()?,
        };
        let run_named = next()? == "1";
        let [checks, account, agent] = [next()?, next()?, next()?].map(str::to_owned);
        let run = run_of_word(next()?).unwrap_or_default().to_owned();
        let [key_id, price_version, model] = [next()?, next()?, next()?].map(str::to_owned);
        let name = HoldName {
            account,
            agent,
            run,
            allow_id: allow_id.to_owned(),
        };
        Some(Self {
            name,
            estimate,
            period,
            run_named,
            checks,
            key_id,
            price_version,
            model,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use domain::entry::NONE;

    #[test]
    fn a_memo_is_read_back() {
        let name = HoldName {
            account: "acct_1".into(),
            agent: "bot".into(),
            run: "r:1".into(),
            allow_id: "allow_1".into(),
        };
        let text = format!(
            "H 120 20777 202611 1 0::,3:9:,,,,, {}",
            memo(&name, "vk_1", "abc", "a model with spaces")
        );
        let hold = Hold::parse("allow_1", &text).unwrap();
        assert_eq!(hold.name, name);
        assert_eq!(hold.model, "a model with spaces");
        assert_eq!(hold.checks, "0::,3:9:,,,,,");
        assert_eq!(
            (hold.estimate.get(), hold.period.day, hold.run_named),
            (120, 20_777, true)
        );
        assert_eq!(Hold::parse("allow_1", "V"), None);
        for (run, word) in [("", "-"), ("-", "%"), ("--", "--")] {
            let other = HoldName {
                run: run.to_owned(),
                ..name.clone()
            };
            let memo = memo(&other, "vk_1", NONE, "");
            assert_eq!(memo, format!("acct_1 bot {word} vk_1 - "));
            let hold = Hold::parse("allow_1", &format!("H 120 20777 202611 1 0::,3:9:,,,,, {memo}"));
            assert_eq!(hold.unwrap().name, other);
        }
        let long = "é".repeat(100);
        assert!(memo(&name, "vk_1", "abc", &long).ends_with(&"é".repeat(64)));
    }
}
