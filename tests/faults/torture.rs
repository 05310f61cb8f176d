//! Everything at once: 32 callers whose answers are whole or streams, two edges, a provider with every fault, a store
//! that is killed, frozen and cut off on a seeded schedule. In the end every call is charged exactly its cost, and
//! unsettled holds are listed.

mod chaos;
mod crowd;

use crate::fixture::{Fixture, PROXY, Setup, metric};
use chaos::Chaos;
use crowd::{Call, Crowd};
use harness::{
    Edge, EdgeOptions, Nanos, Redis, SeedAgent, SeededRandom, Wire, eventually, free_port, torture_seed,
};
use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use store::call::reap::sweep;
use store::call::unsettled_holds;
use tempfile::TempDir;

/// Duration of the load.
const CALLING: Duration = Duration::from_secs(25);
/// Longest wait until all is settled: holds live 9 s, and stay until a sweep.
const DUST: Duration = Duration::from_secs(60);
/// Keys of each agent, so that none meets its rate limit.
const KEYS: usize = 4;
/// Daily cap of the capped agent, in nano-USD: some tens of calls.
const CAP: u64 = 2_000_000;

/// An edge that can be killed and started again at the same place.
pub struct EdgeSetup {
    redis_url: String,
    upstream_url: String,
    listen: u16,
    ops: u16,
    data: TempDir,
}

impl EdgeSetup {
    fn new(redis_url: String, fixture: &Fixture) -> Self {
        let (listen, ops) = (free_port(), free_port());
        let data = tempfile::tempdir().expect("a directory");
        let upstream_url = fixture.upstream.base_url();
        Self {
            redis_url,
            upstream_url,
            listen,
            ops,
            data,
        }
    }

    pub fn url(&self) -> String {
        format!("http://127.0.0.1:{}", self.listen)
    }

    pub fn start(&self) -> Edge {
        let at = |port: u16| format!("127.0.0.1:{port}");
        let options = EdgeOptions::new(PROXY, &self.redis_url, &self.upstream_url)
            .until_alive()
            .env("TOLLGATE_PROXY__LISTEN", at(self.listen))
            .env("TOLLGATE_PROXY__OPS_LISTEN", at(self.ops))
            .env("TOLLGATE_PROXY__DATA_DIR", self.data.path().display().to_string())
            .env("TOLLGATE_STORE__TIMEOUT_MS", "500")
            .env("TOLLGATE_UPSTREAM__TIMEOUT_MS", "6000")
            .env("TOLLGATE_PROXY__STREAMING", "true")
            .env("TOLLGATE_PROXY__STREAM_FIRST_BYTE_MS", "4000")
            .env("TOLLGATE_PROXY__STREAM_TOTAL_MS", "4000")
            .env("TOLLGATE_PROXY__STREAM_DRAIN_MS", "2000")
            .env("TOLLGATE_PROXY__HOLD_GRACE_MS", "3000");
        Edge::start(options)
    }
}

/// Reads the capped agent's charges until `stop`. Returns the highest.
fn watch_cap(fixture: Arc<Fixture>, agent: SeedAgent, stop: Arc<AtomicBool>) -> std::thread::JoinHandle<u64> {
    std::thread::spawn(move || {
        let key = agent.account.keys.live().agent(&agent.id);
        let mut highest = 0;
        while !stop.load(Ordering::SeqCst) {
            let fields: HashMap<String, String> =
                fixture.redis.try_command(&["HGETALL", &key]).unwrap_or_default();
            for (name, value) in fields {
                if name.starts_with('d') && name[1..].bytes().all(|byte| byte.is_ascii_digit()) {
                    highest = highest.max(value.parse().expect("a counter"));
                }
            }
            std::thread::sleep(Duration::from_millis(5));
        }
        highest
    })
}

/// Sweeps like the reaper does.
async fn reap(fixture: &Fixture, stop: Arc<AtomicBool>) {
    let bucket = fixture.bot.account.keys.bucket();
    while !stop.load(Ordering::SeqCst) {
        // The store may be away; the next sweep meets the same holds.
        drop(sweep(fixture.seed.store(), bucket, clock::now_ms()).await);
        tokio::time::sleep(Duration::from_millis(300)).await;
    }
}

/// Estimates of the holds that are open or kept at the end, by run, which is the call's own id.
async fn unsettled(fixture: &Fixture) -> HashMap<String, u64> {
    let account = &fixture.bot.account.id;
    let found = unsettled_holds::list(fixture.seed.store(), Some(account), 10_000)
        .await
        .expect("the holds");
    found
        .into_iter()
        .map(|found| (found.hold.name.run, found.hold.estimate.get()))
        .collect()
}

/// Compares each call with its run's counter, and returns the sums by agent.
fn account_for(
    fixture: &Fixture,
    calls: &[Call],
    unsettled: &HashMap<String, u64>,
    seed: u64,
) -> HashMap<String, u64> {
    let mut arrived: HashMap<String, usize> = HashMap::new();
    for request in fixture.upstream.requests() {
        *arrived
            .entry(request.header("x-stainless-call").expect("its id").to_owned())
            .or_default() += 1;
    }
    let mut sums = HashMap::new();
    let mut allow_ids = std::collections::HashSet::new();
    for call in calls {
        let times = arrived.get(&call.id).copied().unwrap_or(0);
        assert!(times <= 1, "seed {seed}: {call:?} was forwarded {times} times");
        call.check_answer(times == 1, &mut allow_ids);
        let expected = match unsettled.get(&call.id) {
            Some(estimate) => *estimate,
            None if times == 1 => call.cost(),
            None => 0,
        };
        let run = fixture.bot.account.keys.live().run(&call.agent, &call.id);
        let spent: Option<u64> = fixture.redis.command(&["HGET", &run, "spent"]);
        assert_eq!(
            spent.unwrap_or(0),
            expected,
            "seed {seed}: {call:?}, forwarded {times} times"
        );
        *sums.entry(call.agent.clone()).or_default() += expected;
    }
    sums
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
#[ignore = "long: make verify runs it"]
async fn nothing_is_lost_and_nothing_is_free() {
    let seed = torture_seed();
    let fixture = Arc::new(Setup::default().redis(Redis::start_durable()).start().await);
    let capped = fixture.bot.account.agent("capped");
    capped
        .cap(harness::CapPolicy {
            enabled: true,
            daily: Nanos::new(CAP),
            ..Default::default()
        })
        .await;
    capped.provider_key(crate::fixture::PROVIDER_KEY).await;
    let mut keys = [Vec::new(), Vec::new()];
    for (agent, keys) in [&fixture.bot, &capped].into_iter().zip(&mut keys) {
        for _ in 0..KEYS {
            keys.push(agent.virtual_key().await);
        }
    }
    let wire = Arc::new(Wire::to_port(fixture.redis.port()));
    let setups = [
        EdgeSetup::new(wire.redis_url(), &fixture),
        EdgeSetup::new(fixture.redis.url(), &fixture),
    ]
    .map(Arc::new);
    let (steady, shaky) = (setups[0].start(), setups[1].start());
    fixture.upstream.set(crowd::provider);

    let stop = Arc::new(AtomicBool::new(false));
    let cap = watch_cap(fixture.clone(), capped.clone(), stop.clone());
    let reaping = async { reap(&fixture, stop.clone()).await };
    let crowd = Crowd {
        urls: setups.each_ref().map(|setup| setup.url()),
        keys,
        until: CALLING,
    };
    let mut chaos = Chaos {
        dice: SeededRandom::new(seed),
        fixture: fixture.clone(),
        wire,
        setup: setups[1].clone(),
        shaky,
    };
    let calling = async {
        let (calls, ()) = futures::future::join(crowd.call(seed), chaos.run(CALLING)).await;
        chaos.heal().await;
        let rest = async || {
            let quiet = |name| metric(&steady, name) == 0 && metric(&chaos.shaky, name) == 0;
            (quiet("tollgate_proxy_in_flight") && quiet("tollgate_proxy_pending")).then_some(())
        };
        eventually("edges at rest", DUST, rest).await;
        fixture.bot.settled_within(DUST).await;
        stop.store(true, Ordering::SeqCst);
        calls
    };
    let ((), calls) = futures::future::join(reaping, calling).await;
    let highest = cap.join().expect("the watcher");

    let unsettled = unsettled(&fixture).await;
    let sums = account_for(&fixture, &calls, &unsettled, seed);
    let (free, tight) = (sums["bot"], sums["capped"]);
    let tracked = free + tight;
    assert_eq!(
        fixture.charged(),
        [free, free, tracked],
        "seed {seed}: day, month, account"
    );
    assert_eq!(
        capped.charged(&fixture.redis),
        [tight, tight, tracked],
        "seed {seed}"
    );
    assert!(
        highest <= CAP && tight <= CAP,
        "seed {seed}: {highest} and {tight} of {CAP}"
    );
    crowd::assert_every_outcome_occurred(&calls, unsettled.len(), highest, seed);
}
