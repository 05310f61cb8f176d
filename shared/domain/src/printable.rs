//! Which characters show what they are: for secrets, which people copy, and for answers of receivers, which people
//! read.

use std::ops::RangeInclusive;

/// Characters that are invisible, break lines or turn the direction of what follows.
const HIDDEN: [RangeInclusive<char>; 9] = [
    '\u{ad}'..='\u{ad}',
    '\u{61c}'..='\u{61c}',
    '\u{180e}'..='\u{180e}',
    '\u{200b}'..='\u{200f}',
    '\u{2028}'..='\u{202e}',
    '\u{2060}'..='\u{206f}',
    '\u{feff}'..='\u{feff}',
    '\u{fff9}'..='\u{fffb}',
    '\u{e0000}'..='\u{e0fff}',
];

/// What stands for whatever cannot be shown.
const HIDDEN_MARK: char = '?';

/// Whether a character can be seen, or is a space.
pub fn is_printable(c: char) -> bool {
    !c.is_control() && !HIDDEN.iter().any(|range| range.contains(&c))
}

/// The bytes as one printable line that is not longer than they are: white space becomes a space, every other control
/// or hidden character and every broken piece of UTF-8 a question mark. A character cut off at the end is left out.
pub fn one_line(bytes: &[u8]) -> String {
    let mut line = String::with_capacity(bytes.len());
    let mut chunks = bytes.utf8_chunks().peekable();
    while let Some(chunk) = chunks.next() {
        line.extend(chunk.valid().chars().map(|c| match c {
            '\n' | '\r' | '\t' => ' ',
            c if is_printable(c) => c,
            _ => HIDDEN_MARK,
        }));
        let cut_off = chunks.peek().is_none() && is_begun(chunk.invalid());
        if !chunk.invalid().is_empty() && !cut_off {
            line.push(HIDDEN_MARK);
        }
    }
    line
}

/// Whether the bytes are the beginning of a character that more bytes could complete.
fn is_begun(bytes: &[u8]) -> bool {
    std::str::from_utf8(bytes).is_err_and(|error| error.error_len().is_none())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_cannot_be_shown_is_replaced() {
        for (bytes, line) in [
            (b"ok".as_slice(), "ok"),
            (b"", ""),
            (b"a\r\nb\tc", "a  b c"),
            (b"\x1b[31mred\x00\x7f", "?[31mred??"),
            (b"\xff\xfe", "??"),
            (b"a\xc3(b", "a?(b"),
            ("é\u{202e}x\u{200b}\u{85}\u{2028}".as_bytes(), "é?x???"),
            ("é€😀".as_bytes(), "é€😀"),
            (b"half\xe2\x82", "half"),
            (b"half\xe2\x82x", "half?x"),
        ] {
            assert_eq!(one_line(bytes), line, "{bytes:x?}");
            assert!(one_line(bytes).len() <= bytes.len());
        }
    }

    #[test]
    fn every_single_and_double_byte_gives_a_printable_line() {
        for pair in 0..=u16::MAX {
            let line = one_line(&pair.to_be_bytes());
            assert!(
                line.chars().all(is_printable) && line.len() <= 2,
                "{pair:x} {line:?}"
            );
        }
    }
}
