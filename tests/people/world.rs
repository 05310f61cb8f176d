//! A server with its store and users.

use domain::entry::Entry;
use harness::{
    Admin, AdminOptions, Cli, Redis, Reply, Role, Seed, SeedAccount, SeedUser, SessionCaller, Store,
    TEST_PASSWORD,
};
use serde_json::{Value, json};

pub use harness::{problem, text};

pub const BINARY: &str = env!("CARGO_BIN_EXE_tollgate-admin");

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
        Self::on(Redis::start(), options).await
    }

    pub async fn on(redis: Redis, options: impl FnOnce(AdminOptions) -> AdminOptions) -> Self {
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

    /// The account's entries of the audit log: type, actor and data.
    pub async fn audit(&self, account: &SeedAccount) -> Vec<(String, String, Value)> {
        let mut range = redis::cmd("LRANGE");
        range.arg(account.keys.live().audit()).arg(0).arg(-1);
        let lines: Vec<String> = self.store.command(&range).await.unwrap();
        let entries = lines.iter().map(|line| {
            let seq = line.split(' ').next().unwrap().parse().unwrap();
            let entry = Entry::of_line(seq, line.as_bytes());
            (entry.kind.clone(), entry.actor.clone(), json!(entry.data))
        });
        entries.collect()
    }

    /// The types of those entries.
    pub async fn audit_types(&self, account: &SeedAccount) -> Vec<String> {
        let entries = self.audit(account).await;
        entries.into_iter().map(|(kind, _, _)| kind).collect()
    }
}

#[track_caller]
pub fn success(reply: &Reply) -> Value {
    assert_eq!(reply.status, 200, "{}", reply.text());
    assert_eq!(reply.header("content-type"), Some("application/json"));
    assert_eq!(reply.header("cache-control"), Some("no-store"));
    let body = reply.json();
    assert_eq!(body["success"], json!(true), "{body}");
    body
}
