//! Test harness of the end-to-end tests: private Redis servers, the built binaries, and sockets; nothing is simulated
//! but the provider.
//!
//! Everything listens on free ports of 127.0.0.1, runs outside the caller's runtime (so it works in `#[test]` and
//! `#[tokio::test]`), and ends when its value is dropped, also if the test panics or is killed.
//!
//! ```no_run
//! use harness::{Answer, CapPolicy, Edge, EdgeOptions, Nanos, Redis, Seed, Upstream, chat_body};
//!
//! # async fn example() {
//! let redis = Redis::start();
//! let upstream = Upstream::start(|_request| Answer::chat(9, 12));
//! let seed = Seed::new(&redis.store()).await; // initialises the ledger epoch
//! let account = seed.account("builder").await;
//! let bot = account.agent("bot");
//! bot.cap(CapPolicy { enabled: true, daily: Nanos::new(1_000_000_000), ..CapPolicy::default() }).await;
//! bot.provider_key("sk-test-provider-key").await;
//! let key = bot.virtual_key().await;
//!
//! // In a test of the root package: env!("CARGO_BIN_EXE_tollgate-proxy").
//! let binary = "target/debug/tollgate-proxy";
//! let edge = Edge::start(EdgeOptions::new(binary, redis.url(), upstream.base_url())
//!     .env("TOLLGATE_UPSTREAM__TIMEOUT_MS", "2000"));
//! let reply = edge.caller(&key).chat(chat_body("gpt-4o-mini", "hello")).await;
//! assert_eq!(reply.status, 200, "{reply:?}\n{}", edge.logs());
//! assert_eq!(reply.header("x-service-decision"), Some("approved"));
//! assert_eq!(upstream.requests().len(), 1);
//! assert_eq!(bot.counters().await.day_nanos, 8_550);
//! # }
//! ```

mod admin_fixture;
mod cli;
mod client;
mod cluster;
mod daemon;
mod document;
mod event_stream;
mod generated_files;
mod installation;
mod net;
mod old_counters;
mod options;
mod packages;
mod process;
mod raw;
mod redis_server;
mod reply;
mod reply_body;
pub mod scripts;
mod seed;
mod seeded_random;
mod session;
mod upstream;
mod wire;

pub use admin_fixture::{AdminBinary, AdminFixture, READ_AND_WRITE};
pub use cli::{Cli, CliOutput, words};
pub use client::{Caller, chat_body, http_client};
pub use cluster::RedisCluster;
pub use daemon::{Admin, Daemon, Edge, READY_TIMEOUT};
pub use document::check_event;
pub use domain::cap::CapPolicy;
pub use domain::mode::Mode;
pub use domain::money::Nanos;
pub use domain::role::Role;
pub use event_stream::EventStream;
pub use generated_files::{REWRITE_DOCS, compare_written, rewrites_docs};
pub use installation::{Actor, Installation};
pub use net::{ClosedPort, REPOSITORY, eventually, free_port, until};
pub use old_counters::old_counters;
pub use options::{AdminOptions, EdgeOptions};
pub use packages::{node_package, python_package, python_packages};
pub use process::executable_script;
pub use raw::{RawClient, RawReply};
pub use redis_server::Redis;
pub use reply::Reply;
pub use reply_body::{has_fields, merged, problem, replayed, success, text};
pub use seed::{
    AgentCounters, PROVIDER_KEY, Seed, SeedAccount, SeedAgent, SeedApiKey, SeedUser, TEST_MASTER_KEY,
    TEST_PASSWORD, daily_cap, open_cap, test_keyring,
};
pub use seeded_random::{SeededRandom, torture_seed};
#[doc(hidden)]
pub use serde_json;
pub use session::{SessionCaller, cookie_of};
pub use store::Store;
pub use upstream::{Answer, Feed, Played, Recorded, Script, Upstream};
pub use wire::{Gate, GateSide, Wire};
