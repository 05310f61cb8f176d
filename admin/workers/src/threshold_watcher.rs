//! The threshold watcher: records once for each limit, threshold and period when an agent or an account reaches 50, 80
//! or 95 % of a limit, and counts for the metrics how many have reached each threshold.
//!
//! An account is read if its version, its day or its plan has changed since the last read; each round reads a bounded
//! number of agents. Every server reads for its own metrics; of several that detect the same, one records and counts
//! it. A server that is killed between the two leaves a recorded notice that nobody counted; the alert therefore also
//! observes the gauge.

use crate::context::WorkerContext;
use crate::metrics::Worker;
use crate::rotation::Rotation;
use crate::rounds::Rounds;
use arc_swap::ArcSwap;
use domain::mode::Mode;
use domain::money::Nanos;
use domain::period::Period;
use domain::plan::Plans;
use domain::threshold::{Threshold, Watched};
use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;
use store::audit::chain::Chain;
use store::keys::Realm;
use store::read::Read;
use store::threshold::LimitUsage;
use store::threshold::notice::Notice;
use store::{Store, StoreError, server_clock};
use tokio::sync::watch;

/// Pause between two rounds.
const EVERY: Duration = Duration::from_secs(5);
/// Number of accounts whose version is read in one round.
const ACCOUNTS: usize = 5000;
/// Number of agents read in one round; the account that reaches it is the last.
const AGENTS_MAX: usize = 20_000;
/// Maximum number of batches, of some hundred entries each, that are sealed before an account is read.
const BATCHES_MAX: usize = 20;

/// Numbers of agents and accounts for each threshold of each limit. Each counts only at its highest threshold.
type Counts = [[u64; Threshold::ALL.len()]; Watched::ALL.len()];

/// While these are unchanged, so are the limit usages of an account.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
struct UsageInputs {
    version: String,
    day: u64,
    tracked_limit: Option<Nanos>,
}

/// State from one round to the next.
#[derive(Debug, Default)]
struct WatcherState {
    rotation: Rotation,
    /// The inputs with which each account was last read.
    read: HashMap<String, UsageInputs>,
    /// Accounts that changed, in the order in which they are read.
    due: VecDeque<String>,
    /// Inputs with which the changed accounts must be read, by account.
    changed: HashMap<String, UsageInputs>,
    /// Accounts with a reached threshold.
    reached: HashMap<String, Counts>,
    /// The notice of each account that may have been recorded although the store's reply was lost.
    unconfirmed: HashMap<String, UnconfirmedNotice>,
}

/// A notice that is counted once it is known to be recorded.
#[derive(Debug)]
struct UnconfirmedNotice {
    watched: Watched,
    threshold: Threshold,
    agent: Option<String>,
}

/// Watches until the server stops.
pub(super) async fn run(
    context: Arc<WorkerContext>,
    plans: Arc<ArcSwap<Plans>>,
    stopping: watch::Receiver<bool>,
) {
    let mut state = WatcherState::default();
    let mut rounds = Rounds::new(stopping, EVERY);
    while rounds.next_while_trusted(&context).await {
        let watched = run_round(&context, &plans.load_full(), &mut state).await;
        if watched.is_err() {
            context.metrics.thresholds.failed.inc();
        }
        let sums = state.reached.values().fold(Counts::default(), sum);
        let count = |watched: Watched, threshold: Threshold| sums[watched as usize][threshold as usize];
        context.metrics.thresholds.set(count);
        context.record(Worker::ThresholdWatcher, watched);
    }
}

async fn run_round(
    context: &WorkerContext,
    plans: &Plans,
    state: &mut WatcherState,
) -> Result<(), StoreError> {
    let store = &context.store;
    state.rotation.renew(store).await?;
    let at_ms = server_clock::now_ms(store).await?;
    find_changed(store, plans, state, Period::at(at_ms)).await?;
    let mut agents = 0;
    while agents < AGENTS_MAX
        && let Some(account) = state.due.pop_front()
        && let Some(basis) = state.changed.remove(&account)
    {
        // An account that cannot be read now is found again in its next turn.
        let (read, usages) = usages(store, &account, &basis, at_ms).await?;
        notice(context, &mut state.unconfirmed, &account, &usages, at_ms).await?;
        state.keep(account, basis, &usages);
        agents += read;
    }
    Ok(())
}

impl WatcherState {
    fn keep(&mut self, account: String, basis: UsageInputs, usages: &[LimitUsage]) {
        match usages.is_empty() {
            true => drop(self.reached.remove(&account)),
            false => drop(self.reached.insert(account.clone(), counts(usages))),
        }
        self.read.insert(account, basis);
    }

    /// Returns whether an account must be read again. A new day changes nothing while no threshold is reached.
    fn is_changed(&self, account: &str, basis: &UsageInputs) -> bool {
        let was_read = self.read.get(account).is_some_and(|read| {
            let is_same = read.version == basis.version && read.tracked_limit == basis.tracked_limit;
            is_same && (read.day == basis.day || !self.reached.contains_key(account))
        });
        !was_read
    }
}

/// Finds the accounts that changed, among those whose turn it is.
async fn find_changed(
    store: &Store,
    plans: &Plans,
    state: &mut WatcherState,
    period: Period,
) -> Result<(), StoreError> {
    let accounts = state.rotation.next(ACCOUNTS);
    let fields = ["version", "plan"].map(str::to_owned);
    let reads = Read::for_accounts(&accounts, &fields);
    let mut answers = store.many(&reads).await?;
    for account in accounts {
        let found: Option<(Option<String>, Option<String>)> = answers.read();
        let Some((Some(version), Some(plan))) = found else {
            continue;
        };
        let tracked_limit = plans.get(&plan).and_then(|plan| plan.tracked_usd_per_month);
        let basis = UsageInputs {
            version,
            day: period.day,
            tracked_limit,
        };
        if state.is_changed(&account, &basis) && state.changed.insert(account.clone(), basis).is_none() {
            state.due.push_back(account);
        }
    }
    Ok(())
}

/// Returns the number of agents that were read, and the limits with a reached threshold. Proxied calls, and thus plans,
/// are live.
async fn usages(
    store: &Store,
    account: &str,
    basis: &UsageInputs,
    at_ms: u64,
) -> Result<(usize, Vec<LimitUsage>), StoreError> {
    let realm = Realm::new(account, Mode::Live);
    let period = Period::at(at_ms);
    // Agents with neither wallet nor provider key are known from the statistics, which are updated by sealing.
    Chain::new(store, realm.clone()).seal_some(BATCHES_MAX).await?;
    let (survey, usages) = LimitUsage::read(store, &realm, period, basis.tracked_limit).await?;
    Ok((survey.agents.len(), usages))
}

/// Records and counts the thresholds that were not recorded before in this period. A lost reply is followed by a count
/// at the account's next turn: at worst a threshold is counted twice, by two servers.
async fn notice(
    context: &WorkerContext,
    unconfirmed: &mut HashMap<String, UnconfirmedNotice>,
    account: &str,
    usages: &[LimitUsage],
    at_ms: u64,
) -> Result<(), StoreError> {
    let (store, realm) = (&context.store, Realm::new(account, Mode::Live));
    let reached: Vec<(&LimitUsage, Notice<'_>)> = usages
        .iter()
        .flat_map(|usage| {
            let thresholds = Threshold::ALL.into_iter().filter(|one| *one <= usage.threshold);
            thresholds.map(move |threshold| (usage, usage.notice(threshold)))
        })
        .collect();
    let notices: Vec<Notice<'_>> = reached.iter().map(|(_, notice)| *notice).collect();
    let known = Notice::recorded_at(&notices, store, &realm, Period::at(at_ms)).await?;
    let uncounted = unconfirmed.remove(account);
    for ((usage, notice), known) in reached.into_iter().zip(known) {
        let is_uncounted = uncounted.as_ref().is_some_and(|one| one.is(&notice));
        let is_first = match known {
            Some(_) => is_uncounted,
            None => notice.record(store, &realm, at_ms).await.inspect_err(|error| {
                if error.may_have_run() {
                    unconfirmed.insert(account.to_owned(), UnconfirmedNotice::of(&notice));
                }
            })?,
        };
        if is_first {
            count(context, account, usage, &notice);
        }
    }
    Ok(())
}

/// Counts a notice, and logs its account and agent.
fn count(context: &WorkerContext, account: &str, usage: &LimitUsage, notice: &Notice<'_>) {
    let metrics = &context.metrics.thresholds;
    metrics.count_notice(notice.watched, notice.threshold);
    tracing::warn!(
        account,
        agent = notice.agent,
        limit = notice.watched.as_str(),
        percent = notice.threshold.as_str(),
        spent_usd = %usage.spent,
        limit_usd = %usage.limit,
        "a threshold of a limit was reached"
    );
}

impl UnconfirmedNotice {
    fn of(notice: &Notice<'_>) -> Self {
        Self {
            watched: notice.watched,
            threshold: notice.threshold,
            agent: notice.agent.map(str::to_owned),
        }
    }

    fn is(&self, notice: &Notice<'_>) -> bool {
        (self.watched, self.threshold, self.agent.as_deref())
            == (notice.watched, notice.threshold, notice.agent)
    }
}

fn counts(usages: &[LimitUsage]) -> Counts {
    let mut counts = Counts::default();
    for usage in usages {
        counts[usage.watched as usize][usage.threshold as usize] += 1;
    }
    counts
}

fn sum(mut sum: Counts, other: &Counts) -> Counts {
    for (sum, other) in sum.iter_mut().flatten().zip(other.iter().flatten()) {
        *sum += other;
    }
    sum
}
