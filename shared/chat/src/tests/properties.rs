//! Properties of every body: agreement with a slow reference parser, agreement with `serde_json`, and no panic.

use super::super::{BodyError, RequestBody};
use super::generated::{Spelling, body, spelling};
use super::parse;
use super::reference::Reference;
use proptest::prelude::*;
use proptest::sample::Index;
use serde_json::{Map, Value};

/// Bytes that make JSON invalid or ambiguous when inserted into a body.
const BENT: &[&[u8]] = &[
    b"\"",
    b"\\",
    b"{",
    b"}",
    b"[",
    b"]",
    b",",
    b":",
    b"0",
    b"1",
    b"-",
    b".",
    b"e",
    b"E",
    b"+",
    b" ",
    b"\n",
    b"\0",
    b"n",
    b"N",
    b"u",
    b"\\u0000",
    b"\\ud800",
    b"\\u006e",
    b"\xff",
    b"\xc3",
    b"\xed\xa0\x80",
    b"true",
    b"null",
    b"NaN",
    b"1e999",
    b"//",
    b",\"n\":2",
    b",\"stream\":true",
    b"\"n\":1.0,",
    b"\"max_tokens\":5,",
    b"\xef\xbb\xbf",
    b"\x7f",
    b"\t",
    b"\x1f",
];

/// Checks that `parse` agrees with the tree of `serde_json`.
fn agrees(read: &RequestBody<'_>, value: &Value) -> Result<(), TestCaseError> {
    let number = |key: &str| value.get(key).and_then(Value::as_u64);
    let absent = |key: &str| value.get(key).is_none_or(Value::is_null);
    prop_assert_eq!(Some(&*read.model), value["model"].as_str());
    prop_assert_eq!(
        read.service_tier.as_deref(),
        value.get("service_tier").and_then(Value::as_str)
    );
    prop_assert!(
        value["messages"]
            .as_array()
            .is_some_and(|messages| !messages.is_empty())
    );
    prop_assert!(absent("stream") || value["stream"] == false);
    prop_assert!(
        ["n", "max_tokens", "max_completion_tokens"]
            .iter()
            .all(|key| absent(key) || number(key).is_some())
    );
    prop_assert_eq!(read.shape.n, number("n").unwrap_or(1));
    let tokens = number("max_completion_tokens").or(number("max_tokens"));
    prop_assert_eq!(read.shape.completion_tokens, tokens.unwrap_or(1024));
    prop_assert_eq!(read.shape.web_search, !absent("web_search_options"));
    Ok(())
}

/// Returns whether the error reports invalid JSON; the other errors are about the contents.
fn is_grammar(error: &BodyError) -> bool {
    error.code() == "invalid_json"
        && error.param().is_none()
        && !matches!(
            error,
            BodyError::NotAnObject | BodyError::TooManyKeys | BodyError::TooDeep
        )
}

/// Applies edits to the bytes. Each edit removes, replaces or inserts something.
pub(super) fn mutated(mut bytes: Vec<u8>, edits: &[(Index, usize, Index)]) -> Vec<u8> {
    for (place, removed, inserted) in edits {
        let start = place.index(bytes.len() + 1);
        let end = (start + removed).min(bytes.len());
        let inserted = if *removed == 3 {
            &[][..]
        } else {
            inserted.get(BENT)
        };
        bytes.splice(start..end, inserted.iter().copied());
    }
    bytes
}

pub(super) fn edits() -> impl Strategy<Value = Vec<(Index, usize, Index)>> {
    prop::collection::vec((any::<Index>(), 0..4_usize, any::<Index>()), 1..4)
}

fn written(body: &Map<String, Value>, spelling: &Spelling) -> String {
    spelling.write(&Value::Object(body.clone()))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn agrees_with_the_slow_reading(body in body(), spelling in spelling()) {
        let text = written(&body, &spelling);
        let tree: Value = serde_json::from_str(&text).unwrap();
        let read = parse(text.as_bytes()).map_err(|error| TestCaseError::fail(format!("{error}: {text}")))?;
        agrees(&read, &tree)?;
        let mut reference = Reference { spelling: &spelling, counts: [0; 8] };
        reference.body(tree.as_object().unwrap());
        let counts = [
            read.shape.prompt_bytes, read.shape.image_parts, read.shape.audio_parts, read.shape.file_parts, read.shape.framed, read.shape.content_parts,
            read.shape.predicted_bytes, read.shape.predicted_parts,
        ];
        prop_assert_eq!(counts, reference.counts, "{}", text);
        let modalities = tree["modalities"].as_array().is_some_and(|all| all.iter().any(|one| one == "audio"));
        prop_assert_eq!(read.shape.audio_output, modalities || tree.get("audio").is_some_and(|audio| !audio.is_null()));
    }

    #[test]
    fn never_accepts_what_serde_json_refuses_or_reads_differently(
        body in body(), spelling in spelling(), edits in edits(),
    ) {
        let bytes = mutated(written(&body, &spelling).into_bytes(), &edits);
        let tree = serde_json::from_slice::<Value>(&bytes);
        match (parse(&bytes), tree) {
            (Ok(read), Ok(tree)) => agrees(&read, &tree)?,
            (Ok(_), Err(error)) => prop_assert!(false, "accepted although {}: {}", error, String::from_utf8_lossy(&bytes)),
            (Err(error), tree) => prop_assert!(
                is_grammar(&error) == tree.is_err() || error == BodyError::NotAnObject,
                "{} but serde_json says {:?}: {}", error, tree.err(), String::from_utf8_lossy(&bytes),
            ),
        }
    }

    #[test]
    fn arbitrary_bytes_do_not_panic(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        prop_assert!(parse(&bytes).is_err());
    }

    #[test]
    fn arbitrary_pieces_of_json_do_not_panic(pieces in prop::collection::vec(prop::sample::select(BENT), 0..40)) {
        let bytes = [b"{\"model\":\"m\"".as_slice(), &pieces.concat()].concat();
        if parse(&bytes).is_ok() {
            prop_assert!(serde_json::from_slice::<Value>(&bytes).is_ok());
        }
    }

    #[test]
    fn messages_name_no_more_than_64_characters_of_a_key(key in any::<String>(), times in 1..40_usize) {
        let key = serde_json::to_string(&key.repeat(times)).unwrap();
        let body = format!("{{\"model\":\"m\",{key}:1,{key}:2}}");
        let error = parse(body.as_bytes()).unwrap_err();
        prop_assert!(error.to_string().chars().count() < 64 + 60, "{}", error);
        prop_assert!(!error.to_string().contains(char::is_control));
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(100))]

    #[test]
    fn every_prefix_is_refused(body in body(), spelling in spelling()) {
        let text = written(&body, &spelling);
        for end in 0..text.len() {
            let error = parse(&text.as_bytes()[..end]).expect_err("a prefix");
            prop_assert_eq!(error.code(), "invalid_json", "{}", &text[..text.floor_char_boundary(end)]);
            prop_assert!(is_grammar(&error), "{}", error);
        }
    }
}

#[test]
fn large_bodies() {
    for megabytes in [1, 32] {
        let text = "The quick brown fox says \\\"hi\\\". ".repeat(megabytes * 32_000);
        let body = format!(r#"{{"model":"m","messages":[{{"role":"user","content":"{text}"}}]}}"#);
        assert_eq!(
            parse(body.as_bytes()).unwrap().shape.prompt_bytes,
            megabytes as u64 * 32_000 * 31,
            "{megabytes} MB"
        );
        let parts =
            vec![r#"{"role":"user","content":[{"type":"text","text":"x"}]}"#; megabytes * 18_000].join(",");
        let body = format!(r#"{{"model":"m","messages":[{parts}]}}"#);
        assert_eq!(
            parse(body.as_bytes()).unwrap().shape.prompt_bytes,
            megabytes as u64 * 18_000,
            "{megabytes} MB in small messages"
        );
    }
}
