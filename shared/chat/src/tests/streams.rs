//! Tests of streamed chat completions: the refusal of streams where they are not served, `stream_options`, and the
//! change that requests usage.

use super::super::{BodyError, KEYS_MAX, RequestBody};
use super::generated::{body, junk, spelling};
use super::properties::{edits, mutated};
use super::{parse, parse_streaming, with};
use proptest::prelude::*;
use proptest::sample::select;
use serde_json::{Value, json};

#[track_caller]
fn read(body: &str) -> RequestBody<'_> {
    parse_streaming(body.as_bytes()).expect(body)
}

/// Returns the body after its splice; unchanged if no change is needed.
#[track_caller]
fn spliced(body: &str) -> String {
    let read = read(body);
    let bytes = read.usage_splice().map_or_else(
        || body.as_bytes().to_vec(),
        |splice| splice.apply(body.as_bytes()),
    );
    String::from_utf8(bytes).unwrap()
}

#[test]
fn a_stream_is_refused_unless_the_caller_of_the_parser_accepts_it() {
    let body = with(",\"stream\":true");
    assert_eq!(parse(body.as_bytes()), Err(BodyError::StreamNotSupported));
    let streamed = read(&body);
    assert!(streamed.stream);
    assert_eq!(streamed.check_stream(true), Ok(()));
    assert_eq!(streamed.check_stream(false), Err(BodyError::StreamNotSupported));
    for members in [
        "",
        ",\"stream\":false",
        ",\"stream\":null",
        ",\"stream\":false,\"stream_options\":7,\"Stream_Options\":{}",
        ",\"stream_options\":{\"include_usage\":\"?\",\"include_usage\":0}",
        ",\"stream_options\":{\"include_usage\":false}",
    ] {
        let body = with(members);
        assert_eq!(
            parse(body.as_bytes()),
            parse_streaming(body.as_bytes()),
            "{members}"
        );
        let plain = read(&body);
        assert!(!plain.stream, "{members}");
        assert_eq!(plain.check_stream(false), Ok(()), "{members}");
        assert_eq!(plain.usage_splice(), None, "passed on as it is: {members}");
    }
    let bad = with(",\"stream\":1");
    assert_eq!(parse_streaming(bad.as_bytes()), Err(BodyError::StreamNotBoolean));
}

#[test]
fn usage_is_asked_for_where_the_caller_did_not() {
    for (members, expected) in [
        (
            "\"stream\":true,",
            "\"stream_options\":{\"include_usage\":true},\"stream\":true,",
        ),
        (
            "\"stream\":true,\"stream_options\":null,",
            "\"stream\":true,\"stream_options\":{\"include_usage\":true},",
        ),
        (
            "\"stream_options\" : {} , \"stream\":true,",
            "\"stream_options\" : {\"include_usage\":true} , \"stream\":true,",
        ),
        (
            "\"stream_options\":{ \n},\"stream\":true,",
            "\"stream_options\":{\"include_usage\":true \n},\"stream\":true,",
        ),
        (
            "\"stream_options\":{\"include_usage\":false},\"stream\":true,",
            "\"stream_options\":{\"include_usage\":true},\"stream\":true,",
        ),
        (
            "\"stream_options\":{\"x\":1,\"include\\u005fusage\" : null , \"y\":[]},\"stream\":true,",
            "\"stream_options\":{\"x\":1,\"include\\u005fusage\" : true , \"y\":[]},\"stream\":true,",
        ),
        (
            "\"str\\u0065am\":true,\"stream\\u005foptions\":{\"include_obfuscation\":false},",
            "\"str\\u0065am\":true,\"stream\\u005foptions\":{\"include_usage\":true,\"include_obfuscation\":false},",
        ),
        (
            "\"stream\":true,\"stream_options\":{\"include_usage\": true},",
            "\"stream\":true,\"stream_options\":{\"include_usage\": true},",
        ),
    ] {
        for space in ["", " \r\n\t"] {
            let whole =
                |members: &str| format!("{space}{{{members}\"model\":\"m\",\"messages\":[{{}}]}}{space}");
            assert_eq!(spliced(&whole(members)), whole(expected), "{members}");
        }
    }
    let asked = with(",\"stream\":true,\"stream_options\":{\"include_usage\":true}");
    assert_eq!(read(&asked).usage_splice(), None, "nothing to change");
}

#[test]
fn stream_options_of_another_form_are_refused() {
    for (options, fragment) in [
        ("7", "`stream_options` must be an object"),
        ("true", "`stream_options` must be an object"),
        ("\"include_usage\"", "`stream_options` must be an object"),
        ("[]", "`stream_options` must be an object"),
        ("[{\"include_usage\":true}]", "`stream_options` must be an object"),
        (
            "{\"include_usage\":1}",
            "`stream_options.include_usage` must be a boolean",
        ),
        (
            "{\"include_usage\":\"true\"}",
            "`stream_options.include_usage` must be a boolean",
        ),
        (
            "{\"include_usage\":{}}",
            "`stream_options.include_usage` must be a boolean",
        ),
    ] {
        let body = with(&format!(",\"stream\":true,\"stream_options\":{options}"));
        let error = parse_streaming(body.as_bytes()).expect_err(options);
        assert_eq!(error.code(), "invalid_json", "{options}");
        assert_eq!(error.param(), Some("stream_options"), "{options}");
        assert!(error.to_string().contains(fragment), "{options}: {error}");
    }
    for (options, param, fragment) in [
        (
            "{\"include_usage\":true,\"include_usage\":false}",
            "stream_options.include_usage",
            "appears twice",
        ),
        (
            "{\"include_usage\":true,\"include\\u005fusage\":true}",
            "stream_options.include_usage",
            "appears twice",
        ),
        ("{\"x\":1,\"x\":1}", "stream_options.x", "appears twice"),
        (
            "{\"Include_Usage\":false}",
            "stream_options.Include_Usage",
            "must be written `include_usage`",
        ),
        (
            "{\"includeUsage\":true}",
            "stream_options.includeUsage",
            "must be written `include_usage`",
        ),
    ] {
        let body = with(&format!(",\"stream\":true,\"stream_options\":{options}"));
        let error = parse_streaming(body.as_bytes()).expect_err(options);
        assert_eq!(
            (error.code(), error.param()),
            ("invalid_json", Some(param)),
            "{options}"
        );
        assert!(error.to_string().contains(fragment), "{options}: {error}");
    }
    for key in ["Stream_Options", "streamOptions", "stream_options\\u0000"] {
        let body = with(&format!(",\"{key}\":{{\"include_usage\":false}},\"stream\":true"));
        let error = parse_streaming(body.as_bytes()).expect_err(key);
        assert!(
            error.to_string().contains("must be written `stream_options`"),
            "{error}"
        );
    }
}

#[test]
fn the_keys_of_stream_options_are_bounded() {
    let options = |keys: usize, bytes: usize| {
        let keys: Vec<String> = (0..keys).map(|key| format!("\"{key:0bytes$}\":0")).collect();
        with(&format!(
            ",\"stream\":true,\"stream_options\":{{{}}}",
            keys.join(",")
        ))
    };
    assert!(parse_streaming(options(KEYS_MAX, 128).as_bytes()).is_ok());
    for body in [options(KEYS_MAX + 1, 3), options(1, 129)] {
        let error = parse_streaming(body.as_bytes()).unwrap_err();
        assert_eq!(error, BodyError::BadStreamOptions);
        assert!(
            error
                .to_string()
                .contains("at most 256 keys of at most 128 bytes")
        );
    }
}

/// Returns the streamed body with these options after `place` members.
fn streamed(
    mut body: serde_json::Map<String, Value>,
    options: Option<Value>,
) -> serde_json::Map<String, Value> {
    body.insert("stream".to_owned(), json!(true));
    if let Some(options) = options {
        body.insert("stream_options".to_owned(), options);
    }
    body
}

fn options() -> impl Strategy<Value = Option<Value>> {
    let asked = select(vec![json!(true), json!(false), Value::Null]);
    let object = (prop::option::of(asked), prop::option::of(junk())).prop_map(|(asked, other)| {
        let members = [("include_usage", asked), ("include_obfuscation", other)];
        let members = members
            .into_iter()
            .filter_map(|(key, value)| Some((key.to_owned(), value?)));
        Value::Object(members.collect())
    });
    prop::option::of(prop_oneof![4 => object, 1 => Just(Value::Null)])
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn the_change_is_that_one_field(body in body(), options in options(), spelling in spelling()) {
        let mut tree = Value::Object(streamed(body, options));
        let text = spelling.write(&tree);
        let read = parse_streaming(text.as_bytes()).map_err(|error| TestCaseError::fail(format!("{error}: {text}")))?;
        let asked = tree.pointer("/stream_options/include_usage") == Some(&json!(true));
        prop_assert_eq!(read.usage_splice().is_none(), asked, "{}", text);
        let sent = read.usage_splice().map_or_else(|| text.clone().into_bytes(), |splice| splice.apply(text.as_bytes()));
        if !tree["stream_options"].is_object() {
            tree["stream_options"] = json!({});
        }
        tree["stream_options"]["include_usage"] = json!(true);
        prop_assert_eq!(serde_json::from_slice::<Value>(&sent).unwrap(), tree, "{}", text);
        let again = parse_streaming(&sent).unwrap();
        prop_assert_eq!(again.usage_splice(), None, "asked once");
        prop_assert_eq!(RequestBody { splice: None, ..read.clone() }, RequestBody { splice: None, ..again });
        // All other bytes are unchanged.
        if let Some(splice) = read.usage_splice() {
            let [before, added, behind] = splice.pieces(text.as_bytes());
            let replaced = splice.at.len();
            prop_assert_eq!(before.len() + replaced + behind.len(), text.len());
            prop_assert!(text.as_bytes().starts_with(before) && text.as_bytes().ends_with(behind));
            prop_assert!(["", "null", "false"].contains(&&text[splice.at.clone()]), "{}", text);
            prop_assert_eq!(sent.len(), text.len() - replaced + added.len());
        }
    }

    #[test]
    fn a_body_changed_after_an_edit_is_still_one_body(
        body in body(), options in options(), spelling in spelling(), edits in edits(),
    ) {
        let text = spelling.write(&Value::Object(streamed(body, options)));
        let bytes = mutated(text.into_bytes(), &edits);
        if let Ok(read) = parse_streaming(&bytes) {
            let sent = read.usage_splice().map_or_else(|| bytes.clone(), |splice| splice.apply(&bytes));
            let sent: Value = serde_json::from_slice(&sent).unwrap();
            prop_assert!(!read.stream || sent["stream_options"]["include_usage"] == true);
        }
    }
}
