//! Facts about the events of a stream, and where they occur.

/// Longest `usage` object that is read, in a stream and in a whole answer, in bytes. OpenAI's has about 400,
/// OpenRouter's about 1,000.
pub const USAGE_BYTES_MAX: usize = 64 << 10;
/// Longest `type` or `service_tier` that is kept, in bytes.
const WORD_BYTES_MAX: usize = 64;

/// The shape of a stream's events.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// Chunks of `POST /v1/chat/completions`: `usage` and `service_tier` are in a chunk, text is in the `delta` of a
    /// choice, or with some providers in its `message` or `text`, and `[DONE]` comes last.
    Chat,
    /// Events of `POST /v1/responses`: `usage` and `service_tier` are in the `response` of the last event, text is in
    /// `delta`, and again in `text` or `arguments` once it is whole.
    Responses,
}

/// Facts from all events so far.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct StreamFacts {
    /// The latest `service_tier`.
    pub(crate) service_tier: Option<Vec<u8>>,
    /// Bytes of text in deltas, unescaped.
    pub(crate) text_bytes: u64,
    /// Bytes of text outside of deltas, unescaped, which may repeat that of deltas.
    pub(crate) whole_text_bytes: u64,
    /// Bytes of sound and images in base64, and of their addresses.
    pub(crate) media_bytes: u64,
}

/// Facts about the event that is being read.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct EventFacts {
    /// `type`, or the field `event` of the event itself.
    pub(crate) kind: Vec<u8>,
    pub(crate) has_usage: bool,
    /// The `usage` object as JSON, until it is taken.
    pub(crate) usage: Option<Vec<u8>>,
    /// `usage` or `service_tier` occurs twice, or `usage` is longer than [`USAGE_BYTES_MAX`].
    pub(crate) has_unreadable_usage: bool,
    /// True if its `choices` have an element.
    pub(crate) has_choice: bool,
    /// True if a choice has a `finish_reason`.
    pub(crate) has_finish: bool,
    /// True if it has an `error` that is a text or an object.
    pub(crate) has_error: bool,
    pub(crate) has_tier: bool,
    /// True if a key has an escape, which no provider writes: the key may be `error`.
    pub(crate) has_odd_key: bool,
}

impl EventFacts {
    /// Clears the facts for the next event. `kind` keeps its buffer.
    pub(crate) fn reset(&mut self) {
        let mut kind = std::mem::take(&mut self.kind);
        kind.clear();
        *self = Self {
            kind,
            ..Self::default()
        };
    }

    /// Returns whether the event is part of an answer, judged by its facts so far. Any other event may be an error and
    /// echo a key.
    pub(crate) fn is_plain(&self, format: Format) -> bool {
        let is_known = match format {
            Format::Chat => self.has_choice || self.has_usage,
            Format::Responses => self.kind.starts_with(b"response."),
        };
        is_known && !self.has_odd_key && !self.is_error(format)
    }

    /// Returns whether the event reports that the call failed.
    pub(crate) fn is_error(&self, format: Format) -> bool {
        let is_failed_response = format == Format::Responses && self.kind == b"response.failed";
        self.has_error || self.kind == b"error" || is_failed_response
    }

    /// Returns whether it contains the usage and nothing else.
    pub(crate) const fn is_usage_frame(&self) -> bool {
        self.has_usage && !self.has_choice && !self.has_error
    }

    pub(crate) fn ends_response(&self) -> bool {
        matches!(
            self.kind.as_slice(),
            b"response.completed" | b"response.incomplete" | b"response.failed"
        )
    }
}

/// Appends to a text, of which only the start is kept.
pub(crate) fn append_word(word: &mut Vec<u8>, bytes: &[u8]) {
    let room = WORD_BYTES_MAX.saturating_sub(word.len());
    word.extend_from_slice(&bytes[..bytes.len().min(room)]);
}

/// Replaces a text, of which only the start is kept.
pub(crate) fn set_word(word: &mut Vec<u8>, bytes: &[u8]) {
    word.clear();
    append_word(word, bytes);
}

/// Appends to a `usage` object. Returns `false` if it is too long.
pub(crate) fn append_usage(usage: &mut Vec<u8>, bytes: &[u8]) -> bool {
    let fits = usage.len() + bytes.len() <= USAGE_BYTES_MAX;
    if fits {
        usage.extend_from_slice(bytes);
    }
    fits
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_next_event_has_no_facts_and_the_buffer_of_the_last_one() {
        let mut facts = EventFacts {
            kind: b"response.created".to_vec(),
            has_error: true,
            ..EventFacts::default()
        };
        let capacity = facts.kind.capacity();
        facts.reset();
        assert!(facts.kind.is_empty() && !facts.has_error);
        assert_eq!(facts.kind.capacity(), capacity);
    }
}
