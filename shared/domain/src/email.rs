//! E-mail addresses, as users are known by.

/// Longest address (RFC 5321).
const LONGEST: usize = 254;

/// Normalises an e-mail to lower case, as it is stored and compared; `None` if malformed.
pub fn parse(text: &str) -> Option<String> {
    let text = text.trim().to_lowercase();
    let (local, domain) = text.split_once('@')?;
    let parts =
        !local.is_empty() && domain.contains('.') && !domain.contains('@') && !domain.starts_with('.');
    let odd = |c: char| c.is_whitespace() || c.is_control();
    (parts && text.len() <= LONGEST && !text.chars().any(odd)).then_some(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_kept_in_lower_case() {
        assert_eq!(parse(" Ann@Example.COM ").as_deref(), Some("ann@example.com"));
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
            &long,
        ] {
            assert_eq!(parse(bad), None, "{bad}");
        }
    }
}
