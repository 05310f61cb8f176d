//! One log line for each decision and each refusal, however the call ends, and nothing secret in any of them.

use crate::fixture::{EDGE, Fixture, MODEL, PROMPT, PROVIDER_KEY, SOON, body, scrape};
use harness::{Answer, Edge, EdgeOptions, eventually, executable_script, until};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::time::Duration;

/// Lines of requests and decisions, by their `decision`.
fn decisions(logs: &str) -> BTreeMap<String, Vec<Value>> {
    let mut found = BTreeMap::<_, Vec<Value>>::new();
    for line in logs.lines() {
        let line: Value = serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line}"));
        if let Some(decision) = line["decision"].as_str() {
            found.entry(decision.to_owned()).or_default().push(line);
        }
    }
    found
}

/// Interval after which callers disconnect.
const PATIENCE: Duration = Duration::from_millis(100);

fn has(line: &Value, fields: &[&str]) {
    for field in fields {
        assert!(!line[*field].is_null(), "no {field} in {line}");
    }
}

/// Calls of every kind at the same time, some of whose callers hang up.
async fn storm(fixture: &Fixture) -> Vec<String> {
    fixture.upstream.set(|request| {
        let text = String::from_utf8_lossy(&request.body).into_owned();
        match () {
            () if text.contains("slow") => Answer::chat(9, 12).delay(Duration::from_millis(300)),
            () if text.contains("fail") => Answer::error(500, "x", "x"),
            () if text.contains("refuse") => Answer::error(400, "x", "x"),
            () if text.contains("reset") => Answer::reset(),
            () if text.contains("hang") => Answer::hang(),
            () => Answer::chat(9, 12),
        }
    });
    let rich = fixture.rich().await;
    let poor = fixture.poor().await;
    let keys = vec![rich.key.clone(), poor.key.clone()];
    let mut calls = Vec::new();
    for round in 0..8 {
        for word in ["plain", "slow", "fail", "refuse", "reset", "hang"] {
            let caller = rich.caller.clone();
            let body = harness::chat_body(MODEL, &format!("{PROMPT} {word}"));
            calls.push(tokio::spawn(async move {
                match round % 4 {
                    // A caller that does not wait for the answer.
                    0 => drop(tokio::time::timeout(PATIENCE, caller.chat(body)).await),
                    _ => drop(caller.chat(body).await),
                }
            }));
        }
        for (caller, body) in [
            (poor.caller.clone(), body().to_string()),
            (rich.caller.clone(), "{".to_owned()),
            (rich.caller.clone(), r#"{"model":"x"}"#.to_owned()),
            (fixture.edge.caller(""), body().to_string()),
            (
                fixture.edge.caller(&format!("vk_live_{}", "0a".repeat(32))),
                body().to_string(),
            ),
        ] {
            calls.push(tokio::spawn(async move {
                drop(caller.send("POST", "/v1/chat/completions", &[], body).await);
            }));
        }
    }
    for call in calls {
        call.await.unwrap();
    }
    keys
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn each_decision_has_one_line_and_no_secret() {
    let fixture = Fixture::with(
        |options| options.env("TOLLGATE_UPSTREAM__TIMEOUT_MS", "1500"),
        |options| options,
    )
    .await;
    let keys = storm(&fixture).await;
    let counted = eventually("the end of all calls", SOON, async || {
        let scrape = scrape(&fixture.edge);
        (scrape.sum("tollgate_proxy_in_flight", &[]) < 0.5).then_some(scrape)
    })
    .await;
    let waited_for = counted.sum("tollgate_proxy_approved_total", &[]);
    assert!(waited_for > 35.5, "{waited_for}");
    let logs = fixture.edge.logs();
    let lines = decisions(&logs);
    for (word, metric) in [
        ("approved", "tollgate_proxy_approved_total"),
        ("denied", "tollgate_proxy_denied_total"),
        ("refused", "tollgate_proxy_refused_total"),
    ] {
        let lines = lines.get(word).map_or(0, Vec::len);
        assert!(
            (counted.sum(metric, &[]) - lines as f64).abs() < 0.5,
            "{lines} lines {word}, {metric} is {}",
            counted.sum(metric, &[])
        );
    }
    let ids: BTreeSet<&str> = lines
        .values()
        .flatten()
        .filter_map(|line| line["decision.id"].as_str())
        .collect();
    assert_eq!(
        ids.len(),
        lines["approved"].len() + lines["denied"].len(),
        "each decision has an id of its own"
    );
    let common = ["timestamp", "level", "duration.us", "own.us", "trace.id"];
    for line in &lines["approved"] {
        has(line, &common);
        has(
            line,
            &[
                "decision.id",
                "run.id",
                "account.id",
                "agent.id",
                "model",
                "estimate.usd",
            ],
        );
        has(
            line,
            &[
                "charged.usd",
                "charged.how",
                "settlement",
                "upstream.name",
                "upstream.status",
                "upstream.ms",
            ],
        );
        assert_eq!(line["settlement"], "done", "{line}");
        assert!(line["stream.end"].is_null(), "no stream: {line}");
    }
    for line in &lines["denied"] {
        has(line, &common);
        has(
            line,
            &["decision.id", "reason", "account.id", "agent.id", "estimate.usd"],
        );
    }
    for line in &lines["refused"] {
        has(line, &common);
        has(line, &["reason", "http.status"]);
    }
    let reasons: BTreeSet<&str> = lines["refused"]
        .iter()
        .filter_map(|line| line["reason"].as_str())
        .collect();
    assert_eq!(
        reasons,
        ["invalid_api_key", "invalid_json", "missing_messages"].into()
    );
    nothing_secret(&logs, &keys);
}

/// Texts that no log line may contain: keys, whole or their secret part, and texts of callers and provider.
fn nothing_secret(logs: &str, keys: &[String]) {
    for key in keys {
        let secret = key.rsplit('_').next().unwrap();
        assert!(!logs.contains(secret), "a virtual key is in the log");
    }
    for secret in [PROVIDER_KEY, PROMPT, "Bearer", harness::TEST_MASTER_KEY] {
        assert!(!logs.contains(secret), "{secret} is in the log");
    }
}

#[tokio::test]
async fn a_settlement_that_had_to_wait_is_logged_and_logged_again_when_it_was_taken() {
    let fixture = Fixture::with(
        |options| options.env("TOLLGATE_STORE__TIMEOUT_MS", "1000"),
        |options| options,
    )
    .await;
    let actor = fixture.rich().await;
    let redis = &fixture.redis;
    let arrived = fixture.upstream.arrived();
    fixture
        .upstream
        .set(|_| Answer::chat(9, 12).delay(Duration::from_secs(2)));
    let caller = actor.caller.clone();
    let call = tokio::spawn(async move { caller.chat(body()).await });
    until("the call at the provider", async || {
        fixture.upstream.arrived() > arrived
    })
    .await;
    redis.pause();
    let reply = call.await.unwrap();
    redis.resume();
    assert_eq!(reply.status, 200);
    let id = reply.header("x-service-allow-id").unwrap().to_owned();
    let logs = eventually("the settlement", SOON, async || {
        let logs = fixture.edge.logs();
        logs.contains("the store accepted a queued settlement")
            .then_some(logs)
    })
    .await;
    let reported: Vec<Value> = logs
        .lines()
        .map(|line| serde_json::from_str::<Value>(line).unwrap())
        .filter(|line| line["decision.id"] == *id)
        .collect();
    let words: Vec<&str> = reported
        .iter()
        .filter_map(|line| line["message"].as_str())
        .collect();
    assert_eq!(
        words,
        [
            "a settlement has to wait",
            "call settled",
            "the store accepted a queued settlement"
        ]
    );
    assert_eq!(reported[1]["settlement"], "waits", "{:?}", reported[1]);
    let scrape = scrape(&fixture.edge);
    for (metric, least) in [
        ("tollgate_proxy_settlements_waited_total", 1.0),
        ("tollgate_proxy_store_errors_total", 1.0),
    ] {
        assert!(scrape.sum(metric, &[]) >= least, "{metric}");
    }
}

/// More lines than a pipe (64 KiB) and the library's first look at it hold.
const UNREAD_CALLS: usize = 300;
/// Longest wait for the end of a process without calls under way.
const END: Duration = Duration::from_secs(10);

/// A program whose stderr is a pipe that is open and that nobody reads: a collector of logs that hangs.
fn with_unread_stderr(folder: &Path) -> String {
    let script = folder.join("unread");
    let pipe = folder.join("pipe");
    let text = format!(
        "#!/bin/sh\nmkfifo {pipe} && exec 3<>{pipe} && exec {EDGE} \"$@\" 2>&3\n",
        pipe = pipe.display()
    );
    executable_script(&script, &text)
}

#[tokio::test]
async fn an_unread_log_stops_no_call() {
    let fixture = Fixture::new().await;
    let actor = fixture.rich().await;
    let folder = tempfile::tempdir().unwrap();
    let binary = with_unread_stderr(folder.path());
    let options = EdgeOptions::new(&binary, fixture.redis.url(), fixture.upstream.base_url());
    let edge = Edge::start(options.env("TOLLGATE_PROXY__DRAIN_DELAY_MS", "0"));
    let caller = edge.caller(&actor.key);
    for _ in 0..UNREAD_CALLS {
        assert_eq!(caller.chat(body()).await.status, 200);
    }
    assert_eq!(edge.ops("/readyz").map(|(status, _)| status), Some(200));
    let dropped = scrape(&edge).sum("tollgate_proxy_log_lines_dropped_total", &[]);
    assert!(dropped == 0.0, "they wait: {dropped}");
    edge.signal("TERM");
    assert_eq!(edge.wait_exit(END), Some(0));
}
