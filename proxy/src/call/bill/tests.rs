//! Tests of the charge of whole answers and streams, and of the details that the audit trail has of it.

use super::*;
use crate::call::call_request::CallRun;
use crate::upstream::failure::BreakOff;
use crate::upstream::usage::{Reported, UsageReader};
use bytes::Bytes;
use domain::measured::Endpoint;
use domain::price::{CallShape, DEFAULT_PRICES, PriceTable, USAGE_TOKENS_MAX};
use http::HeaderMap;
use std::sync::Arc;

const ESTIMATE: Nanos = Nanos::from_stored(1_000_000);
const MODELS: &str = r#"
    [models.m]
    web_search = "0.003"
    rates.standard = { input = "2", output = "10" }
    rates.flex = { input = "1", output = "5" }
    [models.expensive]
    rates.standard = { input = "100", output = "500" }
"#;

fn request() -> CallRequest {
    // The settings of the price file, which precede its models.
    let settings = DEFAULT_PRICES.split("[models.").next().unwrap();
    CallRequest {
        run: CallRun {
            id: "r".to_owned(),
            named: true,
        },
        model: "m".to_owned(),
        service_tier: None,
        shape: CallShape::EMPTY,
        upstream: crate::fixture::upstream(),
        prices: Arc::new(PriceTable::from_toml(&[settings, MODELS].concat()).unwrap()),
        estimate: Some(ESTIMATE),
        endpoint: Endpoint::Chat,
        stream: None,
    }
}

/// Rules that read everything.
const READER: UsageReader = UsageReader {
    endpoint: Endpoint::Chat,
    cost_counts: true,
    tokens_max: USAGE_TOKENS_MAX,
};

fn read(body: &str) -> Option<Reported> {
    READER.read(body.as_bytes())
}

fn answer(status: u16, body: &str) -> Result<WholeAnswer, UpstreamFailure> {
    Ok(WholeAnswer {
        status: StatusCode::from_u16(status).unwrap(),
        headers: HeaderMap::new(),
        body: Bytes::new(),
        reported: read(body),
    })
}

/// 9 tokens of 2 and 12 of 10 USD a million.
const USAGE: &str = r#"{"usage":{"prompt_tokens":9,"completion_tokens":12}}"#;

fn bill(request: &CallRequest, answer: &Result<WholeAnswer, UpstreamFailure>) -> (Nanos, HoldOutcome) {
    let bill = Bill::from_whole(request, ESTIMATE, answer);
    (bill.cost, bill.outcome)
}

fn settled(nanos: u64) -> (Nanos, HoldOutcome) {
    (Nanos::from_stored(nanos), HoldOutcome::Settled)
}

const ESTIMATED: (Nanos, HoldOutcome) = (ESTIMATE, HoldOutcome::Estimated);
const RELEASED: (Nanos, HoldOutcome) = (Nanos::ZERO, HoldOutcome::Released);

#[test]
fn a_success_costs_its_usage_or_the_estimate() {
    for status in [200, 201, 299] {
        assert_eq!(bill(&request(), &answer(status, USAGE)), settled(138_000));
    }
    for unreadable in [
        "",
        "{}",
        r#"{"usage":null}"#,
        r#"{"usage":{"prompt_tokens":0,"completion_tokens":0}}"#,
    ] {
        let bill = bill(&request(), &answer(200, unreadable));
        assert_eq!(bill, ESTIMATED, "{unreadable}");
    }
}

#[test]
fn a_client_error_that_the_upstream_bills_costs_the_estimate() {
    let section =
        "[upstreams.azure]\nbase_url = \"http://a\"\nmodels = [\"*\"]\nbilled_statuses = [400, 408]\n";
    let request = CallRequest {
        upstream: crate::fixture::upstream_for("m", section),
        ..request()
    };
    for (status, expected) in [
        (399, ESTIMATED),
        (400, ESTIMATED),
        (401, RELEASED),
        (408, ESTIMATED),
        (409, RELEASED),
    ] {
        assert_eq!(bill(&request, &answer(status, USAGE)), expected, "{status}");
    }
}

/// 9 tokens of a prompt and 12 of a completion: the bound holds for each of both.
#[test]
fn a_usage_beyond_the_bound_of_the_upstream_keeps_the_estimate() {
    let bounded = |tokens_max: u64| CallRequest {
        upstream: crate::fixture::upstream_of(&format!("[upstream]\nusage_tokens_max = {tokens_max}\n")),
        ..request()
    };
    let of_prompt = r#"{"usage":{"prompt_tokens":12,"completion_tokens":9}}"#;
    for (body, nanos) in [(USAGE, 138_000), (of_prompt, 114_000)] {
        for (tokens_max, expected) in [(12, settled(nanos)), (11, ESTIMATED)] {
            let request = bounded(tokens_max);
            let mut answer = answer(200, "").unwrap();
            answer.reported = request.usage_reader().read(body.as_bytes());
            let bill = bill(&request, &Ok(answer));
            assert_eq!(bill, expected, "{body} {tokens_max}");
        }
    }
    for (tokens_max, expected, fault) in [
        (12, settled(69_000), None),
        (
            11,
            (HELD, HoldOutcome::Estimated),
            Some(BadUsage::TooManyTokens(12)),
        ),
    ] {
        let events = [TEXT, USAGE_OF_FLEX, "[DONE]"];
        let bill = bill_of_stream(&bounded(tokens_max), &events, CallEnd::Completed);
        assert_eq!((bill.cost, bill.outcome), expected, "{tokens_max}");
        assert_eq!((bill.usage.is_none(), bill.bad_usage), (fault.is_some(), fault));
    }
}

#[test]
fn a_client_error_costs_nothing_and_every_other_failure_the_estimate() {
    for status in [400, 401, 404, 429, 499] {
        assert_eq!(bill(&request(), &answer(status, USAGE)), RELEASED, "{status}");
    }
    for status in [300, 302, 399, 500, 503, 599] {
        assert_eq!(bill(&request(), &answer(status, USAGE)), ESTIMATED, "{status}");
    }
    for failure in [
        UpstreamFailure::Timeout,
        UpstreamFailure::Unreachable(BreakOff::Connect),
    ] {
        assert_eq!(bill(&request(), &Err(failure)), ESTIMATED);
    }
}

#[test]
fn tier_search_and_encoding_are_considered() {
    let flex = r#"{"service_tier":"flex","usage":{"prompt_tokens":9,"completion_tokens":12}}"#;
    assert_eq!(bill(&request(), &answer(200, flex)), settled(69_000));
    let asked = CallRequest {
        service_tier: Some("flex".to_owned()),
        ..request()
    };
    assert_eq!(bill(&asked, &answer(200, flex)), settled(69_000));
    // Nothing confirms that the provider knows the tier, so the call is priced without it.
    assert_eq!(bill(&asked, &answer(200, USAGE)), settled(138_000));
    let searching = CallRequest {
        shape: CallShape {
            web_search: true,
            ..CallShape::EMPTY
        },
        ..request()
    };
    assert_eq!(
        bill(&searching, &answer(200, USAGE)),
        settled(138_000 + 3_000_000)
    );
    let unknown = CallRequest {
        model: "n".to_owned(),
        ..request()
    };
    assert_eq!(
        bill(&unknown, &answer(200, USAGE)),
        settled(9 * 100_000 + 12 * 500_000)
    );
    // The body could not be decoded.
    let mut compressed = answer(200, USAGE).unwrap();
    compressed.reported = None;
    assert_eq!(bill(&request(), &Ok(compressed)), ESTIMATED);
}

/// Returns the charge for a usage that costs 138,000 nano-USD with this reported cost, or for an answer without
/// usage.
#[test]
fn the_larger_of_the_table_and_of_a_reported_cost_is_charged_where_that_counts() {
    let counting = CallRequest {
        upstream: crate::fixture::upstream_of("[upstream]\nreported_cost = true\n"),
        ..request()
    };
    let usage = |cost: &str| -> Result<WholeAnswer, UpstreamFailure> {
        let body = format!(r#"{{"usage":{{"prompt_tokens":9,"completion_tokens":12,"cost":{cost}}}}}"#);
        let mut answer = answer(200, "").unwrap();
        answer.reported = read(&body);
        Ok(answer)
    };
    for (cost, nanos) in [
        ("0.2", 200_000_000),
        ("\"0.0001380001\"", 138_001),
        ("0.000138", 138_000),
        ("0.0001", 138_000),
        ("0", 138_000),
        ("null", 138_000),
        // An ignored cost: the table's cost is charged.
        ("-0.2", 138_000),
        ("1e300", 138_000),
        ("\"dear\"", 138_000),
    ] {
        assert_eq!(bill(&counting, &usage(cost)), settled(nanos), "{cost}");
        assert_eq!(
            bill(&request(), &usage(cost)),
            settled(138_000),
            "it does not count: {cost}"
        );
    }
    let without = answer(200, r#"{"usage":{"cost":0.2}}"#);
    let dearer = (Nanos::from_stored(200_000_000), HoldOutcome::Estimated);
    assert_eq!(bill(&counting, &without), dearer);
    assert_eq!(bill(&request(), &without), ESTIMATED);
    let cheaper = answer(200, r#"{"usage":{"cost":1e-9}}"#);
    assert_eq!(bill(&counting, &cheaper), ESTIMATED);
    let refused = answer(400, r#"{"usage":{"cost":0.2}}"#);
    assert_eq!(bill(&counting, &refused), RELEASED);
}

#[test]
fn only_the_usage_of_a_success_is_measured() {
    const CACHED: &str =
        r#"{"usage":{"prompt_tokens":9,"completion_tokens":12,"prompt_tokens_details":{"cached_tokens":4}}}"#;
    for (answer, word) in [
        (answer(200, CACHED), "chat.completions,0,,9,4,12,812,,completed,0"),
        (answer(200, "{}"), "chat.completions,0,,,,,812,,completed,0"),
        (
            answer(201, "{}"),
            "chat.completions,0,,,,,812,,completed,0,status=201",
        ),
        (
            answer(429, USAGE),
            "chat.completions,0,,,,,812,,completed,0,status=429",
        ),
        (
            answer(500, USAGE),
            "chat.completions,0,,,,,812,,completed,0,status=500",
        ),
        (
            Err(UpstreamFailure::Timeout),
            "chat.completions,0,,,,,812,,completed,0",
        ),
    ] {
        assert_eq!(word_of(&request(), &answer), word);
    }
}

/// Returns the measurements of a call with this answer in the audit trail.
fn word_of(request: &CallRequest, answer: &Result<WholeAnswer, UpstreamFailure>) -> String {
    let bill = Bill::from_whole(request, ESTIMATE, answer);
    let exchange = EndedExchange {
        end: CallEnd::Completed,
        result: UpstreamResult::Success,
        status: answer.as_ref().ok().map(|answer| answer.status),
        took: Duration::from_micros(812_999),
        stream: None,
    };
    bill.measured(request, &exchange).to_word()
}

/// Returns the details in the measurements; empty for an ordinary call.
fn details(request: &CallRequest, answer: &Result<WholeAnswer, UpstreamFailure>) -> String {
    let word = word_of(request, answer);
    let (_, details) = word.split_once(",completed,0").unwrap();
    details.to_owned()
}

/// A tier that changes no price is not recorded: nearly every answer reports `default`.
#[test]
fn tiers_are_recorded_unless_both_are_ordinary() {
    for (asked, reported, recorded) in [
        (None, None, ""),
        (None, Some("default"), ""),
        (None, Some("auto"), ""),
        (Some("auto"), Some("default"), ""),
        (Some("default"), None, ""),
        (None, Some("flex"), ",tier=flex"),
        (Some("flex"), Some("flex"), ",asked=flex,tier=flex"),
        (Some("flex"), Some("default"), ",asked=flex,tier=default"),
        (Some("auto"), Some("priority"), ",asked=auto,tier=priority"),
        (Some("flex"), None, ",asked=flex"),
        (Some("Flex 2"), Some("flex"), ",asked=?,tier=flex"),
    ] {
        let request = CallRequest {
            service_tier: asked.map(str::to_owned),
            ..request()
        };
        let tier = reported.map_or(String::new(), |tier| format!(r#","service_tier":"{tier}""#));
        let body = format!(r#"{{"usage":{{"prompt_tokens":9,"completion_tokens":12}}{tier}}}"#);
        assert_eq!(
            details(&request, &answer(200, &body)),
            recorded,
            "{asked:?} {reported:?}"
        );
    }
    let asked = CallRequest {
        service_tier: Some("flex".to_owned()),
        ..request()
    };
    assert_eq!(details(&asked, &answer(429, "")), ",asked=flex,status=429");
}

#[test]
fn other_inputs_of_the_charge_are_recorded() {
    const DETAILED: &str = r#"{"usage":{"prompt_tokens":900,"completion_tokens":120,
        "prompt_tokens_details":{"cached_tokens":100,"audio_tokens":50,"cache_write_tokens":400,
        "cache_write_tokens_details":{"ttl_12h_tokens":300,"ttl_30m_tokens":100}},
        "completion_tokens_details":{"reasoning_tokens":80,"audio_tokens":20},"cost":0.2}}"#;
    let tokens = ",reasoning=80,written=400,written12h=300,written30m=100,audioin=50,audioout=20";
    assert_eq!(details(&request(), &answer(200, DETAILED)), tokens);
    let asking = CallRequest {
        shape: CallShape {
            web_search: true,
            long_cache: true,
            ..CallShape::EMPTY
        },
        upstream: crate::fixture::upstream_of("[upstream]\nreported_cost = true\n"),
        ..request()
    };
    assert_eq!(
        details(&asking, &answer(200, DETAILED)),
        format!("{tokens},search=1,longcache=1,cost=200000000")
    );
    assert_eq!(details(&asking, &answer(200, USAGE)), ",search=1,longcache=1");
    // Without usage the estimate is charged, or the reported cost.
    assert_eq!(details(&asking, &answer(200, "{}")), "");
    let cost_alone = answer(200, r#"{"usage":{"cost":0.2}}"#);
    assert_eq!(details(&asking, &cost_alone), ",cost=200000000");
    let cheaper = answer(
        200,
        r#"{"usage":{"prompt_tokens":9,"completion_tokens":12,"cost":0.0001}}"#,
    );
    assert_eq!(details(&asking, &cheaper), ",search=1,longcache=1");
    let named = "[upstreams.azure]\nbase_url = \"http://a\"\nmodels = [\"*\"]\nprice_prefix = \"a/\"\n";
    let of_other_prices = CallRequest {
        upstream: crate::fixture::upstream_for("m", named),
        ..request()
    };
    assert_eq!(details(&of_other_prices, &answer(200, USAGE)), ",prefix=a/");
}

/// The amount held for a stream.
const HELD: Nanos = Nanos::from_stored(2_000_000);

/// Returns the bill of a stream with these events, of which [`HELD`] was held.
fn bill_of_stream(request: &CallRequest, events: &[&str], end: CallEnd) -> Bill {
    let nothing_is_redacted = Box::new(|_: &[u8]| None);
    let reader = request.usage_reader();
    let mut filter = StreamFilter::new(reader.format(), true, (nothing_is_redacted, reader.of_events()));
    for event in events {
        filter.push(&Bytes::from(format!("data: {event}\n\n")), &mut Vec::new());
    }
    Bill::from_stream(request, HELD, &filter, end)
}

const TEXT: &str = r#"{"choices":[{"delta":{"content":"some words"}}]}"#;
const USAGE_OF_FLEX: &str =
    r#"{"choices":[],"service_tier":"flex","usage":{"prompt_tokens":9,"completion_tokens":12}}"#;

#[test]
fn a_stream_costs_the_usage_of_its_whole_answer() {
    let bill = bill_of_stream(&request(), &[TEXT, USAGE_OF_FLEX, "[DONE]"], CallEnd::Completed);
    assert_eq!((bill.cost, bill.outcome), settled(69_000));
    assert_eq!(bill.usage.map(|usage| usage.completion_tokens), Some(12));
    assert_eq!(bill.tier_reported.as_deref(), Some("flex"));
}

#[test]
fn a_stream_without_that_costs_what_was_held() {
    // The text behind the usage is not in it.
    for events in [&[TEXT][..], &[USAGE_OF_FLEX, TEXT]] {
        let bill = bill_of_stream(&request(), events, CallEnd::ProviderBrokeOff);
        let held = (HELD, HoldOutcome::Estimated);
        assert_eq!(
            (bill.cost, bill.outcome, bill.usage.is_some()),
            (held.0, held.1, false)
        );
    }
    let dear = r#"{"usage":{"prompt_tokens":9,"completion_tokens":1200}}"#;
    let bill = bill_of_stream(&request(), &[dear, TEXT], CallEnd::ProviderBrokeOff);
    let cost = Nanos::from_stored(9 * 2_000 + 1_200 * 10_000);
    assert_eq!(
        (bill.cost, bill.outcome),
        (cost, HoldOutcome::Estimated),
        "the usage so far"
    );
}

/// The tier that was asked for counts once the provider reports it; to hold for, it counts at once.
#[test]
fn seen_text_costs_by_model_and_tier() {
    let flex = CallRequest {
        service_tier: Some("flex".to_owned()),
        ..request()
    };
    let expensive = CallRequest {
        model: "expensive".to_owned(),
        ..request()
    };
    for (request, reported, nanos) in [
        (&request(), None, 10_000_000),
        (&request(), Some("flex"), 5_000_000),
        (&flex, None, 10_000_000),
        (&flex, Some("default"), 10_000_000),
        (&expensive, None, 500_000_000),
    ] {
        assert_eq!(
            request.text_bytes_max(),
            64 << 20,
            "as an answer that is not streamed"
        );
        let beyond = [1, 1_000].map(|times| request.cost_of_text(times * (64 << 20), reported));
        assert_eq!(beyond[0], beyond[1]);
        let cost = request.cost_of_text(4_000, reported);
        assert_eq!(cost, Some(Nanos::from_stored(nanos)), "{reported:?}");
    }
    assert_eq!(flex.cost_of_tokens(1_000), Some(Nanos::from_stored(5_000_000)));
}
