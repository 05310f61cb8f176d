//! The checkpointer: writes a signed checkpoint of each chain that has grown to the archive, outside the store. The
//! checkpoint later proves whether somebody with write access to the store truncated or rewrote the chain.
//!
//! A new checkpoint replaces the last one only if the chain still contains all entries that the last one covers.
//! Otherwise the last one stays until an operator removes it, and each round logs and counts the failure. Each server
//! also keeps one checkpoint of each chain a day, which is never replaced, and remembers the largest one that it read:
//! an attacker who restores an older checkpoint cannot make the chain shorter.

use crate::context::WorkerContext;
use crate::metrics::Worker;
use crate::rounds::Rounds;
use archive::Archive;
use audit_verify::checkpoint::{self, Checkpoints, NotSigned};
use crypto::checkpoint_key::CheckpointKey;
use crypto::seal::Keyring;
use domain::checkpoint::Checkpoint;
use domain::mode::Mode;
use domain::period::DAY_MS;
use futures::{StreamExt, stream};
use history::trail::Trail;
use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;
use store::account::{Account, ModeField};
use store::audit::checkpoint_key;
use store::audit::checkpoint_key::KeyError;
use store::connection::batch::Batch;
use store::keys::Realm;
use store::read::Read;
use telemetry::error_chain;
use telemetry::registrar::level;
use tokio::sync::watch;

/// Number of accounts whose chains are compared in one batch of reads.
const ACCOUNTS_AT_ONCE: usize = 1000;
/// Maximum number of checkpoints written concurrently.
const AT_ONCE: usize = 8;

/// The checkpointer, with its components.
#[derive(Clone)]
pub(super) struct Checkpointer {
    pub(super) context: Arc<WorkerContext>,
    pub(super) archive: Arc<Archive>,
    pub(super) keyring: Arc<Keyring>,
    pub(super) every: Duration,
}

/// State from one round to the next.
#[derive(Debug, Default)]
struct CheckpointerState {
    accounts: Vec<String>,
    /// Newest known checkpoint of each chain.
    known: HashMap<Realm, Known>,
    /// Chains whose last attempt failed (`false`) or was refused (`true`); each was logged.
    failing: HashMap<Realm, bool>,
}

/// State of a chain's checkpoints.
#[derive(Debug, Clone, Default)]
struct Known {
    /// Number of entries of the chain when it was last read.
    size: u64,
    /// The checkpoint that covers the most entries.
    largest: Option<Checkpoint>,
    /// The day on which this server last kept one, in days since 1970.
    kept_on: Option<u64>,
}

/// Writes checkpoints until the server stops. Several servers may do so concurrently.
pub(super) async fn run(worker: Checkpointer, stopping: watch::Receiver<bool>) {
    let mut state = CheckpointerState::default();
    let mut rounds = Rounds::new(stopping, worker.every);
    let mut is_well = true;
    while rounds
        .next_of(&worker.context, Worker::Checkpointer, is_well)
        .await
    {
        let written = run_round(&worker, &mut state).await;
        match &written {
            Ok(()) => worker
                .context
                .metrics
                .checkpoints_failing
                .set(level(state.failing.len())),
            Err(_) => worker.context.metrics.checkpoints_failed.inc(),
        }
        is_well = written.is_ok();
        worker.context.record(Worker::Checkpointer, written);
    }
}

async fn run_round(worker: &Checkpointer, state: &mut CheckpointerState) -> Result<(), KeyError> {
    let batch = Batch::new(&worker.context.store);
    if let Some(ids) = batch.note(Account::ids(&worker.context.store).await) {
        state.accounts = ids;
    }
    let mut grown = Vec::new();
    for ids in state.accounts.chunks(ACCOUNTS_AT_ONCE) {
        grown.extend(changed(state, &batch, ids).await);
    }
    if grown.is_empty() {
        return Ok(batch.end()?);
    }
    let key = checkpoint_key::key(&worker.context.store, &worker.keyring).await?;
    let known: Vec<(Realm, Known)> = grown
        .into_iter()
        .map(|chain| {
            let known = state.known.get(&chain).cloned().unwrap_or_default();
            (chain, known)
        })
        .collect();
    let updates = stream::iter(known).map(async |(chain, known): (Realm, Known)| {
        let updated = advance(worker, &key, &chain, known).await;
        (chain, updated)
    });
    let mut updates = std::pin::pin!(updates.buffer_unordered(AT_ONCE));
    while let Some((chain, updated)) = updates.next().await {
        record_outcome(worker, state, chain, updated);
    }
    Ok(batch.end()?)
}

/// Returns the reachable chains whose size differs from that of their last checkpoint.
async fn changed(state: &CheckpointerState, batch: &Batch<'_>, ids: &[String]) -> Vec<Realm> {
    let fields = Mode::ALL.map(|mode| ModeField::AuditSeq.name(mode));
    let mut answers = batch.many(&Read::for_accounts(ids, &fields)).await;
    let mut found = Vec::new();
    for id in ids {
        let sizes: Option<Vec<Option<u64>>> = answers.read();
        let sizes = sizes.unwrap_or_default();
        for (mode, size) in Mode::ALL.into_iter().zip(sizes) {
            let chain = Realm::new(id, mode);
            // Each is checked once after a start, also when it has no entries left.
            if state.known.get(&chain).map(|known| known.size) != Some(size.unwrap_or(0)) {
                found.push(chain);
            }
        }
    }
    found
}

/// Replaces the last checkpoint by one of the chain's present end, if the chain has grown. Returns the new state, and
/// whether a checkpoint was written.
async fn advance(
    worker: &Checkpointer,
    key: &CheckpointKey,
    chain: &Realm,
    known: Known,
) -> Result<(Known, bool), NotSigned> {
    let checkpoints = Checkpoints::new(&worker.archive, key.public(), chain);
    let trail = Trail::new(&worker.context.store, &worker.archive, chain.clone());
    let largest = largest(checkpoints, known.largest).await?;
    let head = checkpoint::end(&trail, largest.as_ref()).await?;
    let is_covered = largest.as_ref().is_some_and(|last| last.end().size == head.seq);
    let known = Known {
        size: head.seq,
        largest,
        ..known
    };
    if head.seq == 0 || is_covered {
        return Ok((known, false));
    }
    worker.archive.require_own(&worker.context.store).await?;
    let next = checkpoint::of_head(chain, head);
    put(checkpoints, key, next, known).await
}

/// Returns the checkpoint that covers the most entries. Reads the kept ones if the last or the known one is missing.
async fn largest(
    checkpoints: Checkpoints<'_>,
    known: Option<Checkpoint>,
) -> Result<Option<Checkpoint>, NotSigned> {
    let last = checkpoints.last().await?;
    if let (Some(last), Some(known)) = (last, known) {
        let is_older = last.end().size < known.end().size;
        return Ok(Some(if is_older { known } else { last }));
    }
    let largest = checkpoints.largest().await?;
    Ok(largest.map(|largest| largest.checkpoint))
}

/// Replaces the last checkpoint by `next`, unless another server meanwhile wrote one that covers as many entries. Keeps
/// `next` as well if it is this server's first of the day. Two servers that write at the same moment can leave the
/// older one as the last; the next round of either replaces it.
async fn put(
    checkpoints: Checkpoints<'_>,
    key: &CheckpointKey,
    next: Checkpoint,
    known: Known,
) -> Result<(Known, bool), NotSigned> {
    let last = checkpoints.last().await?;
    if let Some(last) = last.filter(|last| last.end().size >= next.size) {
        let found = Known {
            size: last.end().size,
            largest: Some(last),
            ..known
        };
        return Ok((found, false));
    }
    let note = key.sign(&next).into_bytes();
    let today = clock::now_ms() / DAY_MS;
    if known.kept_on != Some(today) {
        checkpoints.keep(next.size, &note).await?;
    }
    checkpoints.put(note).await?;
    let written = Known {
        size: next.size,
        largest: Some(next),
        kept_on: Some(today),
    };
    Ok((written, true))
}

fn record_outcome(
    worker: &Checkpointer,
    state: &mut CheckpointerState,
    chain: Realm,
    updated: Result<(Known, bool), NotSigned>,
) {
    let error = match updated {
        Ok((known, is_new)) => {
            worker.context.metrics.checkpoints.inc_by(u64::from(is_new));
            state.failing.remove(&chain);
            state.known.insert(chain, known);
            return;
        }
        Err(error) => error,
    };
    let is_tampering = error.is_tampering();
    match is_tampering {
        true => worker.context.metrics.checkpoints_refused.inc(),
        false => worker.context.metrics.checkpoints_failed.inc(),
    }
    let (account, mode) = (chain.account(), chain.mode());
    // It is retried in every round, but logged once, and again when a failure becomes a refusal or the reverse.
    if state.failing.get(&chain) != Some(&is_tampering) {
        tracing::error!(account, %mode, error = %error_chain(&error), "the checkpoint of a chain stays as it is");
        state.failing.insert(chain, is_tampering);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use archive::location::ArchiveLocation;
    use crypto::seal::Keyring;
    use settings::load_from;
    use std::path::Path;
    use std::sync::LazyLock;

    fn archive_in(dir: &Path) -> Archive {
        let mut settings = load_from(None, std::iter::empty()).unwrap().audit;
        settings.archive = dir.display().to_string();
        Archive::at(ArchiveLocation::from_settings(&settings).unwrap())
    }

    fn checkpoints<'a>(archive: &'a Archive, key: &CheckpointKey) -> Checkpoints<'a> {
        static REALM: LazyLock<Realm> = LazyLock::new(|| Realm::new("acct_1", Mode::Live));
        Checkpoints::new(archive, key.public(), &REALM)
    }

    fn next(size: u64, hash: u8) -> Checkpoint {
        Checkpoint {
            origin: domain::checkpoint::origin("acct_1", Mode::Live),
            size,
            hash: [hash; 32],
            later: None,
        }
    }

    fn key() -> CheckpointKey {
        let keyring = Keyring::new(["AQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQE="].into_iter()).unwrap();
        CheckpointKey::open(&keyring, &CheckpointKey::mint(&keyring).unwrap()).unwrap()
    }

    #[tokio::test]
    async fn a_checkpoint_never_replaces_one_that_covers_more() {
        let dir = tempfile::tempdir().unwrap();
        let (archive, key) = (archive_in(dir.path()), key());
        let checkpoints = checkpoints(&archive, &key);
        let next = |size: u64| next(size, u8::try_from(size).unwrap());
        let mut known = Known::default();
        for (size, outcome) in [
            (100, (100, true)),
            (120, (120, true)),
            (100, (120, false)),
            (120, (120, false)),
            (121, (121, true)),
        ] {
            let (then, new) = put(checkpoints, &key, next(size), known).await.unwrap();
            assert_eq!((then.size, new), outcome);
            known = then;
            assert_eq!(checkpoints.last().await.unwrap(), Some(next(outcome.0)));
        }
        // The first of a day stays, and a server that forgot everything keeps another one.
        let kept = || archive.location().list("checkpoints/acct_1/live.kept");
        assert_eq!(
            kept().await.unwrap(),
            ["checkpoints/acct_1/live.kept/000000000100"]
        );
        put(checkpoints, &key, next(122), Known::default()).await.unwrap();
        assert_eq!(kept().await.unwrap().len(), 2);
    }

    #[tokio::test]
    async fn an_older_checkpoint_in_the_place_of_the_last_one_is_not_trusted() {
        let dir = tempfile::tempdir().unwrap();
        let (archive, key) = (archive_in(dir.path()), key());
        let checkpoints = checkpoints(&archive, &key);
        let next = |size: u64| next(size, 7);
        let (known, _) = put(checkpoints, &key, next(100), Known::default()).await.unwrap();
        let (known, _) = put(checkpoints, &key, next(120), known).await.unwrap();
        let size_of =
            |found: Result<Option<Checkpoint>, NotSigned>| found.unwrap().map(|found| found.end().size);
        let found = |known: Option<Checkpoint>| largest(checkpoints, known);
        let replace = async |with: Checkpoint| checkpoints.put(key.sign(&with).into_bytes()).await.unwrap();
        replace(next(90)).await;
        assert_eq!(
            size_of(found(known.largest.clone()).await),
            Some(120),
            "the known one"
        );
        assert_eq!(size_of(found(None).await), Some(100), "the kept one");
        let last = checkpoints.largest().await.unwrap();
        assert!(last.unwrap().warning().is_some());
        // A checkpoint signed of an earlier state also has the end at the time of signing.
        let earlier = Checkpoint {
            later: Some(next(130).end()),
            ..next(90)
        };
        replace(earlier).await;
        assert_eq!(size_of(found(known.largest.clone()).await), Some(130));
        // The size of a kept one must be that in its name.
        let other = key.sign(&next(98));
        checkpoints.keep(999, other.as_bytes()).await.unwrap();
        assert!(found(None).await.unwrap_err().is_tampering());
    }
}
