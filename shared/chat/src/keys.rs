//! The keys of one object, checked for keys that different parsers read differently.

use super::error::BodyError;
use super::key::{folded, letters, quotable};
use super::{KEY_BYTES_MAX, KEYS_MAX};
use std::borrow::Cow;

/// Keys that there is room for from the first one on: more than most bodies have.
const USUAL_KEYS: usize = 8;

/// The keys of one object so far, and their first ambiguity.
#[derive(Debug)]
pub(super) struct Keys<'a> {
    /// Keys whose value decides something. A key that a lenient parser could take for one of them is refused.
    decisive: &'static [&'static str],
    /// The keys so far, unescaped.
    seen: Vec<Cow<'a, str>>,
    ambiguous: Option<BodyError>,
}

impl<'a> Keys<'a> {
    /// Creates the state before the first key.
    pub(super) const fn new(decisive: &'static [&'static str]) -> Self {
        Self {
            decisive,
            seen: Vec::new(),
            ambiguous: None,
        }
    }

    /// Records a key and its ambiguity.
    pub(super) fn remember(&mut self, name: Cow<'a, str>) {
        if self.ambiguous.is_some() {
            return;
        }
        if self.seen.is_empty() {
            self.seen = Vec::with_capacity(USUAL_KEYS);
        }
        self.ambiguous = if name.len() > KEY_BYTES_MAX {
            Some(BodyError::KeyTooLong { key: quotable(&name) })
        } else if self.seen.contains(&name) {
            Some(BodyError::DuplicateKey { key: quotable(&name) })
        } else if self.seen.len() == KEYS_MAX {
            Some(BodyError::TooManyKeys)
        } else {
            near(&name, self.decisive).map(|wanted| BodyError::NearKey {
                key: quotable(&name),
                wanted,
            })
        };
        self.seen.push(name);
    }

    /// Returns the first ambiguity.
    pub(super) const fn ambiguity(&self) -> Option<&BodyError> {
        self.ambiguous.as_ref()
    }
}

/// Returns the key of `decisive` for which `name` could be mistaken although it differs: by a parser that ignores case,
/// or one that also accepts `maxTokens` or `max-tokens` for `max_tokens`, as Protocol Buffers and some Java libraries
/// do.
pub(super) fn near(name: &str, decisive: &[&'static str]) -> Option<&'static str> {
    // True for most keys of most bodies. No two keys of `decisive` resemble each other.
    if decisive.contains(&name) {
        return None;
    }
    let folded = folded(Cow::Borrowed(name));
    let mut decisive = decisive.iter().copied();
    decisive.find(|key| letters(key).eq(letters(&folded)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{embeddings, fields, responses, stream_options};

    #[test]
    fn no_two_decisive_keys_are_alike() {
        let lists = [
            fields::DECISIVE,
            fields::DECISIVE_IN_STREAMS,
            responses::DECISIVE,
            embeddings::DECISIVE,
            stream_options::DECISIVE,
        ];
        for list in lists {
            for (at, key) in list.iter().enumerate() {
                let mut others = list[..at].iter();
                assert!(!others.any(|other| letters(key).eq(letters(other))), "{key}");
                assert_eq!(near(key, list), None);
                assert_eq!(near(&key.to_uppercase(), list), Some(*key));
            }
        }
    }
}
