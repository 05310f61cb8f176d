//! Every key name of the store, in one place.
//!
//! An account lives in one bucket `{bNNNN}`, its hash tag: all its keys share one cluster slot, so one script can
//! change them together. A look-up is in its record's bucket where the name carries the bucket: wallets and escrows, by
//! [number](domain::number::Number). `/` separates the parts; no caller-chosen name can contain it.
//!
//! Keys outside the buckets are in `keys/outside.rs`, with the reasons why they are safe.

/// Functions that name keys, one a row: they join the parts behind the name of the bucket or account. With `mode`, the
/// mode is their first argument and their first part.
macro_rules! keys {
    ($holder:ty: $($(#[$doc:meta])+ $vis:vis $name:ident($($arg:ident: $kind:ty),*) = $($part:expr),+;)+) => {
        impl $holder {
            $($(#[$doc])+
            $vis fn $name(&self, $($arg: $kind),*) -> String {
                self.key(&[$($part),+])
            })+
        }
    };
    ($holder:ty, mode: $($(#[$doc:meta])+ $vis:vis $name:ident($($arg:ident: $kind:ty),*) = $($part:expr),+;)+) => {
        impl $holder {
            $($(#[$doc])+
            $vis fn $name(&self, mode: Mode, $($arg: $kind),*) -> String {
                self.key(&["/", mode.as_str(), $($part),+])
            })+
        }
    };
}

mod audit;
mod money;
mod notices;
mod outside;
pub mod parse;
mod people;
mod webhooks;

pub use audit::DECISION_KEY_CHARS;
pub use money::{IntentIndex, TRANSACTION_LISTS, closed_holder};
pub use outside::{
    ACCOUNTS, BLOCKED, ESCROW_NUMBER, PRICES, REFUSED, STORE, WALLET_NUMBER, api_key_lookup, deposit_lookup,
    escrow_lookup, user_lookup, virtual_key_lookup, wallet_lookup,
};
pub use people::{Tries, attempts, invitation_lookup, reset_lookup, session_lookup};
pub use webhooks::DeliverySet;

use domain::mode::Mode;
use domain::number::{self, Number};
use domain::rate::Rate;
use sha2::{Digest, Sha256};
use std::sync::LazyLock;

/// Number of buckets. Workers poll buckets, not accounts.
pub const BUCKETS: u16 = number::BUCKETS;

/// The hash tags of the buckets.
static TAGS: LazyLock<Vec<String>> = LazyLock::new(|| (0..BUCKETS).map(|n| format!("{{b{n:04}}}")).collect());

/// Joins texts in one allocation: a call needs some twenty keys, and `format!` grows each in steps.
fn joined(first: &str, rest: &[&str]) -> String {
    let length = first.len() + rest.iter().map(|part| part.len()).sum::<usize>();
    let mut key = String::with_capacity(length);
    key.push_str(first);
    rest.iter().for_each(|part| key.push_str(part));
    key
}

domain::words! {
    /// A series of numbers.
    pub enum Series {
        /// Wallets.
        Wallet = "wallet",
        /// Escrows.
        Escrow = "escrow",
    }
}

/// A bucket: the hash tag that groups accounts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Bucket(u16);

impl Bucket {
    /// The bucket of an account.
    pub fn from_account(account: &str) -> Self {
        let digest = Sha256::digest(account.as_bytes());
        Self(u16::from_be_bytes([digest[0], digest[1]]) % BUCKETS)
    }

    /// The bucket of the record that has this number.
    pub const fn from_number(number: Number) -> Self {
        Self(number.bucket())
    }

    /// Its number, as it stands in the numbers of wallets and escrows.
    pub const fn number(self) -> u16 {
        self.0
    }

    /// All buckets, for the workers.
    pub fn all() -> impl Iterator<Item = Self> {
        (0..BUCKETS).map(Self)
    }

    /// Where the wallet of this number is: `<account> <mode> <owner> <wallet id>`. Written with the wallet and never
    /// changed; the wallet may be closed since.
    pub fn wallet_place(number: Number) -> String {
        Self::from_number(number).key(&["/wallet/", &number.to_string()])
    }

    /// Where the escrow of this number is: `<account> <mode>` of its payer. Written with the escrow and never changed.
    pub fn escrow_place(number: Number) -> String {
        Self::from_number(number).key(&["/escrow/", &number.to_string()])
    }

    /// Its number.
    pub fn index(self) -> usize {
        usize::from(self.0)
    }

    fn key(self, rest: &[&str]) -> String {
        let tag = TAGS.get(usize::from(self.0)).map_or("", String::as_str);
        joined(tag, rest)
    }
}

keys! {
    Bucket:
    /// The last place that was drawn of a series.
    pub counter(series: Series) = "/", series.as_str(), "-number";
    /// A hold that is open, or the tombstone of a voided one.
    pub hold(allow_id: &str) = "/hold/", allow_id;
    /// Open holds of the bucket by deadline (sorted set of allow ids).
    pub due() = "/due";
    /// Holds that passed their deadline and stay charged, by the time they were kept (sorted set of allow ids).
    pub kept() = "/kept";
    /// One such hold.
    pub kept_hold(allow_id: &str) = "/kept/", allow_id;
    /// How many denials beyond its rate each key of the bucket's accounts got, by rate window and reason (hash of
    /// [`crate::call::denial_windows`]).
    pub counted_denials() = "/denials";
    /// What has left an account of this bucket and has not arrived in another account yet (hash of transit id to row).
    pub transit() = "/transit";
    /// The mark that a transit has arrived in an account of this bucket, so that it arrives once.
    pub arrived(transit_id: &str) = "/arrived/", transit_id;
    /// How far accounts of another bucket have come that this one witnesses for, on a cluster (hash of account id to
    /// `<generation> <version>`).
    pub witnessed() = "/witnessed";
}

/// The last part of a key in each bucket that is written to learn whether what was written before it is safe
/// (`store.durability`). Its value says nothing.
pub(super) const FENCE: &str = "fence";

/// Owner of an account's own wallet, in place of an agent id.
pub const USER: &str = "user";

/// Returns the agent that owns a wallet; `None` for the account's own wallet.
pub(crate) fn agent_of_owner(owner: &str) -> Option<&str> {
    Some(owner).filter(|owner| *owner != USER)
}

/// The keys of one account.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AccountKeys {
    bucket: Bucket,
    base: String,
}

impl AccountKeys {
    /// The keys of `account`.
    pub fn new(account: &str) -> Self {
        Self::in_bucket(Bucket::from_account(account), account)
    }

    /// The keys of `account`, whose bucket is known. Saves hashing the account id.
    pub fn in_bucket(bucket: Bucket, account: &str) -> Self {
        debug_assert_eq!(bucket, Bucket::from_account(account), "{account}");
        Self {
            bucket,
            base: bucket.key(&["/", account]),
        }
    }

    fn key(&self, rest: &[&str]) -> String {
        joined(&self.base, rest)
    }

    /// The account's bucket.
    pub const fn bucket(&self) -> Bucket {
        self.bucket
    }

    /// The account's record (hash): plan, version, generation, account-wide policy, counters of the month.
    pub fn record(&self) -> String {
        self.base.clone()
    }
}

keys! {
    AccountKeys:
    /// Active virtual keys, oldest first (sorted set of key ids).
    pub active_keys() = "/active-keys";
    /// A virtual key's record (hash).
    pub virtual_key(key_id: &str) = "/vk/", key_id;
    /// All virtual keys of an agent, revoked ones included (sorted set of key ids by creation).
    pub agent_keys(agent: &str) = "/agent-keys/", agent;
    /// Requests of a virtual key in its current minute.
    pub rate(key_id: &str) = "/rate/", key_id;
    /// Agents that have stored a provider key (set), for the rotation of the master key.
    pub sealed_agents() = "/sealed-agents";
    /// An API key's record (hash).
    pub api_key(key_id: &str) = "/ak/", key_id;
    /// Requests of an API key in its current window of this rate.
    pub management_rate(rate: Rate, key_id: &str) = "/", rate.as_str(), "/", key_id;
    /// The account's API keys (sorted set by creation).
    pub api_keys() = "/api-keys";
    /// The account's users (hash of e-mail to record).
    pub users() = "/users";
}

keys! {
    AccountKeys, mode:
    /// A run (hash): what it spent and has in open holds, its calls and denials, when it began, how it ended.
    pub run(agent: &str, run: &str) = "/run/", agent, "/", run;
    /// The named runs of an agent (sorted set of run ids by when each was last seen).
    pub runs(agent: &str) = "/runs/", agent;
    /// The named runs of all agents (sorted set of `<agent>/<run>` by when each was last seen), by which they are
    /// counted.
    pub all_runs() = "/all-runs";
    /// An agent (hash): its record, freeze, policy, provider key and counters.
    pub agent(agent: &str) = "/agent/", agent;
    /// The account's agents that have a wallet row (sorted set by creation).
    pub agents() = "/agents";
    /// The agents that are frozen, those that were deleted since included (sorted set by when).
    pub frozen_agents() = "/frozen-agents";
    /// The account's policies (sorted set of policy ids by creation).
    pub policies() = "/policies";
    /// A policy's record (hash).
    pub policy(policy_id: &str) = "/policy/", policy_id;
    /// What the account-wide policies limit (hash of policy id to
    /// `<cap> <run> <day> <month> <txn> <approval> <low>`).
    pub account_policies() = "/account-policies";
}

/// The field of an agent that holds the id of its key for `provider`.
pub fn provider_key_id_field(provider: &str) -> String {
    joined(PROVIDER_KEY_ID_PREFIX, &[provider])
}

/// What the names of [`provider_key_id_field`] start with; the rest is the provider.
pub(crate) const PROVIDER_KEY_ID_PREFIX: &str = "pk_id:";

/// The field of an agent that holds the last four characters of its key for `provider`.
pub fn provider_key_last4_field(provider: &str) -> String {
    joined("pk_last4:", &[provider])
}

/// The field of an agent that holds when its key for `provider` was stored.
pub fn provider_key_created_field(provider: &str) -> String {
    joined("pk_created:", &[provider])
}

/// The field of an agent that holds its sealed key for `provider`.
pub fn provider_key_sealed_field(provider: &str) -> String {
    joined("pk_sealed:", &[provider])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_cannot_run_into_each_other() {
        let keys = AccountKeys::new("acct_1");
        assert_ne!(keys.run(Mode::Live, "a:b", "c"), keys.run(Mode::Live, "a", "b:c"));
        assert_ne!(keys.agent(Mode::Live, "x"), keys.agent(Mode::Test, "x"));
    }

    #[test]
    fn buckets_are_used_evenly() {
        let mut seen = std::collections::HashSet::new();
        for n in 0..20_000 {
            seen.insert(Bucket::from_account(&format!("acct_{n}")));
        }
        assert_eq!(seen.len(), usize::from(BUCKETS));
        assert_eq!(Bucket::all().count(), usize::from(BUCKETS));
    }
}
