//! Keys as lenient parsers read them, and keys as error messages quote them.

use std::borrow::Cow;

/// Maximum number of characters of a caller's key in an error message.
const QUOTED_CHARS_MAX: usize = 64;

/// Longest spelling that is folded, in bytes: more than three times the longest key that the gate reads. No character
/// folds to less than a third of its bytes.
const FOLDED_BYTES_MAX: usize = 128;

/// Returns the key as a parser reads it that ignores case or ends strings at a NUL: `Stream`, `ſtream` and `stream\0x`
/// all become `stream`. Go's `encoding/json`, for example, matches keys this way, including `ſ` and `K` (the Kelvin
/// sign).
pub(super) fn folded(key: Cow<'_, str>) -> Cow<'_, str> {
    let plain = |byte: u8| byte.is_ascii() && !byte.is_ascii_uppercase() && byte != 0;
    if key.len() <= FOLDED_BYTES_MAX && key.bytes().all(plain) {
        return key;
    }
    let seen = key.split('\0').next().unwrap_or_default();
    if seen.len() > FOLDED_BYTES_MAX {
        return key;
    }
    let mut folded = String::with_capacity(seen.len());
    for c in seen.chars() {
        folded.extend(c.to_uppercase().flat_map(char::to_lowercase));
    }
    Cow::Owned(folded)
}

/// Returns the letters of a key without word separators.
pub(super) fn letters(key: &str) -> impl Iterator<Item = u8> {
    key.bytes().filter(|byte| !matches!(byte, b'_' | b'-'))
}

/// Returns the key for an error message: shortened, with control characters replaced.
pub(super) fn quotable(key: &str) -> String {
    let mut chars = key.chars();
    let clean = |c: char| {
        if c.is_control() {
            char::REPLACEMENT_CHARACTER
        } else {
            c
        }
    };
    let mut quoted: String = chars.by_ref().take(QUOTED_CHARS_MAX).map(clean).collect();
    if chars.next().is_some() {
        quoted.push('…');
    }
    quoted
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn folds_what_careless_parsers_take_for_the_same_key() {
        for key in [
            "stream",
            "Stream",
            "STREAM",
            "\u{17f}tream",
            "\u{fb06}ream",
            "stream\0",
            "STREAM\0n",
        ] {
            assert_eq!(folded(key.into()), "stream", "{key:?}");
        }
        assert_eq!(
            folded("max_to\u{212a}ens".into()),
            "max_tokens",
            "the Kelvin sign is a K"
        );
        let long = "S".repeat(FOLDED_BYTES_MAX + 1);
        for key in ["", "stream ", "_stream", "streams", "ström", &long] {
            assert_eq!(folded(key.into()), key, "{key:?} is another key");
        }
    }

    #[test]
    fn plain_keys_are_not_copied() {
        assert!(matches!(folded("max_completion_tokens".into()), Cow::Borrowed(_)));
    }

    #[test]
    fn quoted_keys_are_short_and_clean() {
        assert_eq!(quotable("a\r\nb\u{85}"), "a\u{fffd}\u{fffd}b\u{fffd}");
        assert_eq!(quotable(&"é".repeat(64)), "é".repeat(64));
        assert_eq!(quotable(&"é".repeat(65)), format!("{}…", "é".repeat(64)));
    }
}
