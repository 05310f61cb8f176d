//! Classification of characters by visibility: for names; for secrets, which people copy; for answers of receivers,
//! which people read; and for texts that are searched for attempts to instruct an agent.

use std::ops::RangeInclusive;
use unicode_normalization::{UnicodeNormalization as _, is_nfc};

/// Invisible characters: those that Unicode declares ignorable where they cannot be shown
/// (Default_Ignorable_Code_Point), the Braille blank, and those that break lines or annotate.
pub const HIDDEN: [RangeInclusive<char>; 18] = [
    '\u{ad}'..='\u{ad}',
    '\u{34f}'..='\u{34f}',
    '\u{61c}'..='\u{61c}',
    '\u{115f}'..='\u{1160}',
    '\u{17b4}'..='\u{17b5}',
    '\u{180b}'..='\u{180f}',
    '\u{200b}'..='\u{200f}',
    '\u{2028}'..='\u{202e}',
    '\u{2060}'..='\u{206f}',
    '\u{2800}'..='\u{2800}',
    '\u{3164}'..='\u{3164}',
    '\u{fe00}'..='\u{fe0f}',
    '\u{feff}'..='\u{feff}',
    '\u{ffa0}'..='\u{ffa0}',
    '\u{fff0}'..='\u{fffb}',
    '\u{1bca0}'..='\u{1bca3}',
    '\u{1d173}'..='\u{1d17a}',
    '\u{e0000}'..='\u{e0fff}',
];

/// Replacement for characters that cannot be shown.
const HIDDEN_MARK: char = '?';

/// Returns whether a character is visible or a space.
pub fn is_printable(c: char) -> bool {
    let may_be_hidden = c >= *HIDDEN[0].start();
    !(c.is_control() || may_be_hidden && HIDDEN.iter().any(|range| range.contains(&c)))
}

/// Returns whether a character is visible: neither hidden nor white space.
pub fn is_seen(c: char) -> bool {
    is_printable(c) && !c.is_whitespace()
}

/// Returns the text with each letter and its accents in one form (NFC): `e` with a combining accent becomes `é`, which
/// looks the same.
pub fn composed(text: &str) -> String {
    text.nfc().collect()
}

/// Returns whether the text is in that form.
pub fn is_composed(text: &str) -> bool {
    is_nfc(text)
}

/// Returns whether an invisible character has the width of a visible one, so that readers take it for a space.
pub const fn is_blank(c: char) -> bool {
    matches!(c, '\u{115f}' | '\u{1160}' | '\u{2800}' | '\u{3164}' | '\u{ffa0}')
}

/// Returns whether a character sets the direction of the text after it, so that the text is displayed in another order.
pub const fn is_direction(c: char) -> bool {
    matches!(c, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

/// Returns whether a character sets the direction of text, or is a mark that counts as a letter of one direction. Names
/// may contain such marks, but they reorder a sentence that a name is part of.
pub const fn is_direction_mark(c: char) -> bool {
    is_direction(c) || matches!(c, '\u{61c}' | '\u{200e}' | '\u{200f}')
}

/// Converts the bytes to one printable line that is not longer: white space becomes a space, and every other control or
/// hidden character and every invalid UTF-8 sequence a question mark. A character cut off at the end is omitted.
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

/// Returns whether the bytes are an incomplete character that more bytes could complete.
fn is_begun(bytes: &[u8]) -> bool {
    std::str::from_utf8(bytes).is_err_and(|error| error.error_len().is_none())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unprintable_characters_are_replaced() {
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
    fn invisible_characters_are_hidden() {
        let mut before = None;
        for range in &HIDDEN {
            assert!(
                range.start() <= range.end() && before < Some(*range.start()),
                "{range:?}"
            );
            before = Some(*range.end());
        }
        for c in [
            '\u{3164}',
            '\u{2800}',
            '\u{34f}',
            '\u{115f}',
            '\u{fe0f}',
            '\u{ffa0}',
            '\u{17b4}',
            '\u{e0041}',
        ] {
            assert!(!is_printable(c) && !is_seen(c), "{c:?}");
        }
        assert!(is_printable(' ') && !is_seen(' ') && !is_seen('\u{3000}') && is_seen('é') && is_seen('😀'));
        let all = || char::MIN..=char::MAX;
        assert!(
            all()
                .filter(|c| is_blank(*c) || is_direction_mark(*c))
                .all(|c| !is_printable(c))
        );
        assert_eq!(all().filter(|c| is_direction(*c)).count(), 9);
        assert_eq!(all().filter(|c| is_direction_mark(*c)).count(), 12);
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
