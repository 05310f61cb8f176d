//! Tests of valid and invalid bodies.

use super::*;

fn complaint(body: &str) -> String {
    Fields::parse(body.as_bytes()).unwrap_err().message().to_owned()
}

#[test]
fn only_one_object_without_repetition_is_a_body() {
    assert!(Fields::parse(br#" {"a": 1, "b": [1, {"a": 2, "a": 3}]} "#).is_ok());
    for bad in [
        "",
        "[]",
        "[1]",
        "1",
        "\"x\"",
        "null",
        "{",
        "{}x",
        "{} {}",
        "{\"a\":}",
        "{'a':1}",
        "{\"a\":NaN}",
    ] {
        assert!(
            complaint(bad).starts_with("The body must be a JSON object"),
            "{bad}: {}",
            complaint(bad)
        );
    }
    assert_eq!(
        complaint(r#"{"name":"a","name":"b"}"#),
        "\"name\" is given twice."
    );
    assert_eq!(
        complaint(r#"{"name":"a","n\u0061me":"b"}"#),
        "\"name\" is given twice."
    );
    assert!(Fields::parse(b"{\"a\": \"\xff\"}").is_err());
    let many: Vec<String> = (0..101).map(|n| format!("\"f{n}\":1")).collect();
    assert!(complaint(&format!("{{{}}}", many.join(","))).contains("too many fields"));
    let deep = format!("{{\"a\":{}{}}}", "[".repeat(5000), "]".repeat(5000));
    let deep = Fields::parse(deep.as_bytes()).unwrap();
    assert!(
        deep.limit("a").is_err() && deep.string("a").is_err(),
        "nesting costs no stack and is no value"
    );
}

#[test]
fn an_unknown_field_is_named_without_letting_it_write_the_answer() {
    let body = format!(r#"{{"{}\n\"":1}}"#, "x".repeat(100));
    let error = Fields::parse(body.as_bytes())
        .unwrap()
        .only(&["name"])
        .unwrap_err();
    assert!(
        error
            .message()
            .starts_with(&format!("\"{}\" is not a field", "x".repeat(64))),
        "{error:?}"
    );
}

#[test]
fn texts_are_bounded_and_plain() {
    let read = |json: &str, kind| {
        let body = format!(r#"{{"name":{json}}}"#);
        let fields = Fields::parse(body.as_bytes()).unwrap();
        fields
            .text("name", kind, 5)
            .map_err(|problem| problem.message().to_owned())
    };
    assert_eq!(
        read("\"日本 é\"", TextForm::Line),
        Ok(FieldValue::Value("日本 é".into()))
    );
    assert_eq!(
        read("\" a \"", TextForm::Line),
        Ok(FieldValue::Value(" a ".into()))
    );
    // Right-to-left names, and emoji joined by a zero-width character.
    for name in [
        "\u{200f}\u{5d0}\u{5d1}",
        "\u{200e}\u{61c}\u{627}",
        "\u{1f469}\u{200d}\u{1f680}",
    ] {
        let read = read(&format!("\"{name}\""), TextForm::Line);
        assert_eq!(read, Ok(FieldValue::Value(name.into())));
    }
    assert_eq!(read("null", TextForm::Line), Ok(FieldValue::Null));
    assert_eq!(
        read("\"\"", TextForm::Lines),
        Ok(FieldValue::Value(String::new()))
    );
    assert_eq!(
        read("\"a\\nb\"", TextForm::Lines),
        Ok(FieldValue::Value("a\nb".into()))
    );
    for (json, kind, must) in [
        ("\"\"", TextForm::Line, "not be empty"),
        ("\" \\u00a0 \"", TextForm::Line, "not be empty"),
        ("\"\\u200b\\u2060 \\ufeff\"", TextForm::Line, "not be empty"),
        ("\"\\u3164\\u2800\\ufe0f\"", TextForm::Line, "not be empty"),
        ("\"a\\u202e\"", TextForm::Line, "not contain characters that turn"),
        ("\"\\u2069a\"", TextForm::Line, "not contain characters that turn"),
        ("\"a\\u2028b\"", TextForm::Line, "be one line"),
        ("\"a\\u2029\"", TextForm::Line, "be one line"),
        ("\"abcdef\"", TextForm::Line, "have at most 5"),
        ("\"a\\nb\"", TextForm::Line, "not contain control"),
        ("\"a\\u0000\"", TextForm::Lines, "not contain control"),
        (
            "\"a\\u202e\"",
            TextForm::Lines,
            "not contain characters that turn",
        ),
        (
            "\"\\n\\u2066a\"",
            TextForm::Lines,
            "not contain characters that turn",
        ),
        ("5", TextForm::Line, "be a string"),
        ("[\"a\"]", TextForm::Line, "be a string"),
        ("\"\\ud800\"", TextForm::Line, "be a string"),
    ] {
        let error = read(json, kind).unwrap_err();
        assert!(error.starts_with(&format!("name must {must}")), "{json}: {error}");
    }
    assert_eq!(
        Fields::default().text("name", TextForm::Line, 5),
        Ok(FieldValue::Absent)
    );
}

#[test]
fn amounts_are_exact_and_complaints_name_the_field() {
    let read = |json: &str| {
        let body = format!(r#"{{"max":{json}}}"#);
        let fields = Fields::parse(body.as_bytes()).unwrap();
        fields
            .limit("max")
            .map_err(|problem| problem.message().to_owned())
    };
    assert_eq!(
        read("8999999.999999999"),
        Ok(FieldValue::Value(Nanos::new(8_999_999_999_999_999).unwrap()))
    );
    assert_eq!(
        read("\"0.1\""),
        Ok(FieldValue::Value(Nanos::new(100_000_000).unwrap()))
    );
    assert_eq!(read("0"), Ok(FieldValue::Value(Nanos::ZERO)));
    assert_eq!(read("null"), Ok(FieldValue::Null));
    for (json, complaint) in [
        ("-1", "max must not be negative."),
        ("1e400", "max must be at most 9000000 USD."),
        (
            "0.11000000000000001",
            "max must have at most nine fraction digits: round it, or send the digits that are meant as a string such as \"0.11\".",
        ),
        ("\"0.0000000001\"", "max must have at most nine fraction digits."),
        ("\"ten\"", "max must be a decimal number of USD."),
        ("true", "max must be a decimal number of USD."),
        ("[1]", "max must be a decimal number of USD."),
        ("{}", "max must be a decimal number of USD."),
    ] {
        assert_eq!(read(json), Err(complaint.to_owned()), "{json}");
    }
}

#[test]
fn absent_and_null_differ_where_a_field_can_be_cleared() {
    let fields = Fields::parse(br#"{"null":null,"name":"a"}"#).unwrap();
    let read = |name: &str| fields.string(name).unwrap();
    let error = |result: Result<String, Problem>| result.unwrap_err().message().to_owned();
    assert_eq!(read("name").required("name").unwrap(), "a");
    assert_eq!(error(read("null").required("null")), "null is required.");
    assert_eq!(error(read("absent").required("absent")), "absent is required.");
    assert_eq!(read("name").not_null("name").unwrap().as_deref(), Some("a"));
    assert_eq!(read("absent").not_null("absent").unwrap(), None);
    let refused = read("null").not_null("null").map(|_| String::new());
    assert_eq!(error(refused), "null must not be null.");
    let nullable = ["name", "null", "absent"].map(|name| read(name).nullable());
    assert_eq!(nullable, [Some(Some("a".to_owned())), Some(None), None]);
}

#[test]
fn an_object_is_bounded_as_it_is_sent_and_as_it_is_kept() {
    let read = |object: String| {
        let body = format!("{{\"x\":{object}}}");
        let found = Fields::parse(body.as_bytes()).unwrap().object("x");
        found
            .map(FieldValue::value)
            .map_err(|error| error.message().to_owned())
    };
    let text = |length: usize| format!("{{\"a\":\"{}\"}}", "y".repeat(length - 8));
    assert!(read(text(OBJECT_MAX)).is_ok());
    assert_eq!(
        read(text(OBJECT_MAX + 1)).unwrap_err(),
        "x must have at most 16384 bytes."
    );
    // Each number is kept in 18 bytes, with the comma or bracket behind it in 19.
    let numbers = |count: usize| format!("{{\"a\":[{}1e15]}}", "1e15,".repeat(count - 1));
    let most = (OBJECT_MAX - "{\"a\":[}".len()) / 19;
    let kept = read(numbers(most)).unwrap().unwrap().to_string();
    assert!(
        (OBJECT_MAX - 19..=OBJECT_MAX).contains(&kept.len()),
        "{}",
        kept.len()
    );
    let error = read(numbers(most + 1)).unwrap_err();
    assert!(
        error.starts_with("x must have at most 16384 bytes as it is kept"),
        "{error}"
    );
}
