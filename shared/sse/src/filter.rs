//! Decides which bytes of a stream pass, and when: whole events, and long events piece by piece.

use crate::event::EventReader;
use crate::facts::Format;
use bytes::Bytes;

/// Bytes of an event that are held until it is complete. From this length on it passes piece by piece. No event with
/// text is that long.
pub const HELD_MAX: usize = 16 << 10;
/// Maximum bytes after the last event that are held while the usage is still missing.
const HELD_BEHIND_END_MAX: usize = 64 << 10;
/// Longest key that is found as a whole in a long event, in bytes.
const KEY_MAX: usize = 1 << 10;
/// Base64 bytes of audio and images that count as one byte of text: this is about three times their cost. A second of
/// audio has 64,000 of them, and about 20 tokens.
const MEDIA_BYTES_A_TEXT_BYTE: u64 = 256;

/// Removes fragments of keys from an event that is not part of an answer; `None` if it has none.
pub type Redact = Box<dyn Fn(&[u8]) -> Option<Vec<u8>> + Send>;
/// Reads a `usage` object.
pub type ReadUsage = Box<dyn Fn(&[u8]) -> FoundUsage + Send>;

/// Contents of a `usage` object by which a call can be settled.
#[derive(Debug, Clone, Copy)]
pub struct FoundUsage {
    /// Plausible counts of tokens.
    pub has_tokens: bool,
    /// The cost that the provider reports, if reported costs are used, in nano-USD.
    pub cost_nanos: Option<u64>,
}

/// Filters the pieces of one stream.
pub struct StreamFilter {
    format: Format,
    reader: EventReader,
    /// True if usage frames pass, because the caller requested them.
    usage_passes: bool,
    redact: Redact,
    read_usage: ReadUsage,
    /// Bytes of the current event that have not passed yet.
    held: Vec<u8>,
    /// True if the current event is longer than [`HELD_MAX`], so that its start has passed.
    is_long: bool,
    /// Set once the last event arrived: its bytes and those after it wait for [`StreamFilter::release`]. They are
    /// copied: many short pieces would take far more memory than their bytes.
    end: Option<Vec<u8>>,
    released: bool,
    /// The last event that ended did not pass.
    dropped: bool,
    /// Events that ended.
    events: u64,
    /// A choice had a `finish_reason`.
    is_finished: bool,
    /// The latest `usage` with plausible counts, of the events that ended.
    usage: Option<Vec<u8>>,
    /// The latest `usage` if its counts are not plausible, of the events that ended; empty if it cannot be read.
    bad_usage: Option<Vec<u8>>,
    /// The largest reported cost of the events that ended. Not every `usage` of a stream repeats it.
    cost_nanos: Option<u64>,
    /// Position of the usage; `None` if a later one cannot be read.
    usage_position: Option<UsagePosition>,
}

/// Position of a `usage` in the stream.
#[derive(Clone, Copy)]
struct UsagePosition {
    /// Bytes of text before the end of the usage's event.
    behind_text: u64,
    /// True if the usage is in a frame of its own.
    is_alone: bool,
    /// In the last event.
    is_last: bool,
}

impl std::fmt::Debug for StreamFilter {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Filter")
            .field("reader", &self.reader)
            .finish_non_exhaustive()
    }
}

impl StreamFilter {
    /// Creates a filter. `usage_passes`: the caller requested the usage frame.
    pub fn new(format: Format, usage_passes: bool, (redact, read_usage): (Redact, ReadUsage)) -> Self {
        Self {
            format,
            reader: EventReader::new(format),
            usage_passes,
            redact,
            read_usage,
            held: Vec::new(),
            is_long: false,
            end: None,
            released: false,
            dropped: false,
            events: 0,
            is_finished: false,
            usage: None,
            bad_usage: None,
            cost_nanos: None,
            usage_position: None,
        }
    }

    /// Returns the latest `usage` object so far with plausible counts, as JSON.
    pub fn usage(&self) -> Option<&[u8]> {
        let current = self.current_usage().filter(|(_, found)| found.has_tokens);
        current.map(|(usage, _)| usage).or(self.usage.as_deref())
    }

    /// Returns the latest `usage` of the events that ended, if it does not have plausible counts; empty if it cannot be
    /// read.
    pub fn bad_usage(&self) -> Option<&[u8]> {
        self.bad_usage.as_deref()
    }

    /// Returns the largest cost so far that the provider reported, if reported costs are used, in nano-USD.
    pub fn cost_nanos(&self) -> Option<u64> {
        let current = self.current_usage().and_then(|(_, found)| found.cost_nanos);
        self.cost_nanos.max(current)
    }

    /// Returns the usage of an event that has not ended, as far as it is known.
    fn current_usage(&self) -> Option<(&[u8], FoundUsage)> {
        let event = &self.reader.event;
        let usage = event.usage.as_deref().filter(|_| !event.has_unreadable_usage)?;
        Some((usage, (self.read_usage)(usage)))
    }

    /// Returns whether the provider reported tokens or a cost in the events that ended.
    pub const fn has_report(&self) -> bool {
        self.usage.is_some() || self.cost_nanos.is_some()
    }

    /// Returns whether the usage is that of the whole answer, and not only of the answer so far. `is_complete`: the
    /// body ended properly. In a chat completion this requires that no text follows the usage, and that the body ended
    /// properly, the last event arrived, or the usage has its own frame, which follows the answer. In a response the
    /// usage is in the last event.
    pub fn usage_is_whole(&self, is_complete: bool) -> bool {
        // The usage of an event that has not ended has no position yet.
        let Some(position) = self.usage_position.filter(|_| !self.reader.event.has_usage) else {
            return false;
        };
        let is_behind_answer = position.is_alone && (self.is_finished || position.behind_text > 0);
        match self.format {
            Format::Chat => {
                position.behind_text == self.text_bytes()
                    && (is_complete || self.is_at_end() || is_behind_answer)
            }
            Format::Responses => position.is_last,
        }
    }

    /// Returns the latest `service_tier` so far that is not empty.
    pub fn service_tier(&self) -> Option<&str> {
        std::str::from_utf8(self.reader.stream.service_tier.as_deref()?).ok()
    }

    /// Returns the bytes of the text so far, unescaped and in UTF-8; audio and images count by their length. Whole
    /// texts count only in a stream without deltas: some providers repeat the answer so far in each event.
    pub const fn text_bytes(&self) -> u64 {
        let facts = &self.reader.stream;
        let text = match facts.text_bytes {
            0 => facts.whole_text_bytes,
            deltas => deltas,
        };
        text + facts.media_bytes / MEDIA_BYTES_A_TEXT_BYTE
    }

    /// Returns the number of events that have ended.
    pub const fn events(&self) -> u64 {
        self.events
    }

    /// Returns whether the last event arrived and its end is held.
    pub const fn is_at_end(&self) -> bool {
        self.end.is_some()
    }

    /// Returns whether the answer is complete, judged by its events, even if the last event is missing.
    pub fn is_finished(&self) -> bool {
        self.is_finished || self.usage_is_whole(false) || self.is_at_end()
    }

    /// Returns whether the bytes that may have passed so far end with a complete event.
    pub const fn is_between_events(&self) -> bool {
        !self.is_long
    }

    /// Returns whether no more bytes can be held after the last event.
    pub fn is_full(&self) -> bool {
        self.end
            .as_ref()
            .is_some_and(|held| held.len() > HELD_BEHIND_END_MAX)
    }

    /// Reads the next piece, and appends the bytes that may pass to `out`.
    pub fn push(&mut self, piece: &Bytes, out: &mut Vec<Bytes>) {
        // Start of the bytes of this piece that pass.
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
            from = match ended {
                true => self.end_event(piece, from, begin..at, out),
                false => self.in_event(piece, from, begin..at, out),
            };
        }
        self.pass(piece.slice(from..), out);
    }

    /// Handles the end of the body: an event that lacks only its end passes, an incomplete one never does.
    pub fn close(&mut self, out: &mut Vec<Bytes>) {
        if !self.held.is_empty() && self.reader.is_whole() {
            self.end_event(&Bytes::new(), 0, 0..0, out);
        }
    }

    /// Returns the bytes that waited for the settlement, at most one piece. Later bytes do not wait.
    pub fn release(&mut self) -> Vec<Bytes> {
        self.released = true;
        let held = self.end.take().filter(|held| !held.is_empty());
        held.map(Bytes::from).into_iter().collect()
    }

    /// Takes the usage of an event that ended. It is read no earlier, so that where pieces end changes nothing.
    fn note_usage(&mut self, is_end: bool) {
        if self.reader.event.has_unreadable_usage {
            self.usage_position = None;
            self.bad_usage = Some(Vec::new());
            return;
        }
        let Some(usage) = self.reader.event.usage.take() else {
            return;
        };
        let found = (self.read_usage)(&usage);
        self.cost_nanos = self.cost_nanos.max(found.cost_nanos);
        self.bad_usage = None;
        if found.has_tokens {
            self.usage = Some(usage);
            self.usage_position = Some(UsagePosition {
                behind_text: self.text_bytes(),
                is_alone: self.reader.event.is_usage_frame(),
                is_last: is_end,
            });
        } else {
            self.bad_usage = Some(usage);
        }
    }

    fn pass(&mut self, bytes: Bytes, out: &mut Vec<Bytes>) {
        match &mut self.end {
            Some(held) => held.extend_from_slice(&bytes),
            None if !bytes.is_empty() => out.push(bytes),
            None => {}
        }
    }

    /// Passes bytes of the current event, without keys if they may belong to an error.
    fn pass_event(&mut self, mut bytes: Vec<u8>, is_plain: bool, out: &mut Vec<Bytes>) {
        if !is_plain && let Some(redacted) = (self.redact)(&bytes) {
            bytes = redacted;
        }
        self.pass(bytes.into(), out);
    }

    /// Handles `range` of a piece that ends within an event. Returns the start of the next bytes that pass.
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

    /// Handles `range` of a piece with the end of an event. Returns the start of the next bytes that pass.
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
        self.note_usage(is_end);
        self.reader.begin_event();
        self.events += 1;
        self.is_long = false;
        if !is_end && !self.dropped && self.held.is_empty() {
            // The whole event is in this piece. Unless it has a key, it passes with its neighbours.
            let redacted = match is_plain || is_blank(&piece[range.clone()]) {
                true => None,
                false => (self.redact)(&piece[range.clone()]),
            };
            if let Some(redacted) = redacted {
                self.pass(piece.slice(from..range.start), out);
                self.pass(redacted.into(), out);
                return range.end;
            }
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

/// Returns the number of final bytes for which `is_of` holds; 0 if there are `max` or more.
fn ending(bytes: &[u8], is_of: fn(u8) -> bool, max: usize) -> usize {
    let ending = bytes.iter().rev().take(max).take_while(|byte| is_of(**byte));
    let ending = ending.count();
    if ending < max { ending } else { 0 }
}

fn is_blank(event: &[u8]) -> bool {
    event.iter().all(|byte| is_line_end(*byte))
}

/// Returns whether this is a line end. Line ends may end the event, so they wait, as the last event does.
const fn is_line_end(byte: u8) -> bool {
    matches!(byte, b'\r' | b'\n')
}

/// Returns whether a byte may occur in a key, in its masked form, or after it.
const fn is_in_key(byte: u8) -> bool {
    is_line_end(byte) || !byte.is_ascii() || matches!(byte, b'!'..=b'~') && !matches!(byte, b'"' | b',')
}

#[cfg(test)]
mod tests;
