//! Tests of counts: sizes counted by hand, and a reference parser on a tree of `serde_json` values.

use super::super::super::responses::parse;
use super::super::generated::{Spelling, junk, members, object, spelling, word, word_or_junk};
use super::super::properties::{edits, mutated};
use super::{item, read, with};
use proptest::prelude::*;
use proptest::sample::select;
use serde_json::{Value, json};

/// Length of the shortest encrypted reasoning: the rule of `responses/item.rs`, written again.
const ENCRYPTED_BYTES_MIN: usize = 100;

#[test]
fn sizes() {
    let bytes = |body: &str| read(body).shape.prompt_bytes;
    assert_eq!(bytes(&with(",\"instructions\":\"h\\u00e9\"")), 2 + 3);
    assert_eq!(
        read(&with(",\"instructions\":\"\"")).shape.framed,
        2,
        "a message of its own"
    );
    let tools = r#"[ {"type":"function","name":"f"} ]"#;
    assert_eq!(
        bytes(&with(&format!(",\"tools\":{tools}"))),
        2 + tools.len() as u64
    );
    let format = r#"{"type":"json_schema","schema":{}}"#;
    assert_eq!(
        bytes(&with(&format!(
            ",\"text\":{{\"format\":{format},\"verbosity\":\"high\"}}"
        ))),
        2 + format.len() as u64
    );
    assert_eq!(bytes(&with(",\"tool_choice\":\"required\"")), 2);
    assert_eq!(bytes(&with(",\"tool_choice\":{\"type\":\"x\"}")), 2 + 12);
    assert_eq!(
        bytes(&with(",\"reasoning\":{\"effort\":\"teach\",\"x\":1}")),
        2 + 7 + 5
    );
    assert_eq!(
        bytes(&with(",\"unknown\":[1]")),
        2 + 13,
        "an unknown member may carry text"
    );
    let message = |content: &str| item(&format!("{{\"role\":\"user\",\"content\":{content}}}"));
    let counts = |content: &str| {
        let body = message(content);
        let read = read(&body);
        [
            read.shape.prompt_bytes,
            read.shape.content_parts,
            read.shape.image_parts,
            read.shape.audio_parts,
            read.shape.file_parts,
        ]
    };
    assert_eq!(counts("\"hi\""), [2, 0, 0, 0, 0]);
    assert_eq!(
        counts(r#"[{"type":"input_text","text":"hi"},{"type":"refusal","refusal":"no"}]"#),
        [4, 2, 0, 0, 0]
    );
    let image = r#"[{"type":"input_image","image_url":"data:image/png;base64,AAAA","detail":"original"}]"#;
    assert_eq!(counts(image), [0, 1, 1, 0, 0]);
    assert_eq!(
        counts(r#"[{"type":"input_file","filename":"a.pdf","file_data":"AAAA"}]"#),
        [5, 1, 0, 0, 1]
    );
    assert_eq!(
        counts(r#"[{"type":"input_audio","input_audio":{"data":"AAAA","format":"mp3"}}]"#),
        [0, 1, 0, 1, 0]
    );
    let smuggled = r#"[{"type":"input_text","text":"","image_url":"secret text"}]"#;
    assert_eq!(
        counts(smuggled),
        [13, 1, 1, 0, 0],
        "only the payload of the own type is free"
    );
    assert_eq!(counts(r#"[{"type":"input_image"}]"#), [0, 1, 1, 0, 0]);
    let untyped = r#"{"stdout":"x","stderr":""}"#;
    assert_eq!(counts(untyped), [untyped.len() as u64, 1, 0, 0, 0]);
    let call = r#"{"type":"function_call","id":"1","call_id":"22","name":"333","arguments":"4444","status":"completed"}"#;
    assert_eq!(bytes(&item(call)), 1 + 2 + 3 + 4);
    let reasoning = r#"{"type":"reasoning","id":"rs","summary":[],"encrypted_content":"12345678"}"#;
    assert_eq!(bytes(&item(reasoning)), 2 + 8);
}

/// Reasoning that the provider keeps counts in addition to its visible contents, once for each item.
#[test]
fn reasoning_that_the_provider_keeps_is_counted() {
    let shown = r#""summary":[{"type":"summary_text","text":"hm"}]"#;
    let encrypted = |bytes: usize| format!(r#""id":"rs_1","encrypted_content":"{}""#, "g".repeat(bytes));
    let (short, long) = (encrypted(ENCRYPTED_BYTES_MIN - 1), encrypted(ENCRYPTED_BYTES_MIN));
    for (members, kept) in [
        (r#""id":"rs_1""#, 1),
        (r#""encrypted_content":null,"id":"rs_1""#, 1),
        (r#""id":"rs_1","encrypted_content":"""#, 1),
        (r#""id":"rs_1","encrypted_content":[]"#, 1),
        (
            r#""id":"rs_1","content":[{"type":"reasoning_text","text":"hm, hm"}]"#,
            1,
        ),
        (r#""id":"rs_1","status":"completed""#, 1),
        (r#""id":"""#, 1),
        (r#""id":7"#, 1),
        (r#""id":"rs_1","encrypted_content":"gAAAA""#, 1),
        (short.as_str(), 1),
        (long.as_str(), 0),
        (r#""id":null"#, 0),
        (r#""encrypted_content":null"#, 0),
    ] {
        let one = format!(r#"{{{members},"type":"reasoning",{shown}}}"#);
        let call = r#"{"type":"function_call","id":"fc_1","call_id":"c","name":"f","arguments":"{}"}"#;
        for (items, count) in [(one.clone(), kept), (format!("{one},{call},{one}"), 2 * kept)] {
            let body = item(&items);
            assert_eq!(read(&body).shape.reasoning_items, count, "{body}");
        }
        let without = one.replace(r#""type":"reasoning""#, r#""type":"function_call""#);
        let (kept, without) = (item(&one), item(&without));
        let (kept, without) = (read(&kept).shape, read(&without).shape);
        assert_eq!(
            (kept.prompt_bytes, kept.framed, kept.content_parts),
            (without.prompt_bytes, without.framed, without.content_parts),
            "what it shows counts too"
        );
        assert_eq!(without.reasoning_items, 0);
    }
}

/// Reference counts: bytes, framed items, parts, images, audios, files and kept reasoning items.
struct Reference<'a> {
    spelling: &'a Spelling,
    counts: [u64; 7],
}

impl Reference<'_> {
    fn item(&mut self, item: &Value) {
        self.counts[1] += 1;
        self.counts[6] += u64::from(is_kept_reasoning(item));
        for (key, value) in item.as_object().unwrap() {
            match key.as_str() {
                "type" => {}
                "role" => self.word(
                    value,
                    &["user", "assistant", "system", "developer", "tool", "function"],
                ),
                "content" | "output" | "summary" => self.content(value),
                "id" | "encrypted_content" | "call_id" | "name" | "arguments" | "input" => self.text(value),
                "status" => self.word(value, &["in_progress", "completed", "incomplete", "failed"]),
                "action" => self.word(value, &[]),
                _ => self.counts[0] += self.spelling.member_size(key, value),
            }
        }
    }

    fn content(&mut self, content: &Value) {
        match content {
            Value::Array(parts) => parts.iter().for_each(|part| self.part(part)),
            Value::Object(_) => self.part(content),
            _ => self.text(content),
        }
    }

    fn part(&mut self, part: &Value) {
        self.counts[2] += 1;
        let Some(members) = part.as_object() else {
            return self.text(part);
        };
        let kind = part.get("type").and_then(Value::as_str).unwrap_or_default();
        let own = [
            ("image_url", "input_image", 3),
            ("input_audio", "input_audio", 4),
            ("file_data", "input_file", 5),
        ];
        for (key, own_kind, place) in own {
            let is_there = members.get(key).is_some_and(|value| !value.is_null());
            self.counts[place] += u64::from(is_there || kind == own_kind);
        }
        if kind.is_empty() {
            self.counts[0] += self.spelling.size(part);
            return;
        }
        for (key, value) in members {
            match key.as_str() {
                "type" => {}
                "text" | "refusal" | "filename" => self.text(value),
                "detail" => self.word(value, &["auto", "low", "high", "original"]),
                "annotations" => self.word(value, &[]),
                "image_url" | "file_data" | "input_audio" => {
                    let is_own = own
                        .iter()
                        .any(|(name, own_kind, _)| name == key && *own_kind == kind);
                    if !is_own || !value.is_string() {
                        self.word(value, &[]);
                    }
                }
                _ => self.counts[0] += self.spelling.member_size(key, value),
            }
        }
    }

    fn text(&mut self, value: &Value) {
        self.counts[0] += self.spelling.text_size(value);
    }

    fn word(&mut self, value: &Value, free: &[&str]) {
        self.counts[0] += self.spelling.word_size(value, free);
    }
}

/// Returns whether the provider looks the reasoning up by its id.
fn is_kept_reasoning(item: &Value) -> bool {
    let encrypted = item.get("encrypted_content").and_then(Value::as_str);
    let has_id = item.get("id").is_some_and(|id| !id.is_null());
    item.get("type").is_some_and(|kind| kind == "reasoning")
        && has_id
        && encrypted.unwrap_or_default().len() < ENCRYPTED_BYTES_MIN
}

/// Returns whether the item has no unsupported field: the rules of `responses/`, written again.
fn is_seen(item: &Value) -> bool {
    let there = |key: &str| item.get(key).is_some_and(|value| !value.is_null());
    let contents = ["content", "output", "summary"]
        .iter()
        .filter_map(|key| item.get(*key));
    let parts = contents.flat_map(|content| match content {
        Value::Array(parts) => parts.clone(),
        alone => vec![alone.clone()],
    });
    let has_good_parts = parts.filter(Value::is_object).all(|part| {
        let known = [
            "input_text",
            "output_text",
            "text",
            "refusal",
            "summary_text",
            "reasoning_text",
            "input_image",
            "input_audio",
            "input_file",
        ];
        let good_type = part
            .get("type")
            .is_none_or(|kind| known.iter().any(|known| kind == known));
        let refers = ["file_id", "file_url", "fileId"]
            .iter()
            .any(|key| part.get(*key).is_some_and(|id| !id.is_null()));
        good_type && !refers
    });
    let has_good_type = match item.get("type").map(Value::as_str) {
        None | Some(Some("message")) => there("role") && there("content"),
        Some(Some("function_call" | "function_call_output" | "local_shell_call" | "reasoning")) => true,
        _ => false,
    };
    has_good_type && has_good_parts
}

fn part() -> impl Strategy<Value = Value> {
    let kinds = vec![
        "input_text",
        "output_text",
        "summary_text",
        "input_image",
        "input_audio",
        "input_file",
        "image_url",
        "novel",
    ];
    let payload = prop_oneof![word(), Just(Value::Null), Just(json!([1])), Just(json!(7))];
    let member = prop_oneof![
        6 => (Just("type"), select(kinds).prop_map(Value::from)),
        4 => (select(vec!["text", "refusal", "filename"]), word_or_junk()),
        4 => (select(vec!["image_url", "input_audio", "file_data"]), payload),
        1 => (select(vec!["file_id", "file_url", "fileId"]), prop_oneof![3 => Just(Value::Null), 1 => word()]),
        1 => (Just("detail"), select(vec![json!("high"), json!("x"), Value::Null])),
        1 => (select(vec!["annotations", "x", "prompt_cache_breakpoint"]), junk()),
    ];
    object(member)
}

fn items() -> impl Strategy<Value = Value> {
    let kinds = vec![
        "message",
        "message",
        "function_call",
        "function_call_output",
        "local_shell_call",
        "reasoning",
        "item_reference",
        "novel",
    ];
    let part = || prop_oneof![4 => part(), 1 => word_or_junk()];
    let content = prop_oneof![
        2 => word(),
        3 => prop::collection::vec(part(), 0..4).prop_map(Value::from),
        1 => part(),
    ];
    let member = prop_oneof![
        4 => (Just("type"), select(kinds).prop_map(Value::from)),
        3 => (Just("role"), word()),
        4 => (select(vec!["content", "output", "summary"]), content),
        3 => (select(vec!["id", "call_id", "name", "arguments", "input", "encrypted_content"]), word_or_junk()),
        1 => (Just("encrypted_content"), Just(Value::from("g".repeat(ENCRYPTED_BYTES_MIN)))),
        1 => (select(vec!["status", "action", "x"]), junk()),
    ];
    prop::collection::vec(object(member), 1..4).prop_map(Value::from)
}

/// Generates top-level members in addition to the items.
fn more() -> impl Strategy<Value = Value> {
    members(
        vec!["metadata", "user", "store", "include", "temperature"],
        junk(),
    )
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(3000))]

    #[test]
    fn agrees_with_the_slow_reading(items in items(), more in more(), spelling in spelling()) {
        let mut body = more;
        body["model"] = json!("m");
        body["input"] = items.clone();
        let text = spelling.write(&body);
        let items = items.as_array().unwrap();
        let read = parse(text.as_bytes());
        if let Err(error) = &read {
            prop_assert_eq!(error.code(), "unsupported_field", "{}: {}", error, text);
        }
        prop_assert_eq!(read.is_ok(), items.iter().all(is_seen), "{}", text);
        if let Ok(read) = read {
            let mut reference = Reference { spelling: &spelling, counts: [0; 7] };
            items.iter().for_each(|item| reference.item(item));
            let counts = [
                read.shape.prompt_bytes, read.shape.framed, read.shape.content_parts, read.shape.image_parts, read.shape.audio_parts, read.shape.file_parts, read.shape.reasoning_items,
            ];
            prop_assert_eq!(counts, reference.counts, "{}", text);
        }
    }

    #[test]
    fn never_accepts_what_serde_json_refuses_or_reads_differently(
        items in items(), spelling in spelling(), edits in edits(),
    ) {
        let text = spelling.write(&json!({ "model": "m", "input": items, "store": false }));
        let bytes = mutated(text.into_bytes(), &edits);
        if parse(&bytes).is_ok() {
            let tree: Value = serde_json::from_slice(&bytes).unwrap();
            let input = &tree["input"];
            prop_assert!(input.is_string() || input.as_array().is_some_and(|items| !items.is_empty()));
        }
    }
}
