//! Fields of a call whose cost the edge cannot determine: their paths, why they are refused, and what to send instead.

use crate::error::{BodyError, Scan};
use crate::key::{folded, letters};
use crate::scan::{BodyValue, Scanner};
use crate::text::Text;
use std::borrow::Cow;

/// Why a reference to stored state is refused, and `$instead`.
macro_rules! stored {
    ($instead:literal) => {
        concat!(
            "it brings in what the provider keeps, and how much that is cannot be seen here: ",
            $instead
        )
    };
}

/// Why earlier calls that the provider keeps are refused.
pub(super) const STORED_CALLS: &str = stored!("send the earlier items in `input`");
/// Why a prompt that the provider keeps is refused.
pub(super) const STORED_PROMPT: &str = stored!("send its text in `instructions` and `input`");
/// Why a reference to an item is refused.
pub(super) const STORED_ITEM: &str = stored!("send the item itself");
/// Why a reference to a file or an image is refused.
pub(super) const STORED_DATA: &str = stored!("send the data itself");
/// Why a tool of the provider is refused.
pub(super) const HOSTED: &str =
    "only tools that the caller runs are: what the provider runs cannot be seen here";
/// Why a shell is refused that the provider runs, or that has no `environment`.
pub(super) const HOSTED_SHELL: &str =
    "the provider would run the shell, which cannot be seen here: set it to `{\"type\":\"local\"}`";
/// Why a search of tools is refused that the provider runs, or that has no `execution`.
pub(super) const HOSTED_SEARCH: &str =
    "the provider would search the tools, which cannot be seen here: set it to `client`";
/// Why work in the background is refused.
pub(super) const LATER: &str =
    "the answer would be fetched later, and its usage cannot be seen here: leave it out or set it to false";
/// Why other unbounded work is refused.
pub(super) const UNBOUNDED: &str =
    "the provider would work beside the answer, and how much cannot be seen here: leave it out";
/// Why an item or part of an unknown type is refused.
pub(super) const UNKNOWN: &str = "what an element of this type costs is not known here: leave it out";

/// Why a deciding key is refused if it is repeated or misspelled.
pub(super) const AMBIGUOUS: &str =
    "it must stand there once, in exactly this spelling, or parsers disagree about it";

/// A field whose cost the edge cannot determine.
#[derive(Debug)]
pub(crate) struct Unseen {
    path: Cow<'static, str>,
    why: &'static str,
}

impl Unseen {
    /// Creates the finding at `path`, such as `.type`, relative to the element that is being read.
    pub(super) fn at(path: impl Into<String>, why: &'static str) -> Self {
        Self {
            path: Cow::Owned(path.into()),
            why,
        }
    }

    /// Returns the same finding with `outer` before its path.
    pub(crate) fn within(self, outer: &str) -> Self {
        Self::at(format!("{outer}{}", self.path), self.why)
    }

    pub(crate) fn into_error(self) -> BodyError {
        BodyError::UnsupportedField {
            field: self.path.into_owned(),
            why: self.why,
        }
    }
}

/// The keys of an object that decide whether it is accepted. An object with a key that parsers could read differently
/// (a look-alike such as `Type`, or a repetition) is refused, whatever its value: one parser would find `type` there,
/// another a reference to something stored.
#[derive(Debug)]
pub(super) struct DecidingKeys {
    /// At most eight.
    keys: &'static [&'static str],
    /// Bit set of the keys that occurred.
    seen: u8,
    ambiguous: Option<&'static str>,
}

impl DecidingKeys {
    /// Creates the state before the first key.
    pub(super) const fn new(keys: &'static [&'static str]) -> Self {
        Self {
            keys,
            seen: 0,
            ambiguous: None,
        }
    }

    /// Reads a key of the object, and returns it as a lenient parser reads it.
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

    /// Returns the first key that parsers could read differently.
    pub(super) fn ambiguity(&self) -> Option<Unseen> {
        self.ambiguous.map(|key| Unseen::at(format!(".{key}"), AMBIGUOUS))
    }
}

/// A string value of one of the [`DecidingKeys`].
#[derive(Debug, Default)]
pub(super) struct Word<'a> {
    word: Option<Cow<'a, str>>,
    is_there: bool,
}

impl<'a> Word<'a> {
    /// Reads the value at this position. A value that is not a string counts as no word.
    pub(super) fn read(&mut self, scanner: &mut Scanner<'a>) -> Scan {
        self.is_there = true;
        self.word = match scanner.value()? {
            BodyValue::Text(text) => Some(text.decode()?),
            _ => None,
        };
        Ok(())
    }

    /// Returns whether the key is absent.
    pub(super) const fn is_absent(&self) -> bool {
        !self.is_there
    }

    /// Returns the word, if the value is one.
    pub(super) fn get(&self) -> Option<&str> {
        self.word.as_deref()
    }
}
