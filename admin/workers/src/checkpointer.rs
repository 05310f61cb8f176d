//! The checkpointer: a signed checkpoint of each chain that has grown goes to the archive, outside the store. That is
//! what shows later that a chain was cut off, or written anew, by someone who could write to the store.
//!
//! A checkpoint moves on only where the chain still holds what the last one says. Where it does not, the last one
//! stays, and the log and a metric say so, until an operator has found out why and removed it.

use crate::base::Base;
use crate::base::next_round;
use crate::metrics::Worker;
use archive::Archive;
use audit_verify::checkpoint::{self, Stays};
use crypto::checkpoint_key::CheckpointKey;
use crypto::seal::Keyring;
use domain::checkpoint::Checkpoint;
use domain::mode::Mode;
use futures::{StreamExt, stream};
use history::trail::Trail;
use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::time::Duration;
use store::account::{Account, ModeField};
use store::audit::checkpoint_key;
use store::audit::checkpoint_key::KeyError;
use store::connection::batch::Batch;
use store::read::Read;
use telemetry::error_chain;
use telemetry::registrar::level;
use tokio::sync::watch;

/// Accounts whose chains are compared in one batch of reads.
const ACCOUNTS_AT_ONCE: usize = 1000;
/// Checkpoints on their way at the same time.
const AT_ONCE: usize = 8;

/// The checkpointer, with what it needs.
pub(super) struct Checkpointer {
    pub(super) base: Arc<Base>,
    pub(super) archive: Arc<Archive>,
    pub(super) keyring: Arc<Keyring>,
    pub(super) every: Duration,
}

/// A chain, by account and mode.
type ChainId = (String, Mode);

/// State from one round to the next.
#[derive(Debug, Default)]
struct Memory {
    accounts: Vec<String>,
    /// The size in the last checkpoint that was put or found.
    noted: HashMap<ChainId, u64>,
    /// Chains whose last attempt failed or was refused; each was logged.
    failing: HashSet<ChainId>,
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
    let moving = stream::iter(grown).map(async |chain: ChainId| {
        let moved = advance(worker, &key, &chain).await;
        (chain, moved)
    });
    let mut moving = std::pin::pin!(moving.buffer_unordered(AT_ONCE));
    while let Some((chain, moved)) = moving.next().await {
        note_outcome(worker, memory, chain, moved);
    }
    Ok(round.end()?)
}

/// Which chains, of those that can be reached, have another size than their last checkpoint.
async fn changed(memory: &Memory, round: &Batch<'_>, ids: &[String]) -> Vec<ChainId> {
    let fields = Mode::ALL.map(|mode| ModeField::AuditSeq.name(mode));
    let mut answers = round.many(&Read::of_accounts(ids, &fields)).await;
    let mut found = Vec::new();
    for id in ids {
        let sizes: Option<Vec<Option<u64>>> = answers.read();
        let sizes = sizes.unwrap_or_default();
        for (mode, size) in Mode::ALL.into_iter().zip(sizes) {
            let chain = (id.clone(), mode);
            // Each is checked once after a start, also when nothing is left of it.
            if memory.noted.get(&chain) != Some(&size.unwrap_or(0)) {
                found.push(chain);
            }
        }
    }
    found
}

/// Puts a checkpoint of the chain as it is now in the place of the last one. Returns its size, and whether it is new.
async fn advance(
    worker: &Checkpointer,
    key: &CheckpointKey,
    (account, mode): &ChainId,
) -> Result<(u64, bool), Stays> {
    let (archive, public) = (&*worker.archive, key.public());
    let trail = Trail::of(&worker.base.store, archive, account, *mode);
    let last = checkpoint::last(archive, public, account, *mode).await?;
    let head = checkpoint::end(&trail, last.as_ref()).await?;
    if head.seq == 0 || last.is_some_and(|last| last.size == head.seq) {
        return Ok((head.seq, false));
    }
    put(
        archive,
        key,
        &checkpoint::of(account, *mode, head),
        (account, *mode),
    )
    .await
}

/// Puts a checkpoint in the place of the last one, unless another server put one meanwhile that says as much or more. A
/// checkpoint can still move back when both put at the same moment; the next round of either moves it on.
async fn put(
    archive: &Archive,
    key: &CheckpointKey,
    next: &Checkpoint,
    (account, mode): (&str, Mode),
) -> Result<(u64, bool), Stays> {
    let last = checkpoint::last(archive, key.public(), account, mode).await?;
    if let Some(last) = last.filter(|last| last.size >= next.size) {
        return Ok((last.size, false));
    }
    let note = key.sign(next).into_bytes();
    archive
        .place()
        .put(&checkpoint::path(account, mode), note)
        .await?;
    Ok((next.size, true))
}

fn note_outcome(
    worker: &Checkpointer,
    memory: &mut Memory,
    chain: ChainId,
    moved: Result<(u64, bool), Stays>,
) {
    let error = match moved {
        Ok((size, new)) => {
            worker.base.metrics.checkpoints.inc_by(u64::from(new));
            memory.failing.remove(&chain);
            memory.noted.insert(chain, size);
            return;
        }
        Err(error) => error,
    };
    match error.is_tampering() {
        true => worker.base.metrics.checkpoints_refused.inc(),
        false => worker.base.metrics.checkpoints_failed.inc(),
    }
    let (account, mode) = &chain;
    // It is tried in every round, but logged once.
    if !memory.failing.contains(&chain) {
        tracing::error!(account, %mode, error = %error_chain(&error), "the checkpoint of a chain stays as it is");
        memory.failing.insert(chain);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use archive::place::Place;
    use crypto::seal::Keyring;
    use settings::load_from;

    #[tokio::test]
    async fn a_checkpoint_is_never_put_over_one_that_says_more() {
        let dir = tempfile::tempdir().unwrap();
        let mut settings = load_from(None, std::iter::empty()).unwrap().audit;
        settings.archive = dir.path().display().to_string();
        let archive = Archive::at(Place::of(&settings).unwrap());
        let keyring = Keyring::new(["AQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQE="].into_iter()).unwrap();
        let key = CheckpointKey::open(&keyring, &CheckpointKey::mint(&keyring).unwrap()).unwrap();
        let chain = ("acct_1", Mode::Live);
        let next = |size: u64| Checkpoint {
            origin: domain::checkpoint::origin(chain.0, chain.1),
            size,
            hash: [u8::try_from(size).unwrap(); 32],
        };
        for (size, outcome) in [
            (100, (100, true)),
            (120, (120, true)),
            (100, (120, false)),
            (120, (120, false)),
            (121, (121, true)),
        ] {
            let put = put(&archive, &key, &next(size), chain).await.unwrap();
            assert_eq!(put, outcome);
            let last = checkpoint::last(&archive, key.public(), chain.0, chain.1).await;
            assert_eq!(last.unwrap(), Some(next(outcome.0)));
        }
    }
}
