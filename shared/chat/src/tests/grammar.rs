//! Tests of every body that is not one JSON object in valid UTF-8, with the message that names the flaw.

use super::super::{BodyError, DEPTH_MAX};
use super::{malformed, parse, with};

#[test]
fn bodies_that_are_no_json_object() {
    for body in ["", " ", "\r\n\t "] {
        malformed(body, "the body is empty");
    }
    for body in [
        "[]", "\"x\"", "1", "true", "null", "NaN", "model=m", "\u{a0}{}", "// c\n{}", "\0{}",
    ] {
        malformed(body, "must be a JSON object");
    }
    malformed(format!("\u{feff}{}", with("")), "byte order mark");
    malformed("\u{feff}", "byte order mark");
    let utf16: Vec<u8> = with("").encode_utf16().flat_map(u16::to_le_bytes).collect();
    malformed(utf16, "unexpected character at byte 1");
}

#[test]
fn bytes_that_are_no_utf_8() {
    for (bad, at) in [
        (&b"\xff"[..], 10),
        (b"\xc0\xaf", 10),
        (b"\xed\xa0\x80", 10),
        (b"\xf4\x90\x80\x80", 10),
        (b"a\xc3", 11),
        (b"\xe2\x82", 10),
    ] {
        let body = [br#"{"model":""#, bad, br#""}"#].concat();
        malformed(body, &format!("not valid UTF-8 (byte {at})"));
    }
    malformed([with("").as_bytes(), b"\x80"].concat(), "not valid UTF-8");
}

#[test]
fn data_after_the_body() {
    let length = with("").len();
    for tail in [
        "x", "{}", ",", "\0", "\u{a0}", "\u{b}", "\u{feff}", "//", "]", "}",
    ] {
        malformed(
            format!("{}{tail}", with("")),
            &format!("unexpected data after the JSON body at byte {length}"),
        );
        malformed(
            format!("{}\n{tail}", with("")),
            &format!("JSON body at byte {}", length + 1),
        );
    }
    assert!(
        parse(format!(" \t\r\n{} \t\r\n", with("")).as_bytes()).is_ok(),
        "white space around it is fine"
    );
}

#[test]
fn broken_structure() {
    for members in [
        ",",
        ",,\"a\":1",
        ",\"a\"",
        ",\"a\":",
        ",\"a\":,",
        ",\"a\" 1",
        ",a:1",
        ",'a':1",
        ",1:1",
        ",\"a\":1,",
        ",\"a\":[1,]",
        ",\"a\":[,1]",
        ",\"a\":[1 2]",
        ",\"a\":{\"b\":1,}",
        ",\"a\":[1}",
        ",\"a\":{]",
        ",\"a\":NaN",
        ",\"a\":Infinity",
        ",\"a\":-Infinity",
        ",\"a\":undefined",
        ",\"a\":True",
        ",\"a\":tru",
        ",\"a\":nulls",
        ",\"a\":truefalse",
        ",\"a\":'b'",
        ",\"a\":/* c */1",
        ",\"a\":1 // c\n",
        ",\"a\":+1",
        ",\"a\":.5",
        ",\"a\":0x10",
        ",\"a\":1_000",
        ",\"a\":\"b\"\"c\"",
        "\u{a0},\"a\":1",
        "\u{c},\"a\":1",
        ",\"a\":\u{feff}1",
    ] {
        let error = parse(with(members).as_bytes()).expect_err(members);
        let grammar = matches!(error, BodyError::Unexpected { .. } | BodyError::BadNumber { .. });
        assert!(grammar && error.code() == "invalid_json", "{members}: {error}");
    }
    malformed(r#"{"a" 1}"#, "unexpected character at byte 5 of the body");
    malformed(r#"{"a":nul}"#, "unexpected character at byte 8 of the body");
}

#[test]
fn numbers() {
    for number in [
        "01", "-01", "00", "-", "1.", "1.e5", "1e", "1e+", "1E-", "-.5", "0.", "0e",
    ] {
        malformed(
            with(&format!(",\"seed\":{number}")),
            "malformed number at byte 64",
        );
    }
    let long = "9".repeat(400);
    for number in [
        "1e309",
        "-1e400",
        "1e99999999999999999999",
        long.as_str(),
        "1.7976931348623159e308",
    ] {
        malformed(
            with(&format!(",\"seed\":{number}")),
            "number out of range at byte 64",
        );
    }
    let (exact, tiny) = ("9".repeat(300), format!("0.{}1", "0".repeat(400)));
    for number in [
        "0",
        "-0",
        "0.0",
        "1e5",
        "1E+5",
        "1.5e-400",
        "0e999999",
        &exact,
        &tiny,
        "1.7976931348623157e308",
    ] {
        assert!(
            parse(with(&format!(",\"seed\":{number}")).as_bytes()).is_ok(),
            "{number} is a JSON number"
        );
    }
}

#[test]
fn strings() {
    for (inner, fragment) in [
        ("a\nb", "unescaped control character in a string at byte 64"),
        ("a\tb", "unescaped control character"),
        ("a\0b", "unescaped control character"),
        ("\u{1f}", "unescaped control character"),
        (r"\x41", "invalid escape at byte 63"),
        (r"\'", "invalid escape"),
        (r"\U0041", "invalid escape"),
        (r"\u00g0", "invalid escape"),
        (r"\u+041", "invalid escape"),
        (r"\u12", "invalid escape"),
        (r"\u{41}", "invalid escape"),
        ("\\u00\u{e9}", "invalid escape"),
        (r"\ud800", "half of a surrogate pair at byte 63"),
        (r"\udc00", "half of a surrogate pair"),
        (r"\uDBFF\uDBFF", "half of a surrogate pair"),
        (r"\udc00\ud800", "half of a surrogate pair"),
        (r"\ud800x", "half of a surrogate pair"),
        (r"\ud800\n", "half of a surrogate pair"),
        (r"\ud800\u0041", "half of a surrogate pair"),
        (r"\ud800\u00zz", "invalid escape"),
    ] {
        malformed(with(&format!(",\"xx\":\"{inner}\"")), fragment);
        malformed(
            with(&format!(",\"{inner}\":1")),
            fragment.split(" at byte").next().unwrap(),
        );
    }
    let fine = r#"\"\\\/\b\f\n\r\t\u0000\u007f\ud83d\ude00\uFFFF"#;
    assert!(parse(with(&format!(",\"xx\":\"{fine}\u{7f}\u{2028}\u{10ffff}\"")).as_bytes()).is_ok());
}

#[test]
fn nesting() {
    let nested = |levels: usize| with(&format!(",\"x\":{}1{}", "[".repeat(levels), "]".repeat(levels)));
    let most = DEPTH_MAX as usize - 1;
    assert!(
        parse(nested(most).as_bytes()).is_ok(),
        "the body's own braces are the first of 128 levels"
    );
    malformed(nested(most + 1), "the body is nested more than 128 levels deep");
    let objects = |levels: usize| {
        with(&format!(
            ",\"x\":{}1{}",
            "{\"a\":".repeat(levels),
            "}".repeat(levels)
        ))
    };
    assert!(parse(objects(most).as_bytes()).is_ok());
    malformed(objects(most + 1), "nested more than 128 levels");
    malformed(nested(1_000_000), "nested more than 128 levels");
    malformed("{\"a\":".repeat(1_000_000), "nested more than 128 levels");
    let in_message = |levels: usize| {
        format!(
            r#"{{"model":"m","messages":[{{"content":{}1{}}}]}}"#,
            "[".repeat(levels),
            "]".repeat(levels)
        )
    };
    assert!(parse(in_message(most - 2).as_bytes()).is_ok());
    malformed(in_message(most - 1), "nested more than 128 levels");
    let wide = with(&format!(",\"x\":[{}1]", "[[]],".repeat(1000)));
    assert!(
        parse(wide.as_bytes()).is_ok(),
        "what is closed is no longer nesting"
    );
}
