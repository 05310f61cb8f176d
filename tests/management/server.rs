//! The process: store faults, signals, limits, logs, metrics and the reaper.

use crate::fixture::{BINARY, FULL, Fixture, problem, success, text};
use domain::mode::Mode;
use harness::{Admin, AdminOptions, Cli, RawClient, Redis, Seed, eventually, open_cap, until};
use serde_json::json;
use std::time::Duration;

const SOON: Duration = Duration::from_secs(20);

#[tokio::test]
async fn without_a_store_everything_is_503_until_it_is_back() {
    let fixture = Fixture::start().await;
    let (_, caller) = fixture.account("builder").await;
    success(&caller.get("/v1/agents").await, 200);
    fixture.redis.stop();
    problem(&caller.get("/v1/agents").await, 503, "SERVICE_UNAVAILABLE");
    let body = json!({ "name": "a" });
    problem(&caller.post("/v1/agents", body).await, 503, "SERVICE_UNAVAILABLE");
    let malformed = fixture.admin.caller("svc_live_x");
    problem(&malformed.get("/v1/agents").await, 401, "INVALID_API_KEY");
    let response = fixture.admin.caller("").get("/v1/agents").await;
    problem(&response, 401, "API_KEY_REQUIRED");
    problem(&caller.get("/v1/nothing").await, 404, "NOT_FOUND");
    eventually("not ready", SOON, async || {
        (fixture.admin.ops("/readyz")?.0 == 503).then_some(())
    })
    .await;
    assert_eq!(fixture.admin.ops("/livez").unwrap().0, 200);

    // The server comes back empty: the ledger is lost, which is not a fresh start (decision D52).
    fixture.redis.restart();
    let wiped = async || {
        let reply = caller.get("/v1/agents").await;
        (reply.status == 503).then_some(reply)
    };
    let response = eventually("an answer", SOON, wiped).await;
    problem(&response, 503, "SERVICE_UNAVAILABLE");
    eventually("the reason", SOON, async || {
        let (status, reason) = fixture.admin.ops("/readyz")?;
        (status == 503 && reason.contains("no ledger epoch")).then_some(())
    })
    .await;
    // The test's own connection broke as well.
    eventually("a connection", SOON, async || {
        fixture.store.command::<String>(&redis::cmd("PING")).await.ok()
    })
    .await;
    let seed = Seed::new(&fixture.store).await;
    let account = seed.account("builder").await;
    let caller = fixture.caller(&account, Mode::Live).await;
    eventually("readiness", SOON, async || {
        (fixture.admin.ops("/readyz")?.0 == 200).then_some(())
    })
    .await;
    success(&caller.get("/v1/agents").await, 200);
}

#[tokio::test]
async fn it_starts_while_the_store_is_down() {
    let redis = Redis::start_durable();
    let store = redis.store();
    Seed::new(&store).await;
    redis.stop();
    let admin = Admin::start(AdminOptions::new(BINARY, redis.url()).until_alive());
    let caller = admin.caller(&format!("svc_live_{}", "0a".repeat(32)));
    problem(&caller.get("/v1/agents").await, 503, "SERVICE_UNAVAILABLE");
    redis.restart();
    eventually("readiness", SOON, async || {
        (admin.ops("/readyz")?.0 == 200).then_some(())
    })
    .await;
    problem(&caller.get("/v1/agents").await, 401, "INVALID_API_KEY");
}

/// Not even by the first request after its return, before the next health check.
#[tokio::test]
async fn a_store_that_left_writes_out_is_not_trusted() {
    let fixture = Fixture::on(Redis::start_durable(), |options| options).await;
    let (admin, redis) = (&fixture.admin, &fixture.redis);
    let (_, caller) = fixture.account("builder").await;
    success(&caller.get("/v1/agents").await, 200);
    redis.restart_without_a_write();
    for _ in 0..10 {
        problem(&caller.get("/v1/agents").await, 503, "SERVICE_UNAVAILABLE");
    }
    eventually("the reason", SOON, async || {
        let (status, why) = admin.ops("/readyz")?;
        (status == 503 && why.contains("refused 1 writes")).then_some(())
    })
    .await;
    // Workers do not write to it, either, until it is the right store.
    let sealed = || admin.metric::<u64>("tollgate_admin_audit_entries_sealed_total");
    let before = sealed().unwrap();
    let other = Seed::new(&redis.store()).await.account("builder").await;
    let _unsealed = other.api_key(Mode::Live).await;
    tokio::time::sleep(Duration::from_secs(2)).await;
    assert_eq!(sealed(), Some(before));
    let _: String = redis.command(&["CONFIG", "RESETSTAT"]);
    eventually("a sealed entry", SOON, async || {
        (sealed()? > before).then_some(())
    })
    .await;
}

#[tokio::test]
async fn a_store_that_hangs_evicts_or_forgets_is_not_trusted() {
    let fast = |options: AdminOptions| options.env("TOLLGATE_STORE__TIMEOUT_MS", "1000");
    let fixture = Fixture::start_with(fast).await;
    let (account, caller) = fixture.account("builder").await;
    success(&caller.get("/v1/agents").await, 200);
    fixture.redis.pause();
    let started = std::time::Instant::now();
    let reply = caller.post("/v1/agents", json!({ "name": "a" })).await;
    let sentence = problem(&reply, 503, "SERVICE_UNAVAILABLE");
    assert!(sentence.contains("may have been made"), "{sentence}");
    assert!(
        started.elapsed() < Duration::from_secs(10),
        "{:?}",
        started.elapsed()
    );
    fixture.redis.resume();
    until("an answer", async || caller.get("/v1/agents").await.status == 200).await;

    let policy = |policy: &str| {
        fixture
            .redis
            .command::<String>(&["CONFIG", "SET", "maxmemory-policy", policy]);
    };
    policy("allkeys-lru");
    let refused = async || (caller.get("/v1/agents").await.status == 503).then_some(());
    eventually("a refusal", SOON, refused).await;
    assert!(fixture.admin.ops("/readyz").unwrap().1.contains("allkeys-lru"));
    assert_eq!(fixture.admin.metric("tollgate_admin_store_sane"), Some(0));
    policy("noeviction");
    until("an answer", async || caller.get("/v1/agents").await.status == 200).await;

    // A failover that lost writes shows an older version of the account.
    let record = account.keys.record();
    let version = account.version().await;
    let set = |field: &str, value: u64| {
        fixture
            .redis
            .command::<i64>(&["HSET", &record, field, &value.to_string()])
    };
    set("version", version - 1);
    problem(&caller.get("/v1/agents").await, 503, "SERVICE_UNAVAILABLE");
    assert!(
        fixture.admin.logs().contains("store accept"),
        "the log says what to do"
    );
    set("generation", 2);
    success(&caller.get("/v1/agents").await, 200);
}

#[tokio::test]
async fn a_full_store_takes_revocations_and_nothing_new() {
    let fixture = Fixture::start().await;
    let (account, caller) = fixture.account("builder").await;
    let made = success(&caller.post("/v1/agents/bot/virtual-keys", json!({})).await, 201);
    let version = account.version().await;
    fixture
        .redis
        .command::<String>(&["CONFIG", "SET", "maxmemory", "1"]);
    let response = caller.post("/v1/agents", json!({ "name": "a" })).await;
    problem(&response, 503, "SERVICE_UNAVAILABLE");
    let response = caller.post("/v1/policies/bot", json!({})).await;
    problem(&response, 503, "SERVICE_UNAVAILABLE");
    assert_eq!(account.version().await, version, "nothing was changed");
    success(&caller.send("POST", "/v1/agents/bot/freeze", &[], "").await, 200);
    let key = format!("/v1/agents/bot/virtual-keys/{}", text(&made, "/virtualKey/keyId"));
    success(&caller.delete(&key).await, 200);
    eventually("a warning", SOON, async || {
        let (status, text) = fixture.admin.ops("/readyz")?;
        assert_eq!(status, 200, "freezing must get through a balancer: {text}");
        (text.starts_with("ok, but") && text.contains("(OOM)")).then_some(())
    })
    .await;
    let _: String = fixture.redis.command(&["CONFIG", "SET", "maxmemory", "0"]);
    let _: String = fixture
        .redis
        .command(&["CONFIG", "SET", "min-replicas-to-write", "1"]);
    eventually("no readiness", SOON, async || {
        let (status, text) = fixture.admin.ops("/readyz")?;
        (status == 503 && text.contains("(NOREPLICAS)")).then_some(())
    })
    .await;
}

#[tokio::test]
async fn bodies_are_bounded_and_must_be_json() {
    let fixture = Fixture::start().await;
    let (_, caller) = fixture.account("builder").await;
    let long = format!(r#"{{"name":"{}"}}"#, "x".repeat(1 << 20));
    let reply = caller.send("POST", "/v1/agents", &[], long.clone()).await;
    problem(&reply, 413, "PAYLOAD_TOO_LARGE");
    let chunked = RawClient::connect(fixture.admin.addr()).await;
    let key = fixture
        .seed
        .account("builder")
        .await
        .issue(Mode::Live, FULL, &[], None)
        .await;
    problem_of_chunks(chunked, &key.secret, &long).await;
    for kind in [
        "text/plain",
        "application/x-www-form-urlencoded",
        "multipart/form-data; boundary=x",
    ] {
        let reply = caller
            .send("POST", "/v1/agents", &[("content-type", kind)], r#"{"name":"a"}"#)
            .await;
        problem(&reply, 415, "UNSUPPORTED_MEDIA_TYPE");
    }
    for coding in ["gzip", "br", "identity, gzip", "", "x"] {
        let headers = [("content-type", "application/json"), ("content-encoding", coding)];
        let reply = caller
            .send("POST", "/v1/agents", &headers, r#"{"name":"a"}"#)
            .await;
        let sentence = problem(&reply, 415, "UNSUPPORTED_MEDIA_TYPE");
        assert!(sentence.contains("Content-Encoding"), "{coding}: {sentence}");
        assert_eq!(reply.header("accept-encoding"), Some("identity"), "{coding}");
    }
    for headers in [
        [("content-type", "application/json; charset=utf-8"), ("x-a", "b")],
        [
            ("content-type", "application/json"),
            ("content-encoding", "Identity"),
        ],
    ] {
        let response = caller
            .send("POST", "/v1/agents", &headers, r#"{"name":"a"}"#)
            .await;
        success(&response, 200);
    }
}

/// As paths are: an invalid byte is not replaced by another.
#[tokio::test]
async fn queries_are_utf_8() {
    let fixture = Fixture::start().await;
    let (_, caller) = fixture.account("builder").await;
    for query in ["q=%ff", "q=%C3", "q=a%c3%28b", "q=%ed%a0%80", "%ff=a"] {
        let reply = caller.get(&format!("/v1/agents?{query}")).await;
        let sentence = problem(&reply, 400, "VALIDATION");
        assert_eq!(sentence, "The query string is not valid UTF-8.", "{query}");
    }
    for query in ["q=%C3%A9", "q=a+%25ff", "q=%zz", "q=%ef%bf%bd"] {
        success(&caller.get(&format!("/v1/agents?{query}")).await, 200);
    }
}

/// Sends a body in chunks, without a declared length.
async fn problem_of_chunks(mut client: RawClient, key: &str, body: &str) {
    let head = format!(
        "POST /v1/agents HTTP/1.1\r\nHost: x\r\nx-api-key: {key}\r\nContent-Type: application/json\r\n\
         Transfer-Encoding: chunked\r\n\r\n{:x}\r\n{body}\r\n0\r\n\r\n",
        body.len()
    );
    client.send(head).await;
    let reply = client.reply(SOON).await.expect("an answer");
    assert_eq!(reply.status, 413, "{}", reply.text());
}

#[tokio::test]
async fn plans_are_reloaded_and_bad_ones_are_not() {
    let (fixture, file) = Fixture::with_plans("[free]\ncustom_agents = 1\n", |options| options).await;
    let (_, caller) = fixture.account("free").await;
    let create = async || caller.post("/v1/agents", json!({ "name": "a" })).await;
    success(&create().await, 200);
    problem(&create().await, 403, "TIER_LIMIT");
    std::fs::write(&file, "[free]\ncustom_agnets = 2\n").unwrap();
    fixture.admin.signal("HUP");
    until("a complaint", async || {
        let logs = fixture.admin.logs();
        logs.contains("plans not reloaded") && logs.contains("custom_agnets")
    })
    .await;
    problem(&create().await, 403, "TIER_LIMIT");
    std::fs::write(&file, "[free]\ncustom_agents = 2\n").unwrap();
    fixture.admin.signal("HUP");
    until("the new plans", async || {
        fixture.admin.logs().contains("plans reloaded")
    })
    .await;
    success(&create().await, 200);
    problem(&create().await, 403, "TIER_LIMIT");
    fixture.account("free").await;
    fixture.account("builder").await;
    std::fs::write(&file, "[startup]\ncustom_agents = 2\n").unwrap();
    fixture.admin.signal("HUP");
    eventually("the plan that is gone, and how many have it", SOON, async || {
        let logs = fixture.admin.logs();
        let mut lines = logs.lines();
        lines.find(|line| {
            line.contains("plans are gone") && line.contains("free") && line.contains("\"accounts\":2")
        })?;
        Some(())
    })
    .await;
}

#[tokio::test]
async fn it_stops_cleanly_and_answers_what_it_has_begun() {
    let fixture = Fixture::start().await;
    let (account, caller) = fixture.account("builder").await;
    success(&caller.get("/v1/agents").await, 200);
    let key = account.issue(Mode::Live, FULL, &[], None).await;
    let mut slow = RawClient::connect(fixture.admin.addr()).await;
    let head = format!(
        "POST /v1/agents HTTP/1.1\r\nHost: x\r\nx-api-key: {}\r\nContent-Type: application/json\r\n\
         Content-Length: 12\r\n\r\n{{\"name\"",
        key.secret
    );
    slow.send(head).await;
    tokio::time::sleep(Duration::from_millis(300)).await;
    fixture.admin.term();
    tokio::time::sleep(Duration::from_millis(300)).await;
    assert!(fixture.admin.is_running(), "a request is in flight");
    slow.send(":\"a\"}").await;
    let reply = slow.reply(SOON).await.expect("an answer");
    assert_eq!(reply.status, 200, "{}", reply.text());
    assert_eq!(fixture.admin.wait_exit(SOON), Some(0));
    let logs = fixture.admin.logs();
    assert!(logs.contains("\"stopped\""), "{logs}");
    assert!(!logs.contains(&key.secret), "no log line holds a key");
}

#[tokio::test]
async fn a_bad_configuration_is_one_line_and_exit_2() {
    let redis = Redis::start();
    let cli = Cli::new(BINARY, redis.url());
    for (name, value, named) in [
        ("TOLLGATE_SECRETS__MASTER_KEY", "", "secrets.master_key"),
        (
            "TOLLGATE_PLANS__FILE",
            "/nonexistent/plans.toml",
            "/nonexistent/plans.toml",
        ),
        ("TOLLGATE_STORE__URL", "http://x", "store.url"),
    ] {
        let output = cli.clone().env(name, value).run(&["serve"]);
        assert_eq!(output.code, Some(2), "{name}: {output:?}");
        assert!(output.stderr.contains(named), "{name}: {}", output.stderr);
        assert_eq!(output.stderr.trim().lines().count(), 1, "{}", output.stderr);
    }
}

#[tokio::test]
async fn requests_are_logged_and_counted_under_their_route() {
    let fixture = Fixture::start().await;
    let (account, caller) = fixture.account("builder").await;
    caller
        .send(
            "GET",
            "/api/v1/agents/secret-agent-name",
            &[("x-request-id", "find-me")],
            "",
        )
        .await;
    caller.get("/v1/no/such/path").await;
    let logs = fixture.admin.logs();
    let line = logs.lines().find(|line| line.contains("find-me")).unwrap();
    for part in ["/agents/{id}", "404", &account.id, "GET", "live", "duration_us"] {
        assert!(line.contains(part), "{part} in {line}");
    }
    assert!(
        !logs.contains("/no/such/path") && !line.contains("secret-agent-name"),
        "outside text is not log text"
    );
    let (_, metrics) = fixture.admin.ops("/metrics").unwrap();
    for sample in [
        r#"tollgate_admin_requests_total{method="GET",route="/agents/{id}",status="404"} 1"#,
        r#"tollgate_admin_requests_total{method="GET",route="none",status="404"} 1"#,
        "tollgate_admin_store_sane 1",
        "tollgate_admin_holds_kept_total 0",
    ] {
        assert!(metrics.contains(sample), "{sample} in {metrics}");
    }
}

#[tokio::test]
async fn overdue_holds_are_kept_and_shown() {
    let fixture = Fixture::start().await;
    let open = open_cap();
    let (agent, _) = fixture.seed.ready_agent("builder", open).await;
    let (key_id, _) = agent.virtual_key_with_id().await;
    let name = agent.open_hold(&key_id, 1234, Duration::from_millis(1)).await;
    until("the reaper", async || agent.kept_holds().await == 1).await;
    assert_eq!(agent.open_holds().await, 0);
    assert_eq!(
        agent.counters().await.day_nanos,
        1234,
        "the estimate stays charged"
    );
    until("the metric", async || {
        fixture.admin.metric("tollgate_admin_holds_kept_total") == Some(1)
    })
    .await;
    assert!(fixture.admin.logs().contains(&name.allow_id));
}

#[tokio::test]
async fn no_answer_is_a_page_but_those_that_are() {
    let fixture = Fixture::start().await;
    let (_, caller) = fixture.account("builder").await;
    let nobody = fixture.admin.caller("");
    for (caller, method, path, status) in [
        (&caller, "GET", "/v1/agents", 200),
        (&caller, "GET", "/v1/audit/export", 200),
        (&nobody, "GET", "/v1/agents", 401),
        (&nobody, "GET", "/no/such/path", 404),
        (&nobody, "GET", "/assets/x/y.js", 404),
        (&nobody, "POST", "/reference", 405),
        (&nobody, "PUT", "/v1/agents", 405),
        (&nobody, "POST", "/api/user/login", 415),
        (&nobody, "GET", "/plan", 303),
        (&nobody, "GET", "/", 200),
        (&nobody, "GET", "/reference", 200),
    ] {
        let reply = caller.send(method, path, &[], "").await;
        assert_eq!(reply.status, status, "{method} {path}");
        assert_eq!(
            reply.header("x-content-type-options"),
            Some("nosniff"),
            "{method} {path}"
        );
        assert_eq!(reply.header("referrer-policy"), Some("no-referrer"), "{path}");
        let policy = reply.header("content-security-policy").unwrap_or_default();
        assert!(
            policy.starts_with("default-src 'none';"),
            "{method} {path}: {policy}"
        );
        assert!(
            policy.contains("frame-ancestors 'none'"),
            "{method} {path}: {policy}"
        );
        let is_page = ["/", "/reference"].contains(&path) && status == 200;
        assert_eq!(
            policy.contains("style-src 'self'"),
            is_page || path == "/plan" || path.starts_with("/assets"),
            "{method} {path}"
        );
        assert_eq!(reply.headers.get_all("content-security-policy").iter().count(), 1);
        assert!(reply.header("x-request-id").is_some(), "{method} {path}");
    }
}
