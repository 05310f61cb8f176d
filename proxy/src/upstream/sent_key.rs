//! Removal of the sent key from a provider's answer, whatever the key's prefix: keys without the prefix `sk-` cannot be
//! recognized by their form. An error may repeat parts of the key; in any other answer only the whole key is searched
//! for, since no answer needs it.

use super::redact::{self, REPLACEMENT, key_length};
use http::HeaderMap;
use memchr::memmem::Finder;
use std::collections::HashSet;

/// Shortest part of the key that is removed, in bytes. A shorter key is removed as a whole.
const FRAGMENT: usize = 12;
/// Shortest key that is searched for: a shorter one occurs in ordinary words.
const KEY_MIN: usize = 8;
/// Bits of the filter, one for each pair of bytes.
const PAIRS: usize = 1 << 16;

/// Redacts the whole key in the head of an answer that is read as a stream.
pub fn redact_head(headers: &mut HeaderMap, key: &str) {
    if let Some(whole) = whole_key(key)
        && is_in_head(&whole, headers)
    {
        redact::headers_with(headers, &|text| without_whole(&whole, text));
    }
}

/// Returns the search for the whole key; `None` for a key that is too short.
pub(super) fn whole_key(key: &str) -> Option<Finder<'_>> {
    (key.len() >= KEY_MIN).then(|| Finder::new(key))
}

pub(super) fn is_in_head(key: &Finder<'_>, headers: &HeaderMap) -> bool {
    headers.values().any(|value| key.find(value.as_bytes()).is_some())
}

/// Replaces every occurrence of the key; `None` if there is none.
pub(super) fn without_whole(key: &Finder<'_>, text: &[u8]) -> Option<Vec<u8>> {
    let mut clean = Vec::new();
    let mut copied = 0;
    for at in key.find_iter(text) {
        clean.extend_from_slice(&text[copied..at]);
        clean.extend_from_slice(REPLACEMENT);
        copied = at + key.needle().len();
    }
    (copied > 0).then(|| {
        clean.extend_from_slice(&text[copied..]);
        clean
    })
}

/// The key as it is searched for in errors: in a whole answer, and in each event of a stream that may be one.
pub struct SentKey(Option<Fragments>);

impl SentKey {
    /// Prepares the search. That costs as much as searching some kilobytes, so it is done once for a stream.
    pub fn new(key: &str) -> Self {
        Self(Fragments::new(key))
    }

    /// Redacts an uncompressed text, both by the form of keys and for the key; `None` if it contains no fragment.
    pub fn redact(&self, text: &[u8]) -> Option<Vec<u8>> {
        match &self.0 {
            Some(fragments) => fragments.without(text),
            None => redact::without_fragments(text),
        }
    }
}

/// All parts of the key of length [`FRAGMENT`], and those of its form in JSON.
struct Fragments {
    length: usize,
    parts: HashSet<Vec<u8>>,
    /// Bit set: whether a part starts with a given pair of bytes.
    starts: Vec<u64>,
}

impl Fragments {
    /// Creates the parts of a key; `None` for a key that is too short.
    fn new(key: &str) -> Option<Self> {
        let length = key.len().min(FRAGMENT);
        if length < KEY_MIN {
            return None;
        }
        let in_json = key.replace('/', r"\/");
        let windows = [key, &in_json].map(|form| form.as_bytes().windows(length));
        let parts: HashSet<Vec<u8>> = windows.into_iter().flatten().map(<[u8]>::to_vec).collect();
        let mut starts = vec![0; PAIRS / 64];
        for part in &parts {
            let pair = pair(part);
            starts[pair / 64] |= 1 << (pair % 64);
        }
        Some(Self {
            length,
            parts,
            starts,
        })
    }

    fn is_part(&self, window: &[u8]) -> bool {
        let pair = pair(window);
        self.starts[pair / 64] >> (pair % 64) & 1 == 1 && self.parts.contains(window)
    }

    /// Replaces every run of fragments together with the key characters after it, such as the rest of a masked key;
    /// `None` if there is none. First applies the rule for `sk-`. One pass over the text.
    fn without(&self, text: &[u8]) -> Option<Vec<u8>> {
        let by_form = redact::without_fragments(text);
        let plain = redact::unescaped(by_form.as_deref().unwrap_or(text));
        let text = plain.as_ref();
        let mut clean = Vec::new();
        let (mut copied, mut at) = (0, 0);
        while let Some(window) = text.get(at..at + self.length) {
            if !self.is_part(window) {
                at += 1;
                continue;
            }
            clean.extend_from_slice(&text[copied..at]);
            clean.extend_from_slice(REPLACEMENT);
            at = self.end_of_run(text, at);
            copied = at;
        }
        match copied {
            0 => by_form,
            _ => {
                clean.extend_from_slice(&text[copied..]);
                Some(clean)
            }
        }
    }

    /// Returns the end of the overlapping fragments that start at `at`, including the key characters after them.
    fn end_of_run(&self, text: &[u8], at: usize) -> usize {
        let mut last = at;
        let mut next = at + 1;
        while next <= last + self.length {
            match text.get(next..next + self.length) {
                Some(window) if self.is_part(window) => last = next,
                Some(_) => {}
                None => break,
            }
            next += 1;
        }
        let end = last + self.length;
        end + key_length(&text[end..])
    }
}

/// Returns the first two bytes as a number; every window has at least eight bytes.
fn pair(window: &[u8]) -> usize {
    window
        .first_chunk()
        .map_or(0, |pair| usize::from(u16::from_be_bytes(*pair)))
}

#[cfg(test)]
mod tests {
    use super::*;

    const KEY: &str = "gsk_Zk3vB8qLr1Tn6XwY0pAe";

    fn without(key: &str, text: &str) -> String {
        let clean = Fragments::new(key).and_then(|fragments| fragments.without(text.as_bytes()));
        clean.map_or_else(|| text.to_owned(), |clean| String::from_utf8(clean).unwrap())
    }

    #[test]
    fn the_key_and_its_long_parts_are_removed() {
        for (text, clean) in [
            ("no key here", "no key here"),
            (
                "Invalid key gsk_Zk3vB8qLr1Tn6XwY0pAe, see",
                "Invalid key [redacted], see",
            ),
            (r#"{"m":"gsk_Zk3vB8qLr1Tn6XwY0pAe"}"#, r#"{"m":"[redacted]"}"#),
            // Masked, cut at either end, repeated, and after an escape.
            ("gsk_Zk3vB8qL****0pAe.", "[redacted]"),
            ("…gsk_Zk3vB8qL…0pAe”", "…[redacted]”"),
            ("xB8qLr1Tn6XwY0pAe", "x[redacted]"),
            ("(r1Tn6XwY0pAe) gsk_Zk3vB8qL", "([redacted]) [redacted]"),
            (
                r#"{"m":"gsk\u005fZk3vB8qLr1Tn6XwY0pAe"}"#,
                r#"{"m":"[redacted]"}"#,
            ),
            // Parts shorter than the minimum stay, and so do words of other keys.
            ("gsk_Zk3vB8q", "gsk_Zk3vB8q"),
            ("gsk_another_key", "gsk_another_key"),
            // The rule for `sk-` applies as well.
            (
                "sk-other and gsk_Zk3vB8qLr1Tn6XwY0pAe",
                "[redacted] and [redacted]",
            ),
            ("sk-other only", "[redacted] only"),
        ] {
            assert_eq!(without(KEY, text), clean, "{text}");
        }
    }

    #[test]
    fn a_short_key_is_removed_as_a_whole_and_a_shorter_one_not_at_all() {
        assert_eq!(
            without("12345678", "a 12345678, b 1234567"),
            "a [redacted], b 1234567"
        );
        assert_eq!(without("1234567", "1234567"), "1234567");
        assert_eq!(without("123456789012", "x 123456789012"), "x [redacted]");
    }

    #[test]
    fn the_head_of_a_stream_loses_the_whole_key() {
        let mut head = HeaderMap::new();
        head.insert("x-key", http::HeaderValue::from_static(KEY));
        redact_head(&mut head, KEY);
        assert_eq!(head["x-key"], "[redacted]");
    }

    #[test]
    fn a_slash_may_be_escaped() {
        let key = "AbCd/EfGh+IjKl/MnOp==";
        assert_eq!(without(key, r#""AbCd\/EfGh+IjKl\/MnOp==""#), r#""[redacted]""#);
        assert_eq!(without(key, "AbCd/EfGh+IjKl/MnOp==;"), "[redacted];");
    }
}
