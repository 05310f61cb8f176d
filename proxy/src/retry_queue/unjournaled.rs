//! Items of the queue that are not in the journal: new ones until they are written, and those that a failed write left
//! out.

use super::item::RetryItem;
use std::collections::{HashMap, HashSet};

/// Items that the journal lacks.
#[derive(Debug, Default)]
pub struct Unjournaled {
    items: HashMap<RetryItem, ItemState>,
    /// Number of items recorded so far.
    recorded: u64,
    /// True if the disk may lack lines of the file, which must then be rewritten.
    is_unsynced: bool,
}

/// State of an item that the journal lacks.
#[derive(Debug)]
struct ItemState {
    /// Its number among all that were recorded.
    number: u64,
    /// True if the kept journal of a process that ended has it. Otherwise it is lost if the process ends.
    is_in_kept_file: bool,
}

impl Unjournaled {
    /// Returns whether a kept file is still needed.
    pub fn needs_kept_files(&self) -> bool {
        self.is_unsynced || self.items.values().any(|state| state.is_in_kept_file)
    }

    /// Records an item that is in no file. Returns its number.
    pub fn in_memory(&mut self, item: RetryItem) -> u64 {
        self.record(item, false)
    }

    /// Records items whose old files are kept.
    pub fn in_kept_files<'a>(&mut self, items: impl IntoIterator<Item = &'a RetryItem>) {
        for item in items {
            self.record(item.clone(), true);
        }
    }

    fn record(&mut self, item: RetryItem, is_in_kept_file: bool) -> u64 {
        self.recorded += 1;
        let number = self.recorded;
        let state = ItemState {
            number,
            is_in_kept_file,
        };
        self.items.insert(item, state);
        number
    }

    /// Returns the number of the item that was recorded last.
    pub fn recorded(&self) -> u64 {
        self.recorded
    }

    /// Forgets the items up to this number, since the journal has them.
    pub fn written(&mut self, up_to: u64) {
        self.items.retain(|_, state| state.number > up_to);
    }

    /// Records that the disk may lack lines of the file.
    pub fn unsynced(&mut self) {
        self.is_unsynced = true;
    }

    /// Records that the file is gone, and with it these items, which are all that are queued. Those in a kept file
    /// stay there until the journal is rewritten.
    pub fn displaced<'a>(&mut self, queued: impl Iterator<Item = &'a RetryItem>) {
        for item in queued {
            if !self.items.contains_key(item) {
                self.record(item.clone(), false);
            }
        }
        self.is_unsynced = true;
    }

    /// Records that the disk has the file.
    pub fn synced(&mut self) {
        self.is_unsynced = false;
    }

    /// Returns whether the disk may lack lines of the file.
    pub fn is_unsynced(&self) -> bool {
        self.is_unsynced
    }

    /// Forgets all items except these, which are still queued.
    pub fn retain<'a>(&mut self, queued: impl Iterator<Item = &'a RetryItem>) {
        if self.items.is_empty() {
            return;
        }
        let queued: HashSet<&RetryItem> = queued.collect();
        self.items.retain(|item, _| queued.contains(item));
    }

    /// Returns all items, in the order in which they were recorded.
    pub fn items(&self) -> Vec<RetryItem> {
        let mut items: Vec<_> = self.items.iter().collect();
        items.sort_unstable_by_key(|(_, state)| state.number);
        items.into_iter().map(|(item, _)| item.clone()).collect()
    }

    /// The number of those that are lost if the process ends.
    pub fn unwritten(&self) -> usize {
        let lacks = self.items.values();
        lacks.filter(|state| !state.is_in_kept_file).count()
    }

    /// Those that are lost if the process ends.
    pub fn only_in_memory(&self) -> Vec<RetryItem> {
        let unjournaled = self.items.iter().filter(|(_, state)| !state.is_in_kept_file);
        unjournaled.map(|(item, _)| item.clone()).collect()
    }

    /// Records that no item is queued.
    pub fn clear(&mut self) {
        self.items.clear();
        self.is_unsynced = false;
    }
}
