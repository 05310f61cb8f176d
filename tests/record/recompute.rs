//! The charge of each call can be recomputed from its record and the price table alone, to the nano, by the formula of
//! `docs/reference/decision-records.md` (decision D48).

use crate::fixture::{success, text};
use crate::record_fixture::{Client, RecordFixture};
use domain::price::{DEFAULT_PRICES, ModelEntry, PriceTable, Published, ServedCall, Usage};
use harness::{Answer, Script, chat_body};
use serde_json::{Value, json};

const DOCUMENT: &str = include_str!("../../docs/reference/decision-records.md");

/// A model with another price for each kind of token and tier.
const MODEL: &str = r#"
[models.lab]
web_search = "0.01"
rates.standard = { input = "2", cached_input = "0.5", cache_write = "2.5", cache_write_12h = "5", output = "8", audio_input = "40", audio_output = "80.0003" }
rates.flex = { input = "1.0001", cached_input = "0.25", cache_write = "1.25", output = "4" }
rates.priority = { input = "4", output = "16" }
long_context_above = 10_000
long_context.standard = { input = "3", cached_input = "0.75", cache_write = "3.75", output = "12" }
"#;

/// Picos per token, by the published figures of a tier and the rules for what they lack.
struct Rates {
    input: u64,
    cached: u64,
    written: u64,
    written_12h: u64,
    output: u64,
    audio_input: u64,
    audio_output: u64,
}

/// The rates of the published figures. Without a figure for sound, `below` is the least that sound costs.
fn rates(published: &Published, below: Option<&Rates>) -> Rates {
    let picos = |price: domain::price::TokenPrice| price.picos();
    let (input, output) = (picos(published.input), picos(published.output));
    let written = published.cache_write.map_or(input, picos).max(input);
    let least = |plain: u64, of: fn(&Rates) -> u64| plain.max(below.map_or(0, of));
    Rates {
        input,
        cached: published.cached_input.map_or(input, picos),
        written,
        written_12h: published.cache_write_12h.map_or(written, picos).max(written),
        output,
        audio_input: published
            .audio_input
            .map_or_else(|| least(input, |below| below.audio_input), picos),
        audio_output: published
            .audio_output
            .map_or_else(|| least(output, |below| below.audio_output), picos),
    }
}

/// The rates of a tier for a prompt of this length. Only `standard` has figures for long prompts.
fn rates_of(entry: &ModelEntry, tier: &str, input_tokens: u64) -> Rates {
    let tier = match tier {
        "default" | "auto" => "standard",
        "fast" => "priority",
        tier => tier,
    };
    let standard = rates(&entry.rates["standard"], None);
    if tier != "standard" {
        return rates(&entry.rates[tier], Some(&standard));
    }
    match entry.long_context_above {
        Some(above) if input_tokens > above => rates(&entry.long_context["standard"], Some(&standard)),
        _ => standard,
    }
}

/// The dearer of both for each kind of token.
fn dearer(a: &Rates, b: &Rates) -> Rates {
    Rates {
        input: a.input.max(b.input),
        cached: a.cached.max(b.cached),
        written: a.written.max(b.written),
        written_12h: a.written_12h.max(b.written_12h),
        output: a.output.max(b.output),
        audio_input: a.audio_input.max(b.audio_input),
        audio_output: a.audio_output.max(b.audio_output),
    }
}

/// The charge in nano-USD that follows from what `GET /decisions/{id}` says and from the price table.
fn recomputed(decision: &Value, table: &PriceTable) -> u64 {
    let call = &decision["call"];
    let billing = &call["billing"];
    let reported = billing["reportedCostNanos"].as_str();
    if let Some(reported) = reported {
        return reported.parse().unwrap();
    }
    let (Some(input), Some(output)) = (call["inputTokens"].as_u64(), call["outputTokens"].as_u64()) else {
        let is_refused = billing["providerStatus"]
            .as_u64()
            .is_some_and(|status| (400..500).contains(&status));
        return match is_refused {
            true => 0,
            false => text(decision, "/estimateNanos").parse().unwrap(),
        };
    };
    let tokens = |name: &str| billing[name].as_u64().unwrap_or(0);
    let is_set = |name: &str| billing[name] == json!(true);
    let entry = table.entry(text(decision, "/model")).unwrap();
    let of_tier = |tier: &str| rates_of(entry, tier, input);
    let rates = match (billing["tierReported"].as_str(), billing["tierAsked"].as_str()) {
        (Some(tier), _) => of_tier(tier),
        (None, Some(asked)) => dearer(&of_tier(asked), &of_tier("default")),
        (None, None) => of_tier("default"),
    };
    let sound = tokens("audioInputTokens");
    let text = input - sound;
    let written = tokens("cacheWriteTokens").min(text);
    let longer = match is_set("longCache") {
        true => tokens("cacheWriteTokens") - tokens("cacheWrite30mTokens"),
        false => tokens("cacheWrite12hTokens"),
    };
    let longer = longer.min(written);
    let cached = call["cachedTokens"].as_u64().unwrap_or(0).min(text - written);
    let spoken = tokens("audioOutputTokens").min(output);
    let search = match is_set("webSearch") {
        true => entry.web_search.unwrap().picos(),
        false => 0,
    };
    let picos = (text - written - cached) * rates.input
        + cached * rates.cached
        + (written - longer) * rates.written
        + longer * rates.written_12h
        + sound * rates.audio_input
        + (output - spoken) * rates.output
        + spoken * rates.audio_output
        + search;
    picos.div_ceil(1_000)
}

/// A call, what the provider answers, and the expected details of its charge; `null` for an ordinary call.
struct Case {
    asked: Value,
    usage: Value,
    tier: Option<&'static str>,
    status: u16,
    billing: Value,
}

fn case(asked: Value, usage: Value, tier: Option<&'static str>, billing: Value) -> Case {
    Case {
        asked,
        usage,
        tier,
        status: 200,
        billing,
    }
}

fn failed(status: u16, asked: Value, billing: Value) -> Case {
    Case {
        status,
        ..case(asked, json!(null), None, billing)
    }
}

fn cases() -> Vec<Case> {
    let plain = json!({ "prompt_tokens": 9_001, "completion_tokens": 1_203 });
    let detailed = json!({ "prompt_tokens": 9_000, "completion_tokens": 1_201, "prompt_tokens_details": {
            "cached_tokens": 5_000, "audio_tokens": 700, "cache_write_tokens": 3_000,
            "cache_write_tokens_details": { "ttl_12h_tokens": 1_000, "ttl_30m_tokens": 1_500 } },
        "completion_tokens_details": { "reasoning_tokens": 640, "audio_tokens": 301 } });
    let details = |more: Value| {
        let mut all = json!({ "reasoningTokens": 640, "cacheWriteTokens": 3_000, "cacheWrite12hTokens": 1_000,
            "cacheWrite30mTokens": 1_500, "audioInputTokens": 700, "audioOutputTokens": 301 });
        let more = more.as_object().unwrap().clone();
        all.as_object_mut().unwrap().extend(more);
        all
    };
    let mut dear = plain.clone();
    dear["cost"] = json!("0.1234567891");
    let mut cheap = plain.clone();
    cheap["cost"] = json!(0.000_000_1);
    let long = json!({ "prompt_tokens": 10_001, "completion_tokens": 7 });
    let flex = json!({ "service_tier": "flex" });
    let both = |asked: &str, reported: &str| json!({ "tierAsked": asked, "tierReported": reported });
    let kept = json!({ "prompt_cache_options": { "ttl": "12h" } });
    vec![
        case(json!({}), plain.clone(), None, json!(null)),
        case(json!({}), plain.clone(), Some("default"), json!(null)),
        case(json!({}), long, Some("default"), json!(null)),
        case(flex.clone(), plain.clone(), Some("flex"), both("flex", "flex")),
        case(
            flex.clone(),
            plain.clone(),
            Some("default"),
            both("flex", "default"),
        ),
        case(flex.clone(), plain.clone(), None, json!({ "tierAsked": "flex" })),
        case(
            json!({}),
            plain.clone(),
            Some("fast"),
            json!({ "tierReported": "fast" }),
        ),
        case(
            json!({ "service_tier": "priority" }),
            plain.clone(),
            Some("priority"),
            both("priority", "priority"),
        ),
        case(json!({}), detailed.clone(), None, details(json!({}))),
        case(
            json!({ "service_tier": "priority" }),
            detailed.clone(),
            Some("flex"),
            details(both("priority", "flex")),
        ),
        case(
            kept,
            detailed.clone(),
            None,
            details(json!({ "longCache": true })),
        ),
        case(
            json!({ "web_search_options": {} }),
            plain.clone(),
            None,
            json!({ "webSearch": true }),
        ),
        case(
            json!({}),
            dear,
            None,
            json!({ "reportedCostUsd": 0.123_456_79, "reportedCostNanos": "123456790" }),
        ),
        case(json!({}), cheap, None, json!(null)),
        case(
            json!({}),
            json!(null),
            Some("priority"),
            json!({ "tierReported": "priority" }),
        ),
        failed(
            429,
            flex.clone(),
            json!({ "tierAsked": "flex", "providerStatus": 429 }),
        ),
        failed(500, json!({}), json!({ "providerStatus": 500 })),
    ]
}

/// Makes the call of the case, streamed or not, and returns the decision.
async fn decision_of(fixture: &RecordFixture, client: &Client, case: &Case, is_streamed: bool) -> Value {
    let mut body = chat_body("lab", "hello");
    for (name, value) in case.asked.as_object().unwrap() {
        body[name] = value.clone();
    }
    body["stream"] = json!(is_streamed);
    let mut fields = json!({ "usage": case.usage, "service_tier": case.tier });
    let answer = match (case.status, is_streamed) {
        (200, false) => Answer::json(200, fields),
        (200, true) => {
            fields["choices"] = json!([]);
            fields["object"] = json!("chat.completion.chunk");
            Answer::stream(Script::new().event(fields).event("[DONE]"))
        }
        (status, _) => Answer::error(status, "overloaded", "Not now."),
    };
    fixture.upstream.set(move |_| answer.clone());
    let reply = client.edge.chat(body).await;
    let id = reply.header("x-service-allow-id").expect("it is approved");
    client.decision(id).await
}

#[tokio::test]
async fn each_charge_follows_from_the_record_and_the_price_table() {
    let prices = [DEFAULT_PRICES, MODEL].concat();
    let table = PriceTable::from_toml(&prices).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("prices.toml");
    std::fs::write(&file, &prices).unwrap();
    let fixture = RecordFixture::start_with(&[
        ("PRICES__FILE", file.to_str().unwrap()),
        ("PROXY__STREAMING", "true"),
        ("UPSTREAM__REPORTED_COST", "true"),
    ])
    .await;
    let client = fixture.client("enterprise", json!({})).await;
    for is_streamed in [false, true] {
        for case in cases() {
            let decision = decision_of(&fixture, &client, &case, is_streamed).await;
            let asked = &case.asked;
            assert_eq!(decision["call"]["stream"], json!(is_streamed), "{decision}");
            assert_eq!(decision["call"]["billing"], case.billing, "{asked} {decision}");
            let charged: u64 = text(&decision, "/chargedNanos").parse().unwrap();
            assert_eq!(decision["priceVersion"], table.version());
            assert_eq!(charged, recomputed(&decision, &table), "{asked} {decision}");
            let listed = success(&client.api.get("/v1/calls?limit=1").await, 200);
            let listed = &listed["calls"][0];
            assert_eq!(listed["id"], decision["id"]);
            assert_eq!(listed["billing"], case.billing, "{listed}");
            assert_eq!(listed["priceVersion"], table.version());
        }
    }
    let csv = client.api.get("/v1/calls/export").await.text();
    let mut rows = csv.lines().map(|line| line.split(',').collect::<Vec<_>>());
    let header = rows.next().unwrap();
    let column = |name: &str| header.iter().position(|column| *column == name).unwrap();
    let rows: Vec<Vec<&str>> = rows.collect();
    let has = |name: &str, value: &str| {
        let at = column(name);
        rows.iter().filter(|row| row[at] == value).count()
    };
    let each_twice = cases().len() * 2;
    for (name, value, count) in [
        ("priceVersion", table.version(), each_twice),
        ("tierAsked", "flex", 8),
        ("tierReported", "flex", 4),
        ("tierReported", "fast", 2),
        ("reasoningTokens", "640", 6),
        ("cacheWriteTokens", "3000", 6),
        ("cacheWrite12hTokens", "1000", 6),
        ("cacheWrite30mTokens", "1500", 6),
        ("audioInputTokens", "700", 6),
        ("audioOutputTokens", "301", 6),
        ("webSearch", "true", 2),
        ("webSearch", "", each_twice - 2),
        ("longCache", "true", 2),
        ("reportedCostUsd", "0.12345679", 2),
        ("pricePrefix", "", each_twice),
        ("providerStatus", "429", 2),
        ("providerStatus", "500", 2),
        ("providerStatus", "", each_twice - 4),
    ] {
        assert_eq!(has(name, value), count, "{name} {value}: {csv}");
    }
    let verified = client.api.get("/v1/audit/verify").await.text();
    assert!(
        verified.lines().last().unwrap().contains("\"ok\":true"),
        "{verified}"
    );
}

/// The example of the documentation, by the formula and by the code that charges.
#[test]
fn the_example_of_the_documentation_is_right() {
    let section = DOCUMENT.split("## Recomputing a charge").nth(1).unwrap();
    let block = |language: &str| {
        let begin = format!("```{language}\n");
        let rest = section.split(&begin).nth(1).unwrap();
        rest.split("```").next().unwrap()
    };
    let settings = DEFAULT_PRICES.split("[models.").next().unwrap();
    let table = PriceTable::from_toml(&[settings, block("toml")].concat()).unwrap();
    let record: Value = serde_json::from_str(block("json")).unwrap();
    let call = &record["call"];
    let count = |name: &str| call[name].as_u64().unwrap();
    let usage = json!({ "prompt_tokens": count("inputTokens"), "completion_tokens": count("outputTokens"),
        "prompt_tokens_details": { "cached_tokens": count("cachedTokens") } });
    let usage: Usage = serde_json::from_value(usage).unwrap();
    let cost = |tier: &str| {
        let served = ServedCall {
            model: text(&record, "/model"),
            tier_asked: None,
            tier_reported: Some(tier),
            usage: &usage,
            web_search: false,
            long_cache: false,
        };
        table.actual_cost(&served).unwrap().cost.get()
    };
    let charged = cost(text(call, "/billing/tierReported"));
    assert_eq!(record["chargedNanos"], charged.to_string());
    assert_eq!(recomputed(&record, &table), charged);
    for (nanos, shown) in [(charged, "44,258,500"), (cost("flex"), "11,064,625")] {
        assert_eq!(shown.replace(',', ""), nanos.to_string());
        assert!(section.contains(shown), "{shown}");
    }
}
