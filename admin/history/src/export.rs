//! The audit trail as JSON Lines, one entry per line from the first on, read while it is written.

use crate::trail::Trail;
use archive::Archive;
use bytes::{Bytes, BytesMut};
use futures::{Stream, stream};
use std::sync::Arc;
use store::audit::chain::ChainHead;
use store::keys::Realm;
use store::{Store, StoreError};

/// Content type of such a file.
pub const CONTENT_TYPE: &str = "application/x-ndjson";

/// Why an export ended early.
#[derive(Debug, thiserror::Error)]
pub enum ExportError {
    /// The store, or the archive, does not answer.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The trail does not continue as it began: it was changed manually.
    #[error("the audit trail breaks at entry {0}")]
    Broken(u64),
}

/// The entries to export.
#[derive(Debug, Clone)]
pub struct TrailExport {
    /// Store with the newer entries.
    pub store: Store,
    /// Archive with the older entries.
    pub archive: Arc<Archive>,
    /// Account and mode of the trail.
    pub realm: Realm,
    /// Number of the entry before the first.
    pub after: u64,
    /// End of the trail when the export began; later entries are not included.
    pub head: ChainHead,
}

/// Progress of an export.
struct Written {
    export: TrailExport,
    last: u64,
    /// Hash of the last entry; `None` before the first.
    hash: Option<[u8; 32]>,
}

impl TrailExport {
    /// Returns the lines, some hundred in each chunk. An error is the last item.
    pub fn lines(self) -> impl Stream<Item = Result<Bytes, ExportError>> + Send + 'static {
        let last = self.after;
        let begin = Written {
            export: self,
            last,
            hash: None,
        };
        stream::try_unfold(begin, |mut written| async {
            let chunk = written.next().await?;
            Ok(chunk.map(|chunk| (chunk, written)))
        })
    }
}

impl Written {
    /// Returns the next chunk; `None` at the end.
    async fn next(&mut self) -> Result<Option<Bytes>, ExportError> {
        let TrailExport {
            store,
            archive,
            realm,
            head,
            ..
        } = &self.export;
        let wanted = usize::try_from(head.seq.saturating_sub(self.last)).unwrap_or(usize::MAX);
        if wanted == 0 {
            return Ok(None);
        }
        let first = self.last + 1;
        let entries = Trail::new(store, archive, realm.clone()).read(first).await?;
        let mut chunk = BytesMut::new();
        for entry in entries.iter().take(wanted) {
            chunk.extend_from_slice(entry.json.as_bytes());
            chunk.extend_from_slice(b"\n");
            self.last += 1;
        }
        let (Some(begin), Some(end)) = (entries.first(), entries.iter().take(wanted).next_back()) else {
            return Err(ExportError::Broken(first));
        };
        let follows = self.hash.is_none_or(|hash| {
            let link = format!("\"previousHash\":\"{}\"", hex::encode(hash));
            begin.json.contains(&link)
        });
        if !follows {
            return Err(ExportError::Broken(first));
        }
        self.hash = Some(end.hash);
        Ok(Some(chunk.freeze()))
    }
}
