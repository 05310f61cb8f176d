//! Many callers at once: exactly as many approvals as the limit allows, and each hold resolved exactly once.

use crate::fixture::{ACCOUNT, AGENTS, Fixture, PROVIDER, open_cap, period, settlement, unlimited, usd};
use crate::model::Call;
use crate::scripts::{Scripts, Texts};
use domain::cap::CapPolicy;
use domain::period::Period;
use futures::future::join_all;
use harness::{AgentCounters, Redis};
use std::collections::BTreeSet;
use store::Store;
use store::call::authorize::{Authorize, AuthorizeOutcome, Charge};
use store::call::settle::Settled;
use store::call::void::{Voided, void};
use store::keys::AccountKeys;
use store::versions::AccountVersion;

/// Callers at once, over several connections as several edges have them.
const TASKS: u64 = 64;
const EDGES: usize = 3;
const FIT: u64 = 17;
const ESTIMATE: u64 = 1_000_003;

struct Race {
    redis: Redis,
    stores: Vec<Store>,
    /// On the first store.
    scripts: Scripts,
}

impl Race {
    fn new() -> Self {
        let redis = Redis::start();
        let stores: Vec<Store> = (0..EDGES).map(|_| redis.store()).collect();
        Self {
            redis,
            scripts: Texts::real().build(&stores[0]),
            stores,
        }
    }

    /// A fixture that `arrange` has changed, installed for the current period.
    async fn fixture(&self, arrange: impl Fn(&mut Fixture<'_>)) -> Fixture<'_> {
        let now = period(&self.stores[0]).await.unwrap();
        let mut fixture = Fixture::new(&self.scripts, now);
        arrange(&mut fixture);
        fixture.install().await.unwrap();
        fixture
    }

    /// Runs all calls at once. Returns which of them were approved.
    async fn run(&self, calls: &[Call]) -> Vec<bool> {
        let one = async |at: usize, call: &Call| {
            let charge = Charge {
                estimate: call.estimate,
                run_named: call.named,
                hold_life: call.hold_life,
                price_version: "p1",
                model: "m",
                provider: PROVIDER,
            };
            let request = Authorize {
                name: &call.name,
                key_id: &call.key_id,
                view: &call.view,
                plan: &call.plan,
                charge: Some(&charge),
            };
            let answer = request
                .execute(&call.name.keys(), &self.stores[at % EDGES])
                .await
                .unwrap();
            matches!(answer.outcome, AuthorizeOutcome::Charged { .. })
        };
        join_all(calls.iter().enumerate().map(|(at, call)| one(at, call))).await
    }

    /// The store's counters of the agent and its account.
    async fn counters(&self, now: Period) -> AgentCounters {
        let keys = AccountKeys::new(ACCOUNT);
        let read = |key: &str, field: String| -> u64 {
            self.redis
                .command::<Option<u64>>(&["HGET", key, &field])
                .unwrap_or(0)
        };
        let agent = keys.live().agent(AGENTS[0]);
        AgentCounters {
            day_nanos: read(&agent, format!("d{}", now.day)),
            month_nanos: read(&agent, format!("m{}", now.month)),
            tracked_nanos: read(&keys.record(), format!("t{}", now.month)),
            slots: read(&keys.record(), format!("n{}", now.month)),
        }
    }
}

/// Races once under a policy and a plan, from one agent and key in one run; repeats the race if midnight fell into it.
async fn approvals(policy: CapPolicy, limit: impl Fn(&mut Call)) -> u64 {
    let race = Race::new();
    loop {
        let mut fixture = race
            .fixture(|fixture| {
                fixture
                    .model
                    .agents
                    .values_mut()
                    .for_each(|agent| agent.cap = Some(policy))
            })
            .await;
        let calls: Vec<Call> = (0..TASKS).map(|_| fixture.call_in("r", ESTIMATE)).collect();
        let calls: Vec<Call> = calls
            .into_iter()
            .map(|mut call| {
                limit(&mut call);
                call
            })
            .collect();
        let approved = race
            .run(&calls)
            .await
            .into_iter()
            .filter(|approved| *approved)
            .count() as u64;
        if period(&race.stores[0]).await.unwrap() == fixture.model.period {
            let spent = approved * ESTIMATE;
            let expected = AgentCounters {
                day_nanos: spent,
                month_nanos: spent,
                tracked_nanos: spent,
                slots: approved.min(1),
            };
            assert_eq!(race.counters(fixture.model.period).await, expected);
            return approved;
        }
    }
}

/// The tightest and the loosest limit under which exactly [`FIT`] calls pass.
fn limits() -> [u64; 2] {
    [FIT * ESTIMATE, (FIT + 1) * ESTIMATE - 1]
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn exactly_as_many_as_the_cap_allows() {
    for limit in limits() {
        let limit = Some(usd(limit));
        for policy in [
            CapPolicy {
                per_run: limit,
                ..open_cap()
            },
            CapPolicy {
                daily: limit,
                ..open_cap()
            },
            CapPolicy {
                monthly: limit,
                ..open_cap()
            },
        ] {
            assert_eq!(approvals(policy, |_| {}).await, FIT, "{policy:?}");
        }
        assert_eq!(
            approvals(open_cap(), |call| call.plan.tracked_usd_per_month = limit).await,
            FIT
        );
    }
    assert_eq!(
        approvals(open_cap(), |call| call.plan.proxy_requests_per_minute = Some(FIT)).await,
        FIT
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn exactly_as_many_agents_and_keys_as_the_plan_allows() {
    let race = Race::new();
    let name = |n: u64| format!("x{n:02}");
    loop {
        let mut fixture = race
            .fixture(|fixture| {
                let model = &mut fixture.model;
                let agent = model.agents[AGENTS[0]].clone();
                model.agents.extend((0..TASKS).map(|n| (name(n), agent.clone())));
                model.active = (0..TASKS).map(|n| (n + 1, name(n))).collect();
            })
            .await;
        let mut calls = Vec::new();
        for n in 0..TASKS {
            let mut call = fixture.call(ESTIMATE);
            (call.name.agent, call.key_id) = (name(n), name(n));
            call.plan.cap_agents_per_month = Some(FIT);
            calls.push(call);
        }
        let approved = race
            .run(&calls)
            .await
            .into_iter()
            .filter(|approved| *approved)
            .count() as u64;
        let by_key: Vec<Call> = calls
            .iter()
            .cloned()
            .map(|mut call| {
                call.name.allow_id.push('k');
                call.plan = unlimited();
                call.plan.active_virtual_keys = Some(FIT);
                call
            })
            .collect();
        let keys = race.run(&by_key).await;
        if period(&race.stores[0]).await.unwrap() == fixture.model.period {
            assert_eq!(approved, FIT);
            let oldest: Vec<bool> = (0..TASKS).map(|n| n < FIT).collect();
            assert_eq!(keys, oldest, "the oldest keys win");
            return;
        }
    }
}

/// Two settlements and a void of each hold at once: exactly one succeeds, and the counters show which.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn each_hold_is_resolved_exactly_once() {
    let race = Race::new();
    while !resolved_in_one_day(&race).await {}
}

/// Returns false if midnight fell into it.
async fn resolved_in_one_day(race: &Race) -> bool {
    let mut fixture = race.fixture(|_| {}).await;
    let calls: Vec<Call> = (0..TASKS).map(|_| fixture.call_in("r", ESTIMATE)).collect();
    assert!(race.run(&calls).await.into_iter().all(|approved| approved));
    let resolve = async |at: usize, call: &Call| {
        let settle = |cost: u64| settlement(call.name.clone(), ESTIMATE, cost);
        let (low, high) = (settle(at as u64), settle(ESTIMATE + 5));
        let store = |edge: usize| &race.stores[(at + edge) % EDGES];
        let keys = call.name.keys();
        let (low, high, voided) = futures::join!(
            low.execute(&keys, None, store(0)),
            high.execute(&keys, None, store(1)),
            void(store(2), &call.name, AccountVersion::default())
        );
        let settled = |result: Settled| matches!(result, Settled::Done);
        match (settled(low.unwrap()), settled(high.unwrap()), voided.unwrap()) {
            (true, false, Voided::Barred) => at as u64,
            (false, true, Voided::Barred) => ESTIMATE + 5,
            (false, false, Voided::Refunded) => 0,
            winners => panic!("{winners:?}"),
        }
    };
    let left = join_all(calls.iter().enumerate().map(|(at, call)| resolve(at, call))).await;
    let spent: u64 = left.iter().sum();
    let counters = race.counters(fixture.model.period).await;
    if period(&race.stores[0]).await.unwrap() != fixture.model.period {
        return false;
    }
    assert_eq!(
        (counters.day_nanos, counters.month_nanos, counters.tracked_nanos),
        (spent, spent, spent)
    );
    let run = AccountKeys::new(ACCOUNT).live().run(AGENTS[0], "r");
    assert_eq!(race.redis.command::<u64>(&["HGET", &run, "spent"]), spent);
    let bucket = AccountKeys::new(ACCOUNT).bucket();
    assert_eq!(
        race.redis.command::<u64>(&["ZCARD", &bucket.due()]),
        0,
        "no hold is left open"
    );
    assert!(
        left.iter().collect::<BTreeSet<_>>().len() > 1,
        "not always the same won"
    );
    true
}
