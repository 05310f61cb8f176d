//! E-mail addresses of users.

use crate::printable::{composed, is_seen};
use unicode_normalization::char::is_combining_mark;

/// Longest address (RFC 5321).
const LONGEST: usize = 254;

/// Longest part of a domain between two dots (RFC 1035).
const LABEL_LONGEST: usize = 63;
/// Characters of a local part in addition to letters and digits (RFC 5322, `atext`).
const ATOM: &str = "!#$%&'*+/=?^_`{|}~-";

/// Normalises an e-mail address to lower case and composed letters: the form that is stored and compared. `None` if it
/// is not `local@domain`: the local part must be words of letters, digits and `atext` (RFC 5322) separated by dots, and
/// the domain a name with at least one dot. Letters of any alphabet are allowed (RFC 6531). Quoted local parts,
/// comments and addresses in brackets are not.
pub fn parse(text: &str) -> Option<String> {
    let text = composed(&text.trim().to_lowercase());
    let (local, domain) = text.split_once('@')?;
    let parts = local.split('.').all(is_word) && domain.contains('.') && domain.split('.').all(is_label);
    (parts && text.len() <= LONGEST).then_some(text)
}

/// Returns whether this is a letter, a digit, or a combining mark, which some alphabets have in their words.
fn is_letter(c: char) -> bool {
    (c.is_alphanumeric() || is_combining_mark(c)) && is_seen(c)
}

fn is_word(word: &str) -> bool {
    !word.is_empty() && word.chars().all(|c| is_letter(c) || ATOM.contains(c))
}

fn is_label(label: &str) -> bool {
    let ends = label.starts_with('-') || label.ends_with('-');
    let fits = (1..=LABEL_LONGEST).contains(&label.len());
    fits && !ends && label.chars().all(|c| is_letter(c) || c == '-')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_kept_in_lower_case() {
        assert_eq!(parse(" Ann@Example.COM ").as_deref(), Some("ann@example.com"));
        for good in [
            "a@b.c",
            "a.b+tag@mail.example.com",
            "o'neill_{x}@a-b.example",
            "用户@例え.jp",
            "ü@xn--mnchen-3ya.de",
            "1@2.3",
            "हिन्दी@उदाहरण.भारत",
        ] {
            assert_eq!(parse(good).as_deref(), Some(good));
        }
        // Two forms of the same letters are one address.
        assert_eq!(parse("Jose\u{301}@x.com"), parse("jos\u{e9}@x.com"));
        let long = format!("{}@example.com", "a".repeat(243));
        for bad in [
            "",
            "ann",
            "@example.com",
            "ann@example",
            "ann@.com",
            "a b@x.com",
            "a@b@c.com",
            "a\u{0}@x.com",
            "a@b..example",
            "a@b.example.",
            "a..b@x.com",
            ".a@x.com",
            "a.@x.com",
            "<a@c.example>",
            "mailto:a@c.example",
            "\"a\"@x.com",
            "a@[127.0.0.1]",
            "a@-x.com",
            "a@x-.com",
            "a@x_y.com",
            "a\u{200b}@x.com",
            "a@x\u{202e}.com",
            "a\u{3164}@x.com",
            "\u{1f600}@x.com",
            "a\u{2024}b@x.com",
            "a\u{b7}b@x.com",
            &long,
        ] {
            assert_eq!(parse(bad), None, "{bad}");
        }
    }
}
