//! Removal of the sent key from a provider's answer, whatever the key's prefix: keys without the prefix `sk-` cannot be
//! recognized by their form. An error may repeat parts of the key; in any other answer only the whole key is searched
//! for, since no answer needs it.

use super::redact::{self, REPLACEMENT, key_length};
use http::HeaderMap;
use memchr::{memchr_iter, memmem};
use std::collections::HashSet;

/// Shortest part of the key that is removed, in bytes. A shorter key is removed as a whole.
const FRAGMENT: usize = 12;
/// Shortest key that is searched for: a shorter one occurs in ordinary words.
const KEY_MIN: usize = 8;
/// Longest text that is searched without the library's search for a text: that takes as long to prepare as searching
/// some kilobytes, and an answer is searched once.
const SHORT_TEXT: usize = 4 << 10;
/// Bits of the filter, one for each pair of bytes.
const PAIRS: usize = 1 << 16;

/// Redacts the whole key in the head of an answer that is read as a stream.
pub fn redact_head(headers: &mut HeaderMap, key: &str) {
    if let Some(whole) = WholeKey::new(key)
        && whole.is_in_head(headers)
    {
        redact::headers_with(headers, &|text| whole.without(text));
    }
}

/// The search for the whole key.
pub(super) struct WholeKey<'a> {
    key: &'a [u8],
    /// Offset of a character of the key that is rare in other texts: of the last one that is no small letter.
    rare: usize,
}

impl<'a> WholeKey<'a> {
    /// Creates the search; `None` for a key that is too short.
    pub(super) fn new(key: &'a str) -> Option<Self> {
        let key = key.as_bytes();
        let last = key.len().checked_sub(1).filter(|_| key.len() >= KEY_MIN)?;
        let rare = key.iter().rposition(|byte| !byte.is_ascii_lowercase());
        let rare = rare.unwrap_or(last);
        Some(Self { key, rare })
    }

    /// Returns the first place of the key in a text.
    pub(super) fn find(&self, text: &[u8]) -> Option<usize> {
        match text.len() {
            length if length < self.key.len() => return None,
            ..=SHORT_TEXT => {}
            _ => return memmem::find(text, self.key),
        }
        let mut starts = memchr_iter(self.key[self.rare], text).filter_map(|at| at.checked_sub(self.rare));
        starts.find(|start| text[*start..].starts_with(self.key))
    }

    pub(super) fn is_in_head(&self, headers: &HeaderMap) -> bool {
        headers
            .values()
            .any(|value| self.find(value.as_bytes()).is_some())
    }

    /// Replaces every occurrence of the key; `None` if there is none. The search is prepared once: a long text can have
    /// the key a million times.
    pub(super) fn without(&self, text: &[u8]) -> Option<Vec<u8>> {
        let mut clean = Vec::new();
        let mut copied = 0;
        for at in memmem::find_iter(text, self.key) {
            clean.extend_from_slice(&text[copied..at]);
            clean.extend_from_slice(REPLACEMENT);
            copied = at + self.key.len();
        }
        (copied > 0).then(|| {
            clean.extend_from_slice(&text[copied..]);
            clean
        })
    }
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
    fn the_whole_key_is_found_wherever_it_is_in_short_and_long_texts() {
        for key in [KEY, "gsk_zk3vb8qlr1tn", "abcabcabX", "AAAAAAAA", "12345678"] {
            let whole = WholeKey::new(key).unwrap();
            for length in [0, 3, SHORT_TEXT] {
                // The beginning and the end of a key, which are no key.
                let (near, far) = (&key[..key.len() - 1], &key[1..]);
                let other = [near, " ", far, ";", &" ".repeat(length)].concat();
                assert_eq!(whole.find(other.as_bytes()), None, "{key} {length}");
                let text = [&other, key, key, near].concat();
                assert_eq!(whole.find(text.as_bytes()), Some(other.len()), "{key} {length}");
                let clean = [&other, "[redacted][redacted]", near].concat();
                assert_eq!(
                    whole.without(text.as_bytes()),
                    Some(clean.into_bytes()),
                    "{key} {length}"
                );
            }
            assert_eq!(whole.find(key.as_bytes()), Some(0));
            assert_eq!((whole.find(b""), whole.find(&key.as_bytes()[1..])), (None, None));
        }
        assert!(WholeKey::new("1234567").is_none() && WholeKey::new("").is_none());
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
