//! Removing key fragments that a provider echoes in its errors (specification §4.4: "echoed key fragments starting `sk-`
//! are removed first").

use super::encoding;
use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue};
use memchr::memmem;

const MARK: &[u8] = b"sk-";
const INSTEAD: &[u8] = b"[redacted]";

/// What became of an error body.
#[derive(Debug, PartialEq, Eq)]
pub enum Redacted {
    /// It held no fragment.
    Unchanged,
    /// The plain text without the fragments.
    Changed(Bytes),
    /// It could not be searched.
    Unreadable,
}

/// Searches a body, decoding it first.
pub fn body(body: &Bytes, encoding: Option<&[u8]>) -> Redacted {
    let Some(plain) = encoding::decode(body, encoding) else {
        return Redacted::Unreadable;
    };
    match without_fragments(&plain) {
        Some(changed) => Redacted::Changed(changed.into()),
        None => Redacted::Unchanged,
    }
}

/// Searches header values. The other values of a header that stands there several times stay as they are.
pub fn headers(headers: &mut HeaderMap) {
    let names: Vec<HeaderName> = headers.keys().cloned().collect();
    for name in names {
        let values = headers.get_all(&name).iter();
        let changed: Vec<Option<Vec<u8>>> = values.map(|value| without_fragments(value.as_bytes())).collect();
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

/// The text with every run of key characters that starts `sk-` replaced, or `None` when there is none. Masked keys
/// (`sk-ab****yz`) and escaped ones in JSON (`sk\u002d…`) count as well.
fn without_fragments(text: &[u8]) -> Option<Vec<u8>> {
    let escaped = memmem::find(text, br"\u").is_some().then(|| unescape_ascii(text));
    let text = escaped.as_deref().unwrap_or(text);
    let mut rest = text;
    let mut clean = Vec::new();
    let mut found = false;
    while let Some(at) = memmem::find(rest, MARK) {
        found = true;
        clean.extend_from_slice(&rest[..at]);
        clean.extend_from_slice(INSTEAD);
        let tail = &rest[at + MARK.len()..];
        let end = tail
            .iter()
            .position(|byte| !is_key_character(*byte))
            .unwrap_or(tail.len());
        rest = &tail[end..];
    }
    clean.extend_from_slice(rest);
    found.then_some(clean)
}

fn is_key_character(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"-_*.\xE2\x80\xA6".contains(&byte)
}

/// Replaces `\u002d`-like escapes of the characters that keys consist of, so that none hides a fragment.
fn unescape_ascii(text: &[u8]) -> Vec<u8> {
    let mut plain = Vec::with_capacity(text.len());
    let mut at = 0;
    while at < text.len() {
        let code = text[at..].strip_prefix(br"\u00").and_then(|rest| rest.get(..2));
        let byte = code
            .and_then(|code| std::str::from_utf8(code).ok())
            .and_then(|code| u8::from_str_radix(code, 16).ok());
        let escaped_backslash = at > 0 && text[at - 1] == b'\\' && !plain.ends_with(b"\\\\");
        match byte.filter(|byte| is_key_character(*byte) && byte.is_ascii() && !escaped_backslash) {
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
        match body(&Bytes::copy_from_slice(text.as_bytes()), None) {
            Redacted::Changed(bytes) => String::from_utf8(bytes.to_vec()).unwrap(),
            Redacted::Unchanged => text.to_owned(),
            Redacted::Unreadable => "unreadable".to_owned(),
        }
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
            // An escape that is no part of a key stays one: unescaped, a quote would end the string.
            (
                r#"{"m":"say \u0022hi\u0022, sk-ab\u0022c, \u000a"}"#,
                r#"{"m":"say \u0022hi\u0022, [redacted]\u0022c, \u000a"}"#,
            ),
        ] {
            assert_eq!(redacted(text), clean);
        }
        assert_eq!(
            body(&Bytes::from_static(b"sk-abc"), Some(b"br")),
            Redacted::Unreadable
        );
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
        headers(&mut all);
        let twice: Vec<_> = all.get_all("x-twice").iter().collect();
        assert_eq!(twice, ["kept", "[redacted]"]);
        assert_eq!(all["x-debug"], "key [redacted]");
        assert_eq!(all["x-other"], "fine");
    }
}
