//! The file of the retry queue: one JSON line for each item, and one file for each process, locked while the process
//! lives.
//!
//! A process takes over files that are no longer locked (see [`foreign_journals`](super::foreign_journals)): at its
//! start and periodically, since after a hand-over the old process ends later than the new one starts. The file is
//! emptied whenever the queue becomes empty. It can be removed or replaced while the process lives
//! ([`Journal::is_displaced`]): lines written to it then are lost with the process.

use super::item::RetryItem;
use domain::id::IdKind;
use std::fs::{DirBuilder, File, Metadata, OpenOptions};
use std::io::{ErrorKind, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

/// Suffix of a journal's file name.
pub(super) const SUFFIX: &str = "pending.jsonl";
/// Suffix of a file that is not yet locked, so that no other process takes it over.
pub(super) const OPENING_SUFFIX: &str = "opening";

/// File mode. The lines contain the agents and their spend.
pub(super) const OWNER_ONLY: u32 = 0o600;
/// Mode of a directory that is created here.
const OWNER_ONLY_DIR: u32 = 0o700;

/// The journal of this process.
#[derive(Debug)]
pub struct Journal {
    file: File,
    id: FileId,
    path: PathBuf,
    /// Path of the file until it is locked and complete.
    opening: PathBuf,
    lines: usize,
    /// Bytes of the complete lines.
    len: u64,
    /// True if an incomplete line may follow them.
    is_torn: bool,
    /// True if the last attempt to append failed.
    cannot_append: bool,
    /// True if the last attempt to rewrite the file failed.
    cannot_rewrite: bool,
    /// True if the path no longer names the file.
    is_displaced: bool,
}

/// Device and inode number of a file: its identity while it is open, whatever its path names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct FileId {
    device: u64,
    inode: u64,
}

impl FileId {
    pub(super) fn of(metadata: &Metadata) -> Self {
        Self {
            device: metadata.dev(),
            inode: metadata.ino(),
        }
    }
}

impl Journal {
    /// Creates this process's journal in `dir`.
    ///
    /// # Errors
    /// The directory cannot be created or written.
    pub fn open(dir: &Path) -> std::io::Result<Self> {
        create_dir(dir)?;
        let name = IdKind::Request
            .mint(clock::now_ms())
            .map_err(std::io::Error::other)?;
        let (opening, path) = (
            dir.join(format!("{name}.{OPENING_SUFFIX}")),
            dir.join(format!("{name}.{SUFFIX}")),
        );
        let (file, id) = create(&opening, &path, &[])?;
        Ok(Self {
            file,
            id,
            path,
            opening,
            lines: 0,
            len: 0,
            is_torn: false,
            cannot_append: false,
            cannot_rewrite: false,
            is_displaced: false,
        })
    }

    /// Returns the path of the file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Returns the number of lines. Delivered items keep their lines until the file is rewritten or emptied.
    pub fn lines(&self) -> usize {
        self.lines
    }

    /// Returns whether the last attempt to append succeeded.
    pub fn can_append(&self) -> bool {
        !self.cannot_append
    }

    /// Returns whether the last attempt to rewrite the file succeeded.
    pub fn can_rewrite(&self) -> bool {
        !self.cannot_rewrite
    }

    /// Returns whether the path no longer names the file, which is logged once. The next process would not find the
    /// file's lines, so that the file must not be appended to; [`rewrite`](Self::rewrite) creates another one. An error
    /// of the directory alone displaces nothing.
    pub fn is_displaced(&mut self) -> bool {
        if self.is_displaced {
            return true;
        }
        self.is_displaced = match std::fs::metadata(&self.path) {
            Ok(there) => FileId::of(&there) != self.id,
            Err(error) => matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory),
        };
        if self.is_displaced {
            tracing::error!(
                path = %self.path.display(),
                "the retry journal is no longer at its path: it was removed or replaced while the edge runs"
            );
            (self.cannot_append, self.lines) = (true, 0);
        }
        self.is_displaced
    }

    /// Appends all of the items, or none.
    ///
    /// # Errors
    /// The write failed, which is logged here unless the one before failed too.
    pub fn append<'a>(&mut self, items: impl IntoIterator<Item = &'a RetryItem>) -> std::io::Result<()> {
        let written = JournalLines::new(items).and_then(|lines| {
            self.truncate_torn()?;
            self.is_torn = true;
            self.file.write_all(&lines.text)?;
            self.is_torn = false;
            self.lines += lines.count;
            self.len += lines.len();
            Ok(())
        });
        let was_failing = std::mem::replace(&mut self.cannot_append, written.is_err());
        if let Err(error) = &written {
            if !was_failing {
                tracing::error!(path = %self.path.display(), %error, "the retry journal cannot be written");
            }
            // If this fails too, the next write tries again.
            drop(self.truncate_torn());
        }
        written
    }

    /// Removes an incomplete line. Otherwise the next line would be appended to it and be lost.
    fn truncate_torn(&mut self) -> std::io::Result<()> {
        if self.is_torn {
            self.file.set_len(self.len)?;
            self.is_torn = false;
        }
        Ok(())
    }

    /// Replaces the content by these items. A new file replaces the old one atomically once the disk has it, so that
    /// nothing is lost if the process is killed or power fails meanwhile. Creates the directory if it was removed.
    ///
    /// # Errors
    /// The write failed, which is logged here unless the one before failed too. The old file stays.
    pub fn rewrite<'a>(&mut self, items: impl IntoIterator<Item = &'a RetryItem>) -> std::io::Result<()> {
        let written = JournalLines::new(items).and_then(|lines| {
            self.path.parent().map_or(Ok(()), create_dir)?;
            // This unlocks the old file. A process that was waiting for the lock then finds another file under the
            // name.
            (self.file, self.id) = create(&self.opening, &self.path, &lines.text)?;
            (self.lines, self.len, self.is_torn) = (lines.count, lines.len(), false);
            (self.cannot_append, self.is_displaced) = (false, false);
            Ok(())
        });
        let was_failing = std::mem::replace(&mut self.cannot_rewrite, written.is_err());
        if let (Err(error), false) = (&written, was_failing) {
            tracing::error!(path = %self.path.display(), %error, "the retry journal cannot be rewritten");
        }
        written
    }

    /// Returns the file, to be synced without a lock on the journal. The disk may lack the appended lines: an append
    /// does not wait for it.
    ///
    /// # Errors
    /// The process has no descriptor.
    pub fn file(&self) -> std::io::Result<File> {
        self.file.try_clone()
    }

    /// Writes to another file from now on.
    #[cfg(test)]
    pub(super) fn write_to(&mut self, file: File) {
        self.file = file;
    }

    /// Removes the file, at the end of the process.
    pub fn remove(&mut self) {
        drop(std::fs::remove_file(&self.path));
    }

    /// Empties the file. The next write is tried whatever the last one did.
    pub fn clear(&mut self) {
        (self.cannot_append, self.cannot_rewrite) = (false, false);
        if self.lines == 0 && !self.is_torn {
            return;
        }
        match self.file.set_len(0) {
            Ok(()) => (self.lines, self.len, self.is_torn) = (0, 0, false),
            Err(error) => {
                tracing::error!(path = %self.path.display(), %error, "the retry journal cannot be emptied");
            }
        }
    }
}

/// Items in the format of the file.
struct JournalLines {
    text: Vec<u8>,
    count: usize,
}

impl JournalLines {
    fn new<'a>(items: impl IntoIterator<Item = &'a RetryItem>) -> std::io::Result<Self> {
        let (mut text, mut count) = (Vec::new(), 0);
        for item in items {
            serde_json::to_writer(&mut text, item)?;
            text.push(b'\n');
            count += 1;
        }
        Ok(Self { text, count })
    }

    fn len(&self) -> u64 {
        self.text.len() as u64
    }
}

/// Creates a directory and its parents, as far as they do not exist.
fn create_dir(dir: &Path) -> std::io::Result<()> {
    let mut made = DirBuilder::new();
    made.recursive(true).mode(OWNER_ONLY_DIR).create(dir)
}

/// Creates a file with this text. The file is locked, and the disk has its text, before it appears under `path`.
fn create(opening: &Path, path: &Path, text: &[u8]) -> std::io::Result<(File, FileId)> {
    // Left by an earlier attempt that could not remove it.
    drop(std::fs::remove_file(opening));
    let mut file = OpenOptions::new()
        .create_new(true)
        .read(true)
        .append(true)
        .mode(OWNER_ONLY)
        .open(opening)?;
    let named = file
        .lock()
        .and_then(|()| file.write_all(text))
        .and_then(|()| if text.is_empty() { Ok(()) } else { file.sync_data() })
        .and_then(|()| file.metadata())
        .and_then(|metadata| std::fs::rename(opening, path).map(|()| FileId::of(&metadata)));
    match named {
        Ok(id) => Ok((file, id)),
        Err(error) => {
            drop(std::fs::remove_file(opening));
            Err(error)
        }
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::fixture::EPOCH;
    use domain::entry::HoldOutcome;
    use std::os::unix::fs::PermissionsExt as _;
    use std::process::Command;
    use store::versions::AccountVersion;

    /// Environment variable of a process with a file size limit. Its value is the test's folder.
    const SMALL_FILES: &str = "TOLLGATE_TEST_SMALL_FILES";
    /// Longest file in such a process, in bytes.
    pub const SMALL_FILE_BYTES: usize = 512;

    /// Creates a void.
    pub fn item(id: &str) -> RetryItem {
        RetryItem::Void {
            name: ["acct_1", "bot", "r", id].map(str::to_owned),
            epoch: EPOCH.to_owned(),
            as_of: AccountVersion::default(),
        }
    }

    /// Creates a settlement.
    pub fn settlement(id: &str) -> RetryItem {
        RetryItem::Settle {
            name: ["acct_1", "bot", "r", id].map(str::to_owned),
            estimate_nanos: 100,
            cost_nanos: 170,
            outcome: HoldOutcome::Settled,
            extension_nanos: None,
            measured: None,
            epoch: EPOCH.to_owned(),
            as_of: AccountVersion::default(),
        }
    }

    /// Returns the path of a folder that does not exist.
    pub fn fresh(name: &str) -> PathBuf {
        let dir = std::env::temp_dir().join(format!("tollgate-journal-{name}-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&dir);
        dir
    }

    /// Runs a test again in a process whose writes fail beyond [`SMALL_FILE_BYTES`] of a file, with `dir` as its
    /// [`small_file_folder`].
    pub fn run_with_small_files(test: &str, dir: &Path) {
        let ran = Command::new("sh")
            .args([
                "-c",
                "trap '' XFSZ; ulimit -f 1; exec \"$0\" --exact \"$1\" --nocapture",
            ])
            .arg(std::env::current_exe().unwrap())
            .arg(test)
            .env(SMALL_FILES, dir)
            .output()
            .unwrap();
        let said = String::from_utf8_lossy(&ran.stdout);
        assert!(ran.status.success() && said.contains("1 passed"), "{said}");
    }

    /// Returns the test's folder in a process with a file size limit.
    pub fn small_file_folder() -> Option<PathBuf> {
        std::env::var_os(SMALL_FILES).map(PathBuf::from)
    }

    /// Returns the items that another process would take over.
    fn items(journal: &Journal) -> Vec<RetryItem> {
        let text = std::fs::read_to_string(journal.path()).unwrap();
        text.lines()
            .map(|line| serde_json::from_str(line).unwrap())
            .collect()
    }

    #[test]
    fn an_incomplete_write_spoils_no_other() {
        let Some(dir) = small_file_folder() else {
            let dir = fresh("torn");
            run_with_small_files(
                "retry_queue::journal::tests::an_incomplete_write_spoils_no_other",
                &dir,
            );
            return std::fs::remove_dir_all(dir).unwrap();
        };
        let mut journal = Journal::open(&dir).unwrap();
        journal.append([&item("allow_1")]).unwrap();
        let many: Vec<RetryItem> = (0..SMALL_FILE_BYTES / 10)
            .map(|at| item(&format!("allow_x{at}")))
            .collect();
        assert!(journal.append(&many).is_err());
        journal.append([&item("allow_2")]).unwrap();
        assert_eq!(items(&journal), [item("allow_1"), item("allow_2")]);
        assert_eq!(journal.lines(), 2);
        assert!(journal.rewrite(&many).is_err());
        assert_eq!(
            items(&journal),
            [item("allow_1"), item("allow_2")],
            "the old file stays"
        );
        assert_eq!(std::fs::read_dir(&dir).unwrap().count(), 1, "nothing beside it");
        journal.append([&item("allow_3")]).unwrap();
        assert_eq!(items(&journal).len(), 3);
    }

    #[test]
    fn a_rewritten_file_is_a_new_one_and_is_locked_too() {
        let dir = fresh("rewritten");
        let mut journal = Journal::open(&dir).unwrap();
        journal.append(&[item("allow_1"), item("allow_2")]).unwrap();
        let before = File::open(journal.path()).unwrap();
        journal.rewrite([&item("allow_2")]).unwrap();
        journal.append([&item("allow_3")]).unwrap();
        assert_eq!(items(&journal), [item("allow_2"), item("allow_3")]);
        assert_eq!(journal.lines(), 2);
        assert_eq!(std::fs::read_dir(&dir).unwrap().count(), 1);
        let old = std::io::read_to_string(&before).unwrap();
        assert_eq!(old.lines().count(), 2, "the old one was complete until then");
        assert!(File::open(journal.path()).unwrap().try_lock().is_err());
        std::fs::remove_dir_all(dir).unwrap();
    }

    /// A disk error prevented its removal.
    #[test]
    fn the_rest_of_a_failed_rewrite_does_not_prevent_the_next_one() {
        let dir = fresh("leftover");
        let mut journal = Journal::open(&dir).unwrap();
        std::fs::write(&journal.opening, b"{\"do\":\"vo").unwrap();
        journal.rewrite([&item("allow_1")]).unwrap();
        assert_eq!(items(&journal), [item("allow_1")]);
        assert_eq!(std::fs::read_dir(&dir).unwrap().count(), 1);
        std::fs::remove_dir_all(dir).unwrap();
    }

    #[test]
    fn each_item_is_a_line_until_the_file_is_emptied() {
        let dir = fresh("lines");
        let mut journal = Journal::open(&dir).unwrap();
        journal.append(&[item("allow_1"), item("allow_2")]).unwrap();
        journal.append([&item("allow_3")]).unwrap();
        let text = std::fs::read_to_string(journal.path()).unwrap();
        assert_eq!((journal.lines(), text.lines().count()), (3, 3));
        let mode = |path: &Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
        assert_eq!((mode(&dir), mode(journal.path())), (0o700, 0o600));
        journal.clear();
        journal.append([&item("allow_4")]).unwrap();
        let text = std::fs::read_to_string(journal.path()).unwrap();
        assert!(journal.lines() == 1 && text.contains("allow_4") && !text.contains("allow_3"));
        journal.remove();
        assert_eq!(std::fs::read_dir(&dir).unwrap().count(), 0);
        std::fs::remove_dir_all(dir).unwrap();
    }
}
