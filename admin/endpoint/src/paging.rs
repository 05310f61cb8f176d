//! Which part of a list a query asks for (decision D5): `limit`, and `offset` or `cursor`.
//!
//! A cursor is a position in one list, as URL-safe text, with a hash of the list, its filters, the account and the
//! mode, so that a cursor of another list is refused. The hash has no key: a caller who makes a cursor by hand gets
//! another position in a list of their own, which an offset would give as well.

use crate::problem::Problem;
use base64::Engine;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;
use sha2::{Digest, Sha256};
use std::collections::BTreeMap;
use store::page::{Page, Start};

/// Records on a page when the caller does not say.
pub const PAGE_DEFAULT: usize = 50;
/// Most records on a page.
pub const PAGE_MAX: usize = 200;
/// Most records that an offset leaves out: the store steps over each of them. A cursor goes on from any depth.
pub const OFFSET_MAX: usize = 10_000;
/// Longest cursor, in characters.
pub const CURSOR_MAX: usize = 512;
/// The parameters that say which part of a list.
pub const PAGING: [&str; 3] = ["limit", "offset", "cursor"];

/// The form of cursors.
const VERSION: u8 = 1;
/// Bytes of the hash that seals one.
const SEAL_BYTES: usize = 12;

/// Which part of a list.
#[derive(Debug, Clone)]
pub struct Paging {
    limit: usize,
    start: Started,
    list: ListId,
}

#[derive(Debug, Clone)]
enum Started {
    Offset(usize),
    After(String),
}

/// Identity of a list: a hash of its name, filters, account and mode.
#[derive(Debug, Clone)]
pub struct ListId(Sha256);

impl ListId {
    /// The identity of the list that these words name.
    pub fn of<'w>(words: impl IntoIterator<Item = &'w str>) -> Self {
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

    /// The cursor of a position.
    pub fn cursor(&self, position: &str) -> String {
        let mut bytes = vec![VERSION];
        bytes.extend(self.seal(position));
        bytes.extend(position.as_bytes());
        BASE64_URL_SAFE_NO_PAD.encode(bytes)
    }

    /// The position of a cursor; none when it is not one of this list.
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
    /// The part of `list` that a query asks for.
    ///
    /// # Errors
    /// 400 when a parameter is out of range, when there are both `cursor` and an `offset` above 0, or when `cursor` is
    /// not one of the list.
    pub fn of(query: &BTreeMap<String, String>, list: ListId) -> Result<Self, Problem> {
        let limit = number(query, "limit", PAGE_DEFAULT, 1..=PAGE_MAX).ok_or_else(|| {
            Problem::validation(format!("limit must be a whole number from 1 to {PAGE_MAX}."))
        })?;
        // Generated clients send an offset of 0 with every page.
        let offset = query.get("offset").filter(|offset| *offset != "0");
        let start = match (offset, query.get("cursor")) {
            (Some(_), Some(_)) => {
                let message = "cursor and offset both say where the page starts; give one of them.";
                return Err(Problem::validation(message));
            }
            (_, Some(cursor)) => {
                let position = list.position(cursor);
                Started::After(position.ok_or_else(Problem::other_list)?)
            }
            (_, None) => {
                let offset = number(query, "offset", 0, 0..=OFFSET_MAX);
                let message = || {
                    Problem::validation(format!(
                        "offset must be a whole number from 0 to {OFFSET_MAX}. The nextCursor of a page, given as cursor, goes on from any depth."
                    ))
                };
                Started::Offset(offset.ok_or_else(message)?)
            }
        };
        Ok(Self { limit, start, list })
    }

    /// The same from another position.
    #[must_use]
    pub fn after(mut self, position: String) -> Self {
        self.start = Started::After(position);
        self
    }

    /// The part of the list.
    pub fn page(&self) -> Page<'_> {
        let start = match &self.start {
            Started::Offset(offset) => Start::Offset(*offset),
            Started::After(position) => Start::After(position),
        };
        Page {
            limit: self.limit,
            start,
        }
    }

    /// Most records on the page.
    pub const fn limit(&self) -> usize {
        self.limit
    }

    /// How many records were left out by `offset`.
    pub const fn offset(&self) -> usize {
        match self.start {
            Started::Offset(offset) => offset,
            Started::After(_) => 0,
        }
    }

    /// The cursor of the position behind the page.
    pub fn cursor(&self, position: Option<&str>) -> Option<String> {
        position.map(|position| self.list.cursor(position))
    }
}

/// A number of a query within a range; none when it is out of it.
fn number(
    query: &BTreeMap<String, String>,
    name: &str,
    default: usize,
    range: std::ops::RangeInclusive<usize>,
) -> Option<usize> {
    let Some(text) = query.get(name) else {
        return Some(default);
    };
    let digits = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let number = text.parse().ok();
    number.filter(|number| digits && range.contains(number))
}

#[cfg(test)]
mod tests;
