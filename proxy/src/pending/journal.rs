//! The file behind the retry queue: one JSON line an item, one file a process, locked while its process lives.
//!
//! A process takes over the files that nobody holds any more, which are those of [`others`](super::others): when it starts,
//! and later too, since after a hand-over the process that leaves something behind ends after the one that is to bring it
//! to the store has started. The file is emptied whenever the queue is.

use super::Item;
use shared::clock;
use shared::domain::id::Kind;
use std::fs::{DirBuilder, File, OpenOptions};
use std::io::{Seek, Write};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

/// The ending of a journal's name.
pub(super) const ENDING: &str = "pending.jsonl";
/// The ending of a file that is not locked yet, so that nobody takes it for one that was left behind.
const OPENING: &str = "opening";

/// Read and write by the owner alone: the lines say who spent what.
const OWNER_ONLY: u32 = 0o600;
/// The same for a directory that is made here.
const OWNER_ONLY_DIR: u32 = 0o700;

/// The journal of this process.
#[derive(Debug)]
pub struct Journal {
    file: File,
    path: PathBuf,
    lines: usize,
}

impl Journal {
    /// Opens this process's journal in `dir`.
    ///
    /// # Errors
    /// When the folder cannot be made or written.
    pub fn open(dir: &Path) -> std::io::Result<Self> {
        let mut made = DirBuilder::new();
        made.recursive(true).mode(OWNER_ONLY_DIR).create(dir)?;
        let name = Kind::Request
            .mint(clock::now_ms())
            .map_err(std::io::Error::other)?;
        let (opening, path) = (
            dir.join(format!("{name}.{OPENING}")),
            dir.join(format!("{name}.{ENDING}")),
        );
        let file = OpenOptions::new()
            .create_new(true)
            .read(true)
            .append(true)
            .mode(OWNER_ONLY)
            .open(&opening)?;
        file.lock()?;
        std::fs::rename(&opening, &path)?;
        Ok(Self { file, path, lines: 0 })
    }

    /// Where it is.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Lines in the file; more than wait, since an item that was delivered leaves its line.
    pub fn lines(&self) -> usize {
        self.lines
    }

    /// Adds items, in one write. A disk that does not take them is reported; they still wait in memory.
    pub fn append<'a>(&mut self, items: impl IntoIterator<Item = &'a Item>) {
        let mut lines = Vec::new();
        let mut written = Ok(());
        for item in items {
            self.lines += 1;
            written = written.and(serde_json::to_writer(&mut lines, item));
            lines.push(b'\n');
        }
        let written = written
            .map_err(std::io::Error::from)
            .and_then(|()| self.file.write_all(&lines));
        if let Err(error) = written {
            tracing::error!(path = %self.path.display(), %error, "the retry journal cannot be written");
        }
    }

    /// Removes the file at the end of the process.
    pub fn remove(&mut self) {
        drop(std::fs::remove_file(&self.path));
    }

    /// Forgets everything: nothing waits any more.
    pub fn clear(&mut self) {
        self.lines = 0;
        if let Err(error) = self.file.set_len(0).and_then(|()| self.file.rewind()) {
            tracing::error!(path = %self.path.display(), %error, "the retry journal cannot be emptied");
        }
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt as _;

    /// Something that waits.
    pub fn item(id: &str) -> Item {
        Item::Void {
            name: ["acct_1", "bot", "r", id].map(str::to_owned),
        }
    }

    /// The name of a folder that is not there.
    pub fn fresh(name: &str) -> PathBuf {
        let dir = std::env::temp_dir().join(format!("tollgate-journal-{name}-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&dir);
        dir
    }

    #[test]
    fn each_item_is_a_line_until_the_file_is_emptied() {
        let dir = fresh("lines");
        let mut journal = Journal::open(&dir).unwrap();
        journal.append(&[item("allow_1"), item("allow_2")]);
        journal.append([&item("allow_3")]);
        let text = std::fs::read_to_string(journal.path()).unwrap();
        assert_eq!((journal.lines(), text.lines().count()), (3, 3));
        let mode = |path: &Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
        assert_eq!((mode(&dir), mode(journal.path())), (0o700, 0o600));
        journal.clear();
        journal.append([&item("allow_4")]);
        let text = std::fs::read_to_string(journal.path()).unwrap();
        assert!(journal.lines() == 1 && text.contains("allow_4") && !text.contains("allow_3"));
        journal.remove();
        assert_eq!(std::fs::read_dir(&dir).unwrap().count(), 0);
        std::fs::remove_dir_all(dir).unwrap();
    }
}
