//! JSON strings: their ends, escapes and unescaped lengths.

use super::error::{BodyError, Scan};
use json_stops::{LANE, stops_in};
use std::borrow::Cow;

/// A checked string of the body, not yet unescaped.
#[derive(Debug, Clone, Copy)]
pub(super) struct Text<'a> {
    /// The raw text between the quotes.
    pub raw: &'a str,
    /// Number of UTF-8 bytes after unescaping; equals the length of `raw` exactly if there is no escape.
    pub bytes: usize,
}

impl<'a> Text<'a> {
    /// Returns the unescaped string, copied only if it has an escape.
    ///
    /// # Errors
    /// Does not occur: the scanner has already checked the escapes.
    pub(super) fn decode(self) -> Scan<Cow<'a, str>> {
        if self.bytes == self.raw.len() {
            return Ok(Cow::Borrowed(self.raw));
        }
        let mut decoded = String::with_capacity(self.bytes);
        let mut rest = self.raw;
        while let Some(plain) = rest.find('\\') {
            let (c, taken) = escape(rest.as_bytes(), plain)?;
            decoded.push_str(&rest[..plain]);
            decoded.push(c);
            rest = &rest[plain + taken..];
        }
        decoded.push_str(rest);
        Ok(Cow::Owned(decoded))
    }
}

/// Bytes examined together in long strings, one bit of a word each.
const BLOCK: usize = 4 * LANE;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct StringEnd {
    /// The offset of the closing quote in the body.
    pub quote: usize,
    /// Number of bytes by which unescaping shortens the string.
    pub saved: usize,
}

/// Parses the string whose first byte is at `at`. Checks its escapes; control characters are errors.
///
/// Uses the bits of a block to go from one special byte to the next instead of searching again after each: a string
/// that contains JSON has one every five bytes. The first block is short, because most strings are.
#[inline(always)]
pub(super) fn end(bytes: &[u8], at: usize) -> Scan<StringEnd> {
    let mut saved = 0;
    let mut start = at;
    let mut reach = LANE;
    let mut stops = stops_in::<LANE>(bytes, start);
    loop {
        let mut next = start + reach;
        while stops != 0 {
            let stop = start + stops.trailing_zeros() as usize;
            let taken = match bytes.get(stop) {
                Some(b'"') => return Ok(StringEnd { quote: stop, saved }),
                Some(b'\\') => {
                    let (c, taken) = escape(bytes, stop)?;
                    saved += taken - c.len_utf8();
                    taken
                }
                Some(_) => return Err(BodyError::ControlCharacter { at: stop }),
                None => return Err(BodyError::Truncated),
            };
            if stop + taken >= next {
                next = stop + taken;
                break;
            }
            stops &= u64::MAX << (stop + taken - start);
        }
        start = next;
        reach = BLOCK;
        stops = stops_in::<BLOCK>(bytes, start);
    }
}

/// Returns the character of the escape at `at`, and its length in bytes.
#[inline(always)]
fn escape(bytes: &[u8], at: usize) -> Scan<(char, usize)> {
    let short = match bytes.get(at + 1) {
        Some(b'"') => '"',
        Some(b'\\') => '\\',
        Some(b'/') => '/',
        Some(b'b') => '\u{8}',
        Some(b'f') => '\u{c}',
        Some(b'n') => '\n',
        Some(b'r') => '\r',
        Some(b't') => '\t',
        Some(b'u') => return unicode(bytes, at),
        Some(_) => return Err(BodyError::BadEscape { at }),
        None => return Err(BodyError::Truncated),
    };
    Ok((short, 2))
}

/// Returns the character of a `\uXXXX` escape, or of the two escapes of a surrogate pair.
fn unicode(bytes: &[u8], at: usize) -> Scan<(char, usize)> {
    let unit = hex(bytes, at)?;
    if let Some(c) = char::from_u32(unit) {
        return Ok((c, 6));
    }
    let pair = at + 6;
    if unit >= 0xdc00 || bytes.get(pair) != Some(&b'\\') || bytes.get(pair + 1) != Some(&b'u') {
        return Err(BodyError::LoneSurrogate { at });
    }
    let low = hex(bytes, pair)?;
    let joined = match low {
        0xdc00..=0xdfff => char::from_u32(0x10000 + ((unit - 0xd800) << 10) + (low - 0xdc00)),
        _ => None,
    };
    joined.map(|c| (c, 12)).ok_or(BodyError::LoneSurrogate { at })
}

/// Returns the four hexadecimal digits of the `\u` escape at `at`.
fn hex(bytes: &[u8], at: usize) -> Scan<u32> {
    let digits = bytes.get(at + 2..at + 6).ok_or(BodyError::Truncated)?;
    digits.iter().try_fold(0, |value, digit| {
        let digit = char::from(*digit)
            .to_digit(16)
            .ok_or(BodyError::BadEscape { at })?;
        Ok(value * 16 + digit)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// One short block, two long ones, and a part of a further one.
    const LENGTH: usize = LANE + 2 * BLOCK + 27;

    /// Returns where `serde_json` finds the end of the string, and by how much unescaping shortens it.
    fn expected(rest: &str) -> Option<StringEnd> {
        let literal = format!("\"{rest}");
        let mut read = serde_json::Deserializer::from_str(&literal).into_iter::<String>();
        let string = read.next()?.ok()?;
        let quote = read.byte_offset() - 2;
        let saved = quote - string.len();
        Some(StringEnd { quote, saved })
    }

    #[test]
    fn every_byte_at_every_place_is_text_or_is_not() {
        for place in 0..LENGTH {
            for byte in 0..=u8::MAX {
                let mut bytes = [vec![b'n'; LENGTH], vec![b'"']].concat();
                bytes[place] = byte;
                assert_eq!(
                    end(&bytes, 0).ok(),
                    match byte {
                        0..0x20 => None,
                        b'"' => Some(StringEnd {
                            quote: place,
                            saved: 0
                        }),
                        b'\\' if place + 1 < LENGTH => Some(StringEnd {
                            quote: LENGTH,
                            saved: 1
                        }),
                        b'\\' => None,
                        _ => Some(StringEnd {
                            quote: LENGTH,
                            saved: 0
                        }),
                    },
                    "{byte:#x} at {place}"
                );
            }
        }
    }

    /// Generates pieces of valid and invalid strings.
    fn piece() -> impl Strategy<Value = String> {
        prop_oneof![
            4 => "[a-z ]{0,90}",
            2 => r#"\\["\\/bfnrtu]"#,
            2 => r#"(\\"|\\\\|\\n){1,40}"#,
            1 => r"\\u[0-9a-fA-F]{4}",
            1 => r"\\uD83D\\uDE00",
            1 => r"\\u[dD][89a-fA-F][0-9a-f]{2}",
            1 => "[ü吾😀\u{7f}]{1,20}",
            1 => "\"",
            1 => r"\\.?",
        ]
    }

    proptest! {
        #[test]
        fn a_string_ends_where_another_reader_finds_its_end(pieces in prop::collection::vec(piece(), 0..12)) {
            let rest = pieces.concat();
            prop_assert_eq!(end(rest.as_bytes(), 0).ok(), expected(&rest), "{}", rest);
        }

        #[test]
        fn it_does_not_matter_where_it_begins(before in 0_usize..80, pieces in prop::collection::vec(piece(), 0..6)) {
            let rest = pieces.concat();
            let moved = [vec![b'"'; before], rest.clone().into_bytes()].concat();
            let expected = expected(&rest).map(|end| StringEnd { quote: end.quote + before, ..end });
            prop_assert_eq!(end(&moved, before).ok(), expected);
        }
    }
}
