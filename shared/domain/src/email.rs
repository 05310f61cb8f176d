//! E-mail addresses of users.

use crate::printable::is_seen;

/// Longest address (RFC 5321).
const LONGEST: usize = 254;

/// Longest part of a domain between two dots (RFC 1035).
const LABEL_LONGEST: usize = 63;
/// Characters of a local part in addition to letters and digits (RFC 5322, `atext`).
const ATOM: &str = "!#$%&'*+/=?^_`{|}~-";

/// Normalises an e-mail address to lower case, the form that is stored and compared. `None` if it is not
/// `local@domain`: the local part must be words of letters, digits and `atext` (RFC 5322) separated by dots, and the
/// domain a name with at least one dot. Letters of any alphabet are allowed (RFC 6531). Quoted local parts, comments
/// and addresses in brackets are not.
pub fn parse(text: &str) -> Option<String> {
    let text = text.trim().to_lowercase();
    let (local, domain) = text.split_once('@')?;
    let parts = local.split('.').all(is_word) && domain.contains('.') && domain.split('.').all(is_label);
    (parts && text.len() <= LONGEST).then_some(text)
}

/// Normalises an address that an earlier version with looser rules may have accepted; `None` if no version accepted it.
pub fn parse_known(text: &str) -> Option<String> {
    let text = text.trim().to_lowercase();
    let (local, domain) = text.split_once('@')?;
    let parts =
        !local.is_empty() && domain.contains('.') && !domain.contains('@') && !domain.starts_with('.');
    let odd = |c: char| c.is_whitespace() || c.is_control();
    (parts && text.len() <= LONGEST && !text.chars().any(odd)).then_some(text)
}

/// Returns whether this is a letter, a digit, or a combining mark of some alphabets.
fn is_letter(c: char) -> bool {
    c.is_alphanumeric() || (!c.is_ascii() && is_seen(c))
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

    /// Texts that no version accepted as an address.
    const NEVER: [&str; 7] = [
        "",
        "ann",
        "@example.com",
        "ann@example",
        "ann@.com",
        "a b@x.com",
        "a@b@c.com",
    ];

    #[test]
    fn whoever_has_an_address_of_old_can_use_it() {
        for old in ["a@b..example", "<a@c.example>", "a@x_y.com"] {
            assert_eq!((parse(old), parse_known(old).as_deref()), (None, Some(old)));
        }
        for bad in NEVER {
            assert_eq!((parse(bad), parse_known(bad)), (None, None), "{bad}");
        }
    }

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
        ] {
            assert_eq!(parse(good).as_deref(), Some(good));
        }
        let long = format!("{}@example.com", "a".repeat(243));
        for bad in [
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
            &long,
        ] {
            assert_eq!(parse(bad), None, "{bad}");
        }
    }
}
