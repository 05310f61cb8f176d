//! What processes that ended have left beside the journal of this one. One file that cannot be read or removed keeps
//! nothing from the others.

use super::item::Item;
use super::journal::ENDING;
use std::collections::HashSet;
use std::fs::File;
use std::io::{BufRead as _, BufReader};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

/// The files of others. All of this works on the disk: nobody waits for it who has a call in hand.
#[derive(Debug)]
pub struct Others {
    dir: PathBuf,
    own: PathBuf,
    /// Files whose items wait here, and that could not be removed, or must not yet. They stay locked while this process
    /// lives, so that nobody takes their items over once more.
    unremoved: Vec<(File, PathBuf)>,
    /// Files that could not be read, so that each is told once.
    unreadable: HashSet<PathBuf>,
}

/// What others have left behind.
#[derive(Debug, Default)]
pub struct LeftBehind {
    /// What has to reach the store.
    pub items: Vec<Item>,
    /// How many items did not fit.
    pub dropped: u64,
    /// The files, locked. They have to go once the items are in the own journal, or at their end; until then they hold them.
    files: Vec<(File, PathBuf)>,
}

impl Others {
    /// The files beside the own one.
    #[must_use]
    pub fn beside(own: &Path) -> Self {
        Self {
            dir: own.parent().unwrap_or_else(|| Path::new(".")).to_owned(),
            own: own.to_owned(),
            unremoved: Vec::new(),
            unreadable: HashSet::new(),
        }
    }

    /// Lets files go that were kept for their items, or could not be removed before. Nothing may wait here any more.
    pub fn let_go(&mut self) {
        self.remove(Vec::new());
    }

    /// Reads what is there, at most `limit` items.
    ///
    /// # Errors
    /// When the directory cannot be read.
    pub fn read(&mut self, limit: usize) -> std::io::Result<LeftBehind> {
        let mut found = LeftBehind::default();
        for entry in std::fs::read_dir(&self.dir)? {
            let path = entry?.path();
            if !path.to_string_lossy().ends_with(ENDING) || path == self.own {
                continue;
            }
            let read = unheld(&path).and_then(|file| {
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

    /// Removes the files of items that are in the own journal now.
    pub fn taken_over(&mut self, found: LeftBehind) {
        self.remove(found.files);
    }

    /// Keeps the files of items that wait here and are not in the own journal: should this process end before it has brought
    /// them to the store, others find them.
    pub fn keep(&mut self, found: LeftBehind) {
        self.unremoved.extend(found.files);
    }

    /// Removes these files, and those that could not be removed before.
    fn remove(&mut self, files: Vec<(File, PathBuf)>) {
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

/// The file, locked, unless another process holds it, or took it over between the look and the lock.
fn unheld(path: &Path) -> std::io::Result<Option<File>> {
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

/// The items of a file. A line that was cut off by a crash, or is none, is skipped.
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

    /// A journal that its process left behind, with these items.
    fn left(dir: &Path, ids: &[&str]) -> PathBuf {
        let mut journal = Journal::open(dir).unwrap();
        let items: Vec<Item> = ids.iter().map(|id| item(id)).collect();
        journal.append(&items).unwrap();
        journal.path().to_owned()
    }

    #[test]
    fn only_what_ended_processes_left_is_read_and_no_more_than_fits() {
        let dir = fresh("others");
        let own = Journal::open(&dir).unwrap();
        let mut others = Others::beside(own.path());
        let mut alive = Journal::open(&dir).unwrap();
        alive.append(&[item("allow_1"), item("allow_2")]).unwrap();
        assert_eq!(others.read(10).unwrap().items, [], "its process lives");
        drop(alive);
        let found = others.read(1).unwrap();
        assert_eq!((found.items.len(), found.dropped), (1, 1), "bounded, and counted");
        assert_eq!(
            Others::beside(own.path()).read(10).unwrap().items,
            [],
            "nobody else reads it meanwhile"
        );
        drop(found);
        let found = others.read(10).unwrap();
        assert_eq!(found.items, [item("allow_1"), item("allow_2")]);
        others.taken_over(found);
        assert_eq!(others.read(10).unwrap().items, [], "once");
        std::fs::remove_dir_all(dir).unwrap();
    }

    #[test]
    fn a_file_that_cannot_be_read_keeps_nothing_from_the_others() {
        let dir = fresh("unreadable");
        let own = Journal::open(&dir).unwrap();
        std::fs::create_dir(dir.join("a.pending.jsonl")).unwrap();
        let cut = left(&dir, &["allow_1"]);
        let mut file = std::fs::OpenOptions::new().append(true).open(cut).unwrap();
        file.write_all(b"\xff\xfe\n{\"do\":\"vo").unwrap();
        let mut others = Others::beside(own.path());
        for _ in 0..2 {
            assert_eq!(others.read(10).unwrap().items, [item("allow_1")]);
        }
        std::fs::remove_dir_all(dir).unwrap();
    }

    #[test]
    fn a_file_that_cannot_be_removed_is_taken_over_once() {
        let dir = fresh("unremovable");
        let own = Journal::open(&dir).unwrap();
        let stays = left(&dir, &["allow_1"]);
        let goes = left(&dir, &["allow_2"]);
        let mut others = Others::beside(own.path());
        let found = others.read(10).unwrap();
        assert_eq!(found.items.len(), 2);
        // A directory has taken its name.
        let kept = dir.join("kept");
        std::fs::rename(&stays, &kept).unwrap();
        std::fs::create_dir(&stays).unwrap();
        others.taken_over(found);
        assert!(!goes.exists() && others.unremoved.len() == 1);
        std::fs::remove_dir(&stays).unwrap();
        std::fs::rename(&kept, &stays).unwrap();
        assert_eq!(others.read(10).unwrap().items, [], "it is held");
        others.let_go();
        assert!(!stays.exists() && others.unremoved.is_empty());
        std::fs::remove_dir_all(dir).unwrap();
    }
}
