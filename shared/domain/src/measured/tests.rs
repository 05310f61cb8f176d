//! Tests of the word of a line and the object of an entry. Pinned results were hashed in existing trails.

use super::*;
use crate::money::Nanos;
use proptest::prelude::*;
use serde_json::json;

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
        billing: Billing::default(),
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
        billing: Billing::default(),
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

fn with(billing: Billing) -> Measured {
    Measured {
        billing,
        ..measured()
    }
}

/// Each detail has another value than the default.
fn billing() -> Billing {
    Billing {
        tier_asked: Some("flex".to_owned()),
        tier_reported: Some("priority".to_owned()),
        reasoning_tokens: 200,
        cache_write_tokens: 400,
        cache_write_12h_tokens: 300,
        cache_write_30m_tokens: 100,
        audio_input_tokens: 50,
        audio_output_tokens: 60,
        web_search: true,
        long_cache: true,
        reported_cost: Nanos::new(1_230_000),
        price_prefix: Some("azure/".to_owned()),
        provider_status: Some(201),
    }
}

const DETAILS: &str = "asked=flex,tier=priority,reasoning=200,written=400,written12h=300,written30m=100,audioin=50,\
    audioout=60,search=1,longcache=1,cost=1230000,prefix=azure/,status=201";

#[test]
fn the_details_of_a_charge_are_pinned() {
    let word = format!("{WORD},{DETAILS}");
    assert_eq!(with(billing()).to_word(), word);
    assert_eq!(Measured::parse(&word), Some(with(billing())));
    assert_eq!(
        with(billing()).shown()["billing"].to_string(),
        r#"{"audioInputTokens":50,"audioOutputTokens":60,"cacheWrite12hTokens":300,"cacheWrite30mTokens":100,"cacheWriteTokens":400,"longCache":true,"pricePrefix":"azure/","providerStatus":201,"reasoningTokens":200,"reportedCostNanos":"1230000","reportedCostUsd":0.00123,"tierAsked":"flex","tierReported":"priority","webSearch":true}"#
    );
    assert!(billing() != Billing::default() && !billing().is_ordinary() && Billing::default().is_ordinary());
    let mut shown = with(billing()).shown();
    let details = shown.as_object_mut().unwrap().remove("billing").unwrap();
    assert_eq!(shown, measured().shown(), "everything else is as it was");
    assert_eq!(Billing::from_json(details.as_object().unwrap()), billing());
    for ordinary in [json!({}), json!({"webSearch": "yes"})] {
        assert_eq!(
            Billing::from_json(ordinary.as_object().unwrap()),
            Billing::default()
        );
    }
}

/// Each detail is written by itself, and shown by itself.
#[test]
fn only_what_is_not_ordinary_is_written_and_shown() {
    for part in DETAILS.split(',') {
        let word = format!("{WORD},{part}");
        let parsed = Measured::parse(&word).unwrap();
        assert_eq!(parsed.to_word(), word);
        let shown = parsed.shown()["billing"].as_object().unwrap().len();
        assert_eq!(shown, if part.starts_with("cost=") { 2 } else { 1 }, "{part}");
    }
}

#[test]
fn details_that_a_reader_refuses_are_left_out_or_unspelt() {
    let beyond = Billing {
        tier_asked: Some("Flex".to_owned()),
        tier_reported: Some("a".repeat(33)),
        reasoning_tokens: NUMBER_MAX + 1,
        cache_write_tokens: u64::MAX,
        reported_cost: Some(Nanos::ZERO),
        price_prefix: Some("a,b".to_owned()),
        provider_status: Some(200),
        ..Billing::default()
    };
    let unspelt = Some(UNSPELT.to_owned());
    let read = Billing {
        tier_asked: unspelt.clone(),
        tier_reported: unspelt.clone(),
        price_prefix: unspelt,
        ..Billing::default()
    };
    assert_eq!(Measured::parse(&with(beyond).to_word()), Some(with(read)));
    let at_bound = Billing {
        tier_reported: Some("a".repeat(32)),
        reasoning_tokens: NUMBER_MAX,
        reported_cost: Some(Nanos::MAX),
        price_prefix: Some("=".repeat(64)),
        provider_status: Some(999),
        ..Billing::default()
    };
    assert_eq!(
        Measured::parse(&with(at_bound.clone()).to_word()),
        Some(with(at_bound))
    );
    let at_no_prefix = Billing {
        price_prefix: Some(String::new()),
        ..Billing::default()
    };
    let word = with(at_no_prefix.clone()).to_word();
    assert!(word.ends_with(",prefix="), "{word}");
    assert_eq!(Measured::parse(&word), Some(with(at_no_prefix)));
}

#[test]
fn malformed_details_are_refused() {
    for details in [
        "",
        "=",
        "asked",
        "asked=",
        "asked=Flex",
        "asked=a b",
        "asked=??",
        "Asked=flex",
        "other=1",
        "tier=flex,tier=flex",
        "tier=flex,asked=flex",
        "status=429,asked=flex",
        "reasoning=0",
        "reasoning=01",
        "reasoning=-1",
        "reasoning=+1",
        "reasoning=1.5",
        "reasoning=",
        "reasoning=1000000001",
        "reasoning=99999999999999999999999",
        "written=1,reasoning=1",
        "search=0",
        "search=",
        "search=true",
        "longcache=2",
        "cost=0",
        "cost=9000000000000001",
        "prefix=\n",
        "status=200",
        "status=99",
        "status=1000",
        "status=65636",
        "status=0429",
        "status=429,",
        "status=429,,",
        "status=429,x",
    ] {
        assert_eq!(Measured::parse(&format!("{WORD},{details}")), None, "{details:?}");
    }
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

fn tokens() -> impl Strategy<Value = u64> {
    number().prop_map(Option::unwrap_or_default)
}

fn details() -> impl Strategy<Value = Billing> {
    let names = [
        prop::option::of("[a-z0-9_.-]{1,32}"),
        prop::option::of("[a-z0-9_.-]{1,32}"),
        prop::option::of("[!-+.-~-]{0,64}"),
    ];
    let counts = [tokens(), tokens(), tokens(), tokens(), tokens(), tokens()];
    let cost = prop::option::of((1..=Nanos::MAX.get()).prop_map(Nanos::from_stored));
    let status = prop::option::of((100..=999_u16).prop_filter("it is not written", |status| *status != 200));
    (names, counts, any::<[bool; 2]>(), cost, status).prop_map(|(names, counts, flags, cost, status)| {
        let [tier_asked, tier_reported, price_prefix] = names;
        let [
            reasoning,
            written,
            written_12h,
            written_30m,
            audio_input,
            audio_output,
        ] = counts;
        Billing {
            tier_asked,
            tier_reported,
            reasoning_tokens: reasoning,
            cache_write_tokens: written,
            cache_write_12h_tokens: written_12h,
            cache_write_30m_tokens: written_30m,
            audio_input_tokens: audio_input,
            audio_output_tokens: audio_output,
            web_search: flags[0],
            long_cache: flags[1],
            reported_cost: cost,
            price_prefix,
            provider_status: status,
        }
    })
}

proptest! {
    #[test]
    fn a_word_is_read_back(
        (endpoint, streamed, end) in (0..3_usize, any::<bool>(), 0..10_usize),
        upstream in prop::option::of("[a-z0-9_-]{1,40}"),
        numbers in [number(), number(), number(), number(), number()],
        extensions in any::<u32>(),
        billing in details(),
    ) {
        let [input_tokens, cached_tokens, output_tokens, latency_ms, first_byte_ms] = numbers;
        let measured = Measured {
            endpoint: Endpoint::ALL[endpoint],
            end: CallEnd::ALL[end],
            streamed, upstream, input_tokens, cached_tokens, output_tokens, latency_ms, first_byte_ms, extensions,
            billing,
        };
        let word = measured.to_word();
        prop_assert!(!word.contains(' '));
        prop_assert_eq!(word.contains('='), !measured.billing.is_ordinary());
        prop_assert_eq!(measured.shown().get("billing").is_some(), !measured.billing.is_ordinary());
        prop_assert_eq!(Measured::parse(&word), Some(measured));
    }
}
