//! The checkpointer: writes a signed checkpoint of each chain that has grown to the archive, outside the store. The
//! checkpoint later proves whether somebody with write access to the store truncated or rewrote the chain.
//!
//! A checkpoint moves on only where the chain still holds what the last one says. Where it does not, the last one
//! stays, and the log and a metric say so, until an operator has found out why and removed it. Each server keeps one
//! checkpoint of a chain a day beside the last one, where no later one replaces it, and remembers the last one that it
//! saw: an older one that is put in its place moves nothing back.

use crate::base::Base;
use crate::base::next_round;
use crate::metrics::Worker;
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
pub(super) struct Checkpointer {
    pub(super) base: Arc<Base>,
    pub(super) archive: Arc<Archive>,
    pub(super) keyring: Arc<Keyring>,
    pub(super) every: Duration,
}

/// State from one round to the next.
#[derive(Debug, Default)]
struct Memory {
    accounts: Vec<String>,
    /// What was put or found of each chain.
    noted: HashMap<Realm, Noted>,
    /// Chains whose last attempt failed (`false`) or was refused (`true`); each was logged.
    failing: HashMap<Realm, bool>,
}

/// What a server knows of the checkpoints of a chain.
#[derive(Debug, Clone, Default)]
struct Noted {
    /// The number of entries at the last look.
    size: u64,
    /// The checkpoint that tells of most entries.
    largest: Option<Checkpoint>,
    /// The day on which this server kept one, in days since 1970.
    kept_on: Option<u64>,
}

/// Takes checkpoints until it is time to stop. Several servers may do so at once.
pub(super) async fn run(worker: Checkpointer, mut stopping: watch::Receiver<bool>) {
    let every = worker.every;
    let mut memory = Memory::default();
    while next_round(&worker.base, &mut stopping, every).await {
        match round(&worker, &mut memory).await {
            Ok(()) => {
                worker.base.metrics.round(Worker::Checkpointer);
                worker
                    .base
                    .metrics
                    .checkpoints_failing
                    .set(level(memory.failing.len()));
            }
            Err(error) => {
                worker.base.metrics.checkpoints_failed.inc();
                tracing::error!(error = %error_chain(&error), "round of checkpoints cut off");
            }
        }
    }
}

async fn round(worker: &Checkpointer, memory: &mut Memory) -> Result<(), KeyError> {
    let round = Batch::new(&worker.base.store);
    if let Some(ids) = round.note(Account::ids(&worker.base.store).await) {
        memory.accounts = ids;
    }
    let mut grown = Vec::new();
    for ids in memory.accounts.chunks(ACCOUNTS_AT_ONCE) {
        grown.extend(changed(memory, &round, ids).await);
    }
    if grown.is_empty() {
        return Ok(round.end()?);
    }
    let key = checkpoint_key::key(&worker.base.store, &worker.keyring).await?;
    let known: Vec<(Realm, Noted)> = grown
        .into_iter()
        .map(|chain| {
            let noted = memory.noted.get(&chain).cloned().unwrap_or_default();
            (chain, noted)
        })
        .collect();
    let moving = stream::iter(known).map(async |(chain, noted): (Realm, Noted)| {
        let moved = advance(worker, &key, &chain, noted).await;
        (chain, moved)
    });
    let mut moving = std::pin::pin!(moving.buffer_unordered(AT_ONCE));
    while let Some((chain, moved)) = moving.next().await {
        note_outcome(worker, memory, chain, moved);
    }
    Ok(round.end()?)
}

/// Returns the reachable chains whose size differs from that of their last checkpoint.
async fn changed(memory: &Memory, round: &Batch<'_>, ids: &[String]) -> Vec<Realm> {
    let fields = Mode::ALL.map(|mode| ModeField::AuditSeq.name(mode));
    let mut answers = round.many(&Read::of_accounts(ids, &fields)).await;
    let mut found = Vec::new();
    for id in ids {
        let sizes: Option<Vec<Option<u64>>> = answers.read();
        let sizes = sizes.unwrap_or_default();
        for (mode, size) in Mode::ALL.into_iter().zip(sizes) {
            let chain = Realm::new(id, mode);
            // Each is checked once after a start, also when nothing is left of it.
            if memory.noted.get(&chain).map(|noted| noted.size) != Some(size.unwrap_or(0)) {
                found.push(chain);
            }
        }
    }
    found
}

/// Puts a checkpoint of the chain as it is now in the place of the last one. Returns what is known then, and whether it
/// is new.
async fn advance(
    worker: &Checkpointer,
    key: &CheckpointKey,
    chain: &Realm,
    noted: Noted,
) -> Result<(Noted, bool), NotSigned> {
    let checkpoints = Checkpoints::new(&worker.archive, key.public(), chain);
    let trail = Trail::new(&worker.base.store, &worker.archive, chain.clone());
    let largest = largest(checkpoints, noted.largest).await?;
    let head = checkpoint::end(&trail, largest.as_ref()).await?;
    let is_covered = largest.as_ref().is_some_and(|last| last.end().size == head.seq);
    let noted = Noted {
        size: head.seq,
        largest,
        ..noted
    };
    if head.seq == 0 || is_covered {
        return Ok((noted, false));
    }
    let next = checkpoint::of_head(chain, head);
    put(checkpoints, key, next, noted).await
}

/// Returns the checkpoint that covers the most entries. Reads the kept ones if the last or the noted one is missing.
async fn largest(
    checkpoints: Checkpoints<'_>,
    noted: Option<Checkpoint>,
) -> Result<Option<Checkpoint>, NotSigned> {
    let last = checkpoints.last().await?;
    if let (Some(last), Some(noted)) = (last, noted) {
        return Ok(Some(if last.end().size < noted.end().size {
            noted
        } else {
            last
        }));
    }
    let largest = checkpoints.largest().await?;
    Ok(largest.map(|largest| largest.checkpoint))
}

/// Puts a checkpoint in the place of the last one, unless another server put one meanwhile that says as much or more,
/// and keeps it if it is this server's first of the day. The last one can still move back when two servers put at the
/// same moment; the next round of either moves it on.
async fn put(
    checkpoints: Checkpoints<'_>,
    key: &CheckpointKey,
    next: Checkpoint,
    noted: Noted,
) -> Result<(Noted, bool), NotSigned> {
    let last = checkpoints.last().await?;
    if let Some(last) = last.filter(|last| last.end().size >= next.size) {
        let size = last.end().size;
        let largest = Some(last);
        return Ok((
            Noted {
                size,
                largest,
                ..noted
            },
            false,
        ));
    }
    let note = key.sign(&next).into_bytes();
    let today = clock::now_ms() / DAY_MS;
    if noted.kept_on != Some(today) {
        checkpoints.keep(next.size, &note).await?;
    }
    checkpoints.put(note).await?;
    let put = Noted {
        size: next.size,
        largest: Some(next),
        kept_on: Some(today),
    };
    Ok((put, true))
}

fn note_outcome(
    worker: &Checkpointer,
    memory: &mut Memory,
    chain: Realm,
    moved: Result<(Noted, bool), NotSigned>,
) {
    let error = match moved {
        Ok((noted, new)) => {
            worker.base.metrics.checkpoints.inc_by(u64::from(new));
            memory.failing.remove(&chain);
            memory.noted.insert(chain, noted);
            return;
        }
        Err(error) => error,
    };
    let is_tampering = error.is_tampering();
    match is_tampering {
        true => worker.base.metrics.checkpoints_refused.inc(),
        false => worker.base.metrics.checkpoints_failed.inc(),
    }
    let (account, mode) = (chain.account(), chain.mode());
    // It is retried in every round, but logged once, and again when it fails in the other way.
    if memory.failing.get(&chain) != Some(&is_tampering) {
        tracing::error!(account, %mode, error = %error_chain(&error), "the checkpoint of a chain stays as it is");
        memory.failing.insert(chain, is_tampering);
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
    async fn a_checkpoint_is_never_put_over_one_that_says_more() {
        let dir = tempfile::tempdir().unwrap();
        let (archive, key) = (archive_in(dir.path()), key());
        let checkpoints = checkpoints(&archive, &key);
        let next = |size: u64| next(size, u8::try_from(size).unwrap());
        let mut noted = Noted::default();
        for (size, outcome) in [
            (100, (100, true)),
            (120, (120, true)),
            (100, (120, false)),
            (120, (120, false)),
            (121, (121, true)),
        ] {
            let (then, new) = put(checkpoints, &key, next(size), noted).await.unwrap();
            assert_eq!((then.size, new), outcome);
            noted = then;
            assert_eq!(checkpoints.last().await.unwrap(), Some(next(outcome.0)));
        }
        // The first of a day stays, and a server that forgot everything keeps another one.
        let kept = || archive.location().list("checkpoints/acct_1/live.kept");
        assert_eq!(
            kept().await.unwrap(),
            ["checkpoints/acct_1/live.kept/000000000100"]
        );
        put(checkpoints, &key, next(122), Noted::default()).await.unwrap();
        assert_eq!(kept().await.unwrap().len(), 2);
    }

    #[tokio::test]
    async fn an_older_checkpoint_in_the_place_of_the_last_one_takes_nothing_back() {
        let dir = tempfile::tempdir().unwrap();
        let (archive, key) = (archive_in(dir.path()), key());
        let checkpoints = checkpoints(&archive, &key);
        let next = |size: u64| next(size, 7);
        let (noted, _) = put(checkpoints, &key, next(100), Noted::default()).await.unwrap();
        let (noted, _) = put(checkpoints, &key, next(120), noted).await.unwrap();
        let size_of =
            |found: Result<Option<Checkpoint>, NotSigned>| found.unwrap().map(|found| found.end().size);
        let found = |noted: Option<Checkpoint>| largest(checkpoints, noted);
        let replace = async |with: Checkpoint| checkpoints.put(key.sign(&with).into_bytes()).await.unwrap();
        replace(next(90)).await;
        assert_eq!(
            size_of(found(noted.largest.clone()).await),
            Some(120),
            "what it saw"
        );
        assert_eq!(size_of(found(None).await), Some(100), "what is kept");
        let last = checkpoints.largest().await.unwrap();
        assert!(last.unwrap().warning().is_some());
        // One that was signed of an earlier state names the end at that time.
        let earlier = Checkpoint {
            later: Some(next(130).end()),
            ..next(90)
        };
        replace(earlier).await;
        assert_eq!(size_of(found(noted.largest.clone()).await), Some(130));
        // A kept one has the size that its name says.
        let other = key.sign(&next(98));
        checkpoints.keep(999, other.as_bytes()).await.unwrap();
        assert!(found(None).await.unwrap_err().is_tampering());
    }
}
