//! E-mail addresses, as users are known by.

use crate::printable::is_seen;

/// Longest address (RFC 5321).
const LONGEST: usize = 254;

/// Longest part of a domain between two dots (RFC 1035).
const LABEL_LONGEST: usize = 63;
/// Characters of a local part beside letters and digits (RFC 5322, `atext`).
const ATOM: &str = "!#$%&'*+/=?^_`{|}~-";

/// Normalises an e-mail to lower case, as it is stored and compared; `None` if it is not `local@domain`: words of
/// letters, digits and `atext` (RFC 5322) with dots between them, and a name with at least one dot. Letters can be of
/// any alphabet (RFC 6531). Quoted local parts, comments and addresses in brackets are none.
pub fn parse(text: &str) -> Option<String> {
    let text = text.trim().to_lowercase();
    let (local, domain) = text.split_once('@')?;
    let parts = local.split('.').all(is_word) && domain.contains('.') && domain.split('.').all(is_label);
    (parts && text.len() <= LONGEST).then_some(text)
}

/// Normalises the e-mail of a user who may have it from a version that took more for one; `None` if it never was one.
pub fn parse_known(text: &str) -> Option<String> {
    let text = text.trim().to_lowercase();
    let (local, domain) = text.split_once('@')?;
    let parts =
        !local.is_empty() && domain.contains('.') && !domain.contains('@') && !domain.starts_with('.');
    let odd = |c: char| c.is_whitespace() || c.is_control();
    (parts && text.len() <= LONGEST && !text.chars().any(odd)).then_some(text)
}

/// Letters and digits, and the marks that some alphabets write them with.
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

    /// What no version took for an address.
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
