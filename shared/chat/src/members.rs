//! The members of an object, without reading their values.

use super::scan::Scanner;
use std::borrow::Cow;

/// Calls `member` with each key of the object `text` and the JSON text of its value. `None`: it is no JSON object by the
/// strict rules of this crate, and the calls so far say nothing.
pub fn members<'a>(text: &'a str, mut member: impl FnMut(Cow<'a, str>, &'a str)) -> Option<()> {
    let mut scanner = Scanner::new(text);
    let read = scanner.object(|scanner, key| {
        let key = key.decode()?;
        let value = scanner.at();
        scanner.skip()?;
        member(key, &text[value..scanner.at()]);
        Ok(())
    });
    read.and_then(|()| scanner.finish()).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn listed(text: &str) -> Option<Vec<(String, &str)>> {
        let mut listed = Vec::new();
        members(text, |key, value| listed.push((key.into_owned(), value)))?;
        Some(listed)
    }

    #[test]
    fn each_member_has_its_text() {
        let text = r#" { "a" : [1, {"b":2}] ,"\u0062":"x\"y" , "a": null } "#;
        let expected = [("a", r#"[1, {"b":2}]"#), ("b", r#""x\"y""#), ("a", "null")];
        let expected = expected.map(|(key, value)| (key.to_owned(), value));
        assert_eq!(listed(text), Some(expected.to_vec()));
        assert_eq!(listed("{}"), Some(Vec::new()));
    }

    #[test]
    fn what_is_no_object_has_none() {
        for text in [
            "",
            "[]",
            "7",
            r#"{"a":1"#,
            r#"{"a":1} x"#,
            r#"{"a":01}"#,
            "{\"a\":\"\u{1}\"}",
        ] {
            assert_eq!(listed(text), None, "{text}");
        }
    }
}
