//! Removal of the sent key from a provider's answer, whatever the key's prefix: keys without the prefix `sk-` cannot be
//! recognized by their form. An error may repeat parts of the key; in any other answer only the whole key is searched
//! for, since no answer needs it.

use super::exchange::WholeAnswer;
use super::redact::{self, REPLACEMENT, Redacted, key_length};
use http::HeaderMap;
use http::header::{CONTENT_ENCODING, CONTENT_LENGTH};
use memchr::memmem::Finder;
use std::collections::HashSet;

/// Shortest part of the key that is removed, in bytes. A shorter key is removed as a whole.
const FRAGMENT: usize = 12;
/// Shortest key that is searched for: a shorter one occurs in ordinary words.
const KEY_MIN: usize = 8;
/// Bits of the filter, one for each pair of bytes.
const PAIRS: usize = 1 << 16;

/// Redacts all parts of the key in an error, and the whole key in any other answer. A body that cannot be decoded
/// stays: of an error the reply replaces all of it.
pub fn redact(answer: &mut WholeAnswer, key: &str) {
    if answer.is_error {
        if let Some(fragments) = Fragments::new(key) {
            redact_with(answer, &|text| fragments.without(text));
        }
    } else if let Some(whole) = whole_key(key) {
        // A search is a fraction of a copy, which only a compressed body, or an answer that has the key, needs.
        let is_compressed = answer.headers.contains_key(CONTENT_ENCODING);
        if is_compressed || is_in_head(&whole, &answer.headers) || whole.find(&answer.body).is_some() {
            redact_with(answer, &|text| without_whole(&whole, text));
        }
    }
}

/// Redacts the whole key in the head of an answer that is read as a stream.
pub fn redact_head(headers: &mut HeaderMap, key: &str) {
    if let Some(whole) = whole_key(key)
        && is_in_head(&whole, headers)
    {
        redact::headers_with(headers, &|text| without_whole(&whole, text));
    }
}

/// Returns the search for the whole key; `None` for a key that is too short.
fn whole_key(key: &str) -> Option<Finder<'_>> {
    (key.len() >= KEY_MIN).then(|| Finder::new(key))
}

fn is_in_head(key: &Finder<'_>, headers: &HeaderMap) -> bool {
    headers.values().any(|value| key.find(value.as_bytes()).is_some())
}

/// Replaces every occurrence of the key; `None` if there is none.
fn without_whole(key: &Finder<'_>, text: &[u8]) -> Option<Vec<u8>> {
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

fn redact_with(answer: &mut WholeAnswer, clean: &dyn Fn(&[u8]) -> Option<Vec<u8>>) {
    redact::headers_with(&mut answer.headers, clean);
    if let Redacted::Changed(body) = redact::body_with(&answer.body, &answer.headers, clean) {
        answer.body = body;
        answer.headers.remove(CONTENT_ENCODING);
        answer.headers.remove(CONTENT_LENGTH);
    }
}

/// The key of a stream, which is searched for in each of its events that may be an error.
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
    use bytes::Bytes;
    use flate2::Compression;
    use flate2::write::GzEncoder;
    use http::{HeaderMap, HeaderValue, StatusCode};
    use std::io::Write as _;

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

    /// OpenRouter reports an error in a choice. An answer that is no error loses the whole key only.
    #[test]
    fn no_answer_has_the_whole_key() {
        let part = &KEY[..12];
        for (status, body, is_error) in [
            (
                200,
                r#"{"choices":[{"error":{"message":"KEY"},"message":{}}]}"#,
                true,
            ),
            (
                200,
                r#"{"choices":[{"error":null,"message":{"content":"KEY and KEY"}}]}"#,
                false,
            ),
            (200, r#"{"detail":"KEY"}"#, false),
            (201, "<p>KEY</p>", false),
        ] {
            let echo = body.replace("KEY", KEY);
            let mut plain = answer(
                status,
                &[("x-debug-auth", "Bearer gsk_Zk3vB8qLr1Tn6XwY0pAe")],
                echo.clone().into(),
            );
            assert_eq!(plain.is_error, is_error, "{body}");
            redact(&mut plain, KEY);
            assert_eq!(plain.headers["x-debug-auth"], "Bearer [redacted]");
            assert_eq!(plain.body, body.replace("KEY", "[redacted]"));
            let mut packed = answer(status, &[("content-encoding", "gzip")], gzip(&echo));
            redact(&mut packed, KEY);
            assert_eq!(packed.body, body.replace("KEY", "[redacted]"));
            assert!(!packed.headers.contains_key(CONTENT_ENCODING));
            let parts = body.replace("KEY", part);
            let mut with_part = answer(status, &[], parts.clone().into());
            redact(&mut with_part, KEY);
            assert_eq!(with_part.body == parts, !is_error, "{parts}");
        }
        let mut head = answer(200, &[("x-key", "gsk_Zk3vB8qLr1Tn6XwY0pAe")], Vec::new()).headers;
        redact_head(&mut head, KEY);
        assert_eq!(head["x-key"], "[redacted]");
    }

    #[test]
    fn a_slash_may_be_escaped() {
        let key = "AbCd/EfGh+IjKl/MnOp==";
        assert_eq!(without(key, r#""AbCd\/EfGh+IjKl\/MnOp==""#), r#""[redacted]""#);
        assert_eq!(without(key, "AbCd/EfGh+IjKl/MnOp==;"), "[redacted];");
    }

    fn gzip(text: &str) -> Vec<u8> {
        let mut gzip = GzEncoder::new(Vec::new(), Compression::fast());
        gzip.write_all(text.as_bytes()).unwrap();
        gzip.finish().unwrap()
    }

    fn answer(status: u16, headers: &[(&'static str, &'static str)], body: Vec<u8>) -> WholeAnswer {
        let headers = headers.iter().map(|(name, value)| {
            (
                http::HeaderName::from_static(name),
                HeaderValue::from_static(value),
            )
        });
        let (status, headers) = (
            StatusCode::from_u16(status).unwrap(),
            headers.collect::<HeaderMap>(),
        );
        WholeAnswer {
            is_error: redact::is_error(status, &headers, &body),
            status,
            headers,
            body: Bytes::from(body),
        }
    }

    #[test]
    fn headers_and_compressed_bodies_of_errors_are_searched() {
        let packed = gzip(KEY);
        let headers = [
            ("x-debug", KEY),
            ("content-encoding", "gzip"),
            ("content-length", "44"),
        ];
        let mut error = answer(401, &headers, packed.clone());
        redact(&mut error, KEY);
        assert_eq!(error.body, "[redacted]");
        assert_eq!(error.headers["x-debug"], "[redacted]");
        assert_eq!(
            error.headers.len(),
            1,
            "neither length nor encoding is true any more"
        );

        let mut unreadable = answer(401, &[("content-encoding", "br")], KEY.into());
        redact(&mut unreadable, KEY);
        assert_eq!(unreadable.headers.len(), 1, "the reply replaces it");
        let packed = gzip(&KEY[1..]);
        let mut success = answer(200, &[("content-encoding", "gzip")], packed.clone());
        redact(&mut success, KEY);
        assert_eq!((success.body, success.headers.len()), (Bytes::from(packed), 1));
    }

    #[test]
    fn an_error_with_the_status_of_a_success_is_searched() {
        for (body, is_error) in [
            (r#"{"error":{"message":"KEY"}}"#, true),
            (r#"{"id":"r","error": "KEY","x":1}"#, true),
            (r#"{"status":"failed","error":{"code":"a"},"x":"KEY"}"#, true),
            (r#"{"error":null,"error":"KEY"}"#, true),
            (r#"[{"error":"KEY"}]"#, true),
            (r#"{"error":null,"output":"KEY"}"#, false),
            (r#"{"choices":[{"message":{"content":"\"error\": KEY"}}]}"#, false),
            (r#"{"choices":[{"message":{"tool":{"error":"KEY"}}}]}"#, false),
            (r#"KEY"#, false),
        ] {
            // A part of the key, which only errors lose.
            let with = |text: &str| body.replace("KEY", text);
            let mut answer = answer(200, &[], with(&KEY[1..]).into());
            redact(&mut answer, KEY);
            assert_eq!(answer.body, with(if is_error { "[redacted]" } else { &KEY[1..] }));
        }
    }
}
