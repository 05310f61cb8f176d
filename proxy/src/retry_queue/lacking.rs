//! Items of the queue that are not in the journal because a write failed, until a later write succeeds.

use super::item::Item;
use std::collections::HashSet;

/// Items that the journal lacks.
#[derive(Debug, Default)]
pub struct Lacking {
    /// In memory only: lost if the process ends.
    in_memory: HashSet<Item>,
    /// Also in the kept journals of processes that ended.
    in_kept_files: HashSet<Item>,
    /// Whether the file must be rewritten since the disk may not have its lines.
    is_unsynced: bool,
}

impl Lacking {
    /// Returns whether the journal has every item.
    pub fn is_empty(&self) -> bool {
        self.in_memory.is_empty() && self.in_kept_files.is_empty() && !self.is_unsynced
    }

    /// Records an item that is in no file.
    pub fn in_memory(&mut self, item: Item) {
        self.in_memory.insert(item);
    }

    /// Records items whose old files are kept.
    pub fn in_kept_files<'a>(&mut self, items: impl IntoIterator<Item = &'a Item>) {
        self.in_kept_files.extend(items.into_iter().cloned());
    }

    /// Records that the disk may lack lines of the file.
    pub fn unsynced(&mut self) {
        self.is_unsynced = true;
    }

    /// Whether the disk may lack lines of the file.
    pub fn is_unsynced(&self) -> bool {
        self.is_unsynced
    }

    /// Forgets all items except these, which are still queued.
    pub fn retain<'a>(&mut self, waiting: impl Iterator<Item = &'a Item>) {
        let waiting: HashSet<&Item> = waiting.collect();
        self.in_memory.retain(|item| waiting.contains(item));
        self.in_kept_files.retain(|item| waiting.contains(item));
    }

    /// Returns all items.
    pub fn items(&self) -> impl Iterator<Item = &Item> {
        self.in_memory.iter().chain(&self.in_kept_files)
    }

    /// The number of those that are lost if the process ends.
    pub fn unwritten(&self) -> usize {
        self.in_memory.len()
    }

    /// Those that are lost if the process ends.
    pub fn only_in_memory(&self) -> Vec<Item> {
        self.in_memory.iter().cloned().collect()
    }

    /// Records that the journal has all items.
    pub fn clear(&mut self) {
        *self = Self::default();
    }
}
