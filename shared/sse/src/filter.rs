//! Which bytes of a stream pass, and when: whole events, and long ones as they come.

use crate::event::EventReader;
use crate::facts::Format;
use bytes::Bytes;

/// An event passes when all of it came. From so many bytes on it passes as it comes: no event of text is as long.
pub const HELD_MAX: usize = 16 << 10;
/// Bytes behind the last event that are held while the usage is still to come.
const HELD_BEHIND_END_MAX: usize = 64 << 10;
/// A key in a long event is searched for whole, if it is not longer than this.
const KEY_MAX: usize = 1 << 10;
/// Bytes of sound and images in base64 that count as one byte of text: about three times what they cost. A second of
/// sound is 64,000 of them, and about 20 tokens.
const MEDIA_BYTES_A_TEXT_BYTE: u64 = 256;

/// Removes fragments of keys from an event that is no part of an answer; `None` if it has none.
pub type Redact = Box<dyn Fn(&[u8]) -> Option<Vec<u8>> + Send>;
/// Whether a `usage` object is one that a call can be settled by.
pub type IsUsage = Box<dyn Fn(&[u8]) -> bool + Send>;

/// Filters the pieces of one stream.
pub struct Filter {
    format: Format,
    reader: EventReader,
    /// Usage frames pass: the caller asked for them.
    usage_passes: bool,
    redact: Redact,
    is_usage: IsUsage,
    /// Bytes of the current event that did not pass yet.
    held: Vec<u8>,
    /// The current event is longer than [`HELD_MAX`], and the beginning of it passed.
    is_long: bool,
    /// The last event came, and it and what follows wait for [`Filter::release`].
    end: Option<Vec<Bytes>>,
    released: bool,
    /// The last event that ended did not pass.
    dropped: bool,
    /// Events that ended.
    events: u64,
    /// A choice had a `finish_reason`.
    is_finished: bool,
    /// The latest plausible `usage`.
    usage: Option<Vec<u8>>,
    /// It stands in the current event.
    usage_is_new: bool,
    /// Where it stood; `None` until its event ended.
    usage_place: Option<UsagePlace>,
}

/// Where a `usage` stood.
#[derive(Clone, Copy)]
struct UsagePlace {
    /// Bytes of text that came up to the end of its event.
    behind_text: u64,
    /// In a frame of its own.
    is_alone: bool,
    /// In the last event.
    is_last: bool,
}

impl std::fmt::Debug for Filter {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Filter")
            .field("reader", &self.reader)
            .finish_non_exhaustive()
    }
}

impl Filter {
    /// Creates a filter. `usage_passes`: the caller asked for the usage frame.
    pub fn new(format: Format, usage_passes: bool, (redact, is_usage): (Redact, IsUsage)) -> Self {
        Self {
            format,
            reader: EventReader::new(format),
            usage_passes,
            redact,
            is_usage,
            held: Vec::new(),
            is_long: false,
            end: None,
            released: false,
            dropped: false,
            events: 0,
            is_finished: false,
            usage: None,
            usage_is_new: false,
            usage_place: None,
        }
    }

    /// The latest plausible `usage` object so far, as JSON.
    pub fn usage(&self) -> Option<&[u8]> {
        self.usage.as_deref()
    }

    /// Whether that is of the whole answer; else it is of the answer so far. `is_complete`: the body ended in order.
    /// That of a chat completion is whole if no text came behind it and the answer is whole: the body ended in order,
    /// the last event came, or the usage stood in a frame of its own, which comes behind the answer. That of a response
    /// stands in its last event.
    pub fn usage_is_whole(&self, is_complete: bool) -> bool {
        let Some(place) = self.usage_place else {
            return false;
        };
        let is_behind_answer = place.is_alone && (self.is_finished || place.behind_text > 0);
        match self.format {
            Format::Chat => {
                place.behind_text == self.text_bytes()
                    && (is_complete || self.is_at_end() || is_behind_answer)
            }
            Format::Responses => place.is_last,
        }
    }

    /// The latest `service_tier` so far that is not empty.
    pub fn service_tier(&self) -> Option<&str> {
        std::str::from_utf8(self.reader.stream.service_tier.as_deref()?).ok()
    }

    /// Bytes of the text so far, unescaped and in UTF-8; sound and images by their length.
    pub const fn text_bytes(&self) -> u64 {
        let facts = &self.reader.stream;
        facts.text_bytes + facts.media_bytes / MEDIA_BYTES_A_TEXT_BYTE
    }

    /// Events that ended so far.
    pub const fn events(&self) -> u64 {
        self.events
    }

    /// Whether the last event came and its end is held.
    pub const fn is_at_end(&self) -> bool {
        self.end.is_some()
    }

    /// Whether the answer is whole by what its events say, though its last event need not have come.
    pub fn is_finished(&self) -> bool {
        self.is_finished || self.usage_is_whole(false) || self.is_at_end()
    }

    /// Whether what may have passed so far ends with a whole event.
    pub const fn is_between_events(&self) -> bool {
        !self.is_long
    }

    /// Whether no more can be held behind the last event.
    pub fn is_full(&self) -> bool {
        let held = self.end.iter().flatten().map(Bytes::len).sum::<usize>();
        held > HELD_BEHIND_END_MAX
    }

    /// Takes the next piece, and appends what of it may pass to `out`.
    pub fn push(&mut self, piece: &Bytes, out: &mut Vec<Bytes>) {
        // What passes of this piece begins here.
        let mut from = 0;
        let mut at = 0;
        if self.held.is_empty() && self.reader.read_late_lf(piece) {
            at = 1;
            from = usize::from(self.dropped);
        }
        while at < piece.len() {
            let (read, ended) = self.reader.read(&piece[at..]);
            let begin = at;
            at += read;
            self.note_usage();
            from = match ended {
                true => self.end_event(piece, from, begin..at, out),
                false => self.in_event(piece, from, begin..at, out),
            };
        }
        self.pass(piece.slice(from..), out);
    }

    /// The body ended: an event that lacks nothing but its end passes, and one that breaks off never does.
    pub fn close(&mut self, out: &mut Vec<Bytes>) {
        if !self.held.is_empty() && self.reader.is_whole() {
            self.end_event(&Bytes::new(), 0, 0..0, out);
        }
    }

    /// Returns what waited for the settlement. Nothing that comes later waits for it.
    pub fn release(&mut self) -> Vec<Bytes> {
        self.released = true;
        self.end.take().unwrap_or_default()
    }

    fn note_usage(&mut self) {
        if let Some(usage) = self.reader.event.usage.take()
            && (self.is_usage)(&usage)
        {
            self.usage = Some(usage);
            (self.usage_is_new, self.usage_place) = (true, None);
        }
    }

    fn pass(&mut self, bytes: Bytes, out: &mut Vec<Bytes>) {
        if !bytes.is_empty() {
            self.end.as_mut().unwrap_or(out).push(bytes);
        }
    }

    /// Passes bytes of the current event, without keys if they may be of an error.
    fn pass_event(&mut self, mut bytes: Vec<u8>, is_plain: bool, out: &mut Vec<Bytes>) {
        if !is_plain && let Some(redacted) = (self.redact)(&bytes) {
            bytes = redacted;
        }
        self.pass(bytes.into(), out);
    }

    /// The piece ends within an event, of which it has `range`. Returns where what passes goes on.
    fn in_event(
        &mut self,
        piece: &Bytes,
        from: usize,
        range: std::ops::Range<usize>,
        out: &mut Vec<Bytes>,
    ) -> usize {
        self.pass(piece.slice(from..range.start), out);
        self.held.extend_from_slice(&piece[range.clone()]);
        self.is_long |= self.held.len() > HELD_MAX;
        if self.is_long {
            let is_plain = self.reader.event.is_plain(self.format);
            let kept = match is_plain {
                true => ending(&self.held, is_line_end, usize::MAX),
                false => ending(&self.held, is_in_key, KEY_MAX),
            };
            let kept = self.held.split_off(self.held.len() - kept);
            let begun = std::mem::replace(&mut self.held, kept);
            self.pass_event(begun, is_plain, out);
        }
        range.end
    }

    /// An event ends with `range` of the piece. Returns where what passes goes on.
    fn end_event(
        &mut self,
        piece: &Bytes,
        from: usize,
        range: std::ops::Range<usize>,
        out: &mut Vec<Bytes>,
    ) -> usize {
        let facts = &self.reader.event;
        let is_end = match self.format {
            Format::Chat => self.reader.is_done(),
            Format::Responses => facts.ends_response(),
        };
        let is_plain = facts.is_plain(self.format) || self.format == Format::Chat && is_end;
        let is_unwanted = self.format == Format::Chat && !self.usage_passes && facts.is_usage_frame();
        self.dropped = is_unwanted && !self.is_long;
        self.is_finished |= facts.has_finish;
        if std::mem::take(&mut self.usage_is_new) {
            self.usage_place = Some(UsagePlace {
                behind_text: self.text_bytes(),
                is_alone: facts.is_usage_frame(),
                is_last: is_end,
            });
        }
        self.reader.begin_event();
        self.events += 1;
        self.is_long = false;
        if is_plain && !is_end && !self.dropped && self.held.is_empty() {
            return from;
        }
        self.pass(piece.slice(from..range.start), out);
        if is_end && self.end.is_none() && !self.released {
            self.end = Some(Vec::new());
        }
        let mut event = std::mem::take(&mut self.held);
        if !self.dropped {
            event.extend_from_slice(&piece[range.clone()]);
            self.pass_event(event, is_plain, out);
        }
        range.end
    }
}

/// The number of bytes at the end of which `is_of` holds; none if they are `max` or more.
fn ending(bytes: &[u8], is_of: fn(u8) -> bool, max: usize) -> usize {
    let ending = bytes.iter().rev().take(max).take_while(|byte| is_of(**byte));
    let ending = ending.count();
    if ending < max { ending } else { 0 }
}

/// Line ends may end the event: they wait, since the last event does.
const fn is_line_end(byte: u8) -> bool {
    matches!(byte, b'\r' | b'\n')
}

/// Whether a byte may stand in a key, in its masked form, or behind it.
const fn is_in_key(byte: u8) -> bool {
    is_line_end(byte) || !byte.is_ascii() || matches!(byte, b'!'..=b'~') && !matches!(byte, b'"' | b',')
}

#[cfg(test)]
mod tests;
