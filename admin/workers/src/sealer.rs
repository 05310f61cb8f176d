//! The sealer: computes the hashes of audit entries soon after they were written, so that few lines are unsealed and
//! events are dispatched soon. Readers do not depend on it: they seal before they read.
//!
//! Accounts with recent entries or with webhooks are read in every round, all others in turn, at a bounded rate. Sealed
//! entries of an account with webhooks are dispatched at once.

use crate::context::WorkerContext;
use crate::metrics::{Worker, WorkerMetrics};
use crate::rotation::Rotation;
use crate::rounds::Rounds;
use domain::event::violations::Minute;
use domain::mode::Mode;
use futures::{StreamExt, stream};
use std::collections::{HashMap, HashSet, VecDeque};
use std::sync::Arc;
use std::time::Duration;
use store::account::ModeField;
use store::audit::chain::Chain;
use store::audit::unreadable_lines;
use store::connection::batch::Batch;
use store::keys::Realm;
use store::read::Read;
use store::{StoreError, server_clock};
use telemetry::error_chain;
use telemetry::registrar::{level, raise};
use tokio::sync::watch;
use tokio::time::Instant;
use webhooks::Webhooks;
use webhooks::dispatch::{EntrySource, dispatch};

/// Number of accounts read in one round in addition to the busy ones: 5,000 per second at the usual pause.
const ACCOUNTS: usize = 1000;
/// Number of rounds without new entries after which an account is not busy any more.
const QUIET_ROUNDS: u32 = 50;
/// Maximum number of chains sealed concurrently.
const AT_ONCE: usize = 8;
/// Number of accounts with webhooks read in one round: their events should be dispatched soon.
const WEBHOOK_ACCOUNTS: usize = 2000;
/// Maximum number of batches of one chain sealed in one round, so that a backlog does not delay the events of others.
const BATCHES_MAX: usize = 20;
/// Rounds between two searches for new accounts.
const ACCOUNTS_EVERY: u32 = 5;

/// The sealer of audit trails, with its components.
#[derive(Clone)]
pub(super) struct TrailSealer {
    pub(super) context: Arc<WorkerContext>,
    pub(super) webhooks: Arc<Webhooks>,
    pub(super) every: Duration,
}

/// State from one round to the next.
#[derive(Debug, Default)]
struct SealerState {
    rotation: Rotation,
    /// The last sealed number of each account and mode that had one.
    sealed: HashMap<Realm, u64>,
    /// Accounts with recent entries, and the number of rounds since the last one.
    busy: HashMap<String, u32>,
    /// Accounts with webhooks, in the order in which they are read.
    webhook_order: VecDeque<String>,
    /// The same accounts.
    with_webhooks: HashSet<String>,
    /// Chains that could not be sealed or dispatched the last time.
    failing: HashSet<Realm>,
    /// True if violations waited for the end of their minute in the last round, so that the next one must read the
    /// clock.
    coalescing: bool,
    /// Chains with lines that were seen but not sealed: their number, and since when.
    behind: HashMap<Realm, (u64, Instant)>,
    rounds: u32,
}

impl SealerState {
    /// Records that a chain is sealed up to `sealed` and has lines up to `last`.
    fn sealed_to(&mut self, chain: &Realm, sealed: u64, last: u64) {
        match last.saturating_sub(sealed) {
            0 => {
                self.behind.remove(chain);
            }
            left => {
                let since = |(_, since): &(u64, Instant)| *since;
                let since = self.behind.get(chain).map_or_else(Instant::now, since);
                self.behind.insert(chain.clone(), (left, since));
            }
        }
    }

    /// Records that a chain with lines up to `last` could not be sealed. If its end was never read, no count of its
    /// unsealed lines is known.
    fn failed(&mut self, chain: &Realm, last: u64) {
        match self.sealed.get(chain).copied() {
            Some(sealed) => self.sealed_to(chain, sealed, last),
            None => {
                self.behind
                    .entry(chain.clone())
                    .or_insert_with(|| (0, Instant::now()));
            }
        }
    }

    /// Sets the metrics of unsealed lines.
    fn set_metrics(&self, metrics: &WorkerMetrics) {
        let entries: u64 = self.behind.values().map(|(entries, _)| entries).sum();
        let oldest = self.behind.values().map(|(_, since)| since.elapsed()).max();
        metrics.entries_unsealed.set(level(entries));
        metrics.unsealed_for.set(oldest.unwrap_or_default().as_secs_f64());
        // Readers of this process seal, too.
        raise(&metrics.entries_unreadable, unreadable_lines::count());
    }
}

/// Seals until the server stops. Several servers may do so concurrently.
pub(super) async fn run(worker: TrailSealer, stopping: watch::Receiver<bool>) {
    let mut state = SealerState::default();
    let mut rounds = Rounds::new(stopping, worker.every);
    let mut is_well = true;
    while rounds.next_of(&worker.context, Worker::Sealer, is_well).await {
        let sealed = run_round(&worker, &mut state).await;
        if sealed.is_err() {
            worker.context.metrics.seals_failed.inc();
        }
        state.set_metrics(&worker.context.metrics);
        is_well = sealed.is_ok();
        worker.context.record(Worker::Sealer, sealed);
    }
}

async fn run_round(worker: &TrailSealer, state: &mut SealerState) -> Result<(), StoreError> {
    let batch = Batch::new(&worker.context.store);
    if state.rounds.is_multiple_of(ACCOUNTS_EVERY) {
        batch.note(state.rotation.renew(&worker.context.store).await);
    }
    state.rounds = state.rounds.wrapping_add(1);
    let now_ms = match state.coalescing {
        true => batch.note(server_clock::now_ms(&worker.context.store).await),
        false => None,
    };
    let grown = find_grown(state, &batch, now_ms).await;
    let sealing = stream::iter(grown).map(async |chain| {
        let sealed = seal(worker, &chain).await;
        (chain, sealed)
    });
    let mut sealing = std::pin::pin!(sealing.buffer_unordered(AT_ONCE));
    while let Some((Grown { chain, last, .. }, sealed)) = sealing.next().await {
        match sealed {
            Ok(seq) => {
                state.sealed_to(&chain, seq, last);
                state.failing.remove(&chain);
                state.sealed.insert(chain, seq);
            }
            Err(error) => {
                worker.context.metrics.seals_failed.inc();
                state.failed(&chain, last);
                // It is retried in every round, but logged once.
                if state.failing.insert(chain.clone()) {
                    let (account, mode) = (chain.account(), chain.mode());
                    tracing::error!(account, %mode, error = %error_chain(&error), "a chain cannot be sealed");
                }
            }
        }
    }
    batch.end()
}

/// A chain to be sealed, and whether its events are to be dispatched.
struct Grown {
    chain: Realm,
    dispatches: bool,
    /// Number of its last line.
    last: u64,
}

/// Seals a chain and dispatches its events. Returns the number of the last entry.
async fn seal(worker: &TrailSealer, grown: &Grown) -> Result<u64, StoreError> {
    let Grown {
        chain, dispatches, ..
    } = grown;
    let sealed = Chain::new(&worker.context.store, chain.clone())
        .seal_some(BATCHES_MAX)
        .await?;
    worker.context.metrics.entries_sealed.inc_by(sealed.added);
    if *dispatches {
        dispatch(&worker.webhooks, chain, EntrySource::Store).await?;
    }
    Ok(sealed.end.seq)
}

/// The fields of an account's record, of each mode, that are read in each round.
const FIELDS: [ModeField; 4] = [
    ModeField::AuditSeq,
    ModeField::Webhooks,
    ModeField::Dispatched,
    ModeField::Violations,
];

/// Returns the accounts of this round: the busy ones, those with webhooks, and those whose turn it is.
fn accounts_of_round(state: &mut SealerState) -> Vec<String> {
    let mut accounts: Vec<String> = state.busy.keys().cloned().collect();
    for _ in 0..WEBHOOK_ACCOUNTS.min(state.webhook_order.len()) {
        state.webhook_order.rotate_left(1);
        let fresh = |account: &&String| !state.busy.contains_key(*account);
        accounts.extend(state.webhook_order.back().filter(fresh).cloned());
    }
    let mut others = state.rotation.next(ACCOUNTS);
    others.retain(|account| !state.busy.contains_key(account) && !state.with_webhooks.contains(account));
    accounts.extend(others);
    accounts
}

/// Returns the reachable chains with more lines than were sealed at the last read, or with events that were not
/// dispatched, including coalesced ones whose minute is over at `now_ms` (none are without it).
async fn find_grown(state: &mut SealerState, batch: &Batch<'_>, now_ms: Option<u64>) -> Vec<Grown> {
    let accounts = accounts_of_round(state);
    let fields = Mode::ALL
        .map(|mode| FIELDS.map(|field| field.name(mode)))
        .concat();
    let mut answers = batch.many(&Read::for_accounts(&accounts, &fields)).await;
    let mut grown = Vec::new();
    state.coalescing = false;
    for account in accounts {
        let found: Option<Vec<Option<u64>>> = answers.read();
        let Some(found) = found else { continue };
        let before = grown.len();
        let mut has_webhooks = false;
        for (mode, found) in Mode::ALL.into_iter().zip(found.chunks_exact(FIELDS.len())) {
            let [last, webhooks, dispatched] = [0, 1, 2].map(|at| found[at].unwrap_or(0));
            let chain = Realm::new(&account, mode);
            let sealed = state.sealed.get(&chain).copied();
            state.coalescing |= found[3].is_some();
            let minute = found[3].map(|number| Minute {
                number,
                waits: true,
                ..Minute::default()
            });
            let over = minute
                .zip(now_ms)
                .is_some_and(|(minute, now_ms)| minute.has_ended(now_ms));
            let dispatches = webhooks > 0 && (dispatched < last || over);
            has_webhooks |= webhooks > 0;
            if last != sealed.unwrap_or(0) || dispatches {
                grown.push(Grown {
                    chain,
                    dispatches,
                    last,
                });
            }
        }
        if has_webhooks && state.with_webhooks.insert(account.clone()) {
            state.webhook_order.push_back(account.clone());
        } else if !has_webhooks && state.with_webhooks.remove(&account) {
            state.webhook_order.retain(|other| *other != account);
        }
        if grown.len() > before {
            state.busy.insert(account, 0);
        } else if let Some(quiet) = state.busy.get_mut(&account) {
            *quiet += 1;
            if *quiet > QUIET_ROUNDS {
                state.busy.remove(&account);
            }
        }
    }
    grown
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_a_chain_whose_end_was_never_read_no_line_counts_as_unsealed() {
        let chain = Realm::new("acct_0", Mode::Live);
        let mut state = SealerState::default();
        let count = |state: &SealerState| state.behind.values().map(|(lines, _)| *lines).collect::<Vec<_>>();
        state.failed(&chain, 1_000_000);
        assert_eq!(count(&state), [0], "its time counts, its lines are unknown");
        state.sealed.insert(chain.clone(), 999_990);
        state.failed(&chain, 1_000_000);
        assert_eq!(count(&state), [10]);
        state.sealed_to(&chain, 1_000_000, 1_000_000);
        assert!(state.behind.is_empty());
    }
}
