//! Incremental parser of server-sent events: detects the end of an event and reads its data. Lines end with CR, LF or
//! CRLF, as in the standard.

use crate::facts::{EventFacts, Format, StreamFacts, append_word, set_word};
use crate::json::JsonScan;
use memchr::memchr2;

/// Length of the longest relevant field name, `event`, after a byte order mark, plus one byte.
const NAME_MAX: usize = 9;
/// A stream may start with these bytes.
const BYTE_ORDER_MARK: &[u8] = "\u{feff}".as_bytes();
/// Start of a data line, as providers write it.
const DATA: &[u8] = b"data: ";
/// Data of the last event of a chat stream.
const DONE: &[u8] = b"[DONE]";
/// Number of first bytes of an event's data that are kept, to recognize [`DONE`].
const FIRST_MAX: usize = 8;

/// Position of the parser in a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum LinePosition {
    Name,
    /// After the colon: one space belongs to neither name nor value.
    Colon(EventField),
    Value(EventField),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum EventField {
    Data,
    Event,
    Other,
}

/// Reader of one stream's events.
#[derive(Debug)]
pub(crate) struct EventReader {
    line: LinePosition,
    name: Vec<u8>,
    /// True if the current line has any bytes.
    is_begun: bool,
    /// True if no line has ended yet.
    at_start: bool,
    /// True if the last byte was CR: a following LF belongs to it.
    after_cr: bool,
    /// The first bytes of the data.
    first: Vec<u8>,
    /// The value of the field `event`, as far as it has been read.
    kind: Vec<u8>,
    json: JsonScan,
    /// Facts about the current event.
    pub(crate) event: EventFacts,
    /// Facts about the whole stream.
    pub(crate) stream: StreamFacts,
}

impl EventReader {
    pub(crate) fn new(format: Format) -> Self {
        Self {
            line: LinePosition::Name,
            name: Vec::new(),
            is_begun: false,
            at_start: true,
            after_cr: false,
            first: Vec::new(),
            kind: Vec::new(),
            json: JsonScan::new(format),
            event: EventFacts::default(),
            stream: StreamFacts::default(),
        }
    }

    /// Forgets the event that ended.
    pub(crate) fn begin_event(&mut self) {
        self.event.reset();
        self.first.clear();
        self.json.reset();
    }

    /// Returns whether the data is [`DONE`].
    pub(crate) fn is_done(&self) -> bool {
        self.first.trim_ascii() == DONE
    }

    /// Returns whether only the end of the event is missing: its data is not JSON, or complete JSON.
    pub(crate) fn is_whole(&self) -> bool {
        let first = self.first.trim_ascii();
        match first.first() {
            Some(b'{') => self.json.is_closed(),
            None => !self.is_begun,
            Some(_) => first == DONE || !DONE.starts_with(first),
        }
    }

    /// Reads the LF at the start of the piece if it belongs to the CRLF whose CR ended the last event. Returns whether
    /// it did.
    pub(crate) fn read_late_lf(&mut self, piece: &[u8]) -> bool {
        let is_late = self.after_cr
            && self.line == LinePosition::Name
            && !self.is_begun
            && piece.first() == Some(&b'\n');
        self.after_cr &= !is_late;
        is_late
    }

    /// Reads up to the end of the event, or of the piece. Returns the number of bytes, and whether the event ended.
    pub(crate) fn read(&mut self, piece: &[u8]) -> (usize, bool) {
        let mut at = 0;
        while let Some(&byte) = piece.get(at) {
            let follows_cr = std::mem::take(&mut self.after_cr) && byte == b'\n';
            if follows_cr {
                at += 1;
                continue;
            }
            match byte {
                b'\r' | b'\n' => {
                    at += 1;
                    self.after_cr = byte == b'\r';
                    if self.end_line() {
                        // The LF of a CRLF belongs to the event if it is in the piece.
                        if self.after_cr && piece.get(at) == Some(&b'\n') {
                            self.after_cr = false;
                            at += 1;
                        }
                        return (at, true);
                    }
                }
                _ => at += self.in_line(&piece[at..]),
            }
        }
        (at, false)
    }

    /// Ends a line. Returns whether it was empty, which ends the event.
    fn end_line(&mut self) -> bool {
        let was_empty = !std::mem::take(&mut self.is_begun);
        self.at_start = false;
        match self.line {
            // The lines of an event's data are joined by line ends, which are white space in JSON.
            LinePosition::Value(EventField::Data) => self.json.read(b"\n", &mut self.event, &mut self.stream),
            LinePosition::Value(EventField::Event) => {
                set_word(&mut self.event.kind, &self.kind);
                self.kind.clear();
            }
            _ => {}
        }
        self.line = LinePosition::Name;
        self.name.clear();
        was_empty
    }

    /// Reads within a line whose end is not the first byte. Returns the number of bytes read.
    fn in_line(&mut self, rest: &[u8]) -> usize {
        self.is_begun = true;
        match self.line {
            // Nearly every line.
            LinePosition::Name if self.name.is_empty() && rest.starts_with(DATA) => {
                self.line = LinePosition::Value(EventField::Data);
                DATA.len()
            }
            LinePosition::Name => {
                match rest[0] {
                    b':' => {
                        let mut name = self.name.as_slice();
                        if self.at_start {
                            name = name.strip_prefix(BYTE_ORDER_MARK).unwrap_or(name);
                        }
                        let field = match name {
                            b"data" => EventField::Data,
                            b"event" => EventField::Event,
                            _ => EventField::Other,
                        };
                        self.line = LinePosition::Colon(field);
                    }
                    byte if self.name.len() < NAME_MAX => self.name.push(byte),
                    _ => {}
                }
                1
            }
            LinePosition::Colon(field) => {
                self.line = LinePosition::Value(field);
                usize::from(rest[0] == b' ')
            }
            LinePosition::Value(field) => {
                let end = memchr2(b'\r', b'\n', rest).unwrap_or(rest.len());
                self.value(field, &rest[..end]);
                end
            }
        }
    }

    fn value(&mut self, field: EventField, bytes: &[u8]) {
        match field {
            EventField::Data => {
                let room = FIRST_MAX.saturating_sub(self.first.len());
                self.first.extend_from_slice(&bytes[..bytes.len().min(room)]);
                let first = self.first.trim_ascii();
                match first.first() {
                    None | Some(b'{') => self.json.read(bytes, &mut self.event, &mut self.stream),
                    Some(_) if DONE.starts_with(first) => {}
                    // If the data is not a JSON object, all of it counts as text.
                    Some(_) => self.stream.text_bytes += bytes.len() as u64,
                }
            }
            EventField::Event => append_word(&mut self.kind, bytes),
            EventField::Other => {}
        }
    }
}
