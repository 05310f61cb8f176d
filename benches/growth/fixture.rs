//! A private store with callers, and the cost of their calls to it.

use crate::Outcome;
use crate::actor::{Actor, PLAN};
use crate::calls::{COST, CallKind};
use clock::now_ms;
use domain::id::IdKind;
use futures::{StreamExt, TryStreamExt, stream};
use gate_bench_rig::cpu;
use harness::{CapPolicy, Nanos, Redis, Seed, SeedAccount, SeedAgent, Store};
use std::collections::HashSet;

const ACCOUNTS: usize = 8;
/// See [`ACCOUNTS`].
const AGENTS: usize = 8;
/// A limit that is checked and never reached.
const NEVER: Nanos = Nanos::from_stored(4_000_000_000_000_000);

/// A store with callers.
pub struct Fixture {
    pub redis: Redis,
    /// Handle of the server.
    pub store: Store,
    /// The account that holds the many records.
    pub account: SeedAccount,
    /// Callers of the approved calls, with and without a run, and of those that rate, plan or key status refuse.
    pub free: Vec<Actor>,
    frozen: Vec<Actor>,
    no_run: Vec<Actor>,
    no_day: Vec<Actor>,
    approved: [u64; 2],
    /// Holds that were written and stay open.
    pub holds: u64,
}

impl Fixture {
    /// Starts a server with these options and seeds the callers.
    pub async fn found(options: &[&str]) -> Outcome<Self> {
        let redis = Redis::start_with(options);
        let store = redis.store();
        let seed = Seed::new(&store).await;
        let any = CapPolicy {
            enabled: true,
            per_run: Some(NEVER),
            daily: Some(NEVER),
            monthly: Some(NEVER),
        };
        let none = Some(Nanos::ZERO);
        let account = seed.account(PLAN).await;
        let mut fixture = Self {
            redis,
            store,
            account: account.clone(),
            free: Vec::new(),
            frozen: Vec::new(),
            no_run: Vec::new(),
            no_day: Vec::new(),
            approved: [0; 2],
            holds: 0,
        };
        for at in 0..ACCOUNTS {
            let account = if at == 0 {
                account.clone()
            } else {
                seed.account(PLAN).await
            };
            for number in 0..AGENTS {
                let agent = |kind: &str| account.agent(&format!("{kind}-{number}"));
                fixture.free.push(Actor::seed(&agent("bot"), any).await);
                let frozen = agent("frozen");
                fixture.frozen.push(Actor::seed(&frozen, any).await);
                frozen.frozen(true).await;
                fixture
                    .no_run
                    .push(Actor::seed(&agent("run"), CapPolicy { per_run: none, ..any }).await);
                fixture
                    .no_day
                    .push(Actor::seed(&agent("day"), CapPolicy { daily: none, ..any }).await);
            }
        }
        Ok(fixture)
    }

    /// Measures the CPU time of the server for a call of this kind, in microseconds.
    pub async fn measure(&mut self, kind: CallKind, calls: usize, depth: usize) -> Outcome<f64> {
        let actors = match kind {
            CallKind::Frozen => &self.frozen,
            CallKind::Run => &self.no_run,
            CallKind::Daily => &self.no_day,
            _ => &self.free,
        };
        // The first call of a run and of a minute does more work and is not measured.
        for actor in actors.iter().take(calls) {
            kind.call(&self.store, actor, IdKind::Allow.mint(now_ms())?)
                .await?;
        }
        let warm = actors.len().min(calls);
        let mut ids = Vec::with_capacity(calls);
        for _ in 0..calls {
            ids.push(IdKind::Allow.mint(now_ms())?);
        }
        let pid = self.redis.pid();
        let before = cpu::of_process(pid)?;
        stream::iter(ids.into_iter().zip(actors.iter().cycle()))
            .map(|(id, actor)| kind.call(&self.store, actor, id))
            .buffer_unordered(depth)
            .try_collect::<()>()
            .await?;
        let seconds = cpu::of_process(pid)? - before;
        match kind {
            CallKind::Named => self.approved[0] += (calls + warm) as u64,
            CallKind::Unnamed => self.approved[1] += (calls + warm) as u64,
            _ => {}
        }
        Ok(seconds * 1e6 / calls as f64)
    }

    /// Sets the callers of the approved calls.
    pub fn spread(&mut self, callers: Vec<Actor>) {
        self.free = callers;
    }

    /// Checks that runs and agents were charged exactly the cost of the approved calls, and that none of their holds is
    /// open.
    pub async fn check(&self) -> Outcome<()> {
        let [named, unnamed] = self.approved;
        let (mut of_runs, mut of_agents, mut holds) = (0, 0, 0);
        let mut buckets = Vec::new();
        let (mut runs, mut agents) = (HashSet::new(), HashSet::new());
        for actor in &self.free {
            let agent = self.agent(actor);
            if runs.insert((&actor.account, &actor.agent, &actor.run)) {
                of_runs += agent.run_spent(&actor.run).await.unwrap_or_default();
            }
            if agents.insert((&actor.account, &actor.agent)) {
                of_agents += agent.counters().await.month_nanos;
            }
            let bucket = agent.account.keys.bucket();
            if !buckets.contains(&bucket) {
                buckets.push(bucket);
                holds += agent.open_holds().await;
            }
        }
        let due = [named * COST.get(), (named + unnamed) * COST.get(), self.holds];
        if [of_runs, of_agents, holds] == due {
            return Ok(());
        }
        Err(format!(
            "charged to runs and agents, and open holds: {of_runs}, {of_agents}, {holds}, not {due:?}"
        )
        .into())
    }

    fn agent(&self, actor: &Actor) -> SeedAgent {
        let mut account = self.account.clone();
        account.keys = store::keys::AccountKeys::new(&actor.account);
        account.id.clone_from(&actor.account);
        account.agent(&actor.agent)
    }
}
