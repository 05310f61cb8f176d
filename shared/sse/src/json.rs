//! Incremental scan of a JSON text for a few values. It stores neither a tree nor text, so an event of 1 MB takes no
//! more memory than a short one. Text that is not JSON is scanned too and yields no facts.

mod text;

use crate::facts::{EventFacts, Format, StreamFacts, append_usage, append_word, set_word};
use text::{quote_or_backslash, unescaped, utf8_bytes};

/// Deepest nesting that is scanned. Nothing is found in deeper values.
const DEPTH_MAX: usize = 64;
/// Longest start of an event that is remembered, in bytes.
const BEGINNING_MAX: usize = 1024;
/// Type of the events whose `delta` is audio in base64.
const AUDIO_DELTA: &[u8] = b"response.audio.delta";

/// Kind of a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum EventKey {
    #[default]
    Other,
    Choices,
    Delta,
    Error,
    FinishReason,
    Response,
    ServiceTier,
    Type,
    Usage,
    /// A text that is not billed: `role`, `id`.
    Label,
    /// Of sound and images in base64, or their addresses: `data`, `url`, `b64_json`.
    Media,
    /// The whole answer of a choice.
    Message,
    /// A whole text: `text`, `arguments`.
    WholeText,
}

impl EventKey {
    fn from_name(name: &[u8]) -> Self {
        match name {
            b"choices" => Self::Choices,
            b"delta" => Self::Delta,
            b"error" => Self::Error,
            b"finish_reason" => Self::FinishReason,
            b"response" => Self::Response,
            b"service_tier" => Self::ServiceTier,
            b"type" => Self::Type,
            b"usage" => Self::Usage,
            b"role" | b"id" => Self::Label,
            b"data" | b"url" | b"b64_json" => Self::Media,
            b"message" => Self::Message,
            b"text" | b"arguments" => Self::WholeText,
            _ => Self::Other,
        }
    }
}

/// Position of the scan in a string.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Escape {
    /// In no escape.
    None,
    /// After a backslash.
    Begun,
    /// In `\uXXXX`, with this many digits and their value.
    Unicode(u8, u32),
}

/// Purpose of the current string.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Use {
    Key,
    Kind,
    ServiceTier,
    FinishReason,
    Text,
    /// Text outside of deltas.
    WholeText,
    Media,
    Nothing,
}

/// The scan of one event's JSON.
#[derive(Debug)]
pub(crate) struct JsonScan {
    format: Format,
    position: ScanPosition,
    /// Use and position of the current string.
    string: Option<(Use, Escape)>,
    /// Start of a key, `type` or `service_tier` that arrives in several pieces.
    name: Vec<u8>,
    /// Depth at which the current `usage` ends, and its text so far.
    usage: Option<(usize, Vec<u8>)>,
    /// True if nothing of the event has been read.
    is_new: bool,
    beginning: Beginning,
}

#[derive(Debug, Clone, Copy, Default)]
struct ScanPosition {
    /// Open objects and arrays.
    depth: usize,
    /// A bit for each depth: whether the value is an object.
    objects: u64,
    /// The current key of the three outermost depths, from 1 on.
    path: [EventKey; 4],
    /// The key of the next value.
    key: EventKey,
    /// True if the next string of this object is a key.
    key_comes: bool,
    /// The current `delta` or `message` of a choice, and the depth at which it ends.
    part: Option<(EventKey, usize)>,
    /// The key `usage` of the answer occurred.
    has_usage_key: bool,
    /// The key `service_tier` of the answer occurred.
    has_tier_key: bool,
}

/// Start of an event up to its first text, and the state of the scan there. The chunks of a stream mostly have the same
/// start: a chunk with the start of the previous one is scanned only from its text on, which takes a fifth of the time.
#[derive(Debug, Default)]
struct Beginning {
    bytes: Vec<u8>,
    position: ScanPosition,
    service_tier: Option<Vec<u8>>,
}

impl JsonScan {
    pub(crate) fn new(format: Format) -> Self {
        Self {
            format,
            position: ScanPosition::default(),
            string: None,
            name: Vec::new(),
            usage: None,
            is_new: true,
            beginning: Beginning::default(),
        }
    }

    /// Resets the scan for another event.
    pub(crate) fn reset(&mut self) {
        self.position = ScanPosition::default();
        (self.string, self.usage, self.is_new) = (None, None, true);
    }

    /// Returns whether all brackets are closed.
    pub(crate) const fn is_closed(&self) -> bool {
        self.position.depth == 0 && self.string.is_none()
    }

    /// Reads more of the text.
    pub(crate) fn read(&mut self, text: &[u8], event: &mut EventFacts, stream: &mut StreamFacts) {
        let is_first = std::mem::take(&mut self.is_new);
        let mut at = if is_first {
            self.skip_beginning(text, event, stream)
        } else {
            0
        };
        let mut learns = is_first && at == 0 && self.format == Format::Chat;
        while at < text.len() {
            let rest = &text[at..];
            if learns && rest[0] == b'"' && !self.position.key_comes && self.is_text() {
                self.learn_beginning(&text[..at], event, stream);
                learns = false;
            }
            let read = match self.string {
                Some((used, escape)) => self.in_string(used, escape, rest, event, stream),
                None => self.structure(rest, event, stream),
            };
            if self.usage.is_some() {
                self.capture(&rest[..read], event);
            }
            at += read;
        }
    }

    /// Skips the bytes that equal the remembered beginning. Returns their number.
    fn skip_beginning(&mut self, text: &[u8], event: &mut EventFacts, stream: &mut StreamFacts) -> usize {
        let Beginning {
            bytes,
            position,
            service_tier,
        } = &self.beginning;
        if !text.starts_with(bytes) || bytes.is_empty() {
            return 0;
        }
        self.position = *position;
        event.has_choice = true;
        if let Some(tier) = service_tier {
            event.has_tier = true;
            set_word(stream.service_tier.get_or_insert_default(), tier);
        }
        bytes.len()
    }

    /// Remembers the start of an event when its first text is reached.
    fn learn_beginning(&mut self, bytes: &[u8], event: &EventFacts, stream: &StreamFacts) {
        let says_more = event.has_usage
            || event.has_unreadable_usage
            || event.has_finish
            || event.has_error
            || event.has_odd_key;
        if !event.has_choice || says_more || bytes.len() > BEGINNING_MAX {
            return;
        }
        self.beginning.bytes.clear();
        self.beginning.bytes.extend_from_slice(bytes);
        self.beginning.position = self.position;
        self.beginning.service_tier = stream.service_tier.clone().filter(|_| event.has_tier);
    }

    /// Reads a mark, a string, a number or a word. Returns the number of bytes.
    fn structure(&mut self, rest: &[u8], event: &mut EventFacts, stream: &mut StreamFacts) -> usize {
        match rest[0] {
            b'"' => return self.begin_string(rest, event, stream),
            b'{' => self.open(true, event),
            b'[' => self.open(false, event),
            b'}' | b']' => {
                self.position.depth = self.position.depth.saturating_sub(1);
                self.position.key_comes = false;
                if self
                    .position
                    .part
                    .is_some_and(|(_, end)| end == self.position.depth)
                {
                    self.position.part = None;
                }
            }
            b',' => {
                self.position.key_comes = self.in_object();
                self.position.key = EventKey::Other;
            }
            b' ' | b'\t' | b'\r' | b'\n' | b':' => {}
            _ => {
                self.begin_value(event);
                let more = rest[1..].iter().take_while(|byte| byte.is_ascii_alphanumeric());
                return 1 + more.count();
            }
        }
        1
    }

    fn in_object(&self) -> bool {
        (1..=DEPTH_MAX).contains(&self.position.depth)
            && self.position.objects >> (self.position.depth - 1) & 1 == 1
    }

    /// Handles the start of a value that may be an element of `choices`.
    fn begin_value(&self, event: &mut EventFacts) {
        let in_choices =
            self.position.depth == 2 && self.position.path[1] == EventKey::Choices && !self.in_object();
        event.has_choice |= self.format == Format::Chat && in_choices;
    }

    fn open(&mut self, is_object: bool, event: &mut EventFacts) {
        self.begin_value(event);
        let (depth, key) = (self.position.depth, self.position.key);
        if is_object && key == EventKey::Usage && self.is_of_answer() {
            self.usage = Some((depth, Vec::new()));
        }
        event.has_error |= is_object && self.is_error(key, depth);
        if matches!(key, EventKey::Delta | EventKey::Message)
            && self.in_a_choice()
            && self.position.part.is_none()
        {
            self.position.part = Some((key, depth));
        }
        self.position.depth += 1;
        if self.position.depth <= DEPTH_MAX {
            let bit = 1 << (self.position.depth - 1);
            self.position.objects = self.position.objects & !bit | if is_object { bit } else { 0 };
        }
        if let Some(key) = self.position.path.get_mut(self.position.depth) {
            *key = EventKey::Other;
        }
        (self.position.key, self.position.key_comes) = (EventKey::Other, is_object);
    }

    /// Returns whether a key or value at this depth is one of the answer: where its `usage` is.
    fn is_of_answer(&self) -> bool {
        match self.format {
            Format::Chat => self.position.depth == 1,
            Format::Responses => self.position.depth == 2 && self.position.path[1] == EventKey::Response,
        }
    }

    /// Notes a key of the answer by which it is billed. If it occurs twice, parsers differ in which value they take.
    fn note_key(&mut self, event: &mut EventFacts) {
        let is_of_answer = self.is_of_answer();
        let was_seen = match self.position.key {
            EventKey::Usage if is_of_answer => &mut self.position.has_usage_key,
            EventKey::ServiceTier if is_of_answer => &mut self.position.has_tier_key,
            _ => return,
        };
        event.has_unreadable_usage |= std::mem::replace(was_seen, true);
    }

    /// Returns whether the value of a key at this depth is the error of the event, of its response, or of a choice.
    fn is_error(&self, key: EventKey, depth: usize) -> bool {
        let of_response =
            self.format == Format::Responses && depth == 2 && self.position.path[1] == EventKey::Response;
        key == EventKey::Error && (depth == 1 || of_response || self.in_a_choice())
    }

    /// Returns whether the current object is an element of `choices`.
    fn in_a_choice(&self) -> bool {
        self.format == Format::Chat && self.position.depth == 3 && self.position.path[1] == EventKey::Choices
    }

    /// Reads a string, or the quote that begins it if its end is not there or an escape comes before. Returns the
    /// number of bytes.
    fn begin_string(&mut self, rest: &[u8], event: &mut EventFacts, stream: &mut StreamFacts) -> usize {
        let used = self.use_of_string(event);
        let text = &rest[1..];
        let end = quote_or_backslash(text);
        if text.get(end) == Some(&b'"') {
            self.count(used, &text[..end], stream);
            self.end_string(used, &text[..end], event, stream);
            return end + 2;
        }
        self.name.clear();
        self.string = Some((used, Escape::None));
        1
    }

    /// Returns the use of the string that starts here.
    fn use_of_string(&self, event: &mut EventFacts) -> Use {
        if self.position.key_comes {
            return Use::Key;
        }
        self.begin_value(event);
        event.has_error |= self.is_error(self.position.key, self.position.depth);
        let responses = self.format == Format::Responses;
        let is_text = self.is_text();
        match self.position.key {
            EventKey::Media if is_text => Use::Media,
            EventKey::Delta if is_text && event.kind == AUDIO_DELTA => Use::Media,
            _ if is_text => Use::Text,
            EventKey::Type if responses && self.position.depth == 1 => Use::Kind,
            EventKey::ServiceTier if self.is_of_answer() => Use::ServiceTier,
            EventKey::FinishReason if self.in_a_choice() => Use::FinishReason,
            _ if self.is_whole_text() => Use::WholeText,
            _ => Use::Nothing,
        }
    }

    /// Returns whether the next value, if it is a string, is text outside of a delta. Sound and images are none.
    fn is_whole_text(&self) -> bool {
        let key = self.position.key;
        match (self.format, self.position.part) {
            (Format::Chat, Some((part, _))) => {
                part == EventKey::Message
                    && !matches!(key, EventKey::Label | EventKey::Type | EventKey::Media)
            }
            (Format::Chat, None) => self.in_a_choice() && key == EventKey::WholeText,
            (Format::Responses, _) => self.position.depth == 1 && key == EventKey::WholeText,
        }
    }

    /// Returns whether the next value, if it is a string, is text or media.
    fn is_text(&self) -> bool {
        match (self.format, self.position.part) {
            (Format::Chat, Some((part, _))) => {
                part == EventKey::Delta && !matches!(self.position.key, EventKey::Label | EventKey::Type)
            }
            (Format::Chat, None) => self.in_a_choice() && self.position.key == EventKey::Delta,
            (Format::Responses, _) => self.position.depth == 1 && self.position.key == EventKey::Delta,
        }
    }

    /// Reads within a string, up to its end or to the next escape. Returns the number of bytes.
    fn in_string(
        &mut self,
        used: Use,
        escape: Escape,
        text: &[u8],
        event: &mut EventFacts,
        stream: &mut StreamFacts,
    ) -> usize {
        let first = text[0];
        let (escape, read) = match escape {
            Escape::Begun if first == b'u' => (Escape::Unicode(0, 0), 1),
            Escape::Begun => {
                self.add(used, &[unescaped(first)], stream);
                (Escape::None, 1)
            }
            Escape::Unicode(digits, value) => {
                let value = value << 4 | char::from(first).to_digit(16).unwrap_or(0);
                match digits {
                    3 => {
                        let mut bytes = [b'?'; 3];
                        if let Some(ascii) = u8::try_from(value).ok().filter(u8::is_ascii) {
                            bytes[0] = ascii;
                        }
                        self.add(used, &bytes[..utf8_bytes(value)], stream);
                        (Escape::None, 1)
                    }
                    _ => (Escape::Unicode(digits + 1, value), 1),
                }
            }
            Escape::None => match quote_or_backslash(text) {
                0 if first == b'"' => {
                    self.string = None;
                    let name = std::mem::take(&mut self.name);
                    self.end_string(used, &name, event, stream);
                    self.name = name;
                    return 1;
                }
                0 => {
                    event.has_odd_key |= used == Use::Key;
                    (Escape::Begun, 1)
                }
                end => {
                    self.add(used, &text[..end], stream);
                    (Escape::None, end)
                }
            },
        };
        self.string = Some((used, escape));
        read
    }

    /// Adds a part of a string.
    fn add(&mut self, used: Use, part: &[u8], stream: &mut StreamFacts) {
        self.count(used, part, stream);
        if matches!(used, Use::Key | Use::Kind | Use::ServiceTier | Use::FinishReason) {
            append_word(&mut self.name, part);
        }
    }

    fn count(&self, used: Use, part: &[u8], stream: &mut StreamFacts) {
        match used {
            Use::Text => stream.text_bytes += part.len() as u64,
            Use::WholeText => stream.whole_text_bytes += part.len() as u64,
            Use::Media => stream.media_bytes += part.len() as u64,
            Use::Key | Use::Kind | Use::ServiceTier | Use::FinishReason | Use::Nothing => {}
        }
    }

    /// Ends a string with the text `word`, of which only the start may be kept.
    fn end_string(&mut self, used: Use, word: &[u8], event: &mut EventFacts, stream: &mut StreamFacts) {
        match used {
            Use::Key => {
                self.position.key = EventKey::from_name(word);
                self.position.key_comes = false;
                if let Some(key) = self.position.path.get_mut(self.position.depth) {
                    *key = self.position.key;
                }
                self.note_key(event);
            }
            Use::Kind => set_word(&mut event.kind, word),
            Use::ServiceTier if word.is_empty() => {}
            Use::ServiceTier => {
                event.has_tier = true;
                set_word(stream.service_tier.get_or_insert_default(), word);
            }
            // Some providers send an empty string in each chunk.
            Use::FinishReason => event.has_finish |= !word.is_empty(),
            Use::Text | Use::WholeText | Use::Media | Use::Nothing => {}
        }
    }

    /// Stores the text of the current `usage`, and passes it to the event at its end.
    fn capture(&mut self, bytes: &[u8], event: &mut EventFacts) {
        let Some((end, text)) = &mut self.usage else {
            return;
        };
        if !append_usage(text, bytes) {
            self.usage = None;
            event.has_unreadable_usage = true;
        } else if self.position.depth == *end && self.string.is_none() {
            event.usage = Some(std::mem::take(text));
            event.has_usage = true;
            self.usage = None;
        }
    }
}

#[cfg(test)]
mod tests;
