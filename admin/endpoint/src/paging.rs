//! The part of a list that a query requests (decision D5): `limit`, and `offset` or `cursor`.
//!
//! A cursor is a position in one list, as URL-safe text, with a hash of the list, its filters, the account and the
//! mode, so that a cursor of another list is refused. The hash has no key: with an invented cursor a caller only gets
//! another position in its own list, as with an offset.

use super::query::QueryParams;
use crate::problem::Problem;
use crate::whole_number;
use base64::Engine;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;
use sha2::{Digest, Sha256};
use store::page::{PageRequest, PageStart};

/// Records on a page when the caller does not say.
pub const PAGE_DEFAULT: usize = 50;
/// Maximum number of records on a page.
pub const PAGE_MAX: usize = 200;
/// Maximum number of records that an offset skips, since the store steps over each of them. A cursor continues at any
/// depth.
pub const OFFSET_MAX: usize = 10_000;
/// Longest cursor, in characters.
pub const CURSOR_MAX: usize = 512;
/// The parameters that select the part of a list.
pub const PAGING: [&str; 3] = ["limit", "offset", "cursor"];

/// The form of cursors.
const VERSION: u8 = 1;
/// Bytes of the hash in a cursor.
const SEAL_BYTES: usize = 12;

/// A requested part of a list.
#[derive(Debug, Clone)]
pub struct Paging {
    /// Name of the field of records.
    pub(super) plural: &'static str,
    limit: usize,
    start: PagingStart,
    list: ListId,
}

#[derive(Debug, Clone)]
enum PagingStart {
    Offset(usize),
    After(String),
}

/// Identity of a list: a hash of its name, filters, account and mode.
#[derive(Debug, Clone)]
pub struct ListId(Sha256);

impl ListId {
    /// Creates the identity of the list that these words name.
    pub fn new<'w>(words: impl IntoIterator<Item = &'w str>) -> Self {
        let mut hash = Sha256::new();
        for word in words {
            hash.update(word.len().to_be_bytes());
            hash.update(word);
        }
        Self(hash)
    }

    fn seal(&self, position: &str) -> [u8; SEAL_BYTES] {
        let mut hash = self.0.clone();
        hash.update(position);
        let mut seal = [0; SEAL_BYTES];
        for (to, from) in seal.iter_mut().zip(hash.finalize()) {
            *to = from;
        }
        seal
    }

    /// Returns the cursor of a position.
    pub fn cursor(&self, position: &str) -> String {
        let mut bytes = vec![VERSION];
        bytes.extend(self.seal(position));
        bytes.extend(position.as_bytes());
        BASE64_URL_SAFE_NO_PAD.encode(bytes)
    }

    /// Returns the position of a cursor; `None` if it does not belong to this list.
    fn position(&self, cursor: &str) -> Option<String> {
        if cursor.len() > CURSOR_MAX {
            return None;
        }
        let bytes = BASE64_URL_SAFE_NO_PAD.decode(cursor).ok()?;
        let (version, rest) = bytes.split_first()?;
        let (seal, position) = rest.split_at_checked(SEAL_BYTES)?;
        let position = std::str::from_utf8(position).ok()?;
        let fits = *version == VERSION && seal == self.seal(position);
        fits.then(|| position.to_owned())
    }
}

impl Paging {
    /// Returns the part of `list` that a query requests.
    ///
    /// # Errors
    /// 400 when a parameter is out of range, when there are both `cursor` and an `offset` above 0, or when `cursor` is
    /// not one of the list.
    pub fn from_query(query: &QueryParams, plural: &'static str, list: ListId) -> Result<Self, Problem> {
        let limit = number(query, "limit", PAGE_DEFAULT, 1..=PAGE_MAX).ok_or_else(|| {
            Problem::validation(format!("limit must be a whole number from 1 to {PAGE_MAX}."))
        })?;
        let start = match (has_offset(query), query.get("cursor")) {
            (true, Some(_)) => {
                let message = "cursor and offset both say where the page starts; give one of them.";
                return Err(Problem::validation(message));
            }
            (_, Some(cursor)) => {
                let position = list.position(cursor);
                PagingStart::After(position.ok_or_else(Problem::other_list)?)
            }
            (_, None) => {
                let offset = number(query, "offset", 0, 0..=OFFSET_MAX);
                let message = || {
                    Problem::validation(format!(
                        "offset must be a whole number from 0 to {OFFSET_MAX}. The nextCursor of a page, given as cursor, goes on from any depth."
                    ))
                };
                PagingStart::Offset(offset.ok_or_else(message)?)
            }
        };
        Ok(Self {
            plural,
            limit,
            start,
            list,
        })
    }

    /// Sets the position after which the page starts.
    #[must_use]
    pub fn after(mut self, position: String) -> Self {
        self.start = PagingStart::After(position);
        self
    }

    /// Returns the part of the list.
    pub fn page(&self) -> PageRequest<'_> {
        let start = match &self.start {
            PagingStart::Offset(offset) => PageStart::Offset(*offset),
            PagingStart::After(position) => PageStart::After(position),
        };
        PageRequest {
            limit: self.limit,
            start,
        }
    }

    /// Returns the maximum number of records on the page.
    pub const fn limit(&self) -> usize {
        self.limit
    }

    /// Returns the number of records that `offset` skips.
    pub const fn offset(&self) -> usize {
        match self.start {
            PagingStart::Offset(offset) => offset,
            PagingStart::After(_) => 0,
        }
    }

    /// Returns the cursor of the position after the page.
    pub fn cursor(&self, position: Option<&str>) -> Option<String> {
        position.map(|position| self.list.cursor(position))
    }
}

/// Returns whether a query has an offset. Generated clients send one of 0 with every page.
pub fn has_offset(query: &QueryParams) -> bool {
    query.get("offset").is_some_and(|offset| offset != "0")
}

/// Parses a number of a query; `None` if it is out of range.
fn number(
    query: &QueryParams,
    name: &str,
    default: usize,
    range: std::ops::RangeInclusive<usize>,
) -> Option<usize> {
    let Some(text) = query.get(name) else {
        return Some(default);
    };
    whole_number(text).filter(|number| range.contains(number))
}

#[cfg(test)]
mod tests;
