//! The servers, the attacker, and the driver of an attack.

use crate::neighbours::Neighbours;
use domain::mode::Mode;
use futures::{StreamExt, stream};
use harness::{
    Admin, Caller, CapPolicy, Edge, Installation, Redis, Reply, SeedAccount, SeedAgent, Upstream, Wire,
};
use std::collections::BTreeMap;
use std::ops::Deref;
use std::time::Duration;
use tempfile::TempDir;

const PROXY: &str = env!("CARGO_BIN_EXE_tollgate-proxy");
const ADMIN: &str = env!("CARGO_BIN_EXE_tollgate-admin");
/// The provider key of every agent.
pub const PROVIDER_KEY: &str = "sk-test-0123456789abcdefghij";
/// The attacker's plan limits nothing; `slow` has ten calls a minute, as the free plan.
const PLANS: &str = "[unlimited]\n[slow]\nproxy_requests_per_minute = 10\n";
/// Requests that an attacker has in flight at the same time.
const AT_ONCE: usize = 24;

/// Differences from the default fixture.
#[derive(Default)]
pub struct Setup {
    /// Megabytes of the store.
    pub megabytes: u64,
    /// Whether the archive cannot be written.
    pub no_archive: bool,
    /// Delay of a replica that confirms each change (`replicas(1)`); `None` without a replica.
    pub replica_delay: Option<Duration>,
    /// Settings of both servers: `LIMITS__AGENTS`.
    pub settings: Vec<(&'static str, String)>,
}

/// The servers and the attacker's account.
pub struct Fixture {
    installation: Installation<Edge, Admin, Upstream>,
    pub attacker: SeedAccount,
    _replica: Option<(Redis, Wire)>,
    _plans: TempDir,
}

impl Deref for Fixture {
    type Target = Installation<Edge, Admin, Upstream>;

    fn deref(&self) -> &Self::Target {
        &self.installation
    }
}

/// A replica that confirms each write this much later.
fn delayed_replica(master: &Redis, delay: Duration) -> (Redis, Wire) {
    let (replica, wire) = (Redis::start(), Wire::to_port(master.port()));
    let port = wire.addr().port().to_string();
    let _: String = replica.command(&["REPLICAOF", "127.0.0.1", &port]);
    replica.wait_in_step_with(master);
    wire.delay_requests(delay);
    (replica, wire)
}

impl Setup {
    pub async fn start(self) -> Fixture {
        let memory = format!("{}mb", self.megabytes);
        let redis = Redis::start_with(&["--maxmemory", &memory, "--repl-diskless-sync-delay", "0"]);
        let replica = self.replica_delay.map(|delay| delayed_replica(&redis, delay));
        let installation = Installation::on(redis).await;
        let plans = tempfile::tempdir().unwrap();
        let file = plans.path().join("plans.toml");
        std::fs::write(&file, PLANS).unwrap();
        let mut settings = vec![
            ("TOLLGATE_PLANS__FILE".to_owned(), file.display().to_string()),
            (
                "TOLLGATE_AUDIT__ARCHIVE_AFTER_ENTRIES".to_owned(),
                "500".to_owned(),
            ),
            ("TOLLGATE_AUDIT__SEGMENT_ENTRIES".to_owned(), "500".to_owned()),
        ];
        if self.no_archive {
            let away = [
                ("ARCHIVE", "s3://away/archive"),
                ("S3_ENDPOINT", "http://127.0.0.1:1"),
                ("S3_ACCESS_KEY_ID", "nobody"),
                ("S3_SECRET_ACCESS_KEY", "nothing"),
            ];
            settings.extend(away.map(|(name, value)| (format!("TOLLGATE_AUDIT__{name}"), value.to_owned())));
        }
        if replica.is_some() {
            settings.push(("TOLLGATE_STORE__DURABILITY".to_owned(), "replicas(1)".to_owned()));
        }
        let mine = self.settings.iter();
        settings.extend(mine.map(|(name, value)| (format!("TOLLGATE_{name}"), value.clone())));
        let installation = installation.with_edge(PROXY, |options| {
            let each = settings.iter();
            each.fold(options, |options, (name, value)| options.env(name, value))
        });
        let installation = installation.with_admin(ADMIN, |options| {
            let options = options.env("TOLLGATE_WEBHOOKS__ALLOW_PRIVATE", "true");
            let each = settings.iter();
            each.fold(options, |options, (name, value)| options.env(name, value))
        });
        Fixture {
            attacker: installation.seed.account("unlimited").await,
            installation,
            _replica: replica,
            _plans: plans,
        }
    }
}

impl Fixture {
    /// The attacker's caller of the management API. Its answers are not checked against the API's description, since
    /// that would slow the attack down.
    pub async fn management(&self, mode: Mode) -> Caller {
        Caller::new(&self.admin.url(), &self.attacker.api_key(mode).await)
    }

    /// The attacker's agent, ready to call, and its virtual key.
    pub async fn agent(&self, id: &str, policy: CapPolicy) -> (SeedAgent, Caller) {
        let agent = self.attacker.agent(id);
        agent.cap(policy).await;
        agent.provider_key(PROVIDER_KEY).await;
        let caller = Caller::new(&self.edge.url(), &agent.virtual_key().await);
        (agent, caller)
    }

    /// Sends `count` requests as fast as they are answered, and counts the answers by status. The neighbours run beside
    /// them, and none of their requests may fail.
    pub async fn attack(&self, count: u64, request: impl AsyncFn(u64) -> Reply) -> BTreeMap<u16, u64> {
        self.attack_with(AT_ONCE, count, request).await
    }

    /// The same with `at_once` requests in flight.
    pub async fn attack_with(
        &self,
        at_once: usize,
        count: u64,
        request: impl AsyncFn(u64) -> Reply,
    ) -> BTreeMap<u16, u64> {
        let neighbours = Neighbours::start(self).await;
        let answers = neighbours
            .beside(async {
                let requests = stream::iter(0..count).map(|at| request(at));
                let mut answers: BTreeMap<u16, u64> = BTreeMap::new();
                let mut replies = requests.buffer_unordered(at_once);
                while let Some(reply) = replies.next().await {
                    *answers.entry(reply.status).or_default() += 1;
                }
                answers
            })
            .await;
        self.assert_never_full();
        answers
    }

    /// Asserts that the store refused nothing for lack of memory.
    #[track_caller]
    pub fn assert_never_full(&self) {
        let errors: String = self.redis.command(&["INFO", "errorstats"]);
        assert!(!errors.contains("errorstat_OOM"), "the store was full: {errors}");
    }

    /// Asserts that all answers have one of these statuses.
    #[track_caller]
    pub fn only(answers: &BTreeMap<u16, u64>, statuses: &[u16]) {
        let others = answers.keys().find(|status| !statuses.contains(status));
        assert_eq!(others, None, "{answers:?}");
    }
}
