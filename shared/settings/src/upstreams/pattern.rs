//! Patterns of model names: `*` matches any characters, every other character itself.

/// Longest pattern, in bytes.
pub const PATTERN_BYTES_MAX: usize = 256;
/// Longest model name that a pattern matches, in bytes. No model has a longer name, and the name may become part of a
/// path.
pub const MODEL_BYTES_MAX: usize = 256;
const ANY: u8 = b'*';

/// A pattern of model names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ModelPattern(String);

impl ModelPattern {
    /// Parses a pattern; `None` unless it has 1 to [`PATTERN_BYTES_MAX`] printable ASCII characters without spaces.
    pub fn parse(text: &str) -> Option<Self> {
        let is_plain = text.bytes().all(|byte| byte.is_ascii_graphic());
        ((1..=PATTERN_BYTES_MAX).contains(&text.len()) && is_plain).then(|| Self(text.to_owned()))
    }

    /// Returns whether the pattern matches the whole of `model`. Case-sensitive, like providers.
    pub fn matches(&self, model: &str) -> bool {
        model.len() <= MODEL_BYTES_MAX && matches(self.0.as_bytes(), model.as_bytes())
    }
}

/// Matches from the left. After a mismatch the last `*` takes one more character. Takes at most the product of both
/// lengths in steps.
fn matches(pattern: &[u8], text: &[u8]) -> bool {
    let (mut in_pattern, mut in_text) = (0, 0);
    let mut retry: Option<(usize, usize)> = None;
    while in_text < text.len() {
        match pattern.get(in_pattern) {
            Some(&ANY) => {
                in_pattern += 1;
                retry = Some((in_pattern, in_text));
            }
            Some(byte) if *byte == text[in_text] => {
                in_pattern += 1;
                in_text += 1;
            }
            _ => {
                let Some((after_any, taken)) = retry else {
                    return false;
                };
                (in_pattern, in_text) = (after_any, taken + 1);
                retry = Some((after_any, taken + 1));
            }
        }
    }
    pattern[in_pattern..].iter().all(|byte| *byte == ANY)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_star_stands_for_any_characters() {
        for (pattern, matching, other) in [
            (
                "gpt-4o",
                &["gpt-4o"][..],
                &["gpt-4o-mini", "GPT-4o", "xgpt-4o", ""][..],
            ),
            ("gpt-*", &["gpt-", "gpt-4o", "gpt-4/o"], &["gp", "xgpt-4"]),
            ("*", &["", "a", "é/…"], &[]),
            (
                "*-mini",
                &["-mini", "a-mini", "a-mini-mini"],
                &["a-mini-", "mini"],
            ),
            (
                "a*b*c",
                &["abc", "axbxc", "abbcbc"],
                &["ab", "acb", "xabc", "abcx"],
            ),
            ("a**b", &["ab", "axb"], &["a"]),
            ("a.b", &["a.b"], &["axb"]),
            ("[ab]?", &["[ab]?"], &["a", "ax"]),
        ] {
            let parsed = ModelPattern::parse(pattern).unwrap();
            for model in matching {
                assert!(parsed.matches(model), "{pattern} {model}");
            }
            for model in other {
                assert!(!parsed.matches(model), "{pattern} {model}");
            }
        }
    }

    #[test]
    fn patterns_and_names_are_bounded() {
        assert!(ModelPattern::parse(&"x".repeat(PATTERN_BYTES_MAX)).is_some());
        for bad in ["", "a b", "é", "a\n", &"x".repeat(PATTERN_BYTES_MAX + 1)] {
            assert_eq!(ModelPattern::parse(bad), None, "{bad:?}");
        }
        let any = ModelPattern::parse("*").unwrap();
        assert!(any.matches(&"x".repeat(MODEL_BYTES_MAX)));
        assert!(!any.matches(&"x".repeat(MODEL_BYTES_MAX + 1)));
    }

    #[test]
    fn the_longest_pattern_and_name_are_compared_in_bounded_steps() {
        let pattern = ModelPattern::parse(&"*a".repeat(PATTERN_BYTES_MAX / 2)).unwrap();
        assert!(!pattern.matches(&"ab".repeat(MODEL_BYTES_MAX / 2)));
        assert!(pattern.matches(&"a".repeat(MODEL_BYTES_MAX)));
    }
}
