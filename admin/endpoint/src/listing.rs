//! The common form of all lists: `{ success, <plural>: […], total, limit, offset, nextCursor }` (decision D5).

use crate::Paging;
use serde::ser::{Serialize, SerializeMap, Serializer};
use store::page::Page;

/// A page of records.
pub struct Listing<'a, T> {
    /// Records of the page.
    records: Vec<T>,
    /// Total number of records.
    total: u64,
    /// Requested page.
    paging: &'a Paging,
    /// Cursor of the next page.
    next: Option<String>,
    /// For a list that is searched page by page: whether some records were not searched.
    partial: Option<bool>,
}

impl<T: Serialize> Serialize for Listing<'_, T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("success", &true)?;
        map.serialize_entry(self.paging.plural, &self.records)?;
        map.serialize_entry("total", &self.total)?;
        map.serialize_entry("limit", &self.paging.limit())?;
        map.serialize_entry("offset", &self.paging.offset())?;
        map.serialize_entry("nextCursor", &self.next)?;
        if let Some(partial) = self.partial {
            map.serialize_entry("partial", &partial)?;
        }
        map.end()
    }
}

impl Paging {
    /// Returns the page that the store returned as `part`, with each record in the form of `view`.
    pub fn listing<'a, T, U>(&'a self, part: &'a Page<U>, view: impl FnMut(&'a U) -> T) -> Listing<'a, T> {
        self.listing_of(part, part.records.iter().map(view).collect())
    }

    /// Returns the page that the store returned as `part`, with its records in the form of `records`.
    pub fn listing_of<T, U>(&self, part: &Page<U>, records: Vec<T>) -> Listing<'_, T> {
        Listing {
            records,
            total: part.total,
            next: self.cursor(part.next.as_deref()),
            paging: self,
            partial: None,
        }
    }
}

impl<T> Listing<'_, T> {
    /// Sets `partial`, if it is known.
    pub fn partial(self, partial: Option<bool>) -> Self {
        Self { partial, ..self }
    }
}
