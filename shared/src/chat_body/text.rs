//! JSON strings: where their plain runs end, what their escapes stand for, how long they are once unescaped.

use super::error::{BodyError, Scan};
use std::borrow::Cow;

/// A string of the body, checked, not yet unescaped.
#[derive(Debug, Clone, Copy)]
pub(super) struct Text<'a> {
    /// What stands between the quotes.
    pub raw: &'a str,
    /// The offset of the opening quote in the body.
    pub at: usize,
    /// UTF-8 bytes once unescaped; equal to the length of `raw` exactly when there is no escape.
    pub bytes: usize,
}

impl<'a> Text<'a> {
    /// The unescaped string; it is copied only when there was an escape.
    ///
    /// # Errors
    /// None in practice: the scanner has checked the same escapes.
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

/// Bytes of a string that are looked at by words before blocks are worth their setting up: most strings end here.
const NEAR: usize = 32;
/// Bytes that are looked at together in long strings.
const BLOCK: usize = 64;

/// How many bytes pass before the next quote, backslash or control character.
pub(super) fn plain_run(bytes: &[u8]) -> usize {
    let near = plain_words(&bytes[..bytes.len().min(NEAR)]);
    if near < NEAR {
        return near;
    }
    let (blocks, _) = bytes[NEAR..].as_chunks::<BLOCK>();
    let plain = blocks.iter().take_while(|block| is_plain(block)).count();
    let far = NEAR + plain * BLOCK;
    far + plain_words(&bytes[far..])
}

/// Whether nothing in the block ends a run. Written without a branch, so that the compiler makes vector code of it.
fn is_plain(block: &[u8; BLOCK]) -> bool {
    let stop = |byte: u8| u8::from(byte < 0x20) | u8::from(byte == b'"') | u8::from(byte == b'\\');
    block.iter().fold(0, |stops, byte| stops | stop(*byte)) == 0
}

/// [`plain_run`], eight bytes at a time.
fn plain_words(bytes: &[u8]) -> usize {
    let (words, tail) = bytes.as_chunks::<8>();
    for (index, word) in words.iter().enumerate() {
        let stops = stops(u64::from_le_bytes(*word));
        if stops != 0 {
            return index * 8 + stops.trailing_zeros() as usize / 8;
        }
    }
    let plain = tail
        .iter()
        .take_while(|byte| **byte >= 0x20 && **byte != b'"' && **byte != b'\\');
    words.len() * 8 + plain.count()
}

/// Sets the high bit of the first byte, counted from the low end, that is a quote, a backslash or below 0x20. Bits of
/// later bytes may be wrong, because a subtraction can borrow, but only after a right one.
const fn stops(word: u64) -> u64 {
    const LOW: u64 = u64::MAX / 0xff;
    const HIGH: u64 = LOW << 7;
    let quotes = word ^ (LOW * b'"' as u64);
    let backslashes = word ^ (LOW * b'\\' as u64);
    let below_space = word.wrapping_sub(LOW * 0x20) & !word;
    let is_quote = quotes.wrapping_sub(LOW) & !quotes;
    let is_backslash = backslashes.wrapping_sub(LOW) & !backslashes;
    (below_space | is_quote | is_backslash) & HIGH
}

/// The character that the escape at `at` stands for, and the bytes that the escape takes.
pub(super) fn escape(bytes: &[u8], at: usize) -> Scan<(char, usize)> {
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

/// The character of a `\uXXXX` escape, or of the two that make a surrogate pair.
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

/// The four hexadecimal digits of the `\u` escape at `at`.
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

    /// Some words, some blocks, and a bit of both after them.
    const LENGTH: usize = NEAR + 2 * BLOCK + 27;

    #[test]
    fn every_byte_at_every_place_stops_a_run_or_does_not() {
        for place in 0..LENGTH {
            for byte in 0..=u8::MAX {
                let mut bytes = [b'x'; LENGTH];
                bytes[place] = byte;
                let stops = byte < 0x20 || byte == b'"' || byte == b'\\';
                assert_eq!(
                    plain_run(&bytes),
                    if stops { place } else { LENGTH },
                    "{byte:#x} at {place}"
                );
            }
        }
    }

    proptest! {
        #[test]
        fn a_long_run_ends_at_the_first_stop(plain in 0_usize..400, rest in prop::collection::vec(any::<u8>(), 0..80)) {
            let bytes = [vec![0x80; plain], rest].concat();
            let stop = bytes.iter().position(|b| *b < 0x20 || *b == b'"' || *b == b'\\');
            prop_assert_eq!(plain_run(&bytes), stop.unwrap_or(bytes.len()));
        }

        #[test]
        fn a_run_ends_at_the_first_stop(bytes in prop::collection::vec(
            prop_oneof![any::<u8>(), 0x1e_u8..0x24, 0x5a_u8..0x5e, 0x7e_u8..0x82], 0..64,
        )) {
            let stop = bytes.iter().position(|b| *b < 0x20 || *b == b'"' || *b == b'\\');
            prop_assert_eq!(plain_run(&bytes), stop.unwrap_or(bytes.len()));
        }
    }
}
