//! `GET /calls`, its export and `GET /usage`: each call, and the sums over calls.
//!
//! * [`sums`]: pages, exports and usage of a written trail, in the store and in the archive, against its lines
//! * [`bounds`]: the reads of one request
//! * [`streamed`]: a streamed call

mod bounds;
mod streamed;
mod sums;
mod trail;

use crate::fixture::{fresh, problem, success, text};
use crate::record_fixture::{Client, MODEL, RecordFixture};
use domain::mode::Mode;
use domain::timestamp::iso_from_ms;
use harness::{Caller, assert_fields, chat_body};
use serde_json::{Value, json};

/// The calls of a query, which fit on a page.
async fn calls(api: &Caller, query: &str) -> Vec<Value> {
    let page = success(&api.get(&format!("/v1/calls{query}")).await, 200);
    assert_eq!(page["nextCursor"], json!(null), "{page}");
    assert_eq!(page["partial"], json!(false), "{page}");
    page["calls"].as_array().unwrap().clone()
}

/// Two approved calls, of which one is in the run `r1`, and a denied one; the newest first, as they are listed.
async fn three_calls(client: &Client) -> [String; 3] {
    let wallet = json!({ "botId": "bot", "name": "Research bot" });
    success(&client.api.post("/v1/wallets/create", wallet).await, 200);
    let (_, first) = client.call(Some("r1")).await;
    let (_, second) = client.call(None).await;
    let body = json!({ "maxSpendPerDay": 0 });
    success(&client.api.post("/v1/policies/bot", body).await, 200);
    let (_, third) = client.call(Some("r1")).await;
    [third, second, first]
}

#[tokio::test]
async fn a_call_is_listed_with_what_it_cost() {
    let fixture = RecordFixture::start().await;
    let client = fixture.client("builder", json!({ "maxSpendPerDay": 10 })).await;
    let ids = three_calls(&client).await;
    let listed = calls(&client.api, "").await;
    let found: Vec<&str> = listed.iter().map(|call| text(call, "/id")).collect();
    assert_eq!(found, ids);

    let settled = &listed[2];
    let decision = client.decision(&ids[2]).await;
    let call = &decision["call"];
    assert_eq!(
        *settled,
        json!({ "id": ids[2], "at": decision["at"], "endedAt": decision["endedAt"], "agentId": "bot",
            "agentName": "Research bot", "runId": "r1", "keyId": client.key_id, "keyName": settled["keyName"],
            "model": MODEL, "endpoint": "chat.completions", "stream": false, "upstream": null, "inputTokens": 9,
            "cachedTokens": 0, "outputTokens": 12, "estimatedUsd": decision["estimateUsd"],
            "estimatedNanos": decision["estimateNanos"], "costUsd": decision["actualUsd"], "costNanos": "8550",
            "latencyMs": call["latencyMs"], "firstByteMs": call["firstByteMs"], "end": "completed", "extensions": 0,
            "outcome": "settled", "reason": null, "count": 1,
            "chargedOn": text(&decision, "/at")[..10],
            "auditSeq": decision["auditSeq"], "hash": decision["history"][0]["hash"],
            "priceVersion": decision["priceVersion"], "billing": null })
    );
    fresh(text(settled, "/at"));

    let denied = &listed[0];
    let shown = [
        "outcome",
        "reason",
        "costNanos",
        "endedAt",
        "latencyMs",
        "inputTokens",
    ]
    .map(|name| &denied[name]);
    let null = json!(null);
    assert_eq!(
        shown,
        [
            &json!("denied"),
            &json!("daily_limit"),
            &json!("0"),
            &null,
            &null,
            &null
        ]
    );
}

#[tokio::test]
async fn each_filter_finds_its_calls_and_no_others() {
    let fixture = RecordFixture::start().await;
    let client = fixture.client("builder", json!({ "maxSpendPerDay": 10 })).await;
    let [denied, alone, in_run] = three_calls(&client).await;
    let all = [denied.as_str(), &alone, &in_run];
    let (past, future) = ("2020-01-01T00:00:00Z", "2099-01-01T00:00:00Z");
    let at_ms = clock::now_ms();
    let [today, tomorrow] = [at_ms, at_ms + 86_400_000].map(|at_ms| iso_from_ms(at_ms)[..10].to_owned());
    let other_key = "vk_01KAH3V9J80000000000000001";
    let cases: Vec<(String, Vec<&str>)> = vec![
        ("?agentId=bot".to_owned(), all.to_vec()),
        ("?agentId=other".to_owned(), vec![]),
        ("?runId=r1".to_owned(), vec![&denied, &in_run]),
        ("?runId=r2".to_owned(), vec![]),
        (format!("?keyId={}", client.key_id), all.to_vec()),
        (format!("?keyId={other_key}"), vec![]),
        (format!("?model={MODEL}"), all.to_vec()),
        ("?model=gpt-4".to_owned(), vec![]),
        ("?endpoint=chat.completions".to_owned(), vec![&alone, &in_run]),
        ("?endpoint=embeddings".to_owned(), vec![]),
        ("?upstream=azure".to_owned(), vec![]),
        ("?outcome=settled".to_owned(), vec![&alone, &in_run]),
        ("?outcome=denied".to_owned(), vec![&denied]),
        ("?outcome=kept".to_owned(), vec![]),
        ("?reason=daily_limit".to_owned(), vec![&denied]),
        ("?reason=frozen".to_owned(), vec![]),
        ("?minCostUsd=0.00000855".to_owned(), vec![&alone, &in_run]),
        ("?minCostUsd=0.000008551".to_owned(), vec![]),
        ("?minEstimatedUsd=0.00000855".to_owned(), all.to_vec()),
        ("?minEstimatedUsd=1000".to_owned(), vec![]),
        ("?minInputTokens=9".to_owned(), vec![&alone, &in_run]),
        ("?minInputTokens=10".to_owned(), vec![]),
        (
            "?minOutputTokens=12&minInputTokens=9".to_owned(),
            vec![&alone, &in_run],
        ),
        ("?minOutputTokens=13&minInputTokens=9".to_owned(), vec![]),
        ("?minCachedTokens=1".to_owned(), vec![]),
        ("?minLatencyMs=3600000".to_owned(), vec![]),
        ("?minFirstByteMs=3600000".to_owned(), vec![]),
        (format!("?from={past}&to={future}"), all.to_vec()),
        (format!("?from={future}"), vec![]),
        (format!("?chargedFrom={today}"), vec![&alone, &in_run]),
        (format!("?chargedFrom={today}&chargedTo={today}"), vec![]),
        (format!("?chargedTo={tomorrow}"), vec![&alone, &in_run]),
        (format!("?chargedFrom={tomorrow}"), vec![]),
        (format!("?chargedFrom={today}&outcome=denied"), vec![]),
        (format!("?to={past}"), vec![]),
        (
            format!("?agentId=bot&runId=r1&outcome=settled&model={MODEL}"),
            vec![&in_run],
        ),
    ];
    for (query, expected) in cases {
        let found = calls(&client.api, &query).await;
        let found: Vec<&str> = found.iter().map(|call| text(call, "/id")).collect();
        assert_eq!(found, expected, "{query}");
    }

    let (_, stranger) = fixture.management.account("builder").await;
    let tester = fixture.management.caller(&client.account, Mode::Test).await;
    for outsider in [&stranger, &tester] {
        assert_eq!(calls(outsider, "").await, Vec::<Value>::new());
        assert_eq!(
            calls(outsider, &format!("?keyId={}", client.key_id)).await,
            Vec::<Value>::new()
        );
        let usage = success(&outsider.get("/v1/usage").await, 200);
        assert_fields!(usage, { "usage": [], "partial": false });
    }
}

#[tokio::test]
async fn a_malformed_parameter_is_a_400_that_names_it() {
    let fixture = RecordFixture::start().await;
    let (_, api) = fixture.management.account("builder").await;
    let of_usage = [
        ("groupBy", "team"),
        ("groupBy", ""),
        ("interval", "week"),
        ("format", "xml"),
        ("from", "2026"),
        ("to", ""),
        ("cursor", "AfQ1bGl2ZQ"),
        ("model", ""),
    ];
    let cases = [
        (
            "/v1/calls",
            &[("model", ""), ("minCostUsd", "0"), ("limit", "201")][..],
        ),
        ("/v1/calls", &[("offset", "10001"), ("cursor", "AfQ1bGl2ZQ")]),
        ("/v1/calls/export", &[("model", ""), ("minCostUsd", "0")]),
        ("/v1/usage", &of_usage),
        ("/v1/thresholds", &[("threshold", "60"), ("cap", "run")]),
    ];
    for (path, parameters) in cases {
        for (name, bad) in parameters {
            let reply = api.get(&format!("{path}?{name}={bad}")).await;
            assert_eq!(reply.status, 400, "{path}?{name}={bad}: {}", reply.text());
            assert!(
                text(&reply.json(), "/error").contains(name),
                "{path}?{name}={bad}: {}",
                reply.text()
            );
        }
        problem(&api.get(&format!("{path}?color=red")).await, 400, "VALIDATION");
    }
    let days = |days: u64| iso_from_ms(clock::now_ms() - days * 86_400_000);
    for query in [
        format!("from={}&to={}", days(1), days(2)),
        format!("from={}", days(401)),
        format!("interval=hour&from={}", days(32)),
    ] {
        let reply = api.get(&format!("/v1/usage?{query}")).await;
        problem(&reply, 400, "VALIDATION");
        assert!(
            text(&reply.json(), "/error").starts_with("from"),
            "{}",
            reply.text()
        );
    }
}

#[tokio::test]
async fn denials_of_a_rate_window_are_one_row() {
    let fixture = RecordFixture::start().await;
    let client = fixture.client("free", json!({ "maxSpendPerDay": 10 })).await;
    for _ in 0..25 {
        client.call(None).await;
    }
    let usage = success(&client.api.get("/v1/usage?groupBy=key").await, 200);
    let (calls, denied) = (
        &usage["totals"]["calls"],
        usage["totals"]["denied"].as_u64().unwrap(),
    );
    assert_eq!(*calls, json!(10), "the plan's requests a minute");
    // The rest of the denials become a record when the window ends.
    assert!((10..=15).contains(&denied), "{usage}");
}

#[tokio::test]
async fn usage_is_what_the_ledger_counted() {
    let fixture = RecordFixture::start().await;
    let client = fixture.client("builder", json!({ "maxSpendPerDay": 10 })).await;
    three_calls(&client).await;
    let before = fixture.management.redis.period();
    let usage = success(&client.api.get("/v1/usage?groupBy=agent").await, 200);
    let fields = fixture
        .management
        .fields(&client.account.keys.live().agent("bot"))
        .await;
    if fixture.management.redis.period() != before {
        return; // midnight
    }
    let row = &usage["usage"][0];
    assert_eq!(
        row["costNanos"].as_str(),
        fields.get(&format!("d{}", before.day)).map(String::as_str)
    );
    assert_fields!(row, { "group": "bot", "name": "Research bot" });
    let counts = [
        "calls",
        "denied",
        "inputTokens",
        "cachedTokens",
        "outputTokens",
        "unmeasured",
    ]
    .map(|name| &row[name]);
    assert_eq!(counts, [2, 1, 18, 0, 24, 0].map(|count| json!(count)).each_ref());
    assert_eq!(usage["totals"]["costNanos"], json!("17100"));
    assert_fields!(usage, { "partial": false, "coveredFrom": usage["from"] });

    let csv = client.api.get("/v1/usage?groupBy=run&format=csv").await;
    assert_eq!(csv.header("content-type"), Some("text/csv; charset=utf-8"));
    let day = iso_from_ms(before.day * 86_400_000);
    let expected = format!(
        "at,group,name,calls,denied,inputTokens,cachedTokens,outputTokens,unmeasured,costUsd\r\n\
         {day},,,1,0,9,0,12,0,0.00000855\r\n{day},r1,,1,1,9,0,12,0,0.00000855\r\n"
    );
    assert_eq!(csv.text(), expected);
}

#[tokio::test]
async fn an_export_has_the_calls_of_its_filters() {
    let fixture = RecordFixture::start().await;
    let client = fixture.client("builder", json!({ "maxSpendPerDay": 10 })).await;
    let [denied, _, in_run] = three_calls(&client).await;
    let reply = client.api.get("/v1/calls/export?runId=r1").await;
    assert_eq!(reply.status, 200, "{}", reply.text());
    assert_eq!(reply.header("content-type"), Some("text/csv; charset=utf-8"));
    let name = format!("attachment; filename=\"calls_{}_live.csv\"", client.account.id);
    assert_eq!(reply.header("content-disposition"), Some(name.as_str()));
    let text = reply.text();
    let lines: Vec<&str> = text.split_terminator("\r\n").collect();
    assert!(lines[0].starts_with("id,at,endedAt,agentId,"), "{text}");
    assert_eq!(lines.len(), 3, "{text}");
    assert!(
        lines[1].starts_with(&denied) && lines[1].contains(",denied,daily_limit,1,"),
        "{text}"
    );
    assert!(
        lines[0].contains(",count,chargedOn,auditSeq,hash,priceVersion,"),
        "{text}"
    );
    for line in &lines[1..] {
        let [id, seq, hash] = [0, 25, 26].map(|column| line.split(',').nth(column).unwrap());
        let entry = client
            .api
            .get(&format!(
                "/v1/audit?before={}&limit=1",
                seq.parse::<u64>().unwrap() + 1
            ))
            .await;
        let entry = &entry.json()["logs"][0];
        assert_eq!(
            (&entry["id"], &entry["hash"]),
            (&json!(id), &json!(hash)),
            "{line}"
        );
    }
    assert!(
        lines[2].starts_with(&in_run) && lines[2].contains(",0.00000855,"),
        "{text}"
    );
}

/// A model name that an agent sends is never a formula in an exported file, also where `;` separates cells.
#[tokio::test]
async fn no_model_is_a_formula_in_a_file() {
    let fixture = RecordFixture::start().await;
    let client = fixture.client("builder", json!({ "maxSpendPerDay": 10 })).await;
    for model in ["m;=cmd|' /C calc'!A0;z", "\u{ff1d}1+1", "\u{feff}=1+1"] {
        client.edge.chat(chat_body(model, "hello")).await;
    }
    for path in ["/v1/calls/export", "/v1/usage?groupBy=model&format=csv"] {
        let text = client.api.get(path).await.text();
        for cell in ["m;'=cmd|' /C calc'!A0;z", "'\u{ff1d}1+1", "'\u{feff}=1+1"] {
            assert!(text.contains(&format!(",{cell},")), "{path}: {text}");
        }
    }
}
