//! Signed checkpoints of audit trails: the state of a trail at some time, proven by a signature outside the store. The
//! archive has the last checkpoint of each trail, which later ones replace, and the kept ones, each under its size.

use crate::verifier::ChainVerifier;
use archive::Archive;
use archive::location::LocationError;
use crypto::checkpoint_key::{BadNote, PublicKey};
use domain::checkpoint::{Checkpoint, CheckpointEnd, hash_of_none, origin};
use domain::entry::Entry;
use history::trail::Trail;
use store::StoreError;
use store::audit::chain::ChainHead;
use store::keys::Realm;

/// Folder of the archive with the checkpoints of all trails, a folder for each account.
pub const FOLDER: &str = "checkpoints";

/// Returns the path of the last checkpoint of a trail.
pub fn path_of(realm: &Realm) -> String {
    format!("{FOLDER}/{}/{}", realm.account(), realm.mode())
}

/// Returns the folder of the checkpoints of a trail that are not replaced.
pub fn kept_folder_of(realm: &Realm) -> String {
    format!("{}.kept", path_of(realm))
}

/// Why no checkpoint is signed.
#[derive(Debug, thiserror::Error)]
pub enum NotSigned {
    /// The store, or a segment, cannot be read.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The archive cannot be read or written.
    #[error(transparent)]
    Location(#[from] LocationError),
    /// This store did not sign the last checkpoint.
    #[error("the last checkpoint is invalid: {0}")]
    Note(#[from] BadNote),
    /// A kept checkpoint covers another number of entries than its name states.
    #[error("the kept checkpoint {0} covers another number of entries than its name states")]
    Name(String),
    /// Entries that were there are missing.
    #[error("the chain has {now} entries, the last checkpoint {noted}: its end was cut off")]
    Shorter {
        /// Current number of entries.
        now: u64,
        /// Number of entries in the checkpoint.
        noted: u64,
    },
    /// Entries differ from those in the checkpoint.
    #[error("entry {0} has another hash than in the last checkpoint: the chain was written anew")]
    Other(u64),
    /// An earlier end does not lead to the last checkpoint.
    #[error("entry {0} does not lead to the last checkpoint: the chain was changed")]
    Apart(u64),
}

impl NotSigned {
    /// Returns whether the chain or the checkpoint was tampered with, as opposed to a failed read or write.
    pub const fn is_tampering(&self) -> bool {
        !matches!(self, Self::Store(_) | Self::Location(_))
    }
}

/// The checkpoints of a trail in the archive.
#[derive(Clone, Copy)]
pub struct Checkpoints<'a> {
    archive: &'a Archive,
    key: PublicKey,
    realm: &'a Realm,
}

/// The checkpoint of a trail that covers the most entries.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Largest {
    /// Signed size and root hash, with its verified signature.
    pub checkpoint: Checkpoint,
    /// True for a daily copy: the last checkpoint is missing or covers fewer entries.
    pub is_kept: bool,
}

impl Largest {
    /// Returns the warning that the last checkpoint was removed or replaced.
    pub fn warning(&self) -> Option<String> {
        let size = self.checkpoint.size;
        self.is_kept.then(|| {
            format!(
                "the last checkpoint in the archive is missing or older than a kept one, of {size} entries: it was \
                 removed or replaced."
            )
        })
    }
}

impl<'a> Checkpoints<'a> {
    /// Returns the checkpoints of a trail, signed with the secret half of `key`.
    pub const fn new(archive: &'a Archive, key: PublicKey, realm: &'a Realm) -> Self {
        Self { archive, key, realm }
    }

    /// Reads the last checkpoint; `None` if there is none.
    ///
    /// # Errors
    /// [`NotSigned`] if it cannot be read, or the key did not sign it.
    pub async fn last(&self) -> Result<Option<Checkpoint>, NotSigned> {
        self.read(&path_of(self.realm)).await
    }

    /// Reads the largest checkpoint, of the last one and those that are kept; `None` if there has been none.
    ///
    /// # Errors
    /// [`NotSigned`] if it cannot be read, or the key did not sign it.
    pub async fn largest(&self) -> Result<Option<Largest>, NotSigned> {
        // The last one is read first: otherwise a checkpoint kept meanwhile would look larger than the last one.
        let last = self.last().await?;
        let folder = kept_folder_of(self.realm);
        let names = self.archive.location().list(&folder).await?;
        let sizes = names.iter().filter_map(|name| size_of(&folder, name));
        let largest = sizes.max().filter(|(size, _)| {
            let last = last.as_ref();
            last.is_none_or(|last| last.end().size < *size)
        });
        let Some((size, name)) = largest else {
            return Ok(last.map(|checkpoint| Largest {
                checkpoint,
                is_kept: false,
            }));
        };
        let kept = self.read(name).await?;
        match kept.filter(|kept| kept.size == size) {
            Some(checkpoint) => Ok(Some(Largest {
                checkpoint,
                is_kept: true,
            })),
            None => Err(NotSigned::Name(name.to_owned())),
        }
    }

    /// Replaces the last checkpoint.
    ///
    /// # Errors
    /// [`NotSigned::Location`].
    pub async fn put(&self, note: Vec<u8>) -> Result<(), NotSigned> {
        Ok(self.archive.location().put(&path_of(self.realm), note).await?)
    }

    /// Writes a checkpoint that is never replaced. A different one of the same size, which the store signed before it
    /// was restored, is kept beside it.
    ///
    /// # Errors
    /// [`NotSigned::Store`].
    pub async fn keep(&self, size: u64, note: &[u8]) -> Result<(), NotSigned> {
        let path = format!("{}/{size:012}", kept_folder_of(self.realm));
        Ok(self.archive.settle(&path, note).await?)
    }

    async fn read(&self, path: &str) -> Result<Option<Checkpoint>, NotSigned> {
        let Some(note) = self.archive.location().get(path).await? else {
            return Ok(None);
        };
        let note = std::str::from_utf8(&note).map_err(|_| BadNote::Form)?;
        Ok(Some(self.key.verify(
            note,
            &origin(self.realm.account(), self.realm.mode()),
        )?))
    }
}

/// Returns the size of a kept checkpoint and its path; `None` for any other object.
pub fn size_of<'a>(folder: &str, path: &'a str) -> Option<(u64, &'a str)> {
    let digits = path.strip_prefix(folder)?.strip_prefix('/')?;
    let size: u64 = digits.parse().ok()?;
    (format!("{size:012}") == digits).then_some((size, path))
}

/// Seals a trail, and returns its end if the trail still contains the last checkpoint: only such an end may be signed.
/// The checkpoint must be read before, since other servers advance it with entries that are sealed meanwhile.
pub async fn end(trail: &Trail<'_>, last: Option<&Checkpoint>) -> Result<ChainHead, NotSigned> {
    let head = trail.seal().await?;
    let Some(last) = last else {
        return Ok(head);
    };
    let CheckpointEnd { size, hash } = last.end();
    if size > head.seq {
        let (now, noted) = (head.seq, size);
        return Err(NotSigned::Shorter { now, noted });
    }
    let then = head_at(trail, size).await?;
    match then.filter(|then| then.hash.unwrap_or_else(hash_of_none) == hash) {
        Some(_) => Ok(head),
        None => Err(NotSigned::Other(size)),
    }
}

/// Returns the end of the trail when it had `size` entries, up to `head`, its current end; `None` if it has fewer.
/// If the last checkpoint covers more, the entries up to it are verified: a hash covers only the entries before it.
pub async fn earlier(
    trail: &Trail<'_>,
    last: Option<&Checkpoint>,
    head: ChainHead,
    size: u64,
) -> Result<Option<ChainHead>, NotSigned> {
    if size == head.seq {
        return Ok(Some(head));
    }
    let Some(then) = head_at(trail, size).await?.filter(|_| size < head.seq) else {
        return Ok(None);
    };
    let Some(last) = last.map(Checkpoint::end).filter(|last| last.size > size) else {
        return Ok(Some(then));
    };
    let mut verifier = ChainVerifier::starting_after(size);
    verifier.mark(size);
    while verifier.end() < last.size {
        let wanted = usize::try_from(last.size - verifier.end()).unwrap_or(usize::MAX);
        let entries = trail.read(verifier.end() + 1).await?;
        if entries.is_empty() {
            return Err(NotSigned::Apart(size));
        }
        for entry in entries.iter().take(wanted) {
            verifier
                .step(entry.json.as_bytes())
                .map_err(|_| NotSigned::Apart(size))?;
        }
    }
    let leads = verifier.hash_of(size) == Some(then.hash.unwrap_or_else(hash_of_none));
    match leads && verifier.hash() == Some(last.hash) {
        true => Ok(Some(then)),
        false => Err(NotSigned::Apart(size)),
    }
}

/// Returns the checkpoint of a trail with this end.
pub fn of_head(realm: &Realm, head: ChainHead) -> Checkpoint {
    Checkpoint {
        origin: origin(realm.account(), realm.mode()),
        size: head.seq,
        hash: head.hash.unwrap_or_else(hash_of_none),
        later: None,
    }
}

/// Returns the checkpoint of an earlier state of a trail, which ended at `then`. It also contains the present end, if
/// the trail has grown: an attacker who replaces a later checkpoint by it cannot hide that there were more entries.
pub fn of_earlier(realm: &Realm, then: ChainHead, now: ChainHead) -> Checkpoint {
    let later = of_head(realm, now).end();
    let then = of_head(realm, then);
    Checkpoint {
        later: Some(later).filter(|later| later.size > then.size),
        ..then
    }
}

/// Returns the end of the trail when it had `size` entries; `None` if it has fewer.
pub async fn head_at(trail: &Trail<'_>, size: u64) -> Result<Option<ChainHead>, StoreError> {
    if size == 0 {
        return Ok(Some(ChainHead::default()));
    }
    let entries = trail.read(size).await?;
    let last = entries.first().filter(|entry| {
        let entry = Entry::from_json(&entry.json);
        entry.is_some_and(|entry| entry.seq == size)
    });
    Ok(last.map(|entry| ChainHead {
        seq: size,
        hash: Some(entry.hash),
    }))
}
