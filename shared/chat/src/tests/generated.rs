//! Random valid bodies, and different spellings of them.

use proptest::prelude::*;
use proptest::sample::select;
use serde_json::{Map, Value, json};

/// Form in which a tree is written: the escaped characters, and the white space between the tokens.
#[derive(Debug, Clone)]
pub(super) struct Spelling {
    pub(super) escapes: Escapes,
    pub(super) space: &'static str,
}

/// The escaped characters of strings.
#[derive(Debug, Clone, Copy)]
pub(super) enum Escapes {
    /// Only those that must be.
    Needed,
    /// All characters that are not ASCII.
    NotAscii,
    /// All characters.
    All,
}

impl Spelling {
    pub(super) fn write(&self, value: &Value) -> String {
        let list = |items: Vec<String>| items.join(&format!("{0},{0}", self.space));
        match value {
            Value::Array(items) => {
                format!(
                    "[{0}{1}{0}]",
                    self.space,
                    list(items.iter().map(|item| self.write(item)).collect())
                )
            }
            Value::Object(members) => {
                let members = members.iter().map(|(key, value)| self.member(key, value));
                format!("{{{0}{1}{0}}}", self.space, list(members.collect()))
            }
            Value::String(text) => self.string(text),
            _ => value.to_string(),
        }
    }

    pub(super) fn size(&self, value: &Value) -> u64 {
        self.write(value).len() as u64
    }

    /// Returns the bytes that count for a member: no white space between key and value.
    pub(super) fn member_size(&self, key: &str, value: &Value) -> u64 {
        (self.string(key).len() + ":".len()) as u64 + self.size(value)
    }

    /// Returns the bytes that count for a text: those of a string's contents, or those of any other value as written.
    pub(super) fn text_size(&self, value: &Value) -> u64 {
        match value {
            Value::Null => 0,
            Value::String(text) => text.len() as u64,
            _ => self.size(value),
        }
    }

    /// Returns the bytes that count for a word: none for one of `free`, unless it is escaped.
    pub(super) fn word_size(&self, value: &Value, free: &[&str]) -> u64 {
        let is_free = value
            .as_str()
            .is_some_and(|word| free.contains(&word) && self.size(value) == word.len() as u64 + 2);
        if value.is_null() || is_free {
            0
        } else {
            self.size(value)
        }
    }

    fn member(&self, key: &str, value: &Value) -> String {
        format!("{}{2}:{2}{}", self.string(key), self.write(value), self.space)
    }

    fn string(&self, text: &str) -> String {
        let escaped = |c: char| match self.escapes {
            Escapes::Needed => false,
            Escapes::NotAscii => !c.is_ascii(),
            Escapes::All => true,
        };
        let mut written = String::new();
        for c in text.chars() {
            if escaped(c) {
                c.encode_utf16(&mut [0; 2])
                    .iter()
                    .for_each(|unit| written += &format!("\\u{unit:04x}"));
            } else {
                let quoted = serde_json::to_string(&c).unwrap();
                written += &quoted[1..quoted.len() - 1];
            }
        }
        format!("\"{written}\"")
    }
}

pub(super) fn spelling() -> impl Strategy<Value = Spelling> {
    let escapes = select(vec![Escapes::Needed, Escapes::NotAscii, Escapes::All]);
    (escapes, select(vec!["", "", " ", "\r\n\t "])).prop_map(|(escapes, space)| Spelling { escapes, space })
}

/// Generates tools that the caller runs.
fn tools() -> impl Strategy<Value = Value> {
    let kind = select(vec!["function", "custom"]);
    let tool = (kind, junk()).prop_map(|(kind, junk)| json!({ "type": kind, kind: junk }));
    let tools = prop::collection::vec(tool, 0..4);
    (tools, any::<bool>()).prop_map(|(mut tools, alone)| match tools.pop().filter(|_| alone) {
        Some(tool) => tool,
        None => Value::from(tools),
    })
}

/// Generates a body that must be accepted.
pub(super) fn body() -> impl Strategy<Value = Map<String, Value>> {
    let member = prop_oneof![
        (
            Just("n"),
            prop_oneof![Just(Value::Null), (1..=128_u64).prop_map(Value::from)]
        ),
        (
            Just("max_tokens"),
            prop_oneof![Just(Value::Null), (1..=10_000_000_u64).prop_map(Value::from)]
        ),
        (
            Just("max_completion_tokens"),
            prop_oneof![Just(Value::Null), (1..=10_000_000_u64).prop_map(Value::from)]
        ),
        (Just("stream"), select(vec![Value::Null, json!(false)])),
        (
            Just("service_tier"),
            select(vec![Value::Null, json!("flex"), json!("priorität")])
        ),
        (
            Just("modalities"),
            select(vec![
                Value::Null,
                json!(["text"]),
                json!(["text", "audio"]),
                json!({"a": ["audio"]})
            ])
        ),
        (
            select(vec![
                "audio",
                "web_search_options",
                "temperature",
                "metadata",
                "user"
            ]),
            junk()
        ),
        (
            select(vec![
                "functions",
                "response_format",
                "tool_choice",
                "function_call"
            ]),
            junk()
        ),
        (Just("tools"), tools()),
        (
            Just("prediction"),
            members(
                vec!["type", "content", "Type", "x"],
                prop_oneof![content(), word()]
            )
        ),
        (
            select(vec!["unknown", "Functions", "ключ", "x\0", "a\"b"]),
            junk()
        ),
    ];
    let messages = prop::collection::vec(message(), 1..5).prop_map(Value::from);
    (
        "[a-zA-Z0-9é.-]{1,20}",
        messages,
        prop::collection::vec(member, 0..8),
    )
        .prop_map(|(model, messages, more)| {
            let more = more.into_iter().map(|(key, value)| (key.to_owned(), value));
            let required = [
                ("model".to_owned(), json!(model)),
                ("messages".to_owned(), messages),
            ];
            more.chain(required).collect()
        })
}

fn message() -> impl Strategy<Value = Value> {
    let texts = select(vec!["role", "name", "refusal", "tool_call_id", "ROLE", "note"]);
    let odd = select(vec![
        "audio",
        "annotations",
        "content",
        "Content",
        "con\0",
        "content\0x",
        "\u{17f}",
        "reasoning",
    ]);
    let function = || members(vec!["name", "arguments", "input", "INPUT", "x"], word_or_junk());
    let call = (
        word_or_junk(),
        function(),
        select(vec!["function", "custom", "x"]),
    )
        .prop_map(|(word, function, key)| json!({"id": word, "type": "function", key: function}));
    let member = prop_oneof![
        3 => (texts, word()),
        3 => (select(vec!["content", "CONTENT"]), content()),
        1 => (odd, junk()),
        1 => (Just("tool_calls"), prop::collection::vec(prop_oneof![call, word_or_junk()], 0..3).prop_map(Value::from)),
        1 => (Just("function_call"), function()),
    ];
    object(member)
}

fn content() -> impl Strategy<Value = Value> {
    let parts =
        prop::collection::vec(prop_oneof![4 => part(), 1 => word_or_junk()], 0..4).prop_map(Value::from);
    prop_oneof![2 => word(), 3 => parts, 1 => part(), 1 => junk()]
}

fn part() -> impl Strategy<Value = Value> {
    let kinds = vec![
        "text",
        "refusal",
        "input_text",
        "image_url",
        "input_audio",
        "file",
        "novel",
    ];
    let payloads = vec![
        "url",
        "URL",
        "data",
        "file_data",
        "file_id",
        "detail",
        "format",
        "filename",
        "x",
    ];
    let media = prop_oneof![3 => members(payloads, word_or_junk()), 1 => word_or_junk()];
    let member = prop_oneof![
        4 => (select(vec!["type", "type", "type", "TYPE"]), select(kinds).prop_map(Value::from)),
        2 => (select(vec!["text", "refusal", "Text"]), word_or_junk()),
        3 => (select(vec!["image_url", "input_audio", "file", "Image_URL", "\u{fb01}le"]), media),
        1 => (select(vec!["type", "cache_control", "é"]), junk()),
    ];
    object(member).prop_map(without_repeated_media)
}

/// Returns the part with only the first member of each kind of media.
fn without_repeated_media(mut part: Value) -> Value {
    let mut seen = Vec::new();
    part.as_object_mut().expect("an object").retain(|key, _| {
        let name = fold(key);
        let is_media = ["image_url", "input_audio", "file"].contains(&name.as_str());
        let is_repeated = is_media && seen.contains(&name);
        seen.push(name);
        !is_repeated
    });
    part
}

/// Generates a string that has a meaning in some field, or any other.
pub(super) fn word() -> impl Strategy<Value = Value> {
    let known = vec![
        "user",
        "assistant",
        "wizard",
        "function",
        "custom",
        "content",
        "auto",
        "text",
        "image_url",
        "",
    ];
    let text = prop_oneof![
        select(known).prop_map(str::to_owned),
        any::<String>(),
        "[a-z\"\\\\\n/é😀 ]{0,24}"
    ];
    text.prop_map(Value::from)
}

/// Any value.
pub(super) fn junk() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<u64>().prop_map(Value::from),
        any::<i16>().prop_map(|eighths| Value::from(f64::from(eighths) / 8.0)),
        word(),
    ];
    leaf.prop_recursive(3, 12, 4, |inner| {
        let keys = vec!["type", "text", "content", "url", "x", "é"];
        let array = prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from);
        prop_oneof![array, members(keys, inner)]
    })
}

pub(super) fn word_or_junk() -> impl Strategy<Value = Value> {
    prop_oneof![2 => word(), 1 => junk()]
}

pub(super) fn members(
    keys: Vec<&'static str>,
    value: impl Strategy<Value = Value>,
) -> impl Strategy<Value = Value> {
    object((select(keys), value))
}

pub(super) fn object(member: impl Strategy<Value = (&'static str, Value)>) -> impl Strategy<Value = Value> {
    prop::collection::vec(member, 0..5).prop_map(|members| {
        members
            .into_iter()
            .map(|(key, value)| (key.to_owned(), value))
            .collect::<Value>()
    })
}

/// Returns a key as a lenient parser reads it.
pub(super) fn fold(key: &str) -> String {
    let seen = key.split('\0').next().unwrap();
    seen.to_lowercase()
        .replace('\u{17f}', "s")
        .replace('\u{fb01}', "fi")
}
