//! A server with its store, accounts and API keys.

use domain::entry::Entry;
use domain::mode::Mode;
use domain::permission::Permission;
use harness::{Admin, AdminOptions, Caller, Redis, Reply, Seed, SeedAccount, SeedApiKey, Store};
use serde_json::{Value, json};
use std::collections::HashMap;

pub use harness::{problem, text};

pub const BINARY: &str = env!("CARGO_BIN_EXE_tollgate-admin");
/// Everything but approvals.
pub const FULL: &[Permission] = &[Permission::Read, Permission::Write];

/// A running server on a store of its own.
pub struct World {
    pub admin: Admin,
    pub redis: Redis,
    pub seed: Seed,
    pub store: Store,
}

impl World {
    pub async fn start() -> Self {
        Self::start_with(|options| options).await
    }

    pub async fn start_with(options: impl FnOnce(AdminOptions) -> AdminOptions) -> Self {
        let redis = Redis::start();
        let store = redis.store();
        let seed = Seed::new(&store).await;
        let admin = Admin::start(options(AdminOptions::new(BINARY, redis.url())));
        Self {
            admin,
            redis,
            seed,
            store,
        }
    }

    /// A live caller with all permissions, on an account of its own.
    pub async fn account(&self, plan: &str) -> (SeedAccount, Caller) {
        let account = self.seed.account(plan).await;
        let caller = self.caller(&account, Mode::Live).await;
        (account, caller)
    }

    /// A caller with a new key that may do everything.
    pub async fn caller(&self, account: &SeedAccount, mode: Mode) -> Caller {
        let key = self.issue(account, mode, FULL, &[], None).await;
        self.admin.caller(&key.secret)
    }

    pub async fn issue(
        &self,
        account: &SeedAccount,
        mode: Mode,
        permissions: &[Permission],
        allow_ips: &[&str],
        expires_at_ms: Option<u64>,
    ) -> SeedApiKey {
        account.issue(mode, permissions, allow_ips, expires_at_ms).await
    }

    pub async fn fields(&self, key: &str) -> HashMap<String, String> {
        self.store.command(redis::cmd("HGETALL").arg(key)).await.unwrap()
    }

    pub async fn version(&self, account: &SeedAccount) -> u64 {
        let mut get = redis::cmd("HGET");
        self.store
            .command(get.arg(account.keys.record()).arg("version"))
            .await
            .unwrap()
    }

    /// The audit entries of an account and mode: number, type and agent.
    pub async fn audit(&self, account: &SeedAccount, mode: Mode) -> Vec<(u64, String, Value)> {
        let mut range = redis::cmd("LRANGE");
        range.arg(account.keys.in_mode(mode).audit()).arg(0).arg(-1);
        let entries: Vec<String> = self.store.command(&range).await.unwrap();
        let entries = entries.iter().map(|entry| {
            let seq = entry.split(' ').next().unwrap().parse().unwrap();
            let entry = Entry::of_line(seq, entry.as_bytes());
            assert!(entry.at_ms.abs_diff(clock::now_ms()) < 60_000, "{entry:?}");
            (seq, entry.kind, json!(entry.agent))
        });
        entries.collect()
    }

    /// The types of the audit entries, after checking that their numbers have no gap.
    pub async fn audit_types(&self, account: &SeedAccount, mode: Mode) -> Vec<String> {
        let entries = self.audit(account, mode).await;
        for (at, (seq, _, _)) in entries.iter().enumerate() {
            assert_eq!(*seq, at as u64 + 1, "{entries:?}");
        }
        entries.into_iter().map(|(_, kind, _)| kind).collect()
    }
}

/// The body of a success with this status.
#[track_caller]
pub fn success(reply: &Reply, status: u16) -> Value {
    assert_eq!(reply.status, status, "{}", reply.text());
    assert_eq!(reply.header("content-type"), Some("application/json"));
    assert_eq!(reply.header("cache-control"), Some("no-store"));
    let body = reply.json();
    assert_eq!(body["success"], json!(true), "{body}");
    body
}

/// Checks that a text is a fresh ISO 8601 UTC timestamp.
#[track_caller]
pub fn fresh(timestamp: &str) {
    let at =
        domain::timestamp::ms_from_iso(timestamp).unwrap_or_else(|| panic!("{timestamp} is no timestamp"));
    assert!(
        timestamp.ends_with('Z') && at.abs_diff(clock::now_ms()) < 60_000,
        "{timestamp}"
    );
}

/// Checks that a text is an id of ours with this prefix.
#[track_caller]
pub fn minted(id: &str, prefix: &str) {
    let rest = id
        .strip_prefix(prefix)
        .unwrap_or_else(|| panic!("{id} does not start with {prefix}"));
    assert!(
        rest.len() == 26 && rest.bytes().all(|b| b.is_ascii_alphanumeric()),
        "{id}"
    );
}
