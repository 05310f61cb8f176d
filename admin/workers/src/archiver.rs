//! The archiver: moves old entries of the audit trail to segments in the archive, so that the store holds a bounded
//! part of each chain. All accounts are checked in turn, at a bounded rate; one with more to move is checked again at
//! once.

use crate::context::WorkerContext;
use crate::metrics::Worker;
use crate::paused::PausedChains;
use crate::rotation::Rotation;
use crate::rounds::Rounds;
use archive::Archive;
use domain::budget::Budget;
use domain::mode::Mode;
use futures::{StreamExt, stream};
use settings::AuditSettings;
use std::sync::Arc;
use std::time::Duration;
use store::audit::chain::{ArchiveBacklog, Chain};
use store::connection::batch::Batch;
use store::keys::Realm;
use store::read::Read;
use store::{StoreError, server_clock};
use telemetry::error_chain;
use telemetry::registrar::level;
use tokio::sync::watch;

/// Pause between two rounds.
const EVERY: Duration = Duration::from_secs(1);
/// Number of accounts checked in one round.
const ACCOUNTS: usize = 500;
/// Maximum number of chains archived concurrently; each holds a segment in memory.
const AT_ONCE: usize = 2;
/// Maximum number of segments of one chain in one round.
const SEGMENTS: usize = 10;
/// Rounds between two searches for new accounts.
const ACCOUNTS_EVERY: u32 = 5;
/// Pause before a chain that failed is tried again.
const AFTER_FAILURE: Duration = Duration::from_secs(10);

/// The archiver of audit entries, with its components.
#[derive(Clone)]
pub(super) struct Archiver {
    pub(super) context: Arc<WorkerContext>,
    pub(super) archive: Arc<Archive>,
    pub(super) audit: AuditSettings,
}

/// State from one round to the next.
#[derive(Debug, Default)]
struct ArchiverState {
    rotation: Rotation,
    paused: PausedChains,
    rounds: u32,
}

/// Rule for moving entries.
#[derive(Debug, Clone, Copy)]
struct Rule {
    now_ms: u64,
    after_days: u64,
    after_entries: u64,
    segment_entries: usize,
    /// Bytes of long lines from which on entries are moved before their time: half of their budget, so that an account
    /// that is over it goes on once the archive has caught up.
    text_max: u64,
}

/// Archives until the server stops. Several servers may archive concurrently: of those that move the same entries, one
/// succeeds.
pub(super) async fn run(worker: Archiver, stopping: watch::Receiver<bool>) {
    let mut state = ArchiverState::default();
    let mut rounds = Rounds::new(stopping, EVERY);
    while rounds.next_while_trusted(&worker.context).await {
        let archived = run_round(&worker, &mut state).await;
        worker.context.record(Worker::Archiver, archived);
    }
}

/// Fails only because of the store. A chain that cannot be archived is logged and counted.
async fn run_round(worker: &Archiver, state: &mut ArchiverState) -> Result<(), StoreError> {
    let batch = Batch::new(&worker.context.store);
    if state.rounds.is_multiple_of(ACCOUNTS_EVERY) {
        batch.note(state.rotation.renew(&worker.context.store).await);
    }
    state.rounds = state.rounds.wrapping_add(1);
    let rule = Rule {
        now_ms: server_clock::now_ms(&worker.context.store).await?,
        after_days: worker.audit.archive_after_days,
        after_entries: worker.audit.archive_after_entries,
        segment_entries: worker.audit.segment_entries,
        text_max: worker.context.store.budgets().limit(Budget::AuditText) / 2,
    };
    let full = with_work(state, rule, &batch).await;
    worker.context.metrics.archiving_waiting.set(level(full.len()));
    let moving = stream::iter(full).map(async |realm| {
        let moved = archive(worker, &realm, rule).await;
        (realm, moved)
    });
    let mut moving = std::pin::pin!(moving.buffer_unordered(AT_ONCE));
    while let Some((realm, moved)) = moving.next().await {
        match moved {
            Ok(()) => {
                state.paused.resume(&realm);
            }
            Err(error) if error.is_server_failure() => batch.failed(Some(realm.bucket()), error),
            Err(error) => {
                worker.context.metrics.archiving_failed.inc();
                let (account, mode) = (realm.account(), realm.mode());
                tracing::error!(account, %mode, error = %error_chain(&error), "a chain cannot be archived; nothing left the store");
                state.paused.pause(realm, AFTER_FAILURE);
            }
        }
    }
    batch.end()
}

/// Returns the chains with work to do, among the reachable accounts of this round.
async fn with_work(state: &mut ArchiverState, rule: Rule, batch: &Batch<'_>) -> Vec<Realm> {
    let accounts = state.rotation.next(ACCOUNTS);
    let realms = accounts
        .iter()
        .flat_map(|account| Mode::ALL.map(|mode| Realm::new(account, mode)));
    let realms: Vec<Realm> = realms.collect();
    let reads: Vec<Read> = realms.iter().flat_map(ArchiveBacklog::reads).collect();
    let mut answers = batch.many(&reads).await;
    let mut full = Vec::new();
    for realm in realms {
        let mut part = answers.split(ArchiveBacklog::READS);
        let backlog = ArchiveBacklog::from_answers(&mut part);
        if backlog.is_some_and(|backlog| rule.has_work(&backlog)) && !state.paused.is_paused(&realm) {
            full.push(realm);
        }
    }
    full
}

/// Moves the old entries of a chain.
async fn archive(worker: &Archiver, realm: &Realm, rule: Rule) -> Result<(), StoreError> {
    let chain = Chain::new(&worker.context.store, realm.clone());
    for _ in 0..SEGMENTS {
        let backlog = chain.backlog().await?;
        if backlog.forgotten < backlog.archived {
            let forgotten = backlog.forgotten;
            worker.archive.forget_decisions(&chain, forgotten).await?;
        }
        let Some(last) = rule.last(&chain, &backlog).await? else {
            return Ok(());
        };
        let moved = worker
            .archive
            .move_segment(&chain, last, rule.segment_entries)
            .await?;
        worker.context.metrics.entries_archived.inc_by(moved);
        if moved == 0 {
            return Ok(());
        }
        let (account, mode) = (realm.account(), realm.mode());
        tracing::info!(account, %mode, entries = moved, "archived entries of the audit trail");
    }
    Ok(())
}

impl Rule {
    fn has_work(&self, backlog: &ArchiveBacklog) -> bool {
        backlog.forgotten < backlog.archived
            || backlog.movable > backlog.archived && (self.is_full(backlog) || self.is_old(backlog))
    }

    const fn is_full(&self, backlog: &ArchiveBacklog) -> bool {
        backlog.live > self.after_entries || backlog.text > self.text_max
    }

    fn is_old(&self, backlog: &ArchiveBacklog) -> bool {
        backlog.is_older(self.after_days, self.now_ms)
    }

    /// Returns the last entry to move now. If the oldest entry is too old, entries of at least half its age are moved
    /// with it, so that a quiet account does not fill the archive with segments of one entry.
    async fn last(&self, chain: &Chain<'_>, backlog: &ArchiveBacklog) -> Result<Option<u64>, StoreError> {
        if backlog.movable <= backlog.archived {
            return Ok(None);
        }
        if self.is_full(backlog) {
            return Ok(Some(backlog.movable));
        }
        if !self.is_old(backlog) {
            return Ok(None);
        }
        let half_ms = self.after_days.saturating_mul(domain::period::DAY_MS / 2);
        let first = chain.first_since(self.now_ms.saturating_sub(half_ms)).await?;
        Ok(Some(
            first
                .saturating_sub(1)
                .max(backlog.archived + 1)
                .min(backlog.movable),
        ))
    }
}
