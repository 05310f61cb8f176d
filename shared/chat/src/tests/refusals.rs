//! Tests of every JSON object that is refused for its keys or values, with its code and the message that names the
//! fault.

use super::super::{KEY_BYTES_MAX, KEYS_MAX};
use super::{malformed, parse, refused, with};

#[test]
fn ambiguous_keys() {
    for (members, key) in [
        (",\"n\":1,\"n\":2", "n"),
        (",\"n\":1,\"\\u006e\":1", "n"),
        (",\"stream\":false,\"str\\u0065am\":true", "stream"),
        (",\"stream\":null,\"stream\":null", "stream"),
        (",\"model\":\"m\"", "model"),
        (",\"user\":1,\"user\":1", "user"),
        (",\"\":1,\"\":1", ""),
        (",\"\\/\":1,\"/\":1", "/"),
        (",\"\\\\\":1,\"\\u005c\":1", "\\"),
        (",\"\\\"\":1,\"\\u0022\":1", "\""),
        (",\"\\b\":1,\"\\u0008\":1", "\u{fffd}"),
        (",\"\\f\":1,\"\\u000C\":1", "\u{fffd}"),
        (",\"\\n\":1,\"\\u000a\":1", "\u{fffd}"),
        (",\"\\r\":1,\"\\u000D\":1", "\u{fffd}"),
        (",\"\\t\":1,\"\\u0009\":1", "\u{fffd}"),
        (",\"\\ud83d\\ude00\":1,\"😀\":1", "😀"),
        (",\"é\":1,\"\\u00e9\":1", "é"),
    ] {
        refused(
            with(members),
            "invalid_json",
            &format!("the key `{key}` appears twice"),
            Some(key),
        );
    }
    for (key, shown, wanted) in [
        ("Stream", "Stream", "stream"),
        ("STREAM", "STREAM", "stream"),
        ("N", "N", "n"),
        ("\\u004e", "N", "n"),
        ("Max_Tokens", "Max_Tokens", "max_tokens"),
        ("max_to\u{212a}ens", "max_to\u{212a}ens", "max_tokens"),
        ("\u{17f}tream", "\u{17f}tream", "stream"),
        ("stream\\u0000", "stream\u{fffd}", "stream"),
        ("n\\u0000n", "n\u{fffd}n", "n"),
        ("Model", "Model", "model"),
        ("Messages", "Messages", "messages"),
        ("Service_tier", "Service_tier", "service_tier"),
        (
            "MAX_COMPLETION_TOKENS",
            "MAX_COMPLETION_TOKENS",
            "max_completion_tokens",
        ),
        ("Modalities", "Modalities", "modalities"),
        ("Audio", "Audio", "audio"),
        ("Web_Search_Options", "Web_Search_Options", "web_search_options"),
        ("maxTokens", "maxTokens", "max_tokens"),
        ("max-tokens", "max-tokens", "max_tokens"),
        ("maxtokens", "maxtokens", "max_tokens"),
        ("MAX__TOKENS_", "MAX__TOKENS_", "max_tokens"),
        (
            "maxCompletionTokens",
            "maxCompletionTokens",
            "max_completion_tokens",
        ),
        ("serviceTier", "serviceTier", "service_tier"),
        ("Prediction", "Prediction", "prediction"),
        ("webSearchOptions", "webSearchOptions", "web_search_options"),
        ("_n", "_n", "n"),
    ] {
        let fragment = format!("the key `{shown}` must be written `{wanted}`");
        refused(
            with(&format!(",\"{key}\":1")),
            "invalid_json",
            &fragment,
            Some(shown),
        );
    }
    assert!(
        parse(
            with(
                ",\"nn\":1,\"n \":1,\"n_n\":1,\"max_token\":1,\"topP\":1,\"User\":1,\"user\":1,\"Functions\":[]"
            )
            .as_bytes()
        )
        .is_ok()
    );
    assert!(
        parse(with(",\"metadata\":{\"n\":1,\"n\":2,\"Stream\":true}").as_bytes()).is_ok(),
        "top level only (D62)"
    );
}

#[test]
fn keys_are_bounded_and_quoted_shortly() {
    let keys = |count: usize| (0..count).map(|i| format!(",\"k{i}\":0")).collect::<String>();
    assert!(parse(with(&keys(KEYS_MAX - 2)).as_bytes()).is_ok());
    malformed(
        with(&keys(KEYS_MAX - 1)),
        "the body has more than 256 top-level keys",
    );
    let key = |bytes: usize| format!(",\"{}\":0", "k".repeat(bytes));
    assert!(parse(with(&key(KEY_BYTES_MAX)).as_bytes()).is_ok());
    let quoted = format!("{}…", "k".repeat(64));
    let fragment = format!("the key `{quoted}` is longer than 128 bytes");
    refused(
        with(&key(KEY_BYTES_MAX + 1)),
        "invalid_json",
        &fragment,
        Some(&quoted),
    );
    let error = parse(with(&key(1 << 20)).as_bytes()).unwrap_err();
    assert!(
        error.to_string().len() < 200,
        "the caller's text does not come back in full"
    );
    let error = parse(with(",\"a\\r\\nb\\u001b\":0,\"a\\r\\nb\\u001b\":0").as_bytes()).unwrap_err();
    assert!(!error.to_string().contains(char::is_control), "{error:?}");
}

#[test]
fn model_and_messages() {
    for model in [
        "",
        "\"model\":null,",
        "\"model\":\"\",",
        "\"model\":5,",
        "\"model\":[\"m\"],",
        "\"model\":{},",
        "\"model\":true,",
    ] {
        refused(
            format!("{{{model}\"messages\":[{{}}]}}"),
            "missing_model",
            "`model` is required",
            Some("model"),
        );
    }
    for messages in [
        "",
        ",\"messages\":null",
        ",\"messages\":[]",
        ",\"messages\":[ ]",
        ",\"messages\":\"hi\"",
        ",\"messages\":{}",
        ",\"messages\":0",
    ] {
        let body = format!("{{\"model\":\"m\"{messages}}}");
        refused(
            body,
            "missing_messages",
            "`messages` is required",
            Some("messages"),
        );
    }
    for model in [
        "m,m",
        "m\\u0000",
        "m\\n",
        "\\u007f",
        &"m".repeat(257),
        &"é".repeat(129),
    ] {
        let body = format!("{{\"model\":\"{model}\",\"messages\":[{{}}]}}");
        refused(
            body,
            "invalid_json",
            "`model` must be at most 256 bytes long",
            Some("model"),
        );
    }
    for model in ["m".repeat(256), "é".repeat(128), "\\u006d".repeat(256)] {
        assert!(parse(format!("{{\"model\":\"{model}\",\"messages\":[{{}}]}}").as_bytes()).is_ok());
    }
    for (messages, index) in [
        ("\"hi\"", 0),
        ("{},null", 1),
        ("{},{},[],1", 2),
        ("{},{},{},true", 3),
    ] {
        let body = format!("{{\"model\":\"m\",\"messages\":[{messages}]}}");
        let fragment = format!("`messages[{index}]` must be an object");
        refused(body, "invalid_json", &fragment, Some("messages"));
    }
}

#[test]
fn stream_counts_and_tier() {
    refused(
        with(",\"stream\":true"),
        "stream_not_supported",
        "streaming is not supported here",
        Some("stream"),
    );
    refused(
        with(",\"\\u0073tream\":true"),
        "stream_not_supported",
        "streaming is not supported here",
        Some("stream"),
    );
    for value in ["\"true\"", "\"\"", "1", "0", "[]", "[true]", "{}"] {
        refused(
            with(&format!(",\"stream\":{value}")),
            "invalid_json",
            "`stream` must be a boolean",
            Some("stream"),
        );
    }
    for (key, max) in [
        ("n", 128),
        ("max_tokens", 10_000_000),
        ("max_completion_tokens", 10_000_000),
    ] {
        let over = (max + 1).to_string();
        for value in [
            "0",
            "-0",
            "-1",
            "1.0",
            "2.0",
            "1e0",
            "1e1",
            "1E2",
            "0.5",
            "\"2\"",
            "\"\"",
            "true",
            "false",
            "[]",
            "[1]",
            "{}",
            &over,
            "4294967297",
            "18446744073709551617",
            "18446744073709551616000000000001",
            "1e-1",
        ] {
            let fragment = format!("`{key}` must be an integer from 1 to {max}");
            refused(
                with(&format!(",\"{key}\":{value}")),
                "invalid_json",
                &fragment,
                Some(key),
            );
        }
    }
    for value in [
        "1",
        "true",
        "[\"flex\"]",
        "{}",
        "\"a\\u0000\"",
        &format!("\"{}\"", "t".repeat(65)),
    ] {
        let body = with(&format!(",\"service_tier\":{value}"));
        refused(
            body,
            "invalid_json",
            "`service_tier` must be a string",
            Some("service_tier"),
        );
    }
}

#[test]
fn repeated_media_of_a_part() {
    for kind in ["image_url", "input_audio", "file"] {
        let value = format!("{{\"type\":\"{kind}\",\"{kind}\":0");
        for again in ["0", "null", "\"x\"", "{\"file_id\":\"f\"}"] {
            let escaped = format!("\\u{:04x}{}", kind.as_bytes()[0], &kind[1..]);
            for name in [kind, &kind.to_uppercase(), &escaped] {
                let part = format!("{value},\"{name}\":{again}}}");
                let others = "{\"type\":\"text\",\"text\":\"a\"}";
                for content in [format!("[{part}]"), format!("[{others},{part}]"), part] {
                    let body = format!("{{\"model\":\"m\",\"messages\":[{{\"content\":{content}}}]}}");
                    let fragment = format!("the key `{kind}` appears twice");
                    refused(body, "invalid_json", &fragment, Some(kind));
                }
            }
        }
        // Across two parts, each part contains it once.
        let twice = format!("{{\"model\":\"m\",\"messages\":[{{\"content\":[{value}}},{value}}}]}}]}}");
        parse(twice.as_bytes()).unwrap();
    }
}

#[test]
fn the_order_of_refusals_is_fixed() {
    // Each member has another fault, listed in the order of precedence; the body has them in reverse order.
    let wrong: [(&str, &str); 9] = [
        (",\"a\":01", "malformed number"),
        (",\"x\":0,\"x\":0", "appears twice"),
        (",\"model\":null", "`model` is required"),
        (",\"messages\":[]", "`messages` is required"),
        (",\"stream\":true", "streaming is not supported here"),
        (",\"n\":0", "`n` must be"),
        (",\"max_completion_tokens\":0", "`max_completion_tokens` must be"),
        (",\"max_tokens\":0", "`max_tokens` must be"),
        (",\"service_tier\":0", "`service_tier` must be"),
    ];
    for first in 0..wrong.len() {
        let mut members: Vec<_> = wrong[first..].iter().rev().map(|(member, _)| *member).collect();
        if first > 2 {
            members.push(",\"model\":\"m\"");
        }
        if first > 3 {
            members.push(",\"messages\":[{}]");
        }
        let body = format!("{{\"z\":0{}}}", members.concat());
        let error = parse(body.as_bytes()).expect_err(&body).to_string();
        assert!(error.contains(wrong[first].1), "{body}: {error}");
    }
    let late = with(",\"stream\":1,\"n\":0")
        .replace("\"m\"", "\"\\u0000\"")
        .replace("[{", "[1,{");
    refused(&late, "invalid_json", "`stream`", Some("stream"));
    refused(
        late.replace("\"stream\":1", "\"stream\":false"),
        "invalid_json",
        "`model`",
        Some("model"),
    );
    let late = late
        .replace("\"stream\":1", "\"stream\":false")
        .replace("\\u0000", "m");
    refused(&late, "invalid_json", "`messages[0]`", Some("messages"));
}

#[test]
fn a_limit_can_be_required() {
    for (members, is_limited) in [
        ("", false),
        (",\"max_tokens\":null,\"max_completion_tokens\":null", false),
        (",\"max_tokens\":1", true),
        (",\"max_completion_tokens\":1", true),
        (",\"max_tokens\":null,\"max_completion_tokens\":1", true),
    ] {
        let body = format!("{{\"model\":\"m\",\"messages\":[{{}}]{members}}}");
        let chat = parse(body.as_bytes()).unwrap();
        assert_eq!(chat.check_token_limit(false), Ok(()), "{members}");
        let required = chat.check_token_limit(true);
        assert_eq!(required.is_ok(), is_limited, "{members}");
        if let Err(error) = required {
            assert_eq!(error.code(), "missing_token_limit");
            assert_eq!(error.param(), Some("max_completion_tokens"));
            assert!(error.to_string().contains("`max_tokens` is required"), "{error}");
        }
    }
}
