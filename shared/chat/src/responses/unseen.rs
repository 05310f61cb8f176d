//! What the edge cannot see of a call: where it stands, and why.

use crate::error::{BodyError, Scan};
use crate::key::{folded, letters};
use crate::scan::{Scanner, Value};
use crate::text::Text;
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

/// Why a key that decides is refused where it is repeated, or written in another way.
pub(super) const AMBIGUOUS: &str =
    "it must stand there once, in exactly this spelling, or parsers disagree about it";

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

/// The keys of an object that decide whether the edge sees all of it. One that parsers can read differently (a
/// look-alike such as `Type`, or a repetition) makes the object unseen, whatever it says: one parser would find `type`
/// there, another a reference to something stored.
#[derive(Debug)]
pub(super) struct DecidingKeys {
    /// At most eight.
    keys: &'static [&'static str],
    /// A bit for each key that was there.
    seen: u8,
    ambiguous: Option<&'static str>,
}

impl DecidingKeys {
    /// None of `keys` read yet.
    pub(super) const fn new(keys: &'static [&'static str]) -> Self {
        Self {
            keys,
            seen: 0,
            ambiguous: None,
        }
    }

    /// Reads a key of the object, and returns it as a careless parser reads it.
    pub(super) fn read<'a>(&mut self, key: Text<'a>) -> Scan<Cow<'a, str>> {
        let written = key.decode()?;
        let folded = match folded(Cow::Borrowed(&written)) {
            Cow::Borrowed(_) => None,
            Cow::Owned(folded) => Some(folded),
        };
        self.note(&written, folded.as_deref().unwrap_or(&written));
        Ok(folded.map_or(written, Cow::Owned))
    }

    fn note(&mut self, name: &str, folded: &str) {
        let mut keys = self.keys.iter().copied().enumerate();
        let Some((at, key)) = keys.find(|(_, key)| letters(key).eq(letters(folded))) else {
            return;
        };
        let is_first = self.seen & (1 << at) == 0;
        self.seen |= 1 << at;
        if key != name || !is_first {
            self.ambiguous = self.ambiguous.or(Some(key));
        }
    }

    /// The first key that parsers can read differently.
    pub(super) fn ambiguity(&self) -> Option<Unseen> {
        self.ambiguous.map(|key| Unseen::at(format!(".{key}"), AMBIGUOUS))
    }
}

/// A word of an object, under one of its [`DecidingKeys`].
#[derive(Debug, Default)]
pub(super) struct Word<'a> {
    word: Option<Cow<'a, str>>,
    is_there: bool,
}

impl<'a> Word<'a> {
    /// Reads the value at this position. One that is no string is no word.
    pub(super) fn read(&mut self, scanner: &mut Scanner<'a>) -> Scan {
        self.is_there = true;
        self.word = match scanner.value()? {
            Value::Text(text) => Some(text.decode()?),
            _ => None,
        };
        Ok(())
    }

    /// Whether the key is absent.
    pub(super) const fn is_absent(&self) -> bool {
        !self.is_there
    }

    /// The word, if it is one.
    pub(super) fn get(&self) -> Option<&str> {
        self.word.as_deref()
    }
}
