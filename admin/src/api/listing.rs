//! The one form of all lists: `{ success, <plural>: […], total, limit, offset }` (decision D5).

use serde::ser::{Serialize, SerializeMap, Serializer};
use shared::store::page::Page;

/// A page of records.
pub(super) struct Listing<'a, T> {
    /// What the records are called.
    pub(super) plural: &'static str,
    /// Those of the page.
    pub(super) records: &'a [T],
    /// How many there are in all.
    pub(super) total: u64,
    /// Which page it is.
    pub(super) page: Page,
}

impl<T: Serialize> Serialize for Listing<'_, T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(5))?;
        map.serialize_entry("success", &true)?;
        map.serialize_entry(self.plural, self.records)?;
        map.serialize_entry("total", &self.total)?;
        map.serialize_entry("limit", &self.page.limit)?;
        map.serialize_entry("offset", &self.page.offset)?;
        map.end()
    }
}

impl<'a, T> Listing<'a, T> {
    /// A page of records that are all at hand.
    pub(super) fn of_all(plural: &'static str, all: &'a [T], page: Page) -> Self {
        let from = page.offset.min(all.len());
        let to = from.saturating_add(page.limit).min(all.len());
        Self {
            plural,
            records: &all[from..to],
            total: all.len() as u64,
            page,
        }
    }
}
