//! Whole numbers in paths, queries and words.

use std::str::FromStr;

/// Parses a number of digits alone, without a sign; `None` for any other text, or a number out of range.
pub fn whole_number<T: FromStr>(text: &str) -> Option<T> {
    let digits = text.bytes().all(|byte| byte.is_ascii_digit());
    text.parse().ok().filter(|_| digits)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digits_alone_are_a_whole_number() {
        assert_eq!(whole_number("0"), Some(0_u64));
        assert_eq!(whole_number("007"), Some(7_u64));
        assert_eq!(whole_number("18446744073709551615"), Some(u64::MAX));
        for bad in [
            "",
            "+5",
            "-1",
            "5.0",
            "1e3",
            " 5",
            "x",
            "٣",
            "18446744073709551616",
        ] {
            assert_eq!(whole_number::<u64>(bad), None, "{bad}");
        }
    }
}
