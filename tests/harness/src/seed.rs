//! Writes accounts, agents, policies and keys directly into the store, so that tests of the edge do not depend on the
//! management API. Field names are those of `shared/store/src/keys.rs` and of the scripts.

mod agent;
mod api_key;
mod user;

pub use agent::PROVIDER_KEY;
pub use api_key::SeedApiKey;
pub use user::{SeedUser, TEST_PASSWORD};

use crypto::seal::Keyring;
use crypto::virtual_key::CheckSecret;
use domain::cap::CapPolicy;
use domain::entry::Entry;
use domain::id::IdKind;
use domain::mode::Mode;
use domain::money::Nanos;
use std::time::Duration;
use store::keys::{self, AccountKeys};
use store::{Store, sanity};

/// The master key of everything seeded: `TOLLGATE_SECRETS__MASTER_KEY`. 32 bytes of 0x2a; it protects nothing.
pub const TEST_MASTER_KEY: &str = "KioqKioqKioqKioqKioqKioqKioqKioqKioqKioqKio=";

/// Longer than any test that reads an audit trail.
const LONGEST_TEST: Duration = Duration::from_secs(600);

/// A sealer under [`TEST_MASTER_KEY`].
pub fn test_keyring() -> Keyring {
    Keyring::new(std::iter::once(TEST_MASTER_KEY)).expect("the test master key")
}

/// A policy that is enabled and has no limit.
pub fn open_cap() -> CapPolicy {
    CapPolicy {
        enabled: true,
        ..CapPolicy::default()
    }
}

/// A policy with this daily limit in nano-USD.
pub fn daily_cap(nanos: u64) -> CapPolicy {
    CapPolicy {
        daily: Nanos::new(nanos),
        ..open_cap()
    }
}

/// Writes into one store.
#[derive(Debug, Clone)]
pub struct Seed {
    store: Store,
    check_secret: CheckSecret,
}

/// A seeded account.
#[derive(Debug, Clone)]
pub struct SeedAccount {
    seed: Seed,
    /// Its id.
    pub id: String,
    /// Its key names.
    pub keys: AccountKeys,
}

/// An agent of a seeded account.
#[derive(Debug, Clone)]
pub struct SeedAgent {
    /// Account that owns it.
    pub account: SeedAccount,
    /// Its id.
    pub id: String,
}

/// Counters of an agent and its account in the current periods.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct AgentCounters {
    /// Charged to the agent today.
    pub day_nanos: u64,
    /// Charged to the agent this month.
    pub month_nanos: u64,
    /// Charged to the account this month.
    pub tracked_nanos: u64,
    /// Agents of the account with a slot this month.
    pub slots: u64,
}

impl Seed {
    /// Initialises the ledger epoch if the store is empty.
    pub async fn new(store: &Store) -> Self {
        let record = sanity::init(store, &domain::timestamp::iso_from_ms(clock::now_ms()))
            .await
            .expect("store init");
        Self {
            store: store.clone(),
            check_secret: record.check_secret,
        }
    }

    /// The store written to.
    pub const fn store(&self) -> &Store {
        &self.store
    }

    /// A new account on `plan`, a name in `config/plans.toml`.
    pub async fn account(&self, plan: &str) -> SeedAccount {
        let id = mint(IdKind::Account);
        let keys = AccountKeys::new(&id);
        let now = clock::now_ms().to_string();
        let fields = [
            ("id", id.as_str()),
            ("name", "Test"),
            ("plan", plan),
            ("created_at", &now),
            ("generation", "1"),
            ("version", "1"),
        ];
        self.hset(&keys.record(), &fields).await;
        self.run(redis::cmd("SADD").arg(keys::ACCOUNTS).arg(&id)).await;
        SeedAccount {
            seed: self.clone(),
            id,
            keys,
        }
    }

    /// An agent that may call at once, on an account of its own on `plan`, and its virtual key.
    pub async fn ready_agent(&self, plan: &str, cap: CapPolicy) -> (SeedAgent, String) {
        let agent = self.account(plan).await.agent("bot");
        let (_, key) = agent.ready(cap).await;
        (agent, key)
    }

    async fn run(&self, command: &redis::Cmd) {
        let _: redis::Value = self.store.command(command).await.expect("a seeding command");
    }

    async fn hset(&self, key: &str, fields: &[(&str, &str)]) {
        self.run(redis::cmd("HSET").arg(key).arg(fields)).await;
    }
}

impl SeedAccount {
    /// The agent `id` of this account. Nothing is written before one of its methods is called.
    pub fn agent(&self, id: &str) -> SeedAgent {
        SeedAgent {
            account: self.clone(),
            id: id.to_owned(),
        }
    }

    /// The agents whose provider keys a rotation of the master key finds.
    pub async fn sealed_agents(&self) -> Vec<String> {
        let mut members = redis::cmd("SMEMBERS");
        let members = self.seed.store.command(members.arg(self.keys.sealed_agents()));
        members.await.expect("the agents")
    }

    /// The account's version.
    pub async fn version(&self) -> u64 {
        let mut get = redis::cmd("HGET");
        let version = self
            .seed
            .store
            .command(get.arg(self.keys.record()).arg("version"));
        version.await.expect("a version")
    }

    /// The account's audit trail in this mode, oldest first, as far as it is not archived. Asserts that the entries'
    /// numbers have no gap and that their times are those of this test.
    pub async fn audit(&self, mode: Mode) -> Vec<Entry> {
        let mut range = redis::cmd("LRANGE");
        range.arg(self.keys.in_mode(mode).audit()).arg(0).arg(-1);
        let lines: Vec<String> = self.seed.store.command(&range).await.expect("an audit trail");
        let entries = lines.iter().map(|line| {
            let (seq, _) = line.split_once(' ').expect("a number");
            Entry::from_line(seq.parse().expect("a number"), line.as_bytes())
        });
        let entries: Vec<Entry> = entries.collect();
        for (at, entry) in entries.iter().enumerate() {
            assert_eq!(entry.seq, entries[0].seq + at as u64, "{entries:?}");
            let age = Duration::from_millis(entry.at_ms.abs_diff(clock::now_ms()));
            assert!(age < LONGEST_TEST, "{entry:?}");
        }
        entries
    }

    /// The types of those entries.
    pub async fn audit_types(&self, mode: Mode) -> Vec<String> {
        let entries = self.audit(mode).await.into_iter();
        entries.map(|entry| entry.kind).collect()
    }

    /// Puts the account on another plan.
    pub async fn set_plan(&self, plan: &str) {
        self.changed(&self.keys.record(), &[("plan", plan)]).await;
    }

    /// Writes fields and raises the account's version, as every change by the product does.
    async fn changed(&self, key: &str, fields: &[(&str, &str)]) {
        if !fields.is_empty() {
            self.seed.hset(key, fields).await;
        }
        self.seed
            .run(
                redis::cmd("HINCRBY")
                    .arg(self.keys.record())
                    .arg("version")
                    .arg(1),
            )
            .await;
    }

    /// Revokes a virtual key by its id.
    pub async fn revoke(&self, key_id: &str) {
        self.seed
            .run(redis::cmd("ZREM").arg(self.keys.active_keys()).arg(key_id))
            .await;
        self.changed(&self.keys.virtual_key(key_id), &[("status", "revoked")])
            .await;
    }
}

fn mint(kind: IdKind) -> String {
    kind.mint(clock::now_ms()).expect("an id")
}
