//! Tests of the word of a line and the object of an entry. Pinned results were hashed in existing trails.

use super::*;
use proptest::prelude::*;

const WORD: &str = "responses,1,azure-eu,2600,2000,300,8123,412,hold_exhausted,3";

fn measured() -> Measured {
    Measured {
        endpoint: Endpoint::Responses,
        streamed: true,
        upstream: Some("azure-eu".to_owned()),
        input_tokens: Some(2600),
        cached_tokens: Some(2000),
        output_tokens: Some(300),
        latency_ms: Some(8123),
        first_byte_ms: Some(412),
        end: CallEnd::HoldExhausted,
        extensions: 3,
    }
}

fn unknown() -> Measured {
    Measured {
        endpoint: Endpoint::Chat,
        streamed: false,
        upstream: None,
        input_tokens: None,
        cached_tokens: None,
        output_tokens: None,
        latency_ms: None,
        first_byte_ms: None,
        end: CallEnd::Failed,
        extensions: 0,
    }
}

#[test]
fn the_word_and_the_object_are_pinned() {
    assert_eq!(measured().to_word(), WORD);
    assert_eq!(Measured::parse(WORD), Some(measured()));
    assert_eq!(unknown().to_word(), "chat.completions,0,,,,,,,failed,0");
    assert_eq!(
        measured().shown().to_string(),
        r#"{"cachedTokens":2000,"end":"hold_exhausted","endpoint":"responses","extensions":3,"firstByteMs":412,"inputTokens":2600,"latencyMs":8123,"outputTokens":300,"stream":true,"upstream":"azure-eu"}"#
    );
    assert_eq!(
        unknown().shown().to_string(),
        r#"{"cachedTokens":null,"end":"failed","endpoint":"chat.completions","extensions":0,"firstByteMs":null,"inputTokens":null,"latencyMs":null,"outputTokens":null,"stream":false,"upstream":null}"#
    );
}

#[test]
fn values_that_a_reader_refuses_are_written_as_unknown() {
    let at_bound = Measured {
        input_tokens: Some(NUMBER_MAX),
        latency_ms: Some(NUMBER_MAX),
        upstream: Some("a".repeat(UPSTREAM_NAME_MAX)),
        extensions: u32::MAX,
        ..measured()
    };
    assert_eq!(Measured::parse(&at_bound.to_word()), Some(at_bound.clone()));
    let beyond = Measured {
        input_tokens: Some(NUMBER_MAX + 1),
        latency_ms: Some(u64::MAX),
        upstream: Some("a".repeat(UPSTREAM_NAME_MAX + 1)),
        ..measured()
    };
    let unknown = Measured {
        input_tokens: None,
        latency_ms: None,
        upstream: None,
        ..measured()
    };
    assert_eq!(Measured::parse(&beyond.to_word()), Some(unknown));
    for name in ["", "A", "a b", "a,b", "a.b", "ä", "a\n"] {
        assert!(!is_upstream_name(name), "{name:?}");
    }
    assert!(is_upstream_name("az_09-"));
}

#[test]
fn nothing_else_is_a_word() {
    for malformed in [
        "",
        "H",
        "chat.completions",
        "chat.completions,0,,,,,,,failed",
        "chat.completions,0,,,,,,,failed,0,",
        "chat.completions,2,,,,,,,failed,0",
        "chat.completions,,,,,,,,failed,0",
        "chat,0,,,,,,,failed,0",
        "chat.completions,0,Azure,,,,,,failed,0",
        "chat.completions,0,,-1,,,,,failed,0",
        "chat.completions,0,,+1,,,,,failed,0",
        "chat.completions,0,,1.5,,,,,failed,0",
        "chat.completions,0,,1000000001,,,,,failed,0",
        "chat.completions,0,,,,,,,broken,0",
        "chat.completions,0,,,,,,,failed,",
        "chat.completions,0,,,,,,,failed,4294967296",
    ] {
        assert_eq!(Measured::parse(malformed), None, "{malformed}");
    }
}

fn number() -> impl Strategy<Value = Option<u64>> {
    prop::option::of(prop_oneof![0..100_u64, NUMBER_MAX - 1..=NUMBER_MAX])
}

proptest! {
    #[test]
    fn a_word_is_read_back(
        (endpoint, streamed, end) in (0..3_usize, any::<bool>(), 0..10_usize),
        upstream in prop::option::of("[a-z0-9_-]{1,40}"),
        numbers in [number(), number(), number(), number(), number()],
        extensions in any::<u32>(),
    ) {
        let [input_tokens, cached_tokens, output_tokens, latency_ms, first_byte_ms] = numbers;
        let measured = Measured {
            endpoint: Endpoint::ALL[endpoint],
            end: CallEnd::ALL[end],
            streamed, upstream, input_tokens, cached_tokens, output_tokens, latency_ms, first_byte_ms, extensions,
        };
        let word = measured.to_word();
        prop_assert!(!word.contains(' '));
        prop_assert_eq!(Measured::parse(&word), Some(measured));
    }
}
