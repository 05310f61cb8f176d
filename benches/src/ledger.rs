//! Redis with the accounts of the bench, and the check that every approved call was charged its cost.

use domain::amount;
use domain::mode::Mode;
use domain::permission::Permission;
use harness::{Caller, CapPolicy, Nanos, Redis, Seed, SeedAccount, SeedAgent, chat_body};
use std::cell::Cell;
use std::error::Error;
use std::path::{Path, PathBuf};

/// Accounts, and agents in each of them: one agent for each connection of the closed loop.
const ACCOUNTS: usize = 8;
/// See [`ACCOUNTS`].
const AGENTS: usize = 8;
/// A limit that is checked and never reached: 4 million USD.
const NEVER_REACHED: Nanos = Nanos::from_stored(4_000_000_000_000_000);
/// Daily limit of a [`AgentKind::Little`] agent, in nano-USD: some five hundred calls.
pub(crate) const LITTLE_NANOS: u64 = 26_000_000;

/// Kind of an agent: free to call, limited, or refused for one reason.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum AgentKind {
    /// It may call.
    Free,
    /// Its daily limit is 0.
    Spent,
    Frozen,
    /// Its key may make no request a minute.
    Hasty,
    Revoked,
    /// Its key is well-formed and was never issued.
    Invented,
    /// It may spend [`LITTLE_NANOS`] a day.
    Little,
}

/// A store with agents of one kind or several.
#[derive(Debug)]
pub(crate) struct Ledger {
    pub(crate) redis: Redis,
    /// Calls answered with 200 so far; each must have been charged.
    pub(crate) approved: Cell<u64>,
    seed: Seed,
    dir: PathBuf,
    free: Keyring,
}

/// The agents of one kind.
#[derive(Debug)]
pub(crate) struct Keyring {
    /// Their keys, one a line.
    pub(crate) file: PathBuf,
    agents: Vec<SeedAgent>,
    first_key: String,
}

impl Ledger {
    /// Starts a server and fills it with agents that may call; files of keys go below `dir`.
    pub(crate) async fn start(dir: &Path, is_durable: bool) -> Result<Self, Box<dyn Error>> {
        let redis = Redis::start_with(if is_durable { &Redis::EVERY_SECOND } else { &[] });
        let seed = Seed::new(&redis.store()).await;
        let dir = dir.join(if is_durable { "durable" } else { "memory" });
        std::fs::create_dir_all(&dir)?;
        let free = keyring(&seed, &dir, AgentKind::Free, ACCOUNTS * AGENTS, AGENTS).await?;
        Ok(Self {
            redis,
            approved: Cell::new(0),
            seed,
            dir,
            free,
        })
    }

    /// The keys of the agents that may call.
    pub(crate) fn keys(&self) -> PathBuf {
        self.free.file.clone()
    }

    pub(crate) async fn add(&self, kind: AgentKind, count: usize) -> Result<Keyring, Box<dyn Error>> {
        keyring(&self.seed, &self.dir, kind, count, AGENTS).await
    }

    /// Adds `count` agents that may call, all in one account.
    pub(crate) async fn add_crowd(&self, count: usize) -> Result<Keyring, Box<dyn Error>> {
        keyring(&self.seed, &self.dir, AgentKind::Free, count, count).await
    }

    /// An API key that may read an account of its own.
    pub(crate) async fn api_key(&self) -> String {
        let account = self.seed.account("bench").await;
        account
            .issue(Mode::Live, &[Permission::Read], &[], None)
            .await
            .secret
    }

    /// Adds a full set of agents that are refused.
    pub(crate) async fn add_refused(&self, kind: AgentKind) -> Result<PathBuf, Box<dyn Error>> {
        Ok(self.add(kind, ACCOUNTS * AGENTS).await?.file)
    }

    /// Returns the real cost of one call of the bench, in nano-USD, as the edge reports it. The call has a run of its
    /// own.
    pub(crate) async fn price(&self, edge: &str) -> Result<u64, Box<dyn Error>> {
        let caller: Caller = Caller::new(edge, &self.free.first_key);
        let reply = caller.chat(chat_body("gpt-4o-mini", "hello")).await;
        let usd = reply
            .header("x-service-actual-usd")
            .ok_or(format!("no price: {reply:?}"))?;
        Ok(amount::parse_amount(usd)?.get())
    }

    /// Checks that the runs of the bench were charged the cost of the approved calls and that no hold is open. Returns
    /// the number of approved calls.
    pub(crate) async fn check(&self, edge: &str) -> Result<u64, Box<dyn Error>> {
        let (calls, price) = (self.approved.get(), self.price(edge).await?);
        let (charged, holds) = self.free.charged().await;
        let due = calls * price;
        if charged == due && holds == 0 {
            return Ok(calls);
        }
        Err(format!(
            "{calls} calls at {price} nano-USD cost {due}, {charged} were charged; {holds} holds are open"
        )
        .into())
    }
}

impl Keyring {
    /// Returns the charges of the bench's runs, in nano-USD, and the number of open holds.
    pub(crate) async fn charged(&self) -> (u64, u64) {
        let (mut charged, mut holds) = (0, 0);
        for (number, agent) in self.agents.iter().enumerate() {
            charged += agent
                .run_spent(&format!("bench-{number}"))
                .await
                .unwrap_or_default();
            holds += agent.open_holds().await;
        }
        (charged, holds)
    }

    /// Returns today's charges of each agent, in nano-USD.
    pub(crate) async fn spent_today(&self) -> Vec<u64> {
        let mut spent = Vec::new();
        for agent in &self.agents {
            spent.push(agent.counters().await.day_nanos);
        }
        spent
    }
}

/// Creates `count` agents, `each` of them in one account.
async fn keyring(
    seed: &Seed,
    dir: &Path,
    kind: AgentKind,
    count: usize,
    each: usize,
) -> Result<Keyring, Box<dyn Error>> {
    let plan = if kind == AgentKind::Hasty {
        "bench-hasty"
    } else {
        "bench"
    };
    let (mut agents, mut keys) = (Vec::new(), Vec::new());
    let mut account: Option<SeedAccount> = None;
    for number in 0..count {
        let home = match account.take().filter(|_| number % each != 0) {
            Some(account) => account,
            None => seed.account(plan).await,
        };
        let agent = home.agent(&format!("bot-{number}"));
        keys.push(ready(&agent, kind).await);
        agents.push(agent);
        account = Some(home);
    }
    let file = dir.join(format!("{kind:?}-{count}-by-{each}.keys"));
    std::fs::write(&file, keys.join("\n"))?;
    Ok(Keyring {
        file,
        agents,
        first_key: keys.swap_remove(0),
    })
}

/// Sets up an agent so that its calls are approved, or refused as `kind` says. Returns its virtual key.
async fn ready(agent: &SeedAgent, kind: AgentKind) -> String {
    let daily = match kind {
        AgentKind::Spent => Nanos::ZERO,
        AgentKind::Little => Nanos::from_stored(LITTLE_NANOS),
        _ => NEVER_REACHED,
    };
    let policy = CapPolicy {
        enabled: true,
        per_run: Some(NEVER_REACHED),
        daily: Some(daily),
        monthly: Some(NEVER_REACHED),
    };
    agent.cap(policy).await;
    agent.provider_key("sk-bench-provider-key").await;
    let (id, key) = agent.virtual_key_with_id().await;
    match kind {
        AgentKind::Frozen => agent.frozen(true).await,
        AgentKind::Revoked => agent.account.revoke(&id).await,
        AgentKind::Invented => return format!("vk_live_{:064x}", id.len()),
        AgentKind::Free | AgentKind::Spent | AgentKind::Hasty | AgentKind::Little => {}
    }
    key
}
