//! Redis with the accounts of the bench, and the proof that every answered call was charged what it cost.

use harness::{Caller, CapPolicy, Nanos, Redis, Seed, SeedAgent, chat_body};
use shared::domain::amount;
use std::error::Error;
use std::path::{Path, PathBuf};

/// Accounts, and agents in each of them: one agent for each connection of the closed loop.
const ACCOUNTS: usize = 8;
/// See [`ACCOUNTS`].
const AGENTS: usize = 8;
/// A limit that is checked and never reached: 4 million USD.
const NEVER_REACHED: Nanos = Nanos::from_stored(4_000_000_000_000_000);

/// A store with agents that may call and agents that may not.
#[derive(Debug)]
pub(crate) struct Ledger {
    /// The server.
    pub(crate) redis: Redis,
    /// Keys of the agents that may call, one a line.
    pub(crate) keys: PathBuf,
    /// Keys of agents whose daily limit is 0.
    pub(crate) denied_keys: PathBuf,
    agents: Vec<SeedAgent>,
    first_key: String,
}

impl Ledger {
    /// Starts a server and fills it; the keys go to files in `dir` that start with `name`.
    pub(crate) async fn start(
        dir: &Path,
        name: &str,
        redis_options: &[&str],
    ) -> Result<Self, Box<dyn Error>> {
        let redis = Redis::start_with(redis_options);
        let seed = Seed::new(&redis.store()).await;
        let free = CapPolicy {
            enabled: true,
            per_run: Some(NEVER_REACHED),
            daily: Some(NEVER_REACHED),
            monthly: Some(NEVER_REACHED),
        };
        let spent = CapPolicy {
            daily: Some(Nanos::ZERO),
            ..free
        };
        let (mut agents, mut keys, mut denied_keys) = (Vec::new(), Vec::new(), Vec::new());
        for _ in 0..ACCOUNTS {
            let account = seed.account("bench").await;
            for number in 0..AGENTS {
                let agent = account.agent(&format!("bot-{number}"));
                keys.push(ready(&agent, free).await);
                agents.push(agent);
                denied_keys.push(ready(&account.agent(&format!("spent-{number}")), spent).await);
            }
        }
        let write = |kind: &str, keys: &[String]| -> std::io::Result<PathBuf> {
            let file = dir.join(format!("{name}.{kind}"));
            std::fs::write(&file, keys.join("\n"))?;
            Ok(file)
        };
        Ok(Self {
            redis,
            denied_keys: write("denied", &denied_keys)?,
            first_key: keys.first().cloned().unwrap_or_default(),
            keys: write("keys", &keys)?,
            agents,
        })
    }

    /// What one call of the bench really costs, as the edge itself says. The call's run has a name of its own.
    pub(crate) async fn price_of_a_call(&self, edge: &str) -> Result<u64, Box<dyn Error>> {
        let caller: Caller = Caller::new(edge, &self.first_key);
        let reply = caller.chat(chat_body("gpt-4o-mini", "hello")).await;
        let usd = reply
            .header("x-service-actual-usd")
            .ok_or(format!("no price: {reply:?}"))?;
        Ok(amount::parse_amount(usd)?.get())
    }

    /// Checks that the runs of the bench were charged `calls` times `price_nanos`, and that no hold is open.
    pub(crate) async fn check(&self, calls: u64, price_nanos: u64) -> Result<(), String> {
        let (mut charged, mut holds) = (0, 0);
        for (number, agent) in self.agents.iter().enumerate() {
            charged += agent
                .run_spent(&format!("bench-{number}"))
                .await
                .unwrap_or_default();
            holds += agent.open_holds().await;
        }
        let due = calls * price_nanos;
        if charged == due && holds == 0 {
            return Ok(());
        }
        Err(format!(
            "{calls} calls at {price_nanos} nano-USD cost {due}, {charged} were charged; {holds} holds are open"
        ))
    }
}

async fn ready(agent: &SeedAgent, cap: CapPolicy) -> String {
    agent.cap(cap).await;
    agent.provider_key("sk-bench-provider-key").await;
    agent.virtual_key().await
}
