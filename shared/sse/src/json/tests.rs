//! Tests of [`super`].

use super::*;
use crate::facts::USAGE_BYTES_MAX;
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
    assert_eq!(usage(&chat(&of(USAGE_BYTES_MAX)).0).len(), USAGE_BYTES_MAX);
    assert_eq!(chat(&of(USAGE_BYTES_MAX + 1)).0.usage, None);
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
fn choices_and_errors_are_reported() {
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
        (r#"{"choices":[{"error":{}}]}"#, true, true),
        (r#"{"choices":[{"error":"x"}]}"#, true, true),
        (r#"{"choices":[{"delta":{"error":"x"}}]}"#, true, false),
        (r#"{"choices":[{"error":null}]}"#, true, false),
    ] {
        let event = chat(text).0;
        assert_eq!((event.has_choice, event.has_error), (choice, error), "{text}");
    }
}

#[test]
fn nothing_is_found_below_the_maximum_depth() {
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

/// Generates chunks of one stream: most have the same start, and they differ before, in or after the text.
fn stream_of_chunks() -> impl Strategy<Value = Vec<String>> {
    let before = proptest::sample::select(vec![
        "",
        r#""service_tier":"flex","#,
        r#""service_tier":"default","#,
        r#""usage":{"a":1},"#,
        r#""error":{"code":1},"#,
        r#""\u0065rror":1,"#,
    ]);
    let choice = proptest::sample::select(vec![
        r#""delta":{"content":"#,
        r#""delta":{"role":"assistant","content":"#,
        r#""delta":{"content":null,"tool_calls":[{"id":"call_1","function":{"arguments":"#,
        r#""delta":{"audio":{"data":"#,
        r#""finish_reason":"stop","delta":{"content":"#,
    ]);
    let behind = proptest::sample::select(vec![
        r#"},"finish_reason":null}]}"#,
        r#"}]},"finish_reason":"stop"}],"service_tier":"x"}"#,
        r#"}}],"usage":{"b":2}}"#,
        r#"},"delta":{"content":"more"}}],"error":"x"}"#,
    ]);
    let text = "[a-z\"\\\\é]{0,12}".prop_map(|text| json!(text).to_string());
    let choices = proptest::sample::select(vec![r#"[{"index":0,"#, r#"{"a":{"index":0,"#]);
    let beginnings = proptest::collection::vec((before, choices, choice), 1..4);
    let rest = (any::<proptest::sample::Index>(), text, behind);
    (beginnings, proptest::collection::vec(rest, 1..8)).prop_map(|(beginnings, rests)| {
        let chunk = |(nth, text, behind): (proptest::sample::Index, String, &str)| {
            let (before, choices, choice) = nth.get(&beginnings);
            format!(r#"{{"id":"chatcmpl-1",{before}"choices":{choices}{choice}{text}{behind}"#)
        };
        rests.into_iter().map(chunk).collect()
    })
}

proptest! {
    /// The facts of an event do not depend on earlier events that the scan remembers, wherever the event is cut.
    #[test]
    fn a_scan_of_an_event_does_not_depend_on_earlier_ones(
        chunks in stream_of_chunks(), cut in any::<proptest::sample::Index>(), is_cut: bool, responses: bool
    ) {
        let format = if responses { Format::Responses } else { Format::Chat };
        let (mut scan, mut event) = (JsonScan::new(format), EventFacts::default());
        let (mut stream, mut expected) = (StreamFacts::default(), StreamFacts::default());
        for chunk in &chunks {
            let at = if is_cut { cut.index(chunk.len()) } else { chunk.len() };
            event.reset();
            scan.reset();
            scan.read(&chunk.as_bytes()[..at], &mut event, &mut stream);
            scan.read(&chunk.as_bytes()[at..], &mut event, &mut stream);
            let mut alone = EventFacts::default();
            JsonScan::new(format).read(chunk.as_bytes(), &mut alone, &mut expected);
            prop_assert_eq!(&event, &alone, "{}", chunk);
            prop_assert_eq!(&stream, &expected, "{}", chunk);
        }
    }

    /// The scan of the pieces finds the same as a parser of the whole text, with and without escapes.
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

    /// No text makes the scan panic or store more than its limits.
    #[test]
    fn anything_is_scanned(bytes in proptest::collection::vec(proptest::sample::select(b"{}[]\":,\\u0a\xe9\n usagedeltachoices".to_vec()), 0..400)) {
        scan(Format::Chat, &[&bytes]);
        scan(Format::Responses, &[&bytes]);
    }
}
