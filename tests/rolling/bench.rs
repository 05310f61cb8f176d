//! `tollgate-admin bench` on a real edge: counts are exact, denials have their reasons, the overspend check fails when
//! it should, and an interrupted run prints its report.

use crate::fixture::{ADMIN, Fixture, SOON};
use harness::{Answer, Cli, CliOutput, Script, assert_fields, until, words};
use serde_json::{Value, json};
use std::process::{Child, Stdio};

/// Runs `bench` on the fixture's edge with these arguments, and returns its output.
async fn bench(fixture: &Fixture, words: &[&str]) -> CliOutput {
    let cli = Cli::new(ADMIN, fixture.redis.url());
    let words = line(fixture, words);
    let ran = tokio::task::spawn_blocking(move || {
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        cli.run(&words)
    });
    ran.await.expect("a run")
}

/// The command line: the fixture's account, unless a file of keys is given.
fn line(fixture: &Fixture, words: &[&str]) -> Vec<String> {
    let target = format!("http://{}", fixture.addr());
    let mut line = vec!["bench", "--target", &target, "--json"];
    if !words.contains(&"--keys-file") {
        line.extend(["--account", &fixture.bot.account.id]);
    }
    line.extend(words);
    line.into_iter().map(str::to_owned).collect()
}

/// Starts `bench` with these arguments and does not wait for its end.
fn started(fixture: &Fixture, words: &[&str]) -> Child {
    let words = line(fixture, words);
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    // Short, so that a run gives up a hanging store within the test.
    let cli = Cli::new(ADMIN, fixture.redis.url()).env("TOLLGATE_STORE__TIMEOUT_MS", "1000");
    let mut command = cli.command(&words);
    let command = command.stdin(Stdio::null()).stdout(Stdio::piped());
    command.stderr(Stdio::piped()).spawn().expect("a run")
}

/// Waits for the end of a run. Returns exit code and document.
async fn ended(child: Child) -> (Option<i32>, Value) {
    let output = tokio::task::spawn_blocking(move || child.wait_with_output());
    let output = output.await.expect("an end").expect("an end");
    let document = serde_json::from_slice(&output.stdout);
    (
        output.status.code(),
        document.unwrap_or_else(|error| panic!("{error}: {output:?}")),
    )
}

fn document(output: &CliOutput, code: i32) -> Value {
    assert_eq!(output.code, Some(code), "{output:?}");
    serde_json::from_str(&output.stdout).unwrap_or_else(|error| panic!("{error}: {output:?}"))
}

/// Number of calls of a kind that ended with this status and reason in a phase.
fn count(phase: &Value, kind: &str, status: u64, reason: &str) -> u64 {
    let ends = phase["ends"].as_array().expect("ends");
    let found = ends
        .iter()
        .find(|end| end["kind"] == kind && end["status"] == status && end["reason"] == reason);
    found.map_or(0, |end| end["count"].as_u64().expect("a count"))
}

/// USD that the agents of the run were charged, by the ledger.
fn charged_usd(report: &Value) -> f64 {
    let agents = report["overspend"]["agents"].as_array().expect("agents");
    let charged = agents
        .iter()
        .map(|agent| agent["chargedUsd"].as_f64().expect("USD"));
    charged.sum()
}

/// Numbers of active keys and of policies that the run left.
fn left_over(fixture: &Fixture) -> (u64, u64) {
    let keys = &fixture.bot.account.keys;
    (
        fixture.redis.command(&["ZCARD", &keys.active_keys()]),
        fixture.redis.command(&["ZCARD", &keys.live().policies()]),
    )
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_steady_run_is_counted_exactly_and_charged_as_it_says() {
    let fixture = Fixture::new().await;
    let _edge = fixture.edge();
    let before = left_over(&fixture);
    let steady = ["--rate", "40", "--duration", "2s", "--warm-up", "500ms"];
    let output = bench(&fixture, &steady).await;
    let report = document(&output, 0);
    let (warm_up, phase) = (&report["phases"][0], &report["phases"][1]);
    assert_fields!(warm_up, { "calls": 20, "measured": false });
    assert_fields!(phase, { "calls": 80, "answered": 80 }, "{report}");
    assert_fields!(phase, { "errors": 0, "dropped": 0 });
    assert_eq!(count(phase, "approved", 200, ""), 80);
    assert_eq!(fixture.upstream.arrived(), 100);
    let latency = &phase["latencyMs"];
    let at = |name: &str| latency[name].as_f64().expect("a latency");
    assert!(
        at("p50") > 0.0 && at("p50") <= at("p99") && at("p99") <= at("max"),
        "{latency}"
    );
    let overspend = &report["overspend"];
    assert_fields!(overspend, { "checked": true, "ok": true });
    assert_eq!(overspend["agents"].as_array().map(Vec::len), Some(4));
    let charged = charged_usd(&report);
    assert!((charged - 100.0 * 0.000_008_55).abs() < 1e-9, "{charged}");
    assert_eq!(left_over(&fixture), before, "the run removed its records");
    // It prints its plan beforehand, and its progress each second.
    assert!(output.stderr.contains("100 calls of gpt-4o-mini"), "{output:?}");
    assert!(output.stderr.contains("/s answered, p50"), "{output:?}");
}

/// Streams are read to their end, where their cost is stated. A stream that breaks off is an error.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn streams_are_counted_charged_and_timed_to_their_first_byte() {
    let fixture = Fixture::new().await.env("PROXY__STREAMING", true);
    let _edge = fixture.edge();
    let before = left_over(&fixture);
    let usage = json!({ "prompt_tokens": 9, "completion_tokens": 12, "total_tokens": 21 });
    let whole = Answer::stream(Script::chat(&["Hell", "o"], &usage));
    fixture.upstream.set(move |_| whole.clone());
    let steady = "--stream --events 7 --event-delay 3ms --rate 20 --duration 2s --warm-up 0s";
    let output = bench(&fixture, &words(steady)).await;
    let report = document(&output, 0);
    let phase = &report["phases"][0];
    assert_fields!(report, { "stream": true, "errorShare": 0.0 }, "{report}");
    assert_fields!(phase, { "calls": 40, "answered": 40, "errors": 0, "dropped": 0 }, "{report}");
    assert_eq!(count(phase, "approved", 200, ""), 40, "{report}");
    let first_byte = &phase["firstByteMs"];
    let at = |name: &str| first_byte[name].as_f64().expect("a time");
    assert!(at("p50") > 0.0 && at("p50") <= at("p99"), "{first_byte}");
    assert!(
        at("p50") <= phase["sentLatencyMs"]["p99"].as_f64().expect("a latency"),
        "{phase}"
    );
    let sent = fixture.upstream.requests().pop().expect("a request");
    assert_fields!(sent.json(), { "stream": true, "user": "sandbox-stream:events=7,delay=3" });
    assert_fields!(report["overspend"], { "checked": true, "ok": true }, "{report}");
    assert!(
        (charged_usd(&report) - 40.0 * 0.000_008_55).abs() < 1e-9,
        "{report}"
    );

    // Without usage the estimate stays charged, and the stream ends with an error.
    let broken = Answer::stream(Script::new().event(json!({ "choices": [] })).break_off());
    fixture.upstream.set(move |_| broken.clone());
    let broken = bench(
        &fixture,
        &words("--stream --rate 20 --duration 1s --warm-up 0s --quiet"),
    )
    .await;
    let report = document(&broken, 1);
    let phase = &report["phases"][0];
    assert_eq!(
        count(phase, "approved", 200, "upstream_unreachable"),
        20,
        "{report}"
    );
    assert_fields!(phase, { "errors": 20 }, "{report}");
    assert_fields!(report["overspend"], { "checked": true, "ok": true }, "{report}");
    assert_eq!(left_over(&fixture), before, "the run removed its records");
}

/// Half of the callers leave in the middle. Their charge is what the ledger has beyond the answers.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn streams_whose_callers_leave_are_counted_and_charged() {
    let fixture = Fixture::new().await.env("PROXY__STREAMING", true);
    let _edge = fixture.edge();
    let before = left_over(&fixture);
    let usage = json!({ "prompt_tokens": 9, "completion_tokens": 12, "total_tokens": 21 });
    let chunk = |text: &str| json!({ "choices": [{ "index": 0, "delta": { "content": text } }] });
    let whole = Answer::stream(
        Script::new()
            .event(chunk("Hell"))
            .pause(std::time::Duration::from_millis(300))
            .event(chunk("o"))
            .event(json!({ "choices": [], "usage": usage }))
            .event("[DONE]"),
    );
    fixture.upstream.set(move |_| whole.clone());
    let leaving = words("--scenario leaving --stream --rate 20 --duration 2s --warm-up 0s");
    let output = bench(&fixture, &leaving).await;
    let report = document(&output, 0);
    let phase = &report["phases"][0];
    assert_fields!(report, { "scenario": "leaving", "errorShare": 0.0 }, "{report}");
    assert_fields!(phase, { "calls": 40, "answered": 40, "errors": 0 }, "{report}");
    assert_eq!(count(phase, "approved", 200, ""), 20, "{report}");
    assert_eq!(count(phase, "approved", 200, "caller left"), 20, "{report}");
    let overspend = &report["overspend"];
    assert_fields!(overspend, { "checked": true, "ok": true }, "{report}");
    // Those who left pay the real cost, as those who stayed.
    let is = |found: &Value, usd: f64| {
        let found = found.as_f64().expect("USD");
        assert!((found - usd).abs() < 1e-9, "{found}, not {usd}: {report}");
    };
    is(&overspend["leftChargedUsd"], 20.0 * 0.000_008_55);
    assert!(
        (charged_usd(&report) - 40.0 * 0.000_008_55).abs() < 1e-9,
        "{report}"
    );
    let left = overspend["agents"].as_array().expect("agents").iter();
    let left: u64 = left
        .map(|agent| agent["leftCalls"].as_u64().expect("a count"))
        .sum();
    assert_eq!(left, 20, "{report}");
    let all = words("--leave-share 1 --stream --rate 20 --duration 1s --warm-up 0s --quiet");
    let report = document(&bench(&fixture, &all).await, 0);
    assert_eq!(
        count(&report["phases"][0], "approved", 200, "caller left"),
        20,
        "{report}"
    );
    assert_eq!(left_over(&fixture), before, "the run removed its records");
}

/// Calls without a limit hold more as their streams grow; those that a cap refuses count as limited.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn streams_whose_hold_grows_are_counted_and_charged() {
    let fixture = Fixture::new().await.env("PROXY__STREAMING", true);
    let fixture = fixture.env("PROXY__STREAM_EXTEND", true);
    let _edge = fixture.edge();
    let usage = json!({ "prompt_tokens": 9, "completion_tokens": 3000, "total_tokens": 3009 });
    let text = "four".repeat(500);
    let whole = Answer::stream(Script::chat(&[text.as_str(); 6], &usage));
    fixture.upstream.set(move |_| whole.clone());
    let growing = "--scenario growing --stream --events 3000 --rate 10 --duration 2s --warm-up 0s";
    let report = document(&bench(&fixture, &words(growing)).await, 0);
    assert_eq!(count(&report["phases"][0], "approved", 200, ""), 20, "{report}");
    let sent = fixture.upstream.requests().pop().expect("a request").json();
    assert_fields!(sent, { "max_tokens": null, "user": "sandbox-stream:events=3000,delay=0" });
    let above = |report: &Value| -> u64 {
        let agents = report["overspend"]["agents"].as_array().expect("agents").iter();
        agents
            .map(|agent| agent["aboveEstimateCalls"].as_u64().expect("a count"))
            .sum()
    };
    assert_eq!(above(&report), 20, "{report}");
    assert_fields!(report["overspend"], { "checked": true, "ok": true }, "{report}");
    // A cap with room for the first hold of a call, and not for all of a stream.
    let capped = "--scenario growing --stream --events 3000 --rate 1 --duration 2s --warm-up 0s --agents 1 --cap 0.001";
    let report = document(&bench(&fixture, &words(capped)).await, 0);
    let phase = &report["phases"][0];
    assert!(count(phase, "approved", 200, "hold_exhausted") > 0, "{report}");
    assert_fields!(phase, { "errors": 0 }, "{report}");
    assert_fields!(report["overspend"], { "checked": true, "ok": true }, "{report}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn denials_come_out_with_their_reasons() {
    let fixture = Fixture::new().await;
    let _edge = fixture.edge();
    let words = ["--scenario", "denials", "--rate", "40", "--duration", "2s"];
    let words = [
        &words[..],
        &["--warm-up", "0s", "--quiet", "--body-bytes", "200,2000"],
    ]
    .concat();
    let output = bench(&fixture, &words).await;
    let report = document(&output, 0);
    let phase = &report["phases"][0];
    assert_eq!(count(phase, "approved", 200, ""), 40, "{report}");
    assert_eq!(count(phase, "frozen", 403, "frozen"), 10, "{report}");
    assert_eq!(count(phase, "revoked", 401, "invalid_api_key"), 10, "{report}");
    assert_eq!(count(phase, "over-cap", 402, "daily_limit"), 10, "{report}");
    assert_eq!(count(phase, "malformed", 400, "invalid_json"), 10, "{report}");
    assert_eq!(fixture.upstream.arrived(), 40, "denials are not forwarded");
    assert_eq!(
        (&report["errorShare"], &report["overspend"]["ok"]),
        (&0.0.into(), &true.into())
    );
    assert_eq!(output.stderr, "", "quiet");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_cap_is_reached_and_not_passed() {
    let fixture = Fixture::new().await;
    let _edge = fixture.edge();
    let options = words("--rate 60 --duration 2s --warm-up 0s --agents 2 --cap 0.0002");
    let output = bench(&fixture, &options).await;
    let report = document(&output, 0);
    let phase = &report["phases"][0];
    let (approved, denied) = (
        count(phase, "approved", 200, ""),
        count(phase, "approved", 402, "daily_limit"),
    );
    assert!(approved > 0 && denied > 0 && approved + denied == 120, "{report}");
    assert_eq!((&phase["limited"], &phase["errors"]), (&denied.into(), &0.into()));
    for agent in report["overspend"]["agents"].as_array().expect("agents") {
        let spent: f64 = agent["spentTodayUsd"].as_f64().expect("USD");
        assert!(spent <= 0.0002, "{agent}");
        assert_eq!(agent["dailyCapUsd"], 0.0002);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_charge_that_no_answer_names_fails_the_run() {
    let fixture = Fixture::new().await;
    let _edge = fixture.edge();
    let child = started(
        &fixture,
        &["--rate", "20", "--duration", "4s", "--warm-up", "0s", "--quiet"],
    );
    fixture.upstream.wait_for(10, SOON).await;
    // One nano-USD more on one of the run's agents, this month.
    let keys: Vec<String> = fixture.redis.command(&["KEYS", "*load-*"]);
    let month = |key: &String| -> Option<String> {
        let kind: String = fixture.redis.command(&["TYPE", key]);
        let names: Vec<String> = match kind.as_str() {
            "hash" => fixture.redis.command(&["HKEYS", key]),
            _ => return None,
        };
        let is_month = |name: &String| {
            let rest = name.strip_prefix('m');
            rest.is_some_and(|rest| rest.len() == 6 && rest.bytes().all(|byte| byte.is_ascii_digit()))
        };
        names.into_iter().find(is_month)
    };
    let (key, month) = keys
        .iter()
        .find_map(|key| Some((key, month(key)?)))
        .unwrap_or_else(|| panic!("no counter in {keys:?}"));
    let _: i64 = fixture.redis.command(&["HINCRBY", key, &month, "1"]);
    let (code, report) = ended(child).await;
    assert_eq!(code, Some(1), "{report}");
    assert_eq!(
        (&report["ok"], &report["overspend"]["ok"]),
        (&false.into(), &false.into())
    );
    let wrong = report["overspend"].to_string();
    assert!(wrong.contains("and the answers say"), "{wrong}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_stopped_run_reports_and_leaves_nothing_behind() {
    let fixture = Fixture::new().await;
    let _edge = fixture.edge();
    let before = left_over(&fixture);
    let child = started(&fixture, &["--rate", "20", "--duration", "10m", "--quiet"]);
    fixture.upstream.wait_for(5, SOON).await;
    interrupt(&child);
    let (code, report) = ended(child).await;
    assert_eq!(code, Some(0), "{report}");
    assert_eq!(report["interrupted"], true);
    assert_eq!(report["overspend"]["ok"], true, "{report}");
    assert_eq!(left_over(&fixture), before, "the run removed its records");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn errors_fail_the_run_and_a_ramp_finds_its_end() {
    let fixture = Fixture::new().await;
    let _edge = fixture.edge();
    let ramp = words("--scenario ramp --rate 40 --steps 4 --duration 4s");
    let patient = ["--warm-up", "0s", "--quiet", "--p99-bound", "60s"];
    let report = document(&bench(&fixture, &[&ramp[..], &patient].concat()).await, 0);
    assert_fields!(report, { "knee": 40, "stoppedBy": null }, "{report}");
    let calls: Vec<u64> = report["phases"]
        .as_array()
        .expect("phases")
        .iter()
        .map(|phase| phase["calls"].as_u64().expect("a count"))
        .collect();
    assert_eq!(calls, [10, 20, 30, 40]);
    // From now on the provider fails: the first step is beyond the bound.
    fixture
        .upstream
        .set(|_| Answer::error(500, "server_error", "The server had an error"));
    let report = document(&bench(&fixture, &[&ramp[..], &patient].concat()).await, 1);
    assert_fields!(report, { "knee": null, "ok": false }, "{report}");
    assert_eq!(report["phases"].as_array().map(Vec::len), Some(1));
    assert!(
        report["stoppedBy"].as_str().expect("a reason").contains("errors"),
        "{report}"
    );
    assert_fields!(report["overspend"], { "ok": true }, "the estimates stay charged, as said: {report}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn keys_of_a_file_are_checked_where_access_is_given() {
    let fixture = Fixture::new().await;
    let _edge = fixture.edge();
    let dir = tempfile::tempdir().expect("a directory");
    let file = dir.path().join("keys.txt");
    std::fs::write(&file, format!("# staging\n{}\n", fixture.key)).expect("a file");
    let file = file.display().to_string();
    let options = format!("--keys-file {file} --rate 20 --duration 1s --warm-up 0s");
    let options = words(&options);
    let report = document(&bench(&fixture, &options).await, 0);
    assert_eq!(report["overspend"]["checked"], false, "{report}");
    let report = document(&bench(&fixture, &[&options[..], &["--check"]].concat()).await, 0);
    assert_eq!(report["overspend"]["checked"], true, "{report}");
    assert_eq!(report["overspend"]["agents"][0]["agentId"], "bot");
    // The report in text form.
    let cli = Cli::new(ADMIN, fixture.redis.url());
    let target = format!("http://{}", fixture.addr());
    let people = tokio::task::spawn_blocking(move || {
        let words = ["bench", "--target", &target, "--keys-file", &file, "--rate", "20"];
        cli.run(&[&words[..], &["--duration", "1s", "--warm-up", "0s"]].concat())
    });
    let people = people.await.expect("a run");
    assert_eq!(people.code, Some(0), "{people:?}");
    for report in [
        "PHASE",
        "p999",
        "NOT CHECKED",
        "20 approved: 200",
        "Errors: 0.000 %",
    ] {
        assert!(people.stdout.contains(report), "{report}: {people:?}");
    }
    until("the end of all holds", async || fixture.open_holds() == 0).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_check_that_cannot_be_made_fails_the_run() {
    let fixture = Fixture::new().await;
    let _edge = fixture.edge();
    let dir = tempfile::tempdir().expect("a directory");
    let file = dir.path().join("keys.txt");
    std::fs::write(&file, &fixture.key).expect("a file");
    let file = file.display().to_string();
    let options = format!("--keys-file {file} --check --rate 20 --duration 1s --warm-up 0s --quiet");
    let options = words(&options);
    document(&bench(&fixture, &options).await, 0);
    // The edge has the key's owner cached, and the check does not.
    let known: Vec<String> = fixture.redis.command(&["KEYS", "tollgate/vk/*"]);
    for key in &known {
        let _: i64 = fixture.redis.command(&["DEL", key]);
    }
    let report = document(&bench(&fixture, &options).await, 1);
    assert_eq!(
        (&report["ok"], &report["errorShare"]),
        (&false.into(), &0.0.into()),
        "{report}"
    );
    assert_eq!(report["overspend"]["checked"], false, "{report}");
}

/// Sends SIGINT to a run.
fn interrupt(child: &Child) {
    let interrupt = format!("kill -INT {}", child.id());
    let sent = std::process::Command::new("sh").args(["-c", &interrupt]).status();
    assert!(sent.expect("kill").success());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_store_that_stands_still_at_the_end_leaves_nothing_behind() {
    let fixture = Fixture::new().await;
    let _edge = fixture.edge();
    let before = left_over(&fixture);
    let child = started(&fixture, &["--rate", "20", "--duration", "10m", "--quiet"]);
    fixture.upstream.wait_for(5, SOON).await;
    fixture.redis.pause();
    interrupt(&child);
    // Longer than the run waits for its last answers, so that the store is away when the run removes its records.
    tokio::time::sleep(std::time::Duration::from_secs(14)).await;
    fixture.redis.resume();
    let (code, report) = ended(child).await;
    assert_eq!(code, Some(1), "calls were denied, and not checked: {report}");
    assert_eq!(report["leftOver"], Value::Null, "{report}");
    assert_eq!(left_over(&fixture), before, "the run removed its records");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn agents_that_cannot_be_removed_are_listed_with_the_report() {
    let fixture = Fixture::new().await;
    let _edge = fixture.edge();
    let child = started(
        &fixture,
        &["--rate", "20", "--duration", "10m", "--quiet", "--agents", "2"],
    );
    fixture.upstream.wait_for(5, SOON).await;
    fixture.redis.kill9();
    interrupt(&child);
    let (code, report) = ended(child).await;
    assert_eq!((code, &report["ok"]), (Some(1), &false.into()), "{report}");
    assert_fields!(report["overspend"], { "checked": false }, "the report is there: {report}");
    let left: Vec<&str> = report["leftOver"]
        .as_array()
        .unwrap_or_else(|| panic!("{report}"))
        .iter()
        .filter_map(Value::as_str)
        .collect();
    let (keys, policies) = left.split_at(left.len() - 2);
    assert!(
        keys.len() >= 2 && keys.iter().all(|key| key.starts_with("virtual key vk_")),
        "{left:?}"
    );
    assert!(
        policies.iter().all(|policy| policy.starts_with("policy ")),
        "{left:?}"
    );
}
