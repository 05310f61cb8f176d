//! What the edge cannot see of a call: where it stands, and why.

use crate::error::{BodyError, Scan};
use crate::scan::{Scanner, Value};
use std::borrow::Cow;

/// Why a reference to stored state is refused.
pub(super) const STORED: &str =
    "it brings in what the provider keeps, and how much that is cannot be seen here";
/// Why a tool of the provider is refused.
pub(super) const HOSTED: &str =
    "only tools that the caller runs are: what the provider runs cannot be seen here";
/// Why work in the background is refused.
pub(super) const LATER: &str = "the answer would be fetched later, and its usage cannot be seen here";
/// Why work beside the answer is refused.
pub(super) const UNBOUNDED: &str =
    "the provider would work beside the answer, and how much cannot be seen here";
/// Why an item or part of an unknown type is refused.
pub(super) const UNKNOWN: &str = "what an element of this type costs is not known here";

/// Something that the edge cannot see.
#[derive(Debug)]
pub(super) struct Unseen {
    place: Cow<'static, str>,
    why: &'static str,
}

impl Unseen {
    /// At `place`, such as `.type`, within what the caller of this function reads.
    pub(super) fn at(place: impl Into<String>, why: &'static str) -> Self {
        Self {
            place: Cow::Owned(place.into()),
            why,
        }
    }

    /// The same, seen from outside: `outer` stands before the place.
    pub(super) fn within(self, outer: &str) -> Self {
        Self::at(format!("{outer}{}", self.place), self.why)
    }

    /// The refusal of the body.
    pub(super) fn into_error(self) -> BodyError {
        BodyError::UnsupportedField {
            field: self.place.into_owned(),
            why: self.why,
        }
    }
}

/// A word that an object must have exactly once: parsers disagree about which of two counts.
#[derive(Debug, Default)]
pub(super) struct Word<'a> {
    word: Option<Cow<'a, str>>,
    times: usize,
}

impl<'a> Word<'a> {
    /// Reads the value at this position. One that is no string is no word.
    pub(super) fn read(&mut self, scanner: &mut Scanner<'a>) -> Scan {
        self.times += 1;
        self.word = match scanner.value()? {
            Value::Text(text) => Some(text.decode()?),
            _ => None,
        };
        Ok(())
    }

    /// Whether the key is absent.
    pub(super) const fn is_absent(&self) -> bool {
        self.times == 0
    }

    /// The word, if it stands there once.
    pub(super) fn get(&self) -> Option<&str> {
        self.word.as_deref().filter(|_| self.times == 1)
    }
}
