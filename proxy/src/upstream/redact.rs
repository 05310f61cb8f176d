//! Removal of key fragments that a provider echoes in its errors (specification §4.4: "echoed key fragments starting
//! `sk-` are removed first").

use http::{HeaderMap, HeaderName, HeaderValue, StatusCode};
use memchr::memmem::{self, Finder};
use serde::Deserialize;
use serde::de::IgnoredAny;
use std::borrow::Cow;
use std::sync::LazyLock;

/// Start of a fragment.
const MARK: &[u8] = b"sk-";
/// Replacement of a fragment.
pub(super) const REPLACEMENT: &[u8] = b"[redacted]";
/// Characters that replace the middle of a masked key, also as a JSON escape.
const ELLIPSES: [&[u8]; 2] = ["…".as_bytes(), br"\u2026"];

/// Returns whether an answer with this uncompressed body is an error, which may echo a key: by its status, or because
/// its JSON, or a choice in it, has an `error`. Some providers (OpenRouter) report errors with status 200, and so does
/// OpenAI for a failed response.
pub(super) fn is_error(status: StatusCode, plain: Option<&[u8]>) -> bool {
    /// Created once: preparing a search costs more than searching an answer.
    static KEY: LazyLock<Finder<'static>> = LazyLock::new(|| Finder::new(br#""error""#));
    #[derive(Deserialize)]
    struct Choice {
        error: Option<IgnoredAny>,
    }
    #[derive(Deserialize)]
    struct TopLevel {
        error: Option<IgnoredAny>,
        #[serde(default)]
        choices: Vec<Choice>,
    }
    impl TopLevel {
        fn has_error(&self) -> bool {
            self.error.is_some() || self.choices.iter().any(|choice| choice.error.is_some())
        }
    }
    if !status.is_success() {
        return true;
    }
    let Some(plain) = plain else {
        return false;
    };
    let may_have_one = KEY.find(plain).is_some();
    // Text that is not JSON, or has more than one value, is no answer that a caller can use.
    may_have_one && serde_json::from_slice(plain).map_or(true, |answer: TopLevel| answer.has_error())
}

/// Redacts header values with the rule `clean`, which returns the text without its secrets, or `None` if it has none.
/// The other values of a repeated header stay.
pub(super) fn headers_with(headers: &mut HeaderMap, clean: &dyn Fn(&[u8]) -> Option<Vec<u8>>) {
    let names: Vec<HeaderName> = headers.keys().cloned().collect();
    for name in names {
        let values = headers.get_all(&name).iter();
        let changed: Vec<Option<Vec<u8>>> = values.map(|value| clean(value.as_bytes())).collect();
        if changed.iter().all(Option::is_none) {
            continue;
        }
        let values: Vec<HeaderValue> = headers.get_all(&name).iter().cloned().collect();
        headers.remove(&name);
        for (value, changed) in values.into_iter().zip(changed) {
            let value = changed.map_or(Ok(value), |changed| HeaderValue::from_bytes(&changed));
            if let Ok(value) = value {
                headers.append(name.clone(), value);
            }
        }
    }
}

/// Replaces every run of key characters that starts with `sk-`; `None` if there is none. Masked keys (`sk-ab****yz`,
/// `sk-ab…yz`) and keys with JSON escapes (`sk\u002d…`) count too; the end of a word (`task-7`) does not.
pub(super) fn without_fragments(text: &[u8]) -> Option<Vec<u8>> {
    let unescaped = unescaped(text);
    let text = unescaped.as_ref();
    let mut clean = Vec::new();
    let (mut copied, mut from) = (0, 0);
    while let Some(found) = memmem::find(&text[from..], MARK) {
        let at = from + found;
        from = at + MARK.len();
        if is_inside_a_word(&text[..at]) {
            continue;
        }
        from += key_length(&text[from..]);
        clean.extend_from_slice(&text[copied..at]);
        clean.extend_from_slice(REPLACEMENT);
        copied = from;
    }
    (copied > 0).then(|| {
        clean.extend_from_slice(&text[copied..]);
        clean
    })
}

/// Returns whether `before` ends with a letter, so that `sk-` is the end of a word. A letter that ends an escape (`\n`,
/// `\u201c`, `%3D`) does not count, nor do digits and underscores: no word ends in one of them followed by `sk-`.
fn is_inside_a_word(before: &[u8]) -> bool {
    let ends_with_hex = |mark: &[u8], digits: usize| {
        let (rest, hex) = before.split_at(before.len().saturating_sub(digits));
        hex.len() == digits && hex.iter().all(u8::is_ascii_hexdigit) && rest.ends_with(mark)
    };
    let Some((last, rest)) = before.split_last() else {
        return false;
    };
    let is_escape = ends_with_hex(b"%", 2)
        || ends_with_hex(br"\u", 4)
        || b"bfnrt".contains(last) && !backslashes(rest).is_multiple_of(2);
    last.is_ascii_alphabetic() && !is_escape
}

/// Returns the number of backslashes at the end of `text`.
fn backslashes(text: &[u8]) -> usize {
    text.iter().rev().take_while(|byte| **byte == b'\\').count()
}

/// Returns the number of bytes at the start of `text` that belong to a key, complete or masked.
pub(super) fn key_length(text: &[u8]) -> usize {
    let mut length = 0;
    while let Some(byte) = text.get(length) {
        let rest = &text[length..];
        length += match ELLIPSES.iter().find(|dots| rest.starts_with(dots)) {
            Some(dots) => dots.len(),
            None if is_key_character(*byte) => 1,
            None => break,
        };
    }
    length
}

fn is_key_character(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"-_*.".contains(&byte)
}

/// Returns `text` without escapes that could hide a key.
pub(super) fn unescaped(text: &[u8]) -> Cow<'_, [u8]> {
    match memmem::find(text, br"\u") {
        Some(_) => unescape_ascii(text).into(),
        None => text.into(),
    }
}

/// Replaces escapes of key characters (such as `\u002d`), so that none hides a fragment.
fn unescape_ascii(text: &[u8]) -> Vec<u8> {
    let mut plain = Vec::with_capacity(text.len());
    let mut at = 0;
    while at < text.len() {
        let code = text[at..].strip_prefix(br"\u00").and_then(|rest| rest.get(..2));
        let byte = code
            .and_then(|code| std::str::from_utf8(code).ok())
            .and_then(|code| u8::from_str_radix(code, 16).ok());
        // Each run of backslashes is counted once, for the single escape that can follow it.
        match byte.filter(|byte| is_key_character(*byte) && backslashes(&plain).is_multiple_of(2)) {
            Some(byte) => {
                plain.push(byte);
                at += 6;
            }
            None => {
                plain.push(text[at]);
                at += 1;
            }
        }
    }
    plain
}

#[cfg(test)]
mod tests {
    use super::*;

    fn redacted(text: &str) -> String {
        let clean = without_fragments(text.as_bytes());
        clean.map_or_else(|| text.to_owned(), |clean| String::from_utf8(clean).unwrap())
    }

    #[test]
    fn fragments_are_removed_and_the_rest_stays() {
        for (text, clean) in [
            ("no key here", "no key here"),
            ("key: sk-abc123.", "key: [redacted]"),
            (
                r#"{"m":"Incorrect API key provided: sk-proj-ab****yz. See"}"#,
                r#"{"m":"Incorrect API key provided: [redacted] See"}"#,
            ),
            ("sk-a sk-b", "[redacted] [redacted]"),
            (r#""sk\u002dabc""#, r#""[redacted]""#),
            (r#""\u0073k-abc""#, r#""[redacted]""#),
            ("sk-", "[redacted]"),
            // The three dots of a masked key may be one character.
            ("key sk-proj-ab…wxyz, see", "key [redacted], see"),
            ("sk-…", "[redacted]"),
            // An escape that is not part of a key stays: unescaped, a quote would end the string.
            (
                r#"{"m":"say \u0022hi\u0022, sk-ab\u0022c, \u000a"}"#,
                r#"{"m":"say \u0022hi\u0022, [redacted]\u0022c, \u000a"}"#,
            ),
        ] {
            assert_eq!(redacted(text), clean);
        }
    }

    /// The specification means fragments that start with `sk-`, not words that end with it.
    #[test]
    fn words_that_end_with_the_prefix_stay() {
        for text in [
            "task-42",
            "The risk-free disk-image of desk-7",
            r#"{"id":"task-0b6a2f9e-77aa"}"#,
            "Brisk-walk",
            r"a\\task-1",
            r"\\nsk-1",
            "ta\\u0073k-1",
        ] {
            assert_eq!(redacted(text), text);
        }
    }

    #[test]
    fn a_key_is_removed_whatever_precedes_it() {
        for (text, clean) in [
            ("\"sk-a1\"", "\"[redacted]\""),
            ("key=sk-a1&x", "key=[redacted]&x"),
            ("my_sk-a1", "my_[redacted]"),
            ("x-sk-a1", "x-[redacted]"),
            ("7sk-a1", "7[redacted]"),
            ("(sk-a1)", "([redacted])"),
            ("…sk-a1", "…[redacted]"),
            ("“sk-a1”", "“[redacted]”"),
            (r"line\nsk-a1\n", r"line\n[redacted]\n"),
            (r"\\\nsk-a1", r"\\\n[redacted]"),
            (r#"\"sk-a1\""#, r#"\"[redacted]\""#),
            (r"\u201csk-a1\u201d", r"\u201c[redacted]\u201d"),
            ("%3Dsk-a1%26", "%3D[redacted]%26"),
            ("task-sk-a1", "task-[redacted]"),
            ("task-1 sk-a1 risk-2", "task-1 [redacted] risk-2"),
        ] {
            assert_eq!(redacted(text), clean, "{text}");
        }
    }

    #[test]
    fn the_tail_of_a_masked_key_is_removed_and_text_stays_utf_8() {
        for (text, clean) in [
            ("sk-ab…yz.", "[redacted]"),
            (r#""sk-ab\u2026yz""#, r#""[redacted]""#),
            ("sk-ab”", "[redacted]”"),
            ("sk-ab— and", "[redacted]— and"),
            ("sk-ab€", "[redacted]€"),
        ] {
            assert_eq!(redacted(text), clean, "{text}");
        }
    }

    #[test]
    fn headers_are_searched_too() {
        let mut all = HeaderMap::new();
        for (name, value) in [
            ("x-debug", "key sk-abc"),
            ("x-other", "fine"),
            ("x-twice", "kept"),
            ("x-twice", "sk-abc"),
        ] {
            all.append(name, HeaderValue::from_static(value));
        }
        headers_with(&mut all, &without_fragments);
        let twice: Vec<_> = all.get_all("x-twice").iter().collect();
        assert_eq!(twice, ["kept", "[redacted]"]);
        assert_eq!(all["x-debug"], "key [redacted]");
        assert_eq!(all["x-other"], "fine");
    }
}
