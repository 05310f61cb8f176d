//! Journals of ended processes in the same directory. A file that cannot be read or removed does not block others.

use super::item::Item;
use super::journal::SUFFIX;
use std::collections::HashSet;
use std::fs::File;
use std::io::{BufRead as _, BufReader};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

/// The journals of other processes. All methods block on the disk, so no call waits for them.
#[derive(Debug)]
pub struct OtherJournals {
    dir: PathBuf,
    own: PathBuf,
    /// Files whose items are queued here, but which could not or must not be removed yet. They stay locked while this
    /// process lives, so that no other process takes over their items again.
    unremoved: Vec<(File, PathBuf)>,
    /// Files that could not be read. Each is logged once.
    unreadable: HashSet<PathBuf>,
}

/// Items of other journals.
#[derive(Debug, Default)]
pub struct LeftBehind {
    /// Items to queue.
    pub items: Vec<Item>,
    /// Number of items that did not fit.
    pub dropped: u64,
    /// The locked files, to be removed once the items are in the own journal or delivered.
    files: Vec<(File, PathBuf)>,
}

impl OtherJournals {
    /// Covers the directory of `own`, the journal of this process. Reads nothing yet.
    pub fn beside(own: &Path) -> Self {
        Self {
            dir: own.parent().unwrap_or_else(|| Path::new(".")).to_owned(),
            own: own.to_owned(),
            unremoved: Vec::new(),
            unreadable: HashSet::new(),
        }
    }

    /// Removes the files that were kept or could not be removed before. Must not be called while their items are
    /// queued.
    pub fn remove_kept(&mut self) {
        self.remove_files(Vec::new());
    }

    /// Locks and reads the journals of ended processes, at most `limit` items.
    ///
    /// # Errors
    /// The directory cannot be read.
    pub fn read(&mut self, limit: usize) -> std::io::Result<LeftBehind> {
        let mut found = LeftBehind::default();
        for entry in std::fs::read_dir(&self.dir)? {
            let path = entry?.path();
            if !path.to_string_lossy().ends_with(SUFFIX) || path == self.own {
                continue;
            }
            let read = lock(&path).and_then(|file| {
                let Some(file) = file else { return Ok(None) };
                let items = items(&file)?;
                Ok(Some((file, items)))
            });
            match read {
                Ok(None) => {}
                Ok(Some((file, items))) => {
                    for item in items {
                        found.take(item, limit);
                    }
                    found.files.push((file, path));
                }
                Err(error) => {
                    if !self.unreadable.contains(&path) {
                        tracing::error!(path = %path.display(), %error, "a retry journal cannot be read");
                        self.unreadable.insert(path);
                    }
                }
            }
        }
        Ok(found)
    }

    /// Removes the files whose items are now in the own journal.
    pub fn remove(&mut self, found: LeftBehind) {
        self.remove_files(found.files);
    }

    /// Keeps the files whose items are queued but not in the own journal: if this process ends before it delivers them,
    /// another process takes them over.
    pub fn keep(&mut self, found: LeftBehind) {
        self.unremoved.extend(found.files);
    }

    /// Removes `files`, and those that were kept or could not be removed before.
    fn remove_files(&mut self, files: Vec<(File, PathBuf)>) {
        let before = std::mem::take(&mut self.unremoved);
        for (held, path) in before {
            if !is_gone(std::fs::remove_file(&path)) {
                self.unremoved.push((held, path));
            }
        }
        for (held, path) in files {
            let removed = std::fs::remove_file(&path);
            if let Err(error) = &removed {
                tracing::error!(path = %path.display(), %error, "a retry journal that was taken over cannot be removed");
            }
            if !is_gone(removed) {
                self.unremoved.push((held, path));
            }
        }
    }
}

impl LeftBehind {
    fn take(&mut self, item: Item, limit: usize) {
        if self.items.len() < limit {
            self.items.push(item);
        } else {
            self.dropped += 1;
            tracing::error!(?item, "the retry queue is full; the estimate stays charged");
        }
    }
}

fn is_gone(removed: std::io::Result<()>) -> bool {
    removed.map_or_else(|error| error.kind() == std::io::ErrorKind::NotFound, |()| true)
}

/// Opens and locks a file; `None` if another process has locked it, or took it over before the lock.
fn lock(path: &Path) -> std::io::Result<Option<File>> {
    let file = match File::open(path) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        opened => opened?,
    };
    if file.try_lock().is_err() {
        return Ok(None);
    }
    let is_there = std::fs::metadata(path).is_ok_and(|there| {
        file.metadata()
            .is_ok_and(|here| (here.dev(), here.ino()) == (there.dev(), there.ino()))
    });
    Ok(is_there.then_some(file))
}

/// Reads the items of a file. Skips lines that are incomplete after a crash or do not parse.
fn items(file: &File) -> std::io::Result<Vec<Item>> {
    let mut items = Vec::new();
    for line in BufReader::new(file).split(b'\n') {
        match serde_json::from_slice(&line?) {
            Ok(item) => items.push(item),
            Err(error) => tracing::warn!(%error, "a line of the retry journal is unreadable"),
        }
    }
    Ok(items)
}

#[cfg(test)]
mod tests {
    use super::super::journal::Journal;
    use super::super::journal::tests::{fresh, item};
    use super::*;
    use std::io::Write as _;

    /// Creates a journal with these items, as an ended process leaves it.
    fn leave(dir: &Path, ids: &[&str]) -> PathBuf {
        let mut journal = Journal::open(dir).unwrap();
        let items: Vec<Item> = ids.iter().map(|id| item(id)).collect();
        journal.append(&items).unwrap();
        journal.path().to_owned()
    }

    #[test]
    fn only_unlocked_journals_are_read_and_no_more_than_fits() {
        let dir = fresh("others");
        let own = Journal::open(&dir).unwrap();
        let mut others = OtherJournals::beside(own.path());
        let mut alive = Journal::open(&dir).unwrap();
        alive.append(&[item("allow_1"), item("allow_2")]).unwrap();
        assert_eq!(others.read(10).unwrap().items, [], "its process lives");
        drop(alive);
        let found = others.read(1).unwrap();
        assert_eq!((found.items.len(), found.dropped), (1, 1), "bounded, and counted");
        assert_eq!(
            OtherJournals::beside(own.path()).read(10).unwrap().items,
            [],
            "nobody else reads it meanwhile"
        );
        drop(found);
        let found = others.read(10).unwrap();
        assert_eq!(found.items, [item("allow_1"), item("allow_2")]);
        others.remove(found);
        assert_eq!(others.read(10).unwrap().items, [], "once");
        std::fs::remove_dir_all(dir).unwrap();
    }

    /// Another process delivers and removes a journal between the listing and the lock.
    #[test]
    fn a_journal_that_is_gone_is_nobodys() {
        let dir = fresh("gone");
        assert!(lock(&dir.join("a.pending.jsonl")).unwrap().is_none());
    }

    #[test]
    fn an_unreadable_file_does_not_block_others() {
        let dir = fresh("unreadable");
        let own = Journal::open(&dir).unwrap();
        std::fs::create_dir(dir.join("a.pending.jsonl")).unwrap();
        let cut = leave(&dir, &["allow_1"]);
        let mut file = std::fs::OpenOptions::new().append(true).open(cut).unwrap();
        file.write_all(b"\xff\xfe\n{\"do\":\"vo").unwrap();
        let mut others = OtherJournals::beside(own.path());
        for _ in 0..2 {
            assert_eq!(others.read(10).unwrap().items, [item("allow_1")]);
        }
        std::fs::remove_dir_all(dir).unwrap();
    }

    #[test]
    fn a_file_that_cannot_be_removed_is_taken_over_once() {
        let dir = fresh("unremovable");
        let own = Journal::open(&dir).unwrap();
        let stays = leave(&dir, &["allow_1"]);
        let goes = leave(&dir, &["allow_2"]);
        let mut others = OtherJournals::beside(own.path());
        let found = others.read(10).unwrap();
        assert_eq!(found.items.len(), 2);
        // A directory has the name of a journal.
        let kept = dir.join("kept");
        std::fs::rename(&stays, &kept).unwrap();
        std::fs::create_dir(&stays).unwrap();
        others.remove(found);
        assert!(!goes.exists() && others.unremoved.len() == 1);
        std::fs::remove_dir(&stays).unwrap();
        std::fs::rename(&kept, &stays).unwrap();
        assert_eq!(others.read(10).unwrap().items, [], "it is held");
        others.remove_kept();
        assert!(!stays.exists() && others.unremoved.is_empty());
        std::fs::remove_dir_all(dir).unwrap();
    }
}
