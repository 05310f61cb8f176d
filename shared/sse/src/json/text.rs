//! The bytes of a JSON string: where it ends or has an escape, and the lengths of its characters.

use memchr::memchr2;

/// Number of 8-byte words of a string that are searched before `memchr2` is called.
const SHORT_WORDS: usize = 4;

/// Returns the position of the first quote or backslash; the length if there is none. Most strings of an event have
/// only a few bytes, for which calling `memchr2` costs several times as much as comparing eight bytes at a time.
pub(super) fn quote_or_backslash(text: &[u8]) -> usize {
    let (words, _) = text.as_chunks::<8>();
    for (nth, word) in words.iter().take(SHORT_WORDS).enumerate() {
        let word = u64::from_le_bytes(*word);
        let found = bytes_that_are(b'"', word) | bytes_that_are(b'\\', word);
        if found != 0 {
            return nth * 8 + found.trailing_zeros() as usize / 8;
        }
    }
    let from = words.len().min(SHORT_WORDS) * 8;
    from + match text.len() - from {
        0..8 => text[from..].iter().position(|byte| matches!(byte, b'"' | b'\\')),
        _ => memchr2(b'"', b'\\', &text[from..]),
    }
    .unwrap_or(text.len() - from)
}

/// Returns a word with the highest bit set in each byte of `word` that equals `byte`. Bits above the lowest one may be
/// false positives.
const fn bytes_that_are(byte: u8, word: u64) -> u64 {
    const ONES: u64 = u64::MAX / 255;
    let zeros = word ^ (ONES * byte as u64);
    zeros.wrapping_sub(ONES) & !zeros & (ONES << 7)
}

/// Returns the character of the escape `\x`, where `x` is not `u`.
pub(super) const fn unescaped(escape: u8) -> u8 {
    match escape {
        b'b' => 0x08,
        b'f' => 0x0c,
        b'n' => b'\n',
        b'r' => b'\r',
        b't' => b'\t',
        itself => itself,
    }
}

/// Bytes of a character of the basic plane in UTF-8; of half a surrogate pair, half of the pair's four.
pub(super) const fn utf8_bytes(value: u32) -> usize {
    match value {
        0..0x80 => 1,
        0x80..0x800 | 0xd800..0xe000 => 2,
        _ => 3,
    }
}
