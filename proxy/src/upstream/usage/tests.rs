//! Tests of usages in whole answers and in streams, which are read alike.

use super::*;
use domain::price::USAGE_TOKENS_MAX;
use proptest::prelude::*;

fn reader(endpoint: Endpoint, cost_counts: bool) -> UsageReader {
    UsageReader {
        endpoint,
        cost_counts,
        tokens_max: USAGE_TOKENS_MAX,
    }
}

/// Returns usage and tier of an answer with a plausible usage.
fn read(endpoint: Endpoint, body: &[u8]) -> Option<(Usage, Option<String>)> {
    let reported = reader(endpoint, true).read(body)?;
    Some((reported.usage.ok()??, reported.service_tier))
}

#[test]
fn each_api_has_words_of_its_own() {
    for (endpoint, usage, [input, output]) in [
        (
            Endpoint::Chat,
            r#"{"prompt_tokens":9,"completion_tokens":2}"#,
            [9, 2],
        ),
        (
            Endpoint::Responses,
            r#"{"input_tokens":9,"output_tokens":2,"total_tokens":11}"#,
            [9, 2],
        ),
        (
            Endpoint::Embeddings,
            r#"{"prompt_tokens":9,"total_tokens":9}"#,
            [9, 0],
        ),
    ] {
        let whole = format!(r#"{{"usage":{usage},"service_tier":"flex"}}"#);
        let (read, tier) = read(endpoint, whole.as_bytes()).unwrap();
        assert_eq!([read.prompt_tokens, read.completion_tokens], [input, output]);
        assert_eq!(tier.as_deref(), Some("flex"));
        assert_eq!(reader(endpoint, false).tokens(usage.as_bytes()), Ok(read));
        for other in Endpoint::ALL.iter().filter(|other| **other != endpoint) {
            // A total alone is a usage. Fields of other endpoints next to it are not read.
            let is_part = *other == Endpoint::Embeddings || usage.contains("total_tokens");
            assert_eq!(
                reader(*other, false).tokens(usage.as_bytes()).is_ok(),
                is_part,
                "{endpoint:?} {other:?}"
            );
        }
    }
}

#[test]
fn an_array_is_no_usage_and_no_answer() {
    for bad in [
        r#"{"usage":[9,2,11,null,null]}"#,
        r#"[{"prompt_tokens":9,"completion_tokens":2},"default"]"#,
    ] {
        assert_eq!(read(Endpoint::Chat, bad.as_bytes()), None, "{bad}");
        let without_cost = reader(Endpoint::Chat, false).read(bad.as_bytes());
        assert!(
            without_cost.is_none_or(|reported| reported.usage == Err(BadUsage::Implausible)),
            "{bad}"
        );
    }
    let array = reader(Endpoint::Chat, false).tokens(b"[9,2,11,null,null]");
    assert_eq!(array, Err(BadUsage::Implausible));
}

/// Some providers stream to everybody whose `Accept` has `text/event-stream`.
#[test]
fn unrequested_events_are_read_for_their_usage() {
    const TEXT: &str = "data: {\"choices\":[{\"delta\":{\"content\":\"hi\"}}]}\n\n";
    const USAGE: &str = "data: {\"choices\":[],\"usage\":{\"prompt_tokens\":9,\"completion_tokens\":2},\"service_tier\":\"flex\"}\n\n";
    let read = |events: &[&str]| {
        let reported = reader(Endpoint::Chat, false).read_events(&events.concat().into());
        (
            reported.usage.unwrap().map(|usage| usage.completion_tokens),
            reported.service_tier,
        )
    };
    let flex = Some("flex".to_owned());
    assert_eq!(read(&[TEXT, USAGE, "data: [DONE]\n\n"]), (Some(2), flex.clone()));
    assert_eq!(read(&[TEXT, USAGE]), (Some(2), flex.clone()));
    assert_eq!(read(&[USAGE, TEXT]), (None, flex), "text follows");
    assert_eq!(read(&[TEXT, "data: [DONE]\n\n"]), (None, None));
}

#[test]
fn only_a_usual_answer_is_read_at_once() {
    const USAGE: &str = r#""usage":{"prompt_tokens":9,"completion_tokens":2}"#;
    let is_read = |counts: bool, answer: &[u8]| reader(Endpoint::Chat, counts).read_at_once(answer).is_some();
    let usual = format!("{{{USAGE}}}");
    assert!(is_read(false, usual.as_bytes()));
    assert!(!is_read(true, usual.as_bytes()), "its cost is read, too");
    for other in [
        "{}".to_owned(),
        format!("{{{USAGE},{USAGE}}}"),
        format!(r#"{{{USAGE},"service_tier":"a","service_tier":"a"}}"#),
        format!(r#"{{{USAGE},"usage":null}}"#),
        format!("{{{USAGE}{}}}", " ".repeat(USAGE_BYTES_MAX)),
    ] {
        assert!(
            !is_read(false, other.as_bytes()),
            "{}",
            &other[..other.len().min(100)]
        );
    }
    let not_utf8 = b"{\"usage\":{\"prompt_tokens\":9,\"completion_tokens\":2,\"x\":\"\xff\"}}";
    assert!(!is_read(false, not_utf8));
}

/// Generates the members of an answer, some of them repeated or with escapes in their keys.
fn members() -> impl Strategy<Value = Vec<String>> {
    let member = prop::sample::select(vec![
        r#""usage":null"#,
        r#""usage":{}"#,
        r#""usage":[9,2]"#,
        r#""usage":{"prompt_tokens":9,"completion_tokens":2}"#,
        r#""usage":{"prompt_tokens":9,"completion_tokens":2,"cost":0.5}"#,
        r#""usage":{"prompt_tokens":9,"prompt_tokens":8,"completion_tokens":2,"cost":0.5,"cost":0.25}"#,
        r#""usage":{"cost":0.25,"x":{"usage":{"prompt_tokens":1}}}"#,
        r#""us\u0061ge":{"prompt_tokens":7,"completion_tokens":1}"#,
        r#""service_tier":"flex""#,
        r#""service_tier":"""#,
        r#""service\u005ftier":"priority""#,
        r#""service_\tier":"priority""#,
        r#""x":{"usage":{"prompt_tokens":5,"completion_tokens":5},"service_tier":"flex"}"#,
        r#""choices":[]"#,
    ]);
    prop::collection::vec(member.prop_map(str::to_owned), 0..5)
}

proptest! {
    /// The quick reader differs from the thorough one in nothing but what it does not read at all.
    #[test]
    fn an_answer_is_read_at_once_as_it_is_read_closely(members in members(), bound in 1..20_u64) {
        let json = format!("{{{}}}", members.join(","));
        let reader = UsageReader { tokens_max: bound, ..reader(Endpoint::Chat, false) };
        if let Some(reported) = reader.read_at_once(json.as_bytes()) {
            let closely = reader.read_closely(json.as_bytes());
            prop_assert_eq!(format!("{:?}", Some(reported)), format!("{closely:?}"), "{}", json);
        }
    }

    /// A whole answer and a stream with the same JSON in its last event are read alike, wherever its pieces end.
    #[test]
    fn whole_answers_and_streams_are_read_alike(members in members(), cut: prop::sample::Index) {
        let json = format!("{{{}}}", members.join(","));
        prop_assume!(serde_json::from_str::<serde_json::Value>(&json).is_ok());
        let reader = reader(Endpoint::Chat, true);
        let whole = reader.read(json.as_bytes()).unwrap();
        let events = Bytes::from(format!("data: {json}\n\ndata: [DONE]\n\n"));
        let mut filter = StreamFilter::new(Format::Chat, true, (Box::new(|_| None), reader.of_events()));
        let cut = cut.index(events.len());
        for piece in [events.slice(..cut), events.slice(cut..)] {
            filter.push(&piece, &mut Vec::new());
        }
        let streamed = filter.usage().filter(|_| filter.usage_is_whole(true));
        let streamed = streamed.and_then(|json| reader.tokens(json).ok());
        prop_assert_eq!(whole.usage.unwrap_or(None), streamed, "{}", json);
        let cost = whole.cost.ok().flatten().map(Nanos::get);
        prop_assert_eq!(cost, filter.cost_nanos(), "{}", json);
    }
}

#[test]
fn plausible_usage_is_read() {
    let whole = br#"{"id":"x","service_tier":"flex","usage":{"prompt_tokens":9,"completion_tokens":2,"total_tokens":11}}"#;
    let (usage, tier) = read(Endpoint::Chat, whole).unwrap();
    assert_eq!((usage.prompt_tokens, tier.as_deref()), (9, Some("flex")));
    for no_tier in ["null", "\"\"", "1", "{\"a\":1}", "[\"flex\"]"] {
        let whole =
            format!(r#"{{"service_tier":{no_tier},"usage":{{"prompt_tokens":9,"completion_tokens":2}}}}"#);
        let (usage, tier) = read(Endpoint::Chat, whole.as_bytes()).unwrap();
        assert_eq!((usage.prompt_tokens, tier), (9, None));
    }
    let broken_content = b"{\"content\":\"\xff\",\"usage\":{\"prompt_tokens\":9,\"completion_tokens\":2}}";
    assert_eq!(read(Endpoint::Chat, broken_content).unwrap().0.prompt_tokens, 9);
    for bad in [
        &b"{}"[..],
        b"[]",
        b"",
        br#"{"usage":null}"#,
        br#"{"usage":{}}"#,
        br#"{"usage":{"prompt_tokens":-1,"completion_tokens":2}}"#,
        br#"{"usage":{"prompt_tokens":1e12,"completion_tokens":2}}"#,
        br#"{"usage":{"prompt_tokens":9,"completion_tokens":2},"usage":{"prompt_tokens":1,"completion_tokens":1}}"#,
        br#"{"usage":{"prompt_tokens":9,"completion_tokens":2"#,
    ] {
        assert!(
            read(Endpoint::Chat, bad).is_none(),
            "{}",
            String::from_utf8_lossy(bad)
        );
    }
}

/// The operator reads these faults in the log. An answer without usage has no fault.
#[test]
fn the_fault_of_a_usage_is_named() {
    let bounded = UsageReader {
        tokens_max: 12,
        ..reader(Endpoint::Chat, false)
    };
    let counts = |prompt: u64, completion: u64| {
        format!(r#"{{"prompt_tokens":{prompt},"completion_tokens":{completion}}}"#)
    };
    let usage = |text: &str| format!(r#"{{"usage":{text}}}"#);
    for (body, fault) in [
        (usage(&counts(12, 12)), None),
        (usage(&counts(13, 2)), Some(BadUsage::TooManyTokens(13))),
        (usage(&counts(2, 14)), Some(BadUsage::TooManyTokens(14))),
        (
            usage(r#"{"prompt_tokens":9,"total_tokens":22}"#),
            Some(BadUsage::TooManyTokens(13)),
        ),
        (usage(&counts(1, 1_000_000_001)), Some(BadUsage::Implausible)),
        (usage(&counts(0, 0)), Some(BadUsage::Implausible)),
        (usage("{}"), Some(BadUsage::Implausible)),
        (
            format!(r#"{{"usage":{0},"usage":{0}}}"#, counts(1, 1)),
            Some(BadUsage::Implausible),
        ),
        (usage("null"), None),
        ("{}".to_owned(), None),
    ] {
        let whole = bounded.read(body.as_bytes()).unwrap();
        assert_eq!(whole.usage.err(), fault, "{body}");
        let events = bounded.read_events(&format!("data: {body}\n\ndata: [DONE]\n\n").into());
        assert_eq!(events.usage.err(), fault, "{body}");
    }
    let of = |endpoint, json: &str| UsageReader { endpoint, ..bounded }.tokens(json.as_bytes());
    let response = r#"{"input_tokens":1,"output_tokens":13}"#;
    let too_many = Err(BadUsage::TooManyTokens(13));
    assert_eq!(of(Endpoint::Responses, response), too_many);
    assert_eq!(of(Endpoint::Embeddings, r#"{"total_tokens":13}"#), too_many);
}

#[test]
fn a_cost_is_read_with_and_without_a_plausible_usage() {
    let cost = |body: &str| reader(Endpoint::Chat, true).read(body.as_bytes()).unwrap().cost;
    let counts = r#""prompt_tokens":9,"completion_tokens":2"#;
    for (usage, nanos) in [
        (format!("{{{counts},\"cost\":0.2}}"), Some(200_000_000)),
        ("{\"cost\":\"0.2\"}".to_owned(), Some(200_000_000)),
        (format!("{{{counts}}}"), None),
        ("null".to_owned(), None),
    ] {
        let cost = cost(&format!("{{\"usage\":{usage}}}"));
        assert_eq!(cost, Ok(nanos.map(Nanos::from_stored)), "{usage}");
    }
    assert!(cost(&format!("{{\"usage\":{{{counts},\"cost\":-1}}}}")).is_err());
}
