//! The checkpointer: a signed checkpoint of each chain that has grown goes to the archive, outside the store. That is what
//! shows later that a chain was cut off, or written anew, by someone who could write to the store.
//!
//! A checkpoint moves on only where the chain still holds what the last one says. Where it does not, the last one stays,
//! and the log and a metric say so, until an operator has found out why and removed it.

use super::pause;
use crate::checkpoint;
use crate::problem::chain;
use crate::serve::App;
use crate::trail::Trail;
use futures::{StreamExt, stream};
use shared::crypto::checkpoint_key::{BadNote, CheckpointKey};
use shared::domain::checkpoint::origin;
use shared::domain::mode::Mode;
use shared::store::account::Account;
use shared::store::checkpoint_key::{self, KeyError};
use shared::store::keys::AccountKeys;
use shared::store::read::Read;
use shared::store::{StoreError, chain::Head};
use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::watch;

/// Accounts asked about in one go.
const ASKED: usize = 1000;
/// Checkpoints on their way at the same time.
const AT_ONCE: usize = 8;

/// A chain, by account and mode.
type Name = (String, Mode);

/// What the worker remembers from one round to the next.
#[derive(Debug, Default)]
struct Memory {
    /// The size in the last checkpoint that was put or found.
    noted: HashMap<Name, u64>,
    /// Chains whose last attempt failed or was refused, which the log has heard of.
    failing: HashSet<Name>,
}

/// Why a checkpoint did not move on.
#[derive(Debug, thiserror::Error)]
enum Stays {
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error(transparent)]
    Place(#[from] crate::archive::place::PlaceError),
    #[error("the last checkpoint proves nothing: {0}")]
    Note(#[from] BadNote),
    #[error("the chain has {now} entries, the last checkpoint {noted}: its end was cut off")]
    Shorter { now: u64, noted: u64 },
    #[error("entry {0} has another hash than in the last checkpoint: the chain was written anew")]
    Other(u64),
}

impl Stays {
    /// Whether somebody changed something, and not only a failure came between.
    const fn is_tampering(&self) -> bool {
        matches!(self, Self::Note(_) | Self::Shorter { .. } | Self::Other(_))
    }
}

/// Takes checkpoints until it is time to stop. Several servers may do so at once.
pub(super) async fn run(app: Arc<App>, mut stopping: watch::Receiver<bool>) {
    let every = Duration::from_millis(app.audit.checkpoint_every_ms);
    let mut memory = Memory::default();
    while pause(&mut stopping, every).await {
        if let Err(error) = round(&app, &mut memory).await {
            app.metrics.checkpoints_failed.inc();
            tracing::error!(error = %chain(&error), "round of checkpoints cut off");
        }
    }
}

async fn round(app: &App, memory: &mut Memory) -> Result<(), KeyError> {
    let ids = Account::ids(&app.store).await?;
    let mut grown = Vec::new();
    for ids in ids.chunks(ASKED) {
        grown.extend(changed(app, memory, ids).await?);
    }
    if grown.is_empty() {
        return Ok(());
    }
    let key = checkpoint_key::key(&app.store, &app.sealer).await?;
    let moving = stream::iter(grown).map(async |name: Name| {
        let moved = advance(app, &key, &name).await;
        (name, moved)
    });
    let mut moving = std::pin::pin!(moving.buffer_unordered(AT_ONCE));
    while let Some((name, moved)) = moving.next().await {
        tell(app, memory, name, moved);
    }
    Ok(())
}

/// Which chains have another size than their last checkpoint.
async fn changed(app: &App, memory: &Memory, ids: &[String]) -> Result<Vec<Name>, StoreError> {
    let fields = Mode::ALL.map(|mode| format!("{mode}_audit_seq"));
    let reads: Vec<Read> = ids
        .iter()
        .map(|id| {
            let keys = AccountKeys::of(id);
            Read::fields(keys.bucket(), keys.record(), &fields)
        })
        .collect();
    let mut answers = app.store.many(&reads).await?;
    let mut found = Vec::new();
    for id in ids {
        let sizes: Vec<Option<u64>> = answers.read().unwrap_or_default();
        for (mode, size) in Mode::ALL.into_iter().zip(sizes) {
            let name = (id.clone(), mode);
            // Each is looked at once after a start, also when nothing is left of it.
            if memory.noted.get(&name) != Some(&size.unwrap_or(0)) {
                found.push(name);
            }
        }
    }
    Ok(found)
}

/// Puts a checkpoint of the chain as it is now in the place of the last one. Returns its size, and whether it is new.
async fn advance(app: &App, key: &CheckpointKey, (account, mode): &Name) -> Result<(u64, bool), Stays> {
    let (path, trail) = (
        checkpoint::path(account, *mode),
        Trail::of(&app.store, &app.archive, account, *mode),
    );
    let head = trail.seal().await?;
    if let Some(note) = app.archive.place().get(&path).await? {
        let note = std::str::from_utf8(&note).map_err(|_| BadNote::Form)?;
        let last = key.public().verify(note, &origin(account, *mode))?;
        if last.size > head.seq {
            let (now, noted) = (head.seq, last.size);
            return Err(Stays::Shorter { now, noted });
        }
        let then: Option<Head> = checkpoint::head_at(&trail, last.size).await?;
        if then.is_none_or(|then| checkpoint::of(account, *mode, then) != last) {
            return Err(Stays::Other(last.size));
        }
        if last.size == head.seq {
            return Ok((head.seq, false));
        }
    }
    if head.seq == 0 {
        return Ok((0, false));
    }
    let note = key.sign(&checkpoint::of(account, *mode, head));
    app.archive.place().put(&path, note.into_bytes()).await?;
    Ok((head.seq, true))
}

fn tell(app: &App, memory: &mut Memory, name: Name, moved: Result<(u64, bool), Stays>) {
    let error = match moved {
        Ok((size, new)) => {
            app.metrics.checkpoints.inc_by(u64::from(new));
            memory.failing.remove(&name);
            memory.noted.insert(name, size);
            return;
        }
        Err(error) => error,
    };
    match error.is_tampering() {
        true => app.metrics.checkpoints_refused.inc(),
        false => app.metrics.checkpoints_failed.inc(),
    }
    let (account, mode) = &name;
    // It is tried in every round; the log hears of it once.
    if !memory.failing.contains(&name) {
        tracing::error!(account, %mode, error = %chain(&error), "the checkpoint of a chain stays as it is");
        memory.failing.insert(name);
    }
}
