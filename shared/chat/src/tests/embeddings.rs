//! Bodies of `POST /v1/embeddings`.

use super::super::embeddings::parse;
use super::super::{INPUTS_MAX, RequestBody};
use super::generated::{junk, spelling};
use super::properties::{edits, mutated};
use proptest::prelude::*;
use serde_json::{Value, json};

fn with(input: &str) -> String {
    format!("{{\"model\":\"m\",\"input\":{input}}}")
}

#[track_caller]
fn read(body: &str) -> RequestBody<'_> {
    parse(body.as_bytes()).expect(body)
}

#[track_caller]
fn refused(body: &str, code: &str, fragment: &str, param: Option<&str>) {
    let shown = &body[..body.floor_char_boundary(80)];
    let error = parse(body.as_bytes()).expect_err(shown);
    assert_eq!((error.code(), error.param()), (code, param), "{shown}: {error}");
    assert!(error.to_string().contains(fragment), "{shown}: {error}");
}

#[test]
fn inputs_are_counted() {
    for (input, bytes, texts, ids) in [
        ("\"hello\"", 5, 1, 0),
        ("\"h\\u00e9\"", 3, 1, 0),
        ("[\"a\",\"bc\",\"\"]", 3, 3, 0),
        ("[1,2,3]", 0, 0, 3),
        ("[0,4294967295]", 0, 0, 2),
        ("[[1,2],[3]]", 0, 0, 3),
        (" [ \"a\" , \"b\" ] ", 2, 2, 0),
    ] {
        let body = with(input);
        let read = read(&body);
        let counts = (
            read.shape.prompt_bytes,
            read.shape.content_parts,
            read.shape.token_ids,
        );
        assert_eq!(counts, (bytes, texts, ids), "{input}");
        assert_eq!(
            (read.shape.completion_tokens, read.shape.framed, read.shape.n),
            (0, 0, 1),
            "{input}"
        );
        assert_eq!(
            read.check_token_limit(true),
            Ok(()),
            "there is no answer to limit"
        );
        assert_eq!(read.check_stream(false), Ok(()));
        assert_eq!(read.named_shape().token_ids, ids);
    }
    let body = r#"{"model":"m","input":"hi","dimensions":256,"encoding_format":"base64","user":"u","service_tier":"flex"}"#;
    let read = read(body);
    let shape = read.named_shape();
    assert_eq!(
        (shape.model, shape.service_tier, shape.prompt_bytes),
        ("m", Some("flex"), 2)
    );
    let more = r#"{"model":"m","input":"hi","task":"x"}"#;
    assert_eq!(
        parse(more.as_bytes()).unwrap().shape.prompt_bytes,
        2 + "\"task\":\"x\"".len() as u64,
        "an unknown member may carry text"
    );
}

#[test]
fn flaws_are_named() {
    refused("{\"input\":\"x\"}", "missing_model", "`model`", Some("model"));
    for input in ["null", "\"\"", "[]", "{}", "7", "true"] {
        refused(
            &with(input),
            "missing_input",
            "`input` is required",
            Some("input"),
        );
    }
    refused(
        "{\"model\":\"m\"}",
        "missing_input",
        "`input` is required",
        Some("input"),
    );
    for (input, index) in [
        ("[{}]", 0),
        ("[null]", 0),
        ("[true]", 0),
        ("[\"a\",1]", 1),
        ("[1,\"a\"]", 1),
        ("[1,[1]]", 1),
        ("[[1],1]", 1),
        ("[[1],[\"a\"]]", 1),
        ("[[[1]]]", 0),
        ("[[]]", 0),
        ("[[1],[]]", 1),
        ("[1.0]", 0),
        ("[1,2,-1]", 2),
        ("[1e0]", 0),
        ("[4294967296]", 0),
        ("[\"a\",{},7]", 1),
        ("[{},\"a\"]", 0),
    ] {
        let fragment = format!("`input[{index}]` must be a string, a token id or an array");
        refused(&with(input), "invalid_json", &fragment, Some("input"));
    }
    let stream = "{\"model\":\"m\",\"input\":\"a\",\"stream\":true}";
    refused(stream, "stream_not_supported", "stream", Some("stream"));
    let twice = "{\"model\":\"m\",\"input\":\"a\",\"input\":\"b\"}";
    refused(twice, "invalid_json", "appears twice", Some("input"));
    let near = "{\"model\":\"m\",\"input\":\"a\",\"Input\":\"b\"}";
    refused(near, "invalid_json", "must be written `input`", Some("Input"));
    refused("[]", "invalid_json", "must be a JSON object", None);
    refused(
        "{\"model\":\"m\",\"input\":\"a\"} x",
        "invalid_json",
        "unexpected data",
        None,
    );
}

#[test]
fn inputs_are_bounded_and_tokens_of_one_input_are_not() {
    for element in ["\"a\"", "[1]"] {
        let many = |count: usize| with(&format!("[{}]", vec![element; count].join(",")));
        assert!(parse(many(INPUTS_MAX).as_bytes()).is_ok());
        refused(
            &many(INPUTS_MAX + 1),
            "invalid_json",
            "`input` has more than 2048 elements",
            Some("input"),
        );
    }
    let tokens = with(&format!("[{}]", vec!["1"; INPUTS_MAX + 1].join(",")));
    assert_eq!(read(&tokens).shape.token_ids, INPUTS_MAX as u64 + 1);
}

fn input() -> impl Strategy<Value = Value> {
    let ids = || prop::collection::vec(any::<u32>(), 1..5);
    prop_oneof![
        "[a-zé\"\\\\]{1,9}".prop_map(Value::from),
        prop::collection::vec(any::<String>(), 1..5).prop_map(Value::from),
        ids().prop_map(Value::from),
        prop::collection::vec(ids(), 1..4).prop_map(|all| json!(all)),
        junk(),
        prop::collection::vec(junk(), 0..3).prop_map(Value::from),
    ]
}

/// Returns text bytes, texts and token ids; `None` for an invalid input.
fn slowly(input: &Value) -> Option<(u64, u64, u64)> {
    let ids = |all: &[Value]| {
        let good = all
            .iter()
            .all(|id| u32::try_from(id.as_u64().unwrap_or(u64::MAX)).is_ok());
        good.then_some(all.len() as u64)
    };
    match input {
        Value::String(text) if !text.is_empty() => Some((text.len() as u64, 1, 0)),
        Value::Array(all) if all.is_empty() => None,
        Value::Array(all) if all.iter().all(Value::is_string) => {
            let bytes = all.iter().filter_map(Value::as_str).map(str::len).sum::<usize>();
            Some((bytes as u64, all.len() as u64, 0))
        }
        Value::Array(all) if all.iter().all(Value::is_array) => {
            let filled = all
                .iter()
                .filter_map(Value::as_array)
                .filter(|list| !list.is_empty());
            let lists = filled.map(|list| ids(list));
            if lists.clone().count() < all.len() {
                return None;
            }
            Some((0, 0, lists.sum::<Option<u64>>()?))
        }
        Value::Array(all) => Some((0, 0, ids(all)?)),
        _ => None,
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn agrees_with_the_slow_reading(input in input(), spelling in spelling()) {
        let text = spelling.write(&json!({ "model": "m", "input": input }));
        let counts = parse(text.as_bytes()).ok().map(|read| (read.shape.prompt_bytes, read.shape.content_parts, read.shape.token_ids));
        prop_assert_eq!(counts, slowly(&input), "{}", text);
    }

    #[test]
    fn never_accepts_what_serde_json_refuses(input in input(), spelling in spelling(), edits in edits()) {
        let bytes = mutated(spelling.write(&json!({ "model": "m", "input": input })).into_bytes(), &edits);
        if parse(&bytes).is_ok() {
            let tree: Value = serde_json::from_slice(&bytes).unwrap();
            prop_assert!(slowly(&tree["input"]).is_some());
        }
    }
}
