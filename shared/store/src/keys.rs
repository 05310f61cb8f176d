//! All key names of the store.
//!
//! An account is in one bucket `{bNNNN}`, its hash tag. All its keys share one cluster slot, so one script can change
//! them together. A look-up is in the bucket of its record if its name contains the bucket: wallets and escrows, by
//! [number](domain::number::Number). `/` separates the parts; names chosen by callers cannot contain it.
//!
//! `keys/outside.rs` has the keys outside the buckets, and the reasons why they are safe.

/// Declares functions that return key names, one per row: they append parts to the name of the holder.
macro_rules! keys {
    ($holder:ty: $($(#[$doc:meta])+ $vis:vis $name:ident($($arg:ident: $kind:ty),*) = $($part:expr),+;)+) => {
        impl $holder {
            $($(#[$doc])+
            $vis fn $name(&self, $($arg: $kind),*) -> String {
                self.key([$($part),+])
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
    ACCOUNTS, BLOCKED, FOLLOWED, PRICE_TABLES, PRICES, REFUSED, STORE, api_key_lookup, deposit_lookup,
    user_lookup, virtual_key_lookup,
};
pub use people::{Tries, attempts, invitation_lookup, reset_lookup, session_lookup};
pub use webhooks::DeliverySet;

use domain::mode::Mode;
use domain::number::{self, Number};
use domain::rate::Rate;
use sha2::{Digest, Sha256};
use std::fmt;
use std::sync::{LazyLock, OnceLock};

/// Number of buckets. Workers poll buckets, not accounts.
pub const BUCKETS: u16 = number::BUCKETS;

/// The hash tags of the buckets.
static TAGS: LazyLock<Vec<String>> = LazyLock::new(|| (0..BUCKETS).map(|n| format!("{{b{n:04}}}")).collect());

/// The keys that a bucket has once and every call needs, made when they are first needed.
pub(crate) struct SingleKeys {
    pub(crate) due: String,
    pub(crate) kept: String,
    pub(crate) counted_denials: String,
}

static SINGLE_KEYS: [OnceLock<SingleKeys>; BUCKETS as usize] = [const { OnceLock::new() }; BUCKETS as usize];

/// Joins texts with one allocation: a call needs about twenty keys, and `format!` would grow each in steps. Inlined, so
/// that the constant parts are written without a copy in a loop.
#[inline(always)]
fn joined<const N: usize, const M: usize>(first: [&str; N], rest: [&str; M]) -> String {
    let length = |parts: &[&str]| parts.iter().map(|part| part.len()).sum::<usize>();
    let mut key = String::with_capacity(length(&first) + length(&rest));
    first.iter().for_each(|part| key.push_str(part));
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
    /// Returns the bucket of an account.
    pub fn from_account(account: &str) -> Self {
        let digest = Sha256::digest(account.as_bytes());
        Self(u16::from_be_bytes([digest[0], digest[1]]) % BUCKETS)
    }

    /// Returns the bucket of the record with this number.
    pub const fn from_number(number: Number) -> Self {
        Self(number.bucket())
    }

    /// Returns its number, which is part of the numbers of wallets and escrows.
    pub const fn number(self) -> u16 {
        self.0
    }

    /// Returns all buckets, for the workers.
    pub fn all() -> impl Iterator<Item = Self> {
        (0..BUCKETS).map(Self)
    }

    /// Place of the wallet with this number: `<account> <mode> <owner> <wallet id>`. Written with the wallet and never
    /// changed, even if the wallet is closed.
    pub fn wallet_place(number: Number) -> String {
        Self::from_number(number).key(["/wallet/", &number.to_string()])
    }

    /// Place of the escrow with this number: `<account> <mode>` of its payer. Written with the escrow and never
    /// changed.
    pub fn escrow_place(number: Number) -> String {
        Self::from_number(number).key(["/escrow/", &number.to_string()])
    }

    /// Returns its number.
    pub fn index(self) -> usize {
        usize::from(self.0)
    }

    /// Returns the keys that the bucket has once.
    pub(crate) fn single_keys(self) -> &'static SingleKeys {
        // A number of a bucket is less than their number.
        SINGLE_KEYS[self.index()].get_or_init(|| SingleKeys {
            due: self.due(),
            kept: self.kept(),
            counted_denials: self.counted_denials(),
        })
    }

    #[inline(always)]
    fn key<const N: usize>(self, rest: [&str; N]) -> String {
        let tag = TAGS.get(usize::from(self.0)).map_or("", String::as_str);
        joined([tag], rest)
    }
}

keys! {
    Bucket:
    /// The last place that a series has drawn.
    pub counter(series: Series) = "/", series.as_str(), "-number";
    /// An open hold, or the tombstone of a voided one.
    pub hold(allow_id: &str) = "/hold/", allow_id;
    /// Open holds of the bucket by deadline (sorted set of allow ids).
    pub due() = "/due";
    /// Kept holds: past their deadline and still charged (sorted set of allow ids by the time they were kept).
    pub kept() = "/kept";
    /// A kept hold.
    pub kept_hold(allow_id: &str) = "/kept/", allow_id;
    /// Denials beyond the rate of each key of the bucket's accounts, by rate window and reason (hash of
    /// [`crate::call::denial_windows`]).
    pub counted_denials() = "/denials";
    /// Money and notices that have left an account of this bucket and have not arrived yet (hash of transit id to row).
    pub transit() = "/transit";
    /// Marks a transit as arrived in an account of this bucket, so that it arrives only once.
    pub arrived(transit_id: &str) = "/arrived/", transit_id;
    /// Witnessed versions of accounts in another bucket, on a cluster (hash of account id to `<generation> <version>`).
    pub witnessed() = "/witnessed";
}

/// Last part of the key in each bucket that is written to confirm the durability of earlier writes
/// (`store.durability`). Its value has no meaning.
pub(super) const FENCE: &str = "fence";

/// Owner of an account's own wallet, used in place of an agent id.
pub const USER: &str = "user";

/// Returns the agent that owns a wallet; `None` for the account's own wallet.
pub(crate) fn agent_of_owner(owner: &str) -> Option<&str> {
    Some(owner).filter(|owner| *owner != USER)
}

/// The keys of one account.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct AccountKeys {
    bucket: Bucket,
    base: String,
}

impl AccountKeys {
    /// Creates the keys of `account`.
    pub fn new(account: &str) -> Self {
        Self::in_bucket(Bucket::from_account(account), account)
    }

    /// Returns the keys of `account` if its bucket is known, without hashing the account id.
    pub fn in_bucket(bucket: Bucket, account: &str) -> Self {
        debug_assert_eq!(bucket, Bucket::from_account(account), "{account}");
        Self {
            bucket,
            base: bucket.key(["/", account]),
        }
    }

    #[inline(always)]
    fn key<const N: usize>(&self, rest: [&str; N]) -> String {
        joined([&self.base], rest)
    }

    /// Returns the account id.
    fn id(&self) -> &str {
        self.base.split_once('/').map_or("", |(_, id)| id)
    }

    /// Returns the account's bucket.
    pub const fn bucket(&self) -> Bucket {
        self.bucket
    }

    /// The account's record (hash): plan, version, generation, account-wide policy, counters of the month.
    pub fn record(&self) -> String {
        self.base.clone()
    }

    /// Returns the name of [`AccountKeys::record`].
    pub(crate) fn name(&self) -> &str {
        &self.base
    }

    /// Returns the account's realm of this mode.
    pub fn in_mode(&self, mode: Mode) -> Realm {
        let account = self.clone();
        Realm { account, mode }
    }

    /// Returns the account's live realm.
    pub fn live(&self) -> Realm {
        self.in_mode(Mode::Live)
    }
}

/// An account in one mode, with the keys of its records there.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Realm {
    account: AccountKeys,
    mode: Mode,
}

impl Realm {
    /// Returns the realm of `account` in `mode`.
    pub fn new(account: &str, mode: Mode) -> Self {
        AccountKeys::new(account).in_mode(mode)
    }

    /// Returns the live realm of `account` if its bucket is known, without hashing the account id.
    pub(crate) fn live_in(bucket: Bucket, account: &str) -> Self {
        Self {
            account: AccountKeys::in_bucket(bucket, account),
            mode: Mode::Live,
        }
    }

    /// Parses `<account> <mode>`.
    pub fn parse(text: &str) -> Option<Self> {
        let (account, mode) = text.split_once(' ')?;
        Some(Self::new(account, Mode::parse(mode)?))
    }

    #[inline(always)]
    fn key<const N: usize>(&self, rest: [&str; N]) -> String {
        joined([&self.account.base, "/", self.mode.as_str()], rest)
    }

    /// Returns the account id.
    pub fn account(&self) -> &str {
        self.account.id()
    }

    /// Returns the mode.
    pub const fn mode(&self) -> Mode {
        self.mode
    }

    /// Returns the account's bucket.
    pub const fn bucket(&self) -> Bucket {
        self.account.bucket()
    }

    /// The account's record: see [`AccountKeys::record`].
    pub fn record(&self) -> String {
        self.account.record()
    }

    /// Returns the keys that the account has whatever the mode.
    pub const fn keys(&self) -> &AccountKeys {
        &self.account
    }
}

/// Writes `<account> <mode>`.
impl fmt::Display for Realm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.account(), self.mode)
    }
}

keys! {
    AccountKeys:
    /// Active virtual keys, oldest first (sorted set of key ids).
    pub active_keys() = "/active-keys";
    /// A virtual key's record (hash).
    pub virtual_key(key_id: &str) = "/vk/", key_id;
    /// All virtual keys of an agent, including revoked ones (sorted set of key ids by creation).
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
    Realm:
    /// A run (hash): its spend and open holds, its calls and denials, its start and its end.
    pub run(agent: &str, run: &str) = "/run/", agent, "/", run;
    /// The named runs of an agent (sorted set of run ids by when each was last seen).
    pub runs(agent: &str) = "/runs/", agent;
    /// The named runs of all agents (sorted set of `<agent>/<run>` by the time of the last call), used to count them.
    pub all_runs() = "/all-runs";
    /// An agent (hash): its record, freeze, policy, provider key and counters.
    pub agent(agent: &str) = "/agent/", agent;
    /// The account's agents that have a wallet row (sorted set by creation).
    pub agents() = "/agents";
    /// The frozen agents, including deleted ones (sorted set by the time of the freeze).
    pub frozen_agents() = "/frozen-agents";
    /// The account's policies (sorted set of policy ids by creation).
    pub policies() = "/policies";
    /// A policy's record (hash).
    pub policy(policy_id: &str) = "/policy/", policy_id;
    /// The limits of the account-wide policies (hash of policy id to `<cap> <run> <day> <month> <txn> <approval>
    /// <low>`).
    pub account_policies() = "/account-policies";
}

/// Returns the field of an agent with the id of its key for `provider`.
pub fn provider_key_id_field(provider: &str) -> String {
    joined([PROVIDER_KEY_ID_PREFIX], [provider])
}

/// Prefix of the names of [`provider_key_id_field`]; the rest is the provider.
pub(crate) const PROVIDER_KEY_ID_PREFIX: &str = "pk_id:";

/// Returns the field of an agent with the last four characters of its key for `provider`.
pub fn provider_key_last4_field(provider: &str) -> String {
    joined(["pk_last4:"], [provider])
}

/// Returns the field of an agent with the time at which its key for `provider` was stored.
pub fn provider_key_created_field(provider: &str) -> String {
    joined(["pk_created:"], [provider])
}

/// Prefix of the names of [`provider_key_sealed_field`]; the rest is the provider.
const PROVIDER_KEY_SEALED_PREFIX: &str = "pk_sealed:";

/// Returns the field of an agent with its sealed key for `provider`.
pub fn provider_key_sealed_field(provider: &str) -> String {
    joined([PROVIDER_KEY_SEALED_PREFIX], [provider])
}

/// Returns whether a field of an agent's row is a [`provider_key_sealed_field`].
pub fn is_provider_key_sealed_field(field: &str) -> bool {
    field.starts_with(PROVIDER_KEY_SEALED_PREFIX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_cannot_run_into_each_other() {
        let [live, test] = Mode::ALL.map(|mode| Realm::new("acct_1", mode));
        assert_ne!(live.run("a:b", "c"), live.run("a", "b:c"));
        assert_ne!(live.agent("x"), test.agent("x"));
        assert_eq!(live.account(), "acct_1");
        assert_eq!(Realm::parse(&test.to_string()), Some(test));
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
