//! Scans a JSON text that comes in pieces for the few values that matter. It keeps no tree and no text, so an event of
//! a megabyte costs no more memory than a short one. What is not JSON is scanned all the same and says nothing.

use crate::facts::{EventFacts, Format, StreamFacts, append_usage, append_word};
use memchr::memchr2;

/// Deepest nesting that is understood. Below it nothing is found.
const DEPTH_MAX: usize = 64;
/// Longest key that is told from others, in bytes.
const KEY_BYTES_MAX: usize = 16;
/// The event of a response whose `delta` is sound in base64.
const AUDIO_DELTA: &[u8] = b"response.audio.delta";

/// A key that matters, or another one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum Key {
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
    /// Of a text that is not billed: `role`, `id`.
    Label,
    /// Of sound and images in base64, or their addresses: `data`, `url`, `b64_json`.
    Media,
}

impl Key {
    fn of(name: &[u8]) -> Self {
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
            _ => Self::Other,
        }
    }
}

/// Where in a string the scan is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Escape {
    /// In no escape.
    None,
    /// Behind a backslash.
    Begun,
    /// In `\uXXXX`, with this many digits and their value.
    Unicode(u8, u32),
}

/// What becomes of the string that is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Use {
    Key,
    Kind,
    ServiceTier,
    Text,
    Media,
    Nothing,
}

/// The scan of one event's JSON.
#[derive(Debug)]
pub(crate) struct JsonScan {
    format: Format,
    /// Open objects and arrays.
    depth: usize,
    /// Of each depth: whether it is an object.
    is_object: [bool; DEPTH_MAX],
    /// The current key of the three outermost depths, from 1 on.
    path: [Key; 4],
    /// The key of the value that comes next.
    key: Key,
    /// The next string of this object is a key.
    key_comes: bool,
    /// The string that is read.
    string: Option<(Use, Escape)>,
    name: Vec<u8>,
    /// The depth at which the `delta` ends that is read.
    delta: Option<usize>,
    /// The depth at which the `usage` ends that is read, and its text so far.
    usage: Option<(usize, Vec<u8>)>,
}

impl JsonScan {
    pub(crate) fn new(format: Format) -> Self {
        Self {
            format,
            depth: 0,
            is_object: [false; DEPTH_MAX],
            path: [Key::Other; 4],
            key: Key::Other,
            key_comes: false,
            string: None,
            name: Vec::new(),
            delta: None,
            usage: None,
        }
    }

    /// Makes it ready for another event.
    pub(crate) fn reset(&mut self) {
        (self.depth, self.path, self.key) = (0, [Key::Other; 4], Key::Other);
        (self.key_comes, self.string) = (false, None);
        (self.delta, self.usage) = (None, None);
        self.name.clear();
    }

    /// Whether all that was opened is closed.
    pub(crate) const fn is_closed(&self) -> bool {
        self.depth == 0 && self.string.is_none()
    }

    /// Reads more of the text.
    pub(crate) fn read(&mut self, text: &[u8], event: &mut EventFacts, stream: &mut StreamFacts) {
        let mut at = 0;
        while let Some(&byte) = text.get(at) {
            let from = at;
            at += match self.string {
                Some(string) => self.string(string, &text[at..], event, stream),
                None => {
                    self.structure(byte, event);
                    1
                }
            };
            self.capture(&text[from..at], event);
        }
    }

    /// Reads one byte outside of strings.
    fn structure(&mut self, byte: u8, event: &mut EventFacts) {
        match byte {
            b'{' | b'[' => self.open(byte == b'{', event),
            b'}' | b']' => {
                self.depth = self.depth.saturating_sub(1);
                self.key_comes = false;
                if self.delta == Some(self.depth) {
                    self.delta = None;
                }
            }
            b',' => {
                self.key_comes = self.in_object();
                self.key = Key::Other;
            }
            b'"' => self.begin_string(event),
            b' ' | b'\t' | b'\r' | b'\n' | b':' => {}
            _ => self.begin_value(event),
        }
    }

    fn in_object(&self) -> bool {
        (1..=DEPTH_MAX).contains(&self.depth) && self.is_object[self.depth - 1]
    }

    /// A value begins that is the first or another element of `choices`.
    fn begin_value(&self, event: &mut EventFacts) {
        let in_choices = self.depth == 2 && self.path[1] == Key::Choices && !self.in_object();
        event.has_choice |= self.format == Format::Chat && in_choices;
    }

    fn open(&mut self, is_object: bool, event: &mut EventFacts) {
        self.begin_value(event);
        let (depth, key) = (self.depth, self.key);
        let is_usage = key == Key::Usage
            && match self.format {
                Format::Chat => depth == 1,
                Format::Responses => depth == 2 && self.path[1] == Key::Response,
            };
        if is_object && is_usage {
            self.usage = Some((depth, Vec::new()));
        }
        event.has_error |= is_object && self.is_error(key, depth);
        if key == Key::Delta && self.in_a_choice() && self.delta.is_none() {
            self.delta = Some(depth);
        }
        self.depth += 1;
        if self.depth <= DEPTH_MAX {
            self.is_object[self.depth - 1] = is_object;
        }
        if let Some(key) = self.path.get_mut(self.depth) {
            *key = Key::Other;
        }
        (self.key, self.key_comes) = (Key::Other, is_object);
    }

    /// Whether the value of a key at this depth is the error of the event, or of its response.
    fn is_error(&self, key: Key, depth: usize) -> bool {
        let of_response = self.format == Format::Responses && depth == 2 && self.path[1] == Key::Response;
        key == Key::Error && (depth == 1 || of_response)
    }

    /// Whether the current object is an element of `choices`.
    fn in_a_choice(&self) -> bool {
        self.format == Format::Chat && self.depth == 3 && self.path[1] == Key::Choices
    }

    fn begin_string(&mut self, event: &mut EventFacts) {
        if self.key_comes {
            self.name.clear();
            self.string = Some((Use::Key, Escape::None));
            return;
        }
        self.begin_value(event);
        event.has_error |= self.is_error(self.key, self.depth);
        event.has_finish |= self.key == Key::FinishReason && self.in_a_choice();
        let responses = self.format == Format::Responses;
        let tier_depth = 1 + usize::from(responses);
        let is_text = match self.format {
            Format::Chat => self.delta.is_some() && !matches!(self.key, Key::Label | Key::Type),
            Format::Responses => self.depth == 1 && self.key == Key::Delta,
        };
        let used = match self.key {
            Key::Media if is_text => Use::Media,
            Key::Delta if is_text && event.kind == AUDIO_DELTA => Use::Media,
            _ if is_text => Use::Text,
            Key::Type if responses && self.depth == 1 => Use::Kind,
            Key::ServiceTier if self.depth == tier_depth => Use::ServiceTier,
            _ => Use::Nothing,
        };
        if matches!(used, Use::Kind | Use::ServiceTier) {
            self.name.clear();
        }
        self.string = Some((used, Escape::None));
    }

    /// Reads within a string, up to its end or to the next escape. Returns the number of bytes.
    fn string(
        &mut self,
        (used, escape): (Use, Escape),
        text: &[u8],
        event: &mut EventFacts,
        stream: &mut StreamFacts,
    ) -> usize {
        let first = text[0];
        let mut add = |bytes: &[u8]| match used {
            Use::Text => stream.text_bytes += bytes.len() as u64,
            Use::Media => stream.media_bytes += bytes.len() as u64,
            Use::Key => {
                let room = (KEY_BYTES_MAX + 1).saturating_sub(self.name.len());
                self.name.extend_from_slice(&bytes[..bytes.len().min(room)]);
            }
            Use::Kind | Use::ServiceTier => append_word(&mut self.name, bytes),
            Use::Nothing => {}
        };
        let (escape, read) = match escape {
            Escape::Begun if first == b'u' => (Escape::Unicode(0, 0), 1),
            Escape::Begun => {
                add(&[first]);
                (Escape::None, 1)
            }
            Escape::Unicode(digits, value) => {
                let value = value << 4 | char::from(first).to_digit(16).unwrap_or(0);
                match digits {
                    3 => {
                        add(&[b'?'; 3][..utf8_bytes(value)]);
                        (Escape::None, 1)
                    }
                    _ => (Escape::Unicode(digits + 1, value), 1),
                }
            }
            Escape::None => match memchr2(b'"', b'\\', text) {
                Some(0) if first == b'"' => {
                    self.end_string(used, event, stream);
                    return 1;
                }
                Some(0) => {
                    event.has_odd_key |= used == Use::Key;
                    (Escape::Begun, 1)
                }
                Some(at) => {
                    add(&text[..at]);
                    (Escape::None, at)
                }
                None => {
                    add(text);
                    (Escape::None, text.len())
                }
            },
        };
        self.string = Some((used, escape));
        read
    }

    fn end_string(&mut self, used: Use, event: &mut EventFacts, stream: &mut StreamFacts) {
        self.string = None;
        match used {
            Use::Key => {
                self.key = Key::of(&self.name);
                self.key_comes = false;
                if let Some(key) = self.path.get_mut(self.depth) {
                    *key = self.key;
                }
            }
            Use::Kind => std::mem::swap(&mut event.kind, &mut self.name),
            Use::ServiceTier => stream.service_tier = Some(std::mem::take(&mut self.name)),
            Use::Text | Use::Media | Use::Nothing => {}
        }
    }

    /// Keeps what belongs to a `usage` that is read, and hands it over at its end.
    fn capture(&mut self, bytes: &[u8], event: &mut EventFacts) {
        let Some((end, text)) = &mut self.usage else {
            return;
        };
        if !append_usage(text, bytes) {
            self.usage = None;
        } else if self.depth == *end && self.string.is_none() {
            event.usage = Some(std::mem::take(text));
            event.has_usage = true;
            self.usage = None;
        }
    }
}

/// Bytes of a character of the basic plane in UTF-8; of half a surrogate pair, half of the pair's four.
const fn utf8_bytes(value: u32) -> usize {
    match value {
        0..0x80 => 1,
        0x80..0x800 | 0xd800..0xe000 => 2,
        _ => 3,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use serde_json::{Value, json};

    fn scan(format: Format, pieces: &[&[u8]]) -> (EventFacts, StreamFacts) {
        let (mut event, mut stream) = Default::default();
        let mut scan = JsonScan::new(format);
        for piece in pieces {
            scan.read(piece, &mut event, &mut stream);
        }
        (event, stream)
    }

    fn chat(text: &str) -> (EventFacts, StreamFacts) {
        scan(Format::Chat, &[text.as_bytes()])
    }

    fn usage(facts: &EventFacts) -> &str {
        std::str::from_utf8(facts.usage.as_deref().unwrap_or_default()).unwrap()
    }

    #[test]
    fn usage_is_found_at_its_place_alone() {
        let (event, stream) =
            chat(r#"{"id":"x","choices":[],"usage":{"a":[1,{"b":"}"}]},"service_tier":"flex"}"#);
        assert_eq!(usage(&event), r#"{"a":[1,{"b":"}"}]}"#);
        assert!(event.is_usage_frame());
        assert_eq!(stream.service_tier.as_deref(), Some(&b"flex"[..]));
        for other in [
            r#"{"choices":[{"delta":{"content":"\"usage\":{\"a\":1}"},"usage":{"a":1}}]}"#,
            r#"{"usage":null}"#,
            r#"{"usage":"{}"}"#,
            r#"{"x":{"usage":{"a":1}}}"#,
            r#"[{"usage":{"a":1}}]"#,
            r#"{"usage":[{"a":1}]}"#,
            r#"{"usage":{"a":1"#,
            r#""usage":{"#,
        ] {
            assert_eq!(chat(other).0.usage, None, "{other}");
        }
        let response = br#"{"type":"response.completed","response":{"tools":[{"usage":{"b":2}}],"usage":{"a":1},"service_tier":"x"},"usage":{}}"#;
        let (event, stream) = scan(Format::Responses, &[response]);
        assert_eq!(usage(&event), r#"{"a":1}"#);
        assert!(event.ends_response());
        assert_eq!(stream.service_tier.as_deref(), Some(&b"x"[..]));
    }

    #[test]
    fn a_usage_that_is_too_long_is_none() {
        let of = |length: usize| {
            format!(
                r#"{{"usage":{{"a":"{}"}}}}"#,
                "x".repeat(length - r#"{"a":""}"#.len())
            )
        };
        assert_eq!(usage(&chat(&of(4096)).0).len(), 4096);
        assert_eq!(chat(&of(4097)).0.usage, None);
    }

    #[test]
    fn the_texts_of_deltas_are_measured() {
        let all = r#"{"choices":[{"index":0,"delta":{"role":"assistant","content":"ab","refusal":null,"tool_calls":[{"index":0,"id":"call_1","type":"function","function":{"name":"f","arguments":"{\"x"}}]},"finish_reason":"stop"},{"delta":{"content":"ü€😀\u00fc\u20ac\ud83d\ude00\n"}}],"delta":"no","x":{"delta":{"content":"no"}}}"#;
        // `ab`, `f`, `{"x`; then the same nine bytes plain and escaped, and a line end.
        assert_eq!(chat(all).1.text_bytes, 2 + 1 + 3 + 9 + 9 + 1);
        let event =
            br#"{"type":"response.output_text.delta","delta":"abc","x":{"delta":"no"},"obfuscation":"no"}"#;
        let (event, stream) = scan(Format::Responses, &[event]);
        assert_eq!(stream.text_bytes, 3);
        assert_eq!(event.kind, b"response.output_text.delta");
    }

    #[test]
    fn choices_and_errors_are_told() {
        for (text, choice, error) in [
            (r#"{"choices":[]}"#, false, false),
            (r#"{"choices":[{"#, true, false),
            (r#"{"choices":[1"#, true, false),
            (r#"{"choices":["a"#, true, false),
            (r#"{"choices":{"a":[1]}}"#, false, false),
            (r#"{"x":{"choices":[{}]}}"#, false, false),
            (r#"{"error":null}"#, false, false),
            (r#"{"error":"x"}"#, false, true),
            (r#"{"error":{"message":1}}"#, false, true),
            (r#"{"choices":[{"error":{}}]}"#, true, false),
        ] {
            let event = chat(text).0;
            assert_eq!((event.has_choice, event.has_error), (choice, error), "{text}");
        }
    }

    #[test]
    fn what_is_deeper_than_understood_says_nothing() {
        let deep = format!("{}{}", r#"{"a":["#.repeat(200), r#"{"usage":{"b":1}}"#);
        assert_eq!(chat(&deep).0.usage, None);
        let closed = format!(
            "{}{}1{}{}",
            r#"{"a":"#,
            "[".repeat(300),
            "]".repeat(300),
            r#","usage":{"b":1}}"#
        );
        assert_eq!(usage(&chat(&closed).0), r#"{"b":1}"#);
        assert_eq!(chat("]]}}\"").0.usage, None);
    }

    fn chunk() -> impl Strategy<Value = Value> {
        let text = "\\PC{0,12}|[\"\\\\\n\u{1}€😀a]{0,8}";
        (text, text, proptest::option::of(0_u64..5), any::<bool>()).prop_map(
            |(content, arguments, tokens, empty)| {
                let choice = json!({ "delta": { "role": "assistant", "content": content,
                "tool_calls": [{ "id": content, "function": { "arguments": arguments } }] } });
                json!({ "id": arguments, "choices": if empty { json!([]) } else { json!([choice]) },
                "usage": tokens.map(|tokens| json!({ "prompt_tokens": tokens, "x": { "y": content } })) })
            },
        )
    }

    proptest! {
        /// What a parser finds in the whole text is what the scan finds in its pieces, plain and with escapes.
        #[test]
        fn a_scan_finds_what_a_parser_finds(chunk in chunk(), cuts in proptest::collection::vec(any::<proptest::sample::Index>(), 0..6), ascii: bool) {
            let mut text = chunk.to_string();
            if ascii {
                let escaped = |c: char| match c.is_ascii() {
                    true => c.to_string(),
                    false => c.encode_utf16(&mut [0; 2]).iter().map(|unit| format!("\\u{unit:04x}")).collect(),
                };
                text = text.chars().map(escaped).collect();
            }
            let mut at: Vec<usize> = cuts.iter().map(|cut| cut.index(text.len())).collect();
            at.extend([0, text.len()]);
            at.sort_unstable();
            let pieces: Vec<&[u8]> = at.windows(2).map(|ends| &text.as_bytes()[ends[0]..ends[1]]).collect();
            let (event, stream) = scan(Format::Chat, &pieces);
            let delta = &chunk["choices"][0]["delta"];
            let length = |value: &Value| value.as_str().map_or(0, |text| text.len() as u64);
            let texts = length(&delta["content"]) + length(&delta["tool_calls"][0]["function"]["arguments"]);
            prop_assert_eq!(stream.text_bytes, texts);
            let found: Option<Value> = event.usage.as_ref().map(|text| serde_json::from_slice(text).unwrap());
            prop_assert_eq!(found, chunk["usage"].as_object().map(|usage| Value::Object(usage.clone())));
            prop_assert_eq!(event.has_choice, chunk["choices"] != json!([]));
        }

        /// No text makes the scan panic or keep more than its bounds.
        #[test]
        fn anything_is_scanned(bytes in proptest::collection::vec(proptest::sample::select(b"{}[]\":,\\u0a\xe9\n usagedeltachoices".to_vec()), 0..400)) {
            scan(Format::Chat, &[&bytes]);
            scan(Format::Responses, &[&bytes]);
        }
    }
}
