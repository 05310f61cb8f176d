//! An admin server on a store of its own, with what tests of its API need.

use crate::cli::Cli;
use crate::client::Caller;
use crate::daemon::Admin;
use crate::installation::Installation;
use crate::options::AdminOptions;
use crate::redis_server::Redis;
use crate::reply::Reply;
use crate::seed::{SeedAccount, SeedUser, TEST_PASSWORD};
use crate::session::SessionCaller;
use domain::mode::Mode;
use domain::permission::Permission;
use domain::role::Role;
use serde_json::{Value, json};
use std::collections::HashMap;
use std::marker::PhantomData;
use std::ops::Deref;

/// Everything but approvals.
pub const READ_AND_WRITE: &[Permission] = &[Permission::Read, Permission::Write];

/// The admin program, whose path cargo gives to each test program alone.
pub trait AdminBinary {
    /// `env!("CARGO_BIN_EXE_tollgate-admin")`
    const PATH: &'static str;
}

/// A running server of the program `B` on a store of its own.
#[derive(Debug)]
pub struct AdminFixture<B> {
    installation: Installation<(), Admin>,
    binary: PhantomData<B>,
}

impl<B> Deref for AdminFixture<B> {
    type Target = Installation<(), Admin>;

    fn deref(&self) -> &Self::Target {
        &self.installation
    }
}

impl<B: AdminBinary> AdminFixture<B> {
    /// Starts a server with the settings of tests.
    pub async fn start() -> Self {
        Self::start_with(|options| options).await
    }

    /// Starts a server with these changes of its settings.
    pub async fn start_with(options: impl FnOnce(AdminOptions) -> AdminOptions) -> Self {
        Self::on(Redis::start(), options).await
    }

    /// Starts a server with these plans, which are in the file, and with these changes of its settings.
    ///
    /// # Panics
    /// If the file cannot be written.
    pub async fn with_plans(
        plans: &str,
        options: impl FnOnce(AdminOptions) -> AdminOptions,
    ) -> (Self, tempfile::NamedTempFile) {
        let file = tempfile::NamedTempFile::new().expect("a file");
        std::fs::write(&file, plans).expect("the plans");
        let path = file.path().display().to_string();
        let fixture = Self::start_with(|own| options(own.env("TOLLGATE_PLANS__FILE", path))).await;
        (fixture, file)
    }

    /// Starts a server on the store of `redis`, with these changes of its settings.
    pub async fn on(redis: Redis, options: impl FnOnce(AdminOptions) -> AdminOptions) -> Self {
        Self {
            installation: Installation::on(redis).await.with_admin(B::PATH, options),
            binary: PhantomData,
        }
    }

    /// Returns a new account, and a live caller of it with [`READ_AND_WRITE`].
    pub async fn account(&self, plan: &str) -> (SeedAccount, Caller) {
        let account = self.seed.account(plan).await;
        let caller = self.caller(&account, Mode::Live).await;
        (account, caller)
    }

    /// Returns a caller with a new key with [`READ_AND_WRITE`].
    pub async fn caller(&self, account: &SeedAccount, mode: Mode) -> Caller {
        let key = account.issue(mode, READ_AND_WRITE, &[], None).await;
        self.admin.caller(&key.secret)
    }

    /// Returns a user of a new account, signed in.
    pub async fn user(&self, role: Role) -> (SeedUser, SessionCaller) {
        let account = self.seed.account("builder").await;
        self.member(&account, role).await
    }

    /// Returns a new user of this account, signed in.
    pub async fn member(&self, account: &SeedAccount, role: Role) -> (SeedUser, SessionCaller) {
        let user = account.user(role).await;
        let session = self.sign_in(&user).await;
        (user, session)
    }

    /// Makes a user as an operator does: with the salt of the e-mail, by which a sign-in finds it among several.
    ///
    /// # Panics
    /// If the command fails.
    pub fn make_user(&self, account: &SeedAccount, email: &str, password: &str) {
        let create = ["user", "create", "--account", &account.id, "--email", email];
        let args = [&create[..], &["--role", "viewer", "--password-stdin", "--json"]].concat();
        let made = Cli::new(B::PATH, self.redis.url()).run_with_stdin(&args, password);
        assert_eq!(made.code, Some(0), "{made:?}");
    }

    /// Signs the user in.
    pub async fn sign_in(&self, user: &SeedUser) -> SessionCaller {
        self.admin.sign_in(&user.email, TEST_PASSWORD).await
    }

    /// Returns the reply to an attempt to sign in.
    pub async fn try_login(&self, email: &str, password: &str) -> Reply {
        self.admin
            .login(&json!({ "email": email, "password": password }))
            .await
    }

    /// Returns the document of an operator's command.
    pub fn cli(&self, args: &[&str]) -> Value {
        Cli::new(B::PATH, self.redis.url()).json(args)
    }

    /// Returns the fields of a record of the store.
    pub async fn fields(&self, key: &str) -> HashMap<String, String> {
        self.store.command(redis::cmd("HGETALL").arg(key)).await.unwrap()
    }
}
