//! Which bytes of a stream pass, and when.

use crate::event::EventReader;
use crate::facts::Format;
use bytes::Bytes;

/// Bytes of an event that are held until it shows what it is. Usage frames and errors are far shorter.
pub const HELD_MAX: usize = 16 << 10;
/// Bytes behind the last event that are held while the usage is still to come.
const HELD_BEHIND_END_MAX: usize = 64 << 10;
/// Stands for an error that is too long to be searched for keys.
const LONG_ERROR: &[u8] = b"data: {\"error\":{\"message\":\"The provider's error is too long to be passed on safely.\",\"type\":\"upstream_error\",\"param\":null,\"code\":null}}\n\n";

/// Removes fragments of keys from an error; `None` if it has none.
pub type Redact = Box<dyn Fn(&[u8]) -> Option<Vec<u8>> + Send>;

/// Where in the current event the filter is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Event {
    /// All of it so far is held.
    Held,
    /// It passes as it comes, all but its last line ends.
    Passes,
    /// It is an error that was too long, and the rest of it is dropped.
    Dropped,
}

/// Filters the pieces of one stream.
pub struct Filter {
    format: Format,
    reader: EventReader,
    /// Usage frames pass: the caller asked for them.
    usage_passes: bool,
    redact: Redact,
    event: Event,
    /// Bytes of the current event that did not pass yet.
    held: Vec<u8>,
    /// The last event came, and it and what follows wait for [`Filter::release`].
    end: Option<Vec<Bytes>>,
    released: bool,
    /// The last byte that passed ended an event.
    between_events: bool,
    /// The last event that ended did not pass.
    dropped: bool,
    /// Events that ended.
    events: u64,
    /// The latest usage stood in a frame of its own, or in the last event: it is of the whole answer.
    usage_is_final: bool,
}

impl std::fmt::Debug for Filter {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Filter")
            .field("reader", &self.reader)
            .finish_non_exhaustive()
    }
}

impl Filter {
    /// Creates a filter. `usage_passes`: the caller asked for the usage frame. `redact` cleans errors.
    #[must_use]
    pub fn new(format: Format, usage_passes: bool, redact: Redact) -> Self {
        Self {
            format,
            reader: EventReader::new(format),
            usage_passes,
            redact,
            event: Event::Held,
            held: Vec::new(),
            end: None,
            released: false,
            between_events: true,
            dropped: false,
            events: 0,
            usage_is_final: false,
        }
    }

    /// The latest `usage` object so far, as JSON.
    #[must_use]
    pub fn usage(&self) -> Option<&[u8]> {
        self.reader.stream.usage.as_deref()
    }

    /// Whether that is of the whole answer. In a chunk with text it is of the answer so far.
    #[must_use]
    pub const fn usage_is_final(&self) -> bool {
        self.usage_is_final
    }

    /// The latest `service_tier` so far.
    #[must_use]
    pub fn service_tier(&self) -> Option<&str> {
        std::str::from_utf8(self.reader.stream.service_tier.as_deref()?).ok()
    }

    /// Bytes of the text so far, unescaped and in UTF-8.
    #[must_use]
    pub const fn text_bytes(&self) -> u64 {
        self.reader.stream.text_bytes
    }

    /// Events that ended so far.
    #[must_use]
    pub const fn events(&self) -> u64 {
        self.events
    }

    /// Whether the last event came and its end is held.
    #[must_use]
    pub const fn is_at_end(&self) -> bool {
        self.end.is_some()
    }

    /// Whether no more can be held behind the last event.
    #[must_use]
    pub fn is_full(&self) -> bool {
        let held = self.end.iter().flatten().map(Bytes::len).sum::<usize>();
        held > HELD_BEHIND_END_MAX
    }

    /// Whether what passed so far ends with a whole event.
    #[must_use]
    pub const fn is_between_events(&self) -> bool {
        self.between_events
    }

    /// Takes the next piece, and appends what of it may pass to `out`.
    pub fn push(&mut self, piece: &Bytes, out: &mut Vec<Bytes>) {
        if self.released {
            out.push(piece.clone());
            return;
        }
        // What passes of this piece begins here.
        let mut from = 0;
        let mut at = 0;
        if self.event == Event::Held && self.held.is_empty() && self.reader.read_late_lf(piece) {
            at = 1;
            from = usize::from(self.dropped);
        }
        while at < piece.len() {
            let (read, ended) = self.reader.read(&piece[at..]);
            let begin = at;
            at += read;
            from = match ended {
                true => self.end_event(piece, from, begin..at, out),
                false => self.in_event(piece, from, begin..at, out),
            };
        }
        self.pass(piece.slice(from..), out);
    }

    /// Returns what waited for the settlement. All that comes later passes as it is.
    pub fn release(&mut self) -> Vec<Bytes> {
        self.released = true;
        let mut out = self.end.take().unwrap_or_default();
        self.flush_held(&mut out);
        out
    }

    fn pass(&mut self, bytes: Bytes, out: &mut Vec<Bytes>) {
        if !bytes.is_empty() {
            self.end.as_mut().unwrap_or(out).push(bytes);
        }
    }

    fn flush_held(&mut self, out: &mut Vec<Bytes>) {
        let held = std::mem::take(&mut self.held);
        self.pass(held.into(), out);
    }

    /// The piece ends within an event, of which it has `range`. Returns where what passes goes on.
    fn in_event(
        &mut self,
        piece: &Bytes,
        from: usize,
        range: std::ops::Range<usize>,
        out: &mut Vec<Bytes>,
    ) -> usize {
        if self.event == Event::Held && self.reader.event.is_plain(self.format) {
            self.event = Event::Passes;
        }
        if self.event == Event::Held && self.held.len() + range.len() > HELD_MAX {
            self.event = match self.reader.event.is_error(self.format) {
                true => Event::Dropped,
                false => Event::Passes,
            };
        }
        self.pass(piece.slice(from..range.start), out);
        let bytes = &piece[range.clone()];
        match self.event {
            Event::Held => self.held.extend_from_slice(bytes),
            Event::Dropped => self.held.clear(),
            Event::Passes => {
                let ends = bytes
                    .iter()
                    .rev()
                    .take_while(|byte| matches!(byte, b'\r' | b'\n'));
                let ends = ends.count();
                let text = range.end - ends;
                if text > range.start {
                    self.flush_held(out);
                    self.pass(piece.slice(range.start..text), out);
                    self.between_events = false;
                }
                self.held.extend_from_slice(&piece[text..]);
            }
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
        let is_dropped = self.format == Format::Chat && !self.usage_passes && facts.is_usage_frame();
        let is_error = facts.is_error(self.format);
        if facts.has_usage {
            self.usage_is_final = is_end || facts.is_usage_frame();
        }
        let event = std::mem::replace(&mut self.event, Event::Held);
        self.reader.begin_event();
        self.events += 1;
        self.dropped = event == Event::Held && is_dropped;
        let is_changed = event == Event::Dropped || self.dropped || event == Event::Held && is_error;
        if !is_end && !is_changed && self.held.is_empty() {
            self.between_events = true;
            return from;
        }
        self.pass(piece.slice(from..range.start), out);
        if is_end && self.end.is_none() {
            self.end = Some(Vec::new());
        }
        let bytes = piece.slice(range.clone());
        match event {
            Event::Dropped => self.pass(Bytes::from_static(LONG_ERROR), out),
            Event::Held if self.dropped => self.held.clear(),
            Event::Held if is_error => {
                self.held.extend_from_slice(&bytes);
                if let Some(redacted) = (self.redact)(&self.held) {
                    self.held = redacted;
                }
                self.flush_held(out);
            }
            Event::Held | Event::Passes => {
                self.flush_held(out);
                self.pass(bytes, out);
            }
        }
        self.between_events = true;
        range.end
    }
}

#[cfg(test)]
mod tests;
