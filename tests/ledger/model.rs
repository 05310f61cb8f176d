//! The model of one account's ledger. Counters are not stored but summed over the charges, so that the model cannot
//! make the scripts' mistakes; the Cap decision is the pure rule of `domain::cap`.

mod extending;
mod hold_ends;
mod render;
mod rules;

use crate::snapshot::Window;
use domain::cap::CapPolicy;
use domain::money::Nanos;
use domain::period::Period;
use domain::plan::Plan;
use std::collections::BTreeMap;
use std::time::Duration;
use store::call::authorize::{AccountView, RUN_LIFE_MS};
use store::call::hold::HoldName;

/// The largest sum that `authorize` lets a counter reach.
pub const CEILING: i128 = 9_000_000_000_000_000_000;
/// The version of the price table and the model in every hold of these tests.
pub const PRICE_VERSION: &str = "p1";
pub const MODEL: &str = "a model";
/// Empty numbers of the checks, for a made-up call.
pub const NO_CHECKS: &str = ",,,,,,";
/// The estimate of a call that is beyond the largest amount.
pub const BEYOND: Nanos = Nanos::from_stored(u64::MAX);
/// The rate's window.
const MINUTE_MS: u64 = 60_000;

/// The outcome of a charge.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ChargeState {
    Open { due: Window },
    Kept { at: Window },
    Settled,
    Voided,
}

/// An approved call; it is never removed.
#[derive(Debug, Clone)]
pub struct Charge {
    pub id: String,
    pub agent: String,
    pub run: String,
    pub named: bool,
    pub key_id: String,
    pub period: Period,
    pub estimate: u64,
    /// The numbers of the checks before the charge.
    pub checks: String,
    /// The currently charged amount.
    pub amount: i128,
    pub state: ChargeState,
}

#[derive(Debug, Clone, Default)]
pub struct Agent {
    pub frozen: bool,
    pub no_provider_key: bool,
    pub cap: Option<CapPolicy>,
    /// More fields of the record.
    pub extra: BTreeMap<String, String>,
}

/// A named run that has a record.
#[derive(Debug, Clone, Copy)]
pub struct Run {
    /// `None` before the first approved call.
    pub calls: Option<i64>,
    pub denied: u64,
    pub first: Window,
    pub last: Window,
    pub expires: Window,
    /// The status of a run that has ended.
    pub status: Option<&'static str>,
    /// Whether calls alone made and used it.
    pub by_calls: bool,
}

impl Run {
    /// A run that was called once.
    pub const fn called(at: Window, expires: Window) -> Self {
        Self {
            calls: Some(1),
            denied: 0,
            first: at,
            last: at,
            expires,
            status: None,
            by_calls: false,
        }
    }
}

/// Denials of a key beyond its rate, of one reason and window.
#[derive(Debug, Clone)]
pub struct Counted {
    /// When the window ends.
    pub ends: Window,
    /// Reason, account, agent, key.
    pub name: String,
    pub count: u64,
}

#[derive(Debug, Clone, Copy, Default)]
pub struct Key {
    /// Requests in its minute, and when that opened.
    pub rate: Option<(u64, Window)>,
    pub last_used: Option<Window>,
}

#[derive(Debug, Clone)]
pub struct Model {
    pub account: String,
    pub period: Period,
    pub generation: u64,
    pub version: u64,
    pub plan: String,
    pub policy: Option<CapPolicy>,
    /// Active keys, oldest first, with their number.
    pub active: Vec<(u64, String)>,
    pub keys: BTreeMap<String, Key>,
    pub agents: BTreeMap<String, Agent>,
    pub runs: BTreeMap<(String, String), Run>,
    pub counted: Vec<Counted>,
    pub charges: Vec<Charge>,
    pub tombstones: BTreeMap<String, Window>,
    /// The audit lines without number and moment.
    pub log: Vec<(Window, String)>,
    /// The index of each agent's runs: when each run was last seen.
    pub listed: BTreeMap<(String, String), Window>,
    /// The same in the index of all agents' runs, by which they are counted.
    pub counted_runs: BTreeMap<(String, String), Window>,
    /// When the index of an agent's runs expires; one that is laid out with ended runs alone does not.
    pub listed_expires: BTreeMap<String, Window>,
    /// When the index of all agents' runs expires.
    pub counted_expires: Option<Window>,
    /// Most runs of the account.
    pub runs_most: usize,
    /// More members of the kept index, by moment.
    pub kept_extra: BTreeMap<String, u64>,
    /// Members of the due index whose hold is gone, by deadline.
    pub due_extra: BTreeMap<String, u64>,
}

/// When something happened.
#[derive(Debug, Clone, Copy)]
pub struct Moment {
    /// By the clock that the script sees; a test may set it.
    pub clock: Window,
    /// The real time, from which lives are counted.
    pub real: Window,
}

/// One request as the model sees it.
#[derive(Debug, Clone)]
pub struct Call {
    pub name: HoldName,
    pub named: bool,
    pub key_id: String,
    pub view: AccountView,
    pub plan: Plan,
    /// `None` is a probe.
    pub estimate: Option<Nanos>,
    pub hold_life: Duration,
}

/// One extension as the model sees it.
#[derive(Debug, Clone)]
pub struct Extension {
    pub name: HoldName,
    pub key_id: String,
    pub view: AccountView,
    pub plan: Plan,
    pub from: u64,
    pub to: u64,
    pub hold_life: Duration,
}

impl Model {
    /// Puts a run that was seen at `at` into both indexes. They expire with the run, unless it has ended: a key whose
    /// time is over cannot be laid out.
    pub fn list(&mut self, run: (String, String), at: Window) {
        let expires = at.later(RUN_LIFE_MS);
        if expires.from > clock::now_ms() {
            self.listed_expires.insert(run.0.clone(), expires);
            self.counted_expires = Some(expires);
        }
        self.listed.insert(run.clone(), at);
        self.counted_runs.insert(run, at);
    }

    /// Number of runs that were last seen after `ended`. A run that was last seen then or earlier has ended.
    pub fn live_runs(&self, ended: u64) -> usize {
        self.counted_runs
            .values()
            .filter(|seen| seen.from > ended)
            .count()
    }

    pub fn new(account: &str, period: Period) -> Self {
        Self {
            account: account.to_owned(),
            period,
            generation: 1,
            version: 1,
            plan: "p0".to_owned(),
            policy: None,
            active: Vec::new(),
            keys: BTreeMap::new(),
            agents: BTreeMap::new(),
            runs: BTreeMap::new(),
            counted: Vec::new(),
            charges: Vec::new(),
            tombstones: BTreeMap::new(),
            log: Vec::new(),
            listed: BTreeMap::new(),
            counted_runs: BTreeMap::new(),
            listed_expires: BTreeMap::new(),
            counted_expires: None,
            runs_most: usize::MAX,
            kept_extra: BTreeMap::new(),
            due_extra: BTreeMap::new(),
        }
    }

    fn sum(&self, of: impl Fn(&Charge) -> bool) -> i128 {
        self.charges
            .iter()
            .filter(|charge| of(charge))
            .map(|charge| charge.amount)
            .sum()
    }

    /// Sum of the open holds among these charges.
    fn held(&self, of: impl Fn(&Charge) -> bool) -> u64 {
        let open = self
            .charges
            .iter()
            .filter(|charge| matches!(charge.state, ChargeState::Open { .. }));
        open.filter(|charge| of(charge))
            .map(|charge| charge.estimate)
            .sum()
    }

    pub fn run_spent(&self, agent: &str, run: &str) -> i128 {
        self.sum(|charge| charge.named && charge.agent == agent && charge.run == run)
    }

    pub fn day_spent(&self, agent: &str) -> i128 {
        self.sum(|charge| charge.agent == agent && charge.period.day == self.period.day)
    }

    pub fn month_spent(&self, agent: &str) -> i128 {
        self.sum(|charge| charge.agent == agent && charge.period.month == self.period.month)
    }

    pub fn tracked(&self) -> i128 {
        self.sum(|charge| charge.period.month == self.period.month)
    }

    fn has_slot(&self, agent: &str, month: u64) -> bool {
        self.keeps_slot(agent, month) || self.users(agent, month) > 0
    }

    /// Returns whether an agent has a slot in `month` that is not given back.
    fn keeps_slot(&self, agent: &str, month: u64) -> bool {
        let extra = self.agents.get(agent).map(|agent| &agent.extra);
        extra.is_some_and(|extra| extra.contains_key(&format!("s{month}")))
    }

    /// Number of calls of an agent that were approved in `month` and not voided.
    fn users(&self, agent: &str, month: u64) -> usize {
        let is_user = |charge: &&Charge| {
            charge.agent == agent && charge.period.month == month && charge.state != ChargeState::Voided
        };
        self.charges.iter().filter(is_user).count()
    }

    /// Number of agents that took a slot in `month`.
    fn slots(&self, month: u64) -> u64 {
        let took = |agent: &&String| self.has_slot(agent, month);
        self.agents.keys().filter(took).count() as u64
    }

    /// Drops the window of a key beyond its rate if it was opened while the clock was ahead.
    fn forget_window_ahead(&mut self, call: &Call, now_ms: u64) {
        let (Some(limit), Some(key)) = (
            call.plan.proxy_requests_per_minute,
            self.keys.get_mut(&call.key_id),
        ) else {
            return;
        };
        key.rate = key
            .rate
            .filter(|(before, opened)| *before < limit || opened.from <= now_ms);
    }

    /// The policy in effect.
    pub fn effective(&self, agent: &str) -> Option<CapPolicy> {
        self.agents.get(agent).and_then(|agent| agent.cap).or(self.policy)
    }

    pub fn view(&self) -> AccountView {
        AccountView {
            generation: self.generation,
            version: self.version,
            plan: self.plan.clone(),
        }
    }
}

pub fn millis(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).expect("milliseconds")
}
