//! A server with its store and users.

use harness::{
    Admin, AdminOptions, Cli, Installation, Redis, Reply, Role, SeedAccount, SeedUser, SessionCaller,
    TEST_PASSWORD,
};
use serde_json::{Value, json};
use std::ops::Deref;

pub use harness::{problem, text};

pub const BINARY: &str = env!("CARGO_BIN_EXE_tollgate-admin");

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

    /// A user of a new account, signed in.
    pub async fn user(&self, role: Role) -> (SeedUser, SessionCaller) {
        let account = self.seed.account("builder").await;
        self.member(&account, role).await
    }

    /// A user of this account, signed in.
    pub async fn member(&self, account: &SeedAccount, role: Role) -> (SeedUser, SessionCaller) {
        let user = account.user(role).await;
        let session = self.sign_in(&user).await;
        (user, session)
    }

    /// Makes a user as an operator does: with the salt of the e-mail, by which a sign-in finds it among several.
    pub fn make_user(&self, account: &SeedAccount, email: &str, password: &str) {
        let create = ["user", "create", "--account", &account.id, "--email", email];
        let args = [&create[..], &["--role", "viewer", "--password-stdin", "--json"]].concat();
        let made = Cli::new(BINARY, self.redis.url()).run_with_stdin(&args, password);
        assert_eq!(made.code, Some(0), "{made:?}");
    }

    /// Document of an operator's command.
    pub fn cli(&self, args: &[&str]) -> Value {
        Cli::new(BINARY, self.redis.url()).json(args)
    }

    pub async fn sign_in(&self, user: &SeedUser) -> SessionCaller {
        self.admin.sign_in(&user.email, TEST_PASSWORD).await
    }

    /// An attempt to sign in.
    pub async fn try_login(&self, email: &str, password: &str) -> Reply {
        self.admin
            .login(&json!({ "email": email, "password": password }))
            .await
    }
}

/// The body of a 200.
#[track_caller]
pub fn success(reply: &Reply) -> Value {
    harness::success(reply, 200)
}
