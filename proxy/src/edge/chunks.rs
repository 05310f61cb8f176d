//! Framing of a chunked body as RFC 9112 §7.1 has it. Pingora's reader accepts more: a bare LF in an extension, where
//! other servers end the line, and a size without digits, which it takes for the last chunk. Two servers that read a
//! body differently disagree about where the next request begins, which allows request smuggling.

/// Most digits of a size. More do not fit in 64 bits.
const DIGITS_MAX: u8 = 16;

/// Expected part of the body.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Part {
    Size,
    /// Spaces behind a size, which some senders write.
    Padding,
    Extension,
    SizeLf,
    /// So many bytes of data.
    Data(u64),
    DataCr,
    DataLf,
    /// A trailer field, or the end of the body.
    Line,
    FieldName,
    FieldValue,
    FieldLf,
    LastLf,
    Ended,
}

/// Position in the framing of a chunked body.
#[derive(Debug)]
pub(super) struct Chunks {
    part: Part,
    digits: u8,
    size: u64,
}

/// A byte, by its offset, that is malformed.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct MalformedAt(pub(super) usize);

impl Chunks {
    /// Creates the state before the first byte of a body.
    pub(super) const fn new() -> Self {
        Self {
            part: Part::Size,
            digits: 0,
            size: 0,
        }
    }

    /// Reads the next bytes. Returns how many of them belong to the body, if it ends in them.
    ///
    /// # Errors
    /// [`MalformedAt`]
    pub(super) fn read(&mut self, bytes: &[u8]) -> Result<Option<usize>, MalformedAt> {
        let mut at = 0;
        while let Some(rest) = bytes.get(at..).filter(|rest| !rest.is_empty()) {
            if let Part::Data(left) = self.part {
                let here = usize::try_from(left).map_or(rest.len(), |left| left.min(rest.len()));
                at += here;
                self.part = match left - here as u64 {
                    0 => Part::DataCr,
                    left => Part::Data(left),
                };
                continue;
            }
            self.part = self.next(rest[0]).ok_or(MalformedAt(at))?;
            at += 1;
            if self.part == Part::Ended {
                return Ok(Some(at));
            }
        }
        Ok(None)
    }

    /// Returns the part behind a byte; `None` if the byte is malformed.
    fn next(&mut self, byte: u8) -> Option<Part> {
        let next = match (self.part, byte) {
            (Part::Size, digit) if digit.is_ascii_hexdigit() => {
                return self.digit(digit);
            }
            (Part::Size, b'\r' | b' ' | b'\t' | b';') if self.digits == 0 => return None,
            (Part::Size | Part::Padding | Part::Extension, b'\r') => Part::SizeLf,
            (Part::Size | Part::Padding, b' ' | b'\t') => Part::Padding,
            (Part::Size | Part::Padding, b';') => Part::Extension,
            (Part::Extension, text) if is_text(text) => Part::Extension,
            (Part::SizeLf, b'\n') => match self.size {
                0 => Part::Line,
                size => Part::Data(size),
            },
            (Part::DataCr, b'\r') => Part::DataLf,
            (Part::DataLf, b'\n') => {
                *self = Self::new();
                Part::Size
            }
            (Part::Line, b'\r') => Part::LastLf,
            (Part::Line | Part::FieldName, name) if is_of_name(name) => Part::FieldName,
            (Part::FieldName, b':') => Part::FieldValue,
            (Part::FieldValue, b'\r') => Part::FieldLf,
            (Part::FieldValue, text) if is_text(text) => Part::FieldValue,
            (Part::FieldLf, b'\n') => Part::Line,
            (Part::LastLf, b'\n') => Part::Ended,
            _ => return None,
        };
        Some(next)
    }

    /// Adds a digit to the size.
    fn digit(&mut self, digit: u8) -> Option<Part> {
        let value = char::from(digit).to_digit(16)?;
        self.digits = Some(self.digits + 1).filter(|digits| *digits <= DIGITS_MAX)?;
        self.size = (self.size << 4) + u64::from(value);
        Some(Part::Size)
    }
}

/// Returns whether a byte may be in an extension or in the value of a field: any but control characters.
const fn is_text(byte: u8) -> bool {
    byte == b'\t' || byte >= b' ' && byte != 0x7f
}

/// Returns whether a byte may be in the name of a field (`tchar`, RFC 9110 §5.6.2).
const fn is_of_name(byte: u8) -> bool {
    byte.is_ascii_alphanumeric()
        || matches!(
            byte,
            b'!' | b'#'..=b'\'' | b'*' | b'+' | b'-' | b'.' | b'^' | b'_' | b'`' | b'|' | b'~'
        )
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Reads a body in pieces of `piece` bytes. Returns where it ends.
    fn end_of(body: &str, piece: usize) -> Result<Option<usize>, MalformedAt> {
        let mut chunks = Chunks::new();
        for (number, bytes) in body.as_bytes().chunks(piece).enumerate() {
            let before = number * piece;
            let end = chunks
                .read(bytes)
                .map_err(|MalformedAt(at)| MalformedAt(before + at))?;
            if let Some(end) = end {
                return Ok(Some(before + end));
            }
        }
        Ok(None)
    }

    #[test]
    fn a_well_formed_body_ends_where_it_ends() {
        for body in [
            "0\r\n\r\n",
            "000\r\n\r\n",
            "2\r\n{}\r\n0\r\n\r\n",
            "A\r\n0\r\n\r\n0\r\n\r\n\r\n0\r\n\r\n",
            "2;a=b;c=\"d e\u{e9}\"\r\n{}\r\n0;e\r\n\r\n",
            "2 \t\r\n{}\r\n0 ;e\r\n\r\n",
            "2\r\n{}\r\n0\r\nX: y\r\nEmpty:\r\nX-2:\tz\u{e9}\r\n\r\n",
        ] {
            for piece in 1..=body.len() + 1 {
                let with_next = format!("{body}GET /");
                assert_eq!(
                    end_of(&with_next, piece),
                    Ok(Some(body.len())),
                    "{body:?} {piece}"
                );
                let early = &body[..body.len() - 1];
                assert_eq!(end_of(early, piece), Ok(None), "{early:?} {piece}");
            }
        }
    }

    #[test]
    fn a_malformed_byte_is_found() {
        for (good, bad) in [
            ("", "\r\n\r\n"),
            ("", ";a\r\n\r\n"),
            ("", " 2\r\n"),
            ("", "g"),
            ("", "-1"),
            ("0", "x2\r\n"),
            ("2", "\n{}"),
            ("2 ", "2\r\n"),
            ("2;a", "\nb\r\n"),
            ("2;a=\"", "\n\"\r\n"),
            ("2;a", "\0"),
            ("2;a\r", "b"),
            ("2;a", "\u{7f}"),
            ("ffffffffffffffff", "f"),
            ("2\r\n{}", "}"),
            ("2\r\n{}", "\n"),
            ("2\r\n{}\r", "\r"),
            ("2\r\n{}\r\n", "\r\n"),
            ("0\r\n", "\n"),
            ("0\r\n", ": a\r\n"),
            ("0\r\nX", " : a\r\n"),
            ("0\r\nX", "\r\n"),
            ("0\r\nX: y", "\n"),
            ("0\r\nX: y", "\0"),
            ("0\r\nX: y\r\n", " z\r\n"),
            ("0\r\n\r", "\r"),
        ] {
            let body = format!("{good}{bad}");
            for piece in 1..=body.len() {
                assert_eq!(
                    end_of(&body, piece),
                    Err(MalformedAt(good.len())),
                    "{body:?} {piece}"
                );
            }
        }
    }

    #[test]
    fn the_longest_chunk_is_skipped_in_pieces() {
        let mut chunks = Chunks::new();
        assert_eq!(chunks.read(b"ffffffffffffffff\r\n\n"), Ok(None));
        assert_eq!(chunks.part, Part::Data(u64::MAX - 1));
    }
}
