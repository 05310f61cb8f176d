//! The file behind the retry queue: one JSON line an item, one file a process, locked while its process lives.
//!
//! A process that starts takes over the files that nobody holds any more. The file is emptied whenever the queue is.

use super::Item;
use shared::clock;
use shared::domain::id::Kind;
use std::fs::{File, OpenOptions};
use std::io::{BufRead, BufReader, Seek, Write};
use std::path::{Path, PathBuf};

const ENDING: &str = "pending.jsonl";

/// The journal of this process.
#[derive(Debug)]
pub struct Journal {
    file: File,
    path: PathBuf,
    lines: usize,
}

impl Journal {
    /// Opens this process's journal in `dir`, with what earlier processes left there, at most `limit` items.
    ///
    /// # Errors
    /// When the folder cannot be made or written.
    pub fn open(dir: &Path, limit: usize) -> std::io::Result<(Self, Vec<Item>)> {
        std::fs::create_dir_all(dir)?;
        let mut left_behind = Vec::new();
        let mut taken_over = Vec::new();
        for entry in std::fs::read_dir(dir)? {
            let path = entry?.path();
            if path.to_string_lossy().ends_with(ENDING)
                && let Some(file) = unheld(&path)?
            {
                read_into(&file, limit, &mut left_behind)?;
                taken_over.push((file, path));
            }
        }
        let name = Kind::Request
            .mint(clock::now_ms())
            .map_err(std::io::Error::other)?;
        let path = dir.join(format!("{name}.{ENDING}"));
        let file = OpenOptions::new()
            .create_new(true)
            .read(true)
            .append(true)
            .open(&path)?;
        file.lock()?;
        let mut journal = Self { file, path, lines: 0 };
        for item in &left_behind {
            journal.append(item);
        }
        for (_held, path) in taken_over {
            std::fs::remove_file(path)?;
        }
        Ok((journal, left_behind))
    }

    /// Lines in the file; more than wait, since an item that was delivered leaves its line.
    pub fn lines(&self) -> usize {
        self.lines
    }

    /// Adds an item. A disk that does not take it is reported; the item still waits in memory.
    pub fn append(&mut self, item: &Item) {
        self.lines += 1;
        let written = serde_json::to_vec(item)
            .map_err(std::io::Error::from)
            .and_then(|mut line| {
                line.push(b'\n');
                self.file.write_all(&line)
            });
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

/// The file, locked, unless another process holds it.
fn unheld(path: &Path) -> std::io::Result<Option<File>> {
    let file = File::open(path)?;
    Ok(file.try_lock().is_ok().then_some(file))
}

/// Reads the items of a file. A line that was cut off by a crash is skipped.
fn read_into(file: &File, limit: usize, items: &mut Vec<Item>) -> std::io::Result<()> {
    for line in BufReader::new(file).lines() {
        match serde_json::from_str(&line?) {
            Ok(item) if items.len() < limit => items.push(item),
            Ok(item) => tracing::error!(?item, "the retry queue is full; the estimate stays charged"),
            Err(error) => tracing::warn!(%error, "a line of the retry journal is unreadable"),
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn item(id: &str) -> Item {
        Item::Void {
            name: ["acct_1", "bot", "r", id].map(str::to_owned),
        }
    }

    #[test]
    fn items_survive_the_process_and_only_dead_ones_are_taken_over() {
        let dir = std::env::temp_dir().join(format!("tollgate-journal-{}", std::process::id()));
        let (mut first, left) = Journal::open(&dir, 10).unwrap();
        assert!(left.is_empty());
        first.append(&item("allow_1"));
        first.append(&item("allow_2"));
        assert_eq!(first.lines(), 2);

        let (second, left) = Journal::open(&dir, 10).unwrap();
        assert!(left.is_empty(), "the first journal is still held");
        drop((first, second));

        let (mut third, left) = Journal::open(&dir, 1).unwrap();
        assert_eq!(left, [item("allow_1")], "bounded");
        third.clear();
        assert_eq!(third.lines(), 0);
        drop(third);
        let (_fourth, left) = Journal::open(&dir, 10).unwrap();
        assert!(left.is_empty(), "an empty queue leaves nothing");
        std::fs::remove_dir_all(dir).unwrap();
    }

    #[test]
    fn a_cut_line_is_skipped() {
        let dir = std::env::temp_dir().join(format!("tollgate-journal-cut-{}", std::process::id()));
        let (mut journal, _) = Journal::open(&dir, 10).unwrap();
        journal.append(&item("allow_1"));
        journal.file.write_all(b"{\"do\":\"vo").unwrap();
        drop(journal);
        let (_journal, left) = Journal::open(&dir, 10).unwrap();
        assert_eq!(left, [item("allow_1")]);
        std::fs::remove_dir_all(dir).unwrap();
    }
}
