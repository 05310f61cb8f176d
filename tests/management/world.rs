//! A server with its store, accounts and API keys.

use domain::mode::Mode;
use domain::permission::Permission;
use harness::{Admin, AdminOptions, Caller, Installation, Redis, SeedAccount};
use std::collections::HashMap;
use std::ops::Deref;

pub use harness::{problem, success, text};

pub const BINARY: &str = env!("CARGO_BIN_EXE_tollgate-admin");
/// Everything but approvals.
pub const FULL: &[Permission] = &[Permission::Read, Permission::Write];

/// A running server on a store of its own.
pub struct World(Installation<(), Admin>);

impl Deref for World {
    type Target = Installation<(), Admin>;

    fn deref(&self) -> &Self::Target {
        &self.0
    }
}

impl World {
    pub async fn start() -> Self {
        Self::start_with(|options| options).await
    }

    pub async fn start_with(options: impl FnOnce(AdminOptions) -> AdminOptions) -> Self {
        Self::on(Redis::start(), options).await
    }

    pub async fn on(redis: Redis, options: impl FnOnce(AdminOptions) -> AdminOptions) -> Self {
        Self(Installation::on(redis).await.with_admin(BINARY, options))
    }

    /// A live caller with all permissions, on an account of its own.
    pub async fn account(&self, plan: &str) -> (SeedAccount, Caller) {
        let account = self.seed.account(plan).await;
        let caller = self.caller(&account, Mode::Live).await;
        (account, caller)
    }

    /// A caller with a new key that may do everything.
    pub async fn caller(&self, account: &SeedAccount, mode: Mode) -> Caller {
        let key = account.issue(mode, FULL, &[], None).await;
        self.admin.caller(&key.secret)
    }

    pub async fn fields(&self, key: &str) -> HashMap<String, String> {
        self.store.command(redis::cmd("HGETALL").arg(key)).await.unwrap()
    }
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
