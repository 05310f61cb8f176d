//! Journals of ended processes in the same directory. A file that cannot be read, written or removed does not block
//! others.
//!
//! No line is lost here: only what fits into the queue is taken over, settlements before voids, and the rest stays in
//! the file for a later take-over or another process. So do complete lines that this version cannot read: a newer
//! version wrote them. Memory is bounded by the queue's limit and [`LINE_BYTES_MAX`]; the files are bounded by what
//! their processes wrote.

use super::item::RetryItem;
use super::journal::{FileId, OPENING_SUFFIX, OWNER_ONLY, SUFFIX};
use std::collections::HashMap;
use std::ffi::OsStr;
use std::fs::{File, OpenOptions};
use std::io::{BufRead as _, BufReader, BufWriter, Read as _, Seek as _, Write};
use std::ops::Range;
use std::os::unix::fs::{FileExt as _, MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Suffix of a file that will replace a journal, and is no journal yet.
const REST_SUFFIX: &str = "rest";

/// Longest line that is read, in bytes with its line break. An item has less than 4 KB, of which its ids take most. A
/// longer line counts as one that this version cannot read.
const LINE_BYTES_MAX: u64 = 64 << 10;
/// Age from which on an unlocked file that is no journal yet is left from a process that was killed. A process locks
/// such a file right after it has created it.
const UNOPENED_FOR: Duration = Duration::from_secs(60);
/// Bytes of a line that are copied at once.
const COPIED_AT_ONCE: usize = 4 << 10;

/// The journals of other processes. All methods block on the disk, so no call waits for them.
#[derive(Debug)]
pub struct ForeignJournals {
    dir: PathBuf,
    own: PathBuf,
    /// Files whose items are queued here, but which could not or must not be removed yet. They stay locked while this
    /// process lives, so that no other process takes over their items again.
    unremoved: Vec<Found>,
    /// Files with a fault, as they were when it was logged. Each fault is logged once.
    faulty: HashMap<PathBuf, JournalFault>,
}

/// Why a file, or a part of it, stays where it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum JournalFault {
    /// It cannot be read.
    Unreadable,
    /// The rest of it cannot be written.
    Unwritable,
    /// This version can read none of its lines. It is not read again while it has this number and length.
    Unknown { inode: u64, bytes: u64 },
}

/// Items of other journals.
#[derive(Debug, Default)]
pub struct LeftBehind {
    files: Vec<Found>,
}

/// A locked file, and the items to take over from it.
#[derive(Debug)]
struct Found {
    /// Keeps the lock.
    held: File,
    path: PathBuf,
    items: JournalItems,
    /// The file that will replace this one; `None` if all of its lines are taken over.
    rest: Option<RestOfJournal>,
    /// True if it was logged that the file cannot be removed.
    is_reported: bool,
}

/// The first settlements and the first voids of a file, and the number of its other complete lines.
#[derive(Debug, Default)]
struct JournalItems {
    settlements: Vec<RetryItem>,
    voids: Vec<RetryItem>,
    left: usize,
    unknown: usize,
}

/// A file with the lines that are not taken over. Removed on drop, unless it has replaced the journal.
#[derive(Debug)]
struct RestOfJournal {
    path: PathBuf,
    has_replaced: bool,
}

impl Drop for RestOfJournal {
    fn drop(&mut self) {
        if !self.has_replaced {
            drop(std::fs::remove_file(&self.path));
        }
    }
}

/// Why a line is no item.
enum NoItem {
    /// Complete, but not readable by this version, or too long.
    Unknown,
    /// The last line, incomplete after a crash.
    Torn,
}

impl ForeignJournals {
    /// Covers the directory of `own`, the journal of this process. Reads nothing yet.
    pub fn beside(own: &Path) -> Self {
        Self {
            dir: own.parent().unwrap_or_else(|| Path::new(".")).to_owned(),
            own: own.to_owned(),
            unremoved: Vec::new(),
            faulty: HashMap::new(),
        }
    }

    /// Returns whether files are kept.
    pub fn has_kept(&self) -> bool {
        !self.unremoved.is_empty()
    }

    /// Removes the files that were kept or could not be removed before. Must not be called while their items are
    /// queued and missing in the own journal.
    pub fn remove_kept(&mut self) {
        self.unremoved.retain_mut(|found| !found.is_ended());
    }

    /// Locks and reads the journals of ended processes. Takes at most `room` items: settlements before voids, since
    /// voids can only refund. Files of which nothing fits stay unlocked.
    ///
    /// # Errors
    /// The directory cannot be read.
    pub fn read(&mut self, room: usize) -> std::io::Result<LeftBehind> {
        let mut paths = Vec::new();
        for entry in std::fs::read_dir(&self.dir)? {
            let path = entry?.path();
            match path.extension().and_then(OsStr::to_str) {
                Some(OPENING_SUFFIX) => remove_unopened(&path),
                _ if path.to_string_lossy().ends_with(SUFFIX) && path != self.own => paths.push(path),
                _ => {}
            }
        }
        self.faulty.retain(|path, _| paths.contains(path));
        let mut files: Vec<Found> = Vec::new();
        let (mut settlements, mut voids) = (0, 0);
        for path in paths {
            if settlements == room {
                break;
            }
            if let Some(found) = self.read_file(path, room - settlements, room - voids) {
                settlements += found.items.settlements.len();
                voids += found.items.voids.len();
                files.push(found);
            }
        }
        let mut room = room - settlements;
        for found in &mut files {
            found.items.leave_voids_beyond(room);
            room -= found.items.voids.len();
        }
        let files = files
            .into_iter()
            .filter_map(|found| self.prepare(found))
            .collect();
        Ok(LeftBehind { files })
    }

    /// Locks and reads a file; `None` if it is not there, locked or unreadable.
    fn read_file(&mut self, path: PathBuf, settlements: usize, voids: usize) -> Option<Found> {
        let read = lock(&path).and_then(|held| {
            let Some(held) = held else { return Ok(None) };
            if self.faulty.get(&path) == Some(&JournalFault::unknown(&held)?) {
                return Ok(None);
            }
            let items = JournalItems::read(&held, settlements, voids)?;
            Ok(Some((held, items)))
        });
        match read {
            Ok(None) => None,
            Ok(Some((held, items))) => Some(Found {
                held,
                path,
                items,
                rest: None,
                is_reported: false,
            }),
            Err(error) => {
                if self.is_new(&path, JournalFault::Unreadable) {
                    tracing::error!(path = %path.display(), %error, "a retry journal cannot be read");
                }
                None
            }
        }
    }

    /// Writes the file's rest, if there is one. `None` if nothing is to be taken over from the file.
    fn prepare(&mut self, mut found: Found) -> Option<Found> {
        let JournalItems { left, unknown, .. } = found.items;
        if left == 0 {
            return Some(found);
        }
        if found.items.is_empty() {
            if let Ok(fault) = JournalFault::unknown(&found.held)
                && unknown == left
                && self.is_new(&found.path, fault)
            {
                let path = found.path.display();
                tracing::error!(%path, lines = unknown, "a retry journal has lines that this version cannot read");
            }
            return None;
        }
        match found.write_rest() {
            Ok(rest) => {
                found.rest = Some(rest);
                Some(found)
            }
            Err(error) => {
                if self.is_new(&found.path, JournalFault::Unwritable) {
                    tracing::error!(
                        path = %found.path.display(),
                        %error,
                        "a retry journal cannot be taken over in parts"
                    );
                }
                None
            }
        }
    }

    /// Records a fault of a file. Returns whether it is a new one.
    fn is_new(&mut self, path: &Path, fault: JournalFault) -> bool {
        self.faulty.insert(path.to_owned(), fault) != Some(fault)
    }

    /// Removes the files whose items are now in the own journal, except for their rests.
    pub fn remove(&mut self, found: LeftBehind) {
        let unremoved = found.files.into_iter().filter_map(|mut found| {
            let is_ended = found.is_ended();
            (!is_ended).then_some(found)
        });
        self.unremoved.extend(unremoved);
    }

    /// Keeps the files whose items are queued but not in the own journal: if this process ends before it delivers them,
    /// another process takes them over.
    pub fn keep(&mut self, found: LeftBehind) {
        self.unremoved.extend(found.files);
    }
}

impl LeftBehind {
    /// Returns the items to queue.
    pub fn items(&self) -> impl Iterator<Item = &RetryItem> {
        let items = self.files.iter().map(|found| &found.items);
        items.flat_map(|items| items.settlements.iter().chain(&items.voids))
    }

    /// Moves the items out; the files stay locked.
    pub fn take_items(&mut self) -> Vec<RetryItem> {
        let files = self.files.iter_mut();
        let items = files.map(|found| std::mem::take(&mut found.items));
        items
            .flat_map(|items| items.settlements.into_iter().chain(items.voids))
            .collect()
    }
}

impl Found {
    /// Replaces the file by its rest, or removes it. Returns whether that succeeded; a failure is logged once.
    fn is_ended(&mut self) -> bool {
        let Err(error) = self.end() else { return true };
        if !std::mem::replace(&mut self.is_reported, true) {
            let path = self.path.display();
            tracing::error!(%path, %error, "a retry journal that was taken over cannot be removed");
        }
        false
    }

    /// Replaces the file by its rest, or removes it.
    fn end(&mut self) -> std::io::Result<()> {
        if let Some(rest) = &mut self.rest {
            // A process that locks the old file now finds another file under the name.
            std::fs::rename(&rest.path, &self.path)?;
            rest.has_replaced = true;
            return Ok(());
        }
        // A process may have ended before the rest replaced the file.
        drop(self.rest_file());
        match std::fs::remove_file(&self.path) {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(()),
            removed => removed,
        }
    }

    /// Returns the file that may replace this one.
    fn rest_file(&self) -> RestOfJournal {
        let mut path = self.path.clone().into_os_string();
        path.push(".");
        path.push(REST_SUFFIX);
        RestOfJournal {
            path: path.into(),
            has_replaced: false,
        }
    }

    /// Writes the complete lines that are not taken over to a file beside this one.
    fn write_rest(&self) -> std::io::Result<RestOfJournal> {
        let rest = self.rest_file();
        let mut file = OpenOptions::new();
        let file = file.create(true).write(true).truncate(true).mode(OWNER_ONLY);
        let mut writer = BufWriter::new(file.open(&rest.path)?);
        let (mut settlements, mut voids) = (self.items.settlements.len(), self.items.voids.len());
        read_lines(&self.held, |place, line| {
            let taken = match line {
                Err(NoItem::Torn) => return Ok(()),
                Err(NoItem::Unknown) => &mut 0,
                Ok(RetryItem::Settle { .. }) => &mut settlements,
                Ok(RetryItem::Void { .. }) => &mut voids,
            };
            if *taken > 0 {
                *taken -= 1;
                return Ok(());
            }
            copy(&self.held, place, &mut writer)?;
            writer.write_all(b"\n")
        })?;
        writer.into_inner()?.sync_data()?;
        Ok(rest)
    }
}

impl JournalItems {
    /// Reads a file. Keeps the first items of each kind, at most as many as given.
    fn read(file: &File, settlements: usize, voids: usize) -> std::io::Result<Self> {
        let mut items = Self::default();
        read_lines(file, |_, line| {
            match line {
                Ok(item @ RetryItem::Settle { .. }) if items.settlements.len() < settlements => {
                    items.settlements.push(item);
                }
                Ok(item @ RetryItem::Void { .. }) if items.voids.len() < voids => items.voids.push(item),
                Ok(_) => items.left += 1,
                Err(NoItem::Unknown) => {
                    items.left += 1;
                    items.unknown += 1;
                }
                Err(NoItem::Torn) => {}
            }
            Ok(())
        })?;
        Ok(items)
    }

    fn is_empty(&self) -> bool {
        self.settlements.is_empty() && self.voids.is_empty()
    }

    /// Leaves the voids from this number on in the file.
    fn leave_voids_beyond(&mut self, max: usize) {
        self.left += self.voids.len().saturating_sub(max);
        self.voids.truncate(max);
    }
}

impl JournalFault {
    fn unknown(file: &File) -> std::io::Result<Self> {
        let metadata = file.metadata()?;
        Ok(Self::Unknown {
            inode: metadata.ino(),
            bytes: metadata.len(),
        })
    }
}

/// Opens and locks a file; `None` if another process has locked it, or took it over before the lock.
fn lock(path: &Path) -> std::io::Result<Option<File>> {
    // Opening a pipe would wait for somebody who writes.
    if path.metadata().is_ok_and(|metadata| !metadata.is_file()) {
        return Err(std::io::Error::other("it is not a regular file"));
    }
    let file = match File::open(path) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        opened => opened?,
    };
    if file.try_lock().is_err() {
        return Ok(None);
    }
    let is_there = std::fs::metadata(path).is_ok_and(|there| {
        file.metadata()
            .is_ok_and(|here| FileId::of(&here) == FileId::of(&there))
    });
    Ok(is_there.then_some(file))
}

/// Removes a file that never became a journal, if its process was killed. The journal that it would have replaced is
/// complete.
fn remove_unopened(path: &Path) {
    if let Ok(Some(file)) = lock(path)
        && let Ok(modified) = file.metadata().and_then(|metadata| metadata.modified())
        && modified.elapsed().is_ok_and(|age| age >= UNOPENED_FOR)
    {
        drop(std::fs::remove_file(path));
    }
}

/// Reads a file from its start, line by line. `on_line` receives the place of each line without its line break.
fn read_lines(
    mut file: &File,
    mut on_line: impl FnMut(Range<u64>, Result<RetryItem, NoItem>) -> std::io::Result<()>,
) -> std::io::Result<()> {
    file.rewind()?;
    let (mut reader, mut bytes, mut start) = (BufReader::new(file), Vec::new(), 0);
    loop {
        bytes.clear();
        let mut length = reader
            .by_ref()
            .take(LINE_BYTES_MAX)
            .read_until(b'\n', &mut bytes)? as u64;
        if length == 0 {
            return Ok(());
        }
        let mut is_complete = bytes.ends_with(b"\n");
        let is_long = length == LINE_BYTES_MAX && !is_complete;
        if is_long {
            length += reader.skip_until(b'\n')? as u64;
            let mut last = [0];
            file.read_exact_at(&mut last, start + length - 1)?;
            is_complete = last == *b"\n";
        }
        let no_item = if is_complete {
            NoItem::Unknown
        } else {
            NoItem::Torn
        };
        let line = match is_long {
            true => Err(no_item),
            false => serde_json::from_slice(&bytes).map_err(|_| no_item),
        };
        on_line(start..start + length - u64::from(is_complete), line)?;
        start += length;
    }
}

/// Copies a part of a file, at most [`COPIED_AT_ONCE`] bytes in memory.
fn copy(file: &File, part: Range<u64>, writer: &mut impl Write) -> std::io::Result<()> {
    let mut buffer = [0; COPIED_AT_ONCE];
    let mut at = part.start;
    while at < part.end {
        let left = usize::try_from(part.end - at).unwrap_or(COPIED_AT_ONCE);
        let bytes = &mut buffer[..left.min(COPIED_AT_ONCE)];
        file.read_exact_at(bytes, at)?;
        writer.write_all(bytes)?;
        at += bytes.len() as u64;
    }
    Ok(())
}

#[cfg(test)]
mod tests;
