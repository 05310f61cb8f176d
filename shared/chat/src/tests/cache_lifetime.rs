//! Tests of bodies that request a longer lifetime than the default of the provider's cache.

use super::parse;
use crate::responses;

/// Returns whether a chat completion and a response request it with these members at the top and in a content part.
#[track_caller]
fn is_long(top: &str, part: &str) -> [bool; 2] {
    let chat = format!(
        r#"{{"model":"m"{top},"messages":[{{"role":"user","content":[{{"type":"text","text":"hi"{part}}}]}}]}}"#
    );
    let response = format!(
        r#"{{"model":"m"{top},"input":[{{"role":"user","content":[{{"type":"input_text","text":"hi"{part}}}]}}]}}"#
    );
    [
        parse(chat.as_bytes()).expect(&chat).shape.long_cache,
        responses::parse(response.as_bytes())
            .expect(&response)
            .shape
            .long_cache,
    ]
}

#[test]
fn a_lifetime_is_read_for_the_call_and_for_each_breakpoint() {
    for (value, long) in [
        (r#"{"ttl":"12h"}"#, true),
        (r#"{"mode":"explicit","ttl":"12h"}"#, true),
        (r#"{"ttl":"1w"}"#, true),
        (r#"{"ttl":""}"#, true),
        (r#"{"ttl":43200}"#, true),
        (r#"{"TTL":"12h"}"#, true),
        (r#"{"ttl":"30m","ttl":"12h"}"#, true),
        (r#"{"ttl":"12h","ttl":"30m"}"#, true),
        (r#""12h""#, true),
        (r#"{"ttl":"30m"}"#, false),
        (r#"{"ttl":"\u00330m"}"#, false),
        (r#"{"ttl":null}"#, false),
        (r#"{"mode":"explicit"}"#, false),
        ("{}", false),
        ("null", false),
    ] {
        let top = format!(r#","prompt_cache_options":{value}"#);
        let part = format!(r#","prompt_cache_breakpoint":{value}"#);
        assert_eq!(is_long(&top, ""), [long; 2], "{top}");
        assert_eq!(is_long("", &part), [long; 2], "{part}");
        assert_eq!(is_long(&top, &part), [long; 2], "{value}");
    }
    assert_eq!(is_long("", ""), [false; 2]);
    let short = r#","prompt_cache_breakpoint":{"ttl":"30m"}"#;
    assert_eq!(
        is_long(r#","prompt_cache_options":{"ttl":"12h"}"#, short),
        [true; 2]
    );
    assert_eq!(is_long(r#","prompt_cache_retention":"24h""#, ""), [false; 2]);
}

/// Anthropic's models have another key, and another default.
#[test]
fn a_lifetime_is_read_for_anthropics_models() {
    for (value, long) in [
        (r#"{"type":"ephemeral","ttl":"1h"}"#, true),
        (r#"{"type":"ephemeral","ttl":"30m"}"#, true),
        (r#"{"type":"ephemeral","ttl":"5m"}"#, false),
        (r#"{"type":"ephemeral"}"#, false),
        ("null", false),
    ] {
        let member = format!(r#","cache_control":{value}"#);
        assert_eq!(is_long(&member, ""), [long; 2], "{member}");
        assert_eq!(is_long("", &member), [long; 2], "{member}");
        let message = format!(r#"{{"model":"m","messages":[{{"role":"user","content":"hi"{member}}}]}}"#);
        let shape = parse(message.as_bytes()).expect(&message).shape;
        assert_eq!(shape.long_cache, long, "{message}");
    }
}

#[test]
fn a_look_alike_is_refused() {
    for key in ["Prompt_Cache_Options", "promptCacheOptions"] {
        let body = format!(r#"{{"model":"m","messages":[{{}}],"{key}":{{"ttl":"12h"}}}}"#);
        let error = parse(body.as_bytes()).unwrap_err().to_string();
        assert!(
            error.contains("must be written `prompt_cache_options`"),
            "{error}"
        );
    }
}
