//! `/agents/{id}/runs`: the spend and the waiting approvals of each run, and ending one.

use crate::fixture::{fresh, problem, success, text};
use crate::record_fixture::{Client, RecordFixture};
use domain::mode::Mode;
use domain::permission::Permission;
use harness::assert_fields;
use serde_json::{Value, json};

impl Client {
    async fn runs(&self, query: &str) -> Value {
        let reply = self.api.get(&format!("/v1/agents/bot/runs{query}")).await;
        success(&reply, 200)
    }

    async fn run(&self, id: &str) -> Value {
        let reply = self.api.get(&format!("/v1/agents/bot/runs/{id}")).await;
        success(&reply, 200)["run"].clone()
    }

    async fn end(&self, id: &str, status: &str) -> harness::Reply {
        let path = format!("/v1/agents/bot/runs/{id}");
        self.api.post(&path, json!({ "status": status })).await
    }

    async fn spend(&self, run: &str, amount: &str) -> Value {
        let body = json!({ "agent": "bot", "amount": amount, "runId": run });
        self.api.post("/v1/spend", body).await.json()
    }
}

fn ids(listed: &Value) -> Vec<&str> {
    let runs = listed["runs"].as_array().unwrap();
    runs.iter().map(|run| text(run, "/runId")).collect()
}

#[tokio::test]
async fn runs_show_what_they_spent_and_how_they_ended() {
    let fixture = RecordFixture::start().await;
    let client = fixture
        .client(
            "builder",
            json!({ "maxSpendPerRun": 1, "approvalThreshold": 0.5 }),
        )
        .await;
    assert_eq!(client.runs("").await["total"], json!(0));
    for run in ["a", "b:1.x_-", "a"] {
        assert_eq!(client.call(Some(run)).await.0.status, 200);
    }
    assert_eq!(client.spend("a", "0.4").await["state"], "settled");
    assert_eq!(client.spend("a", "0.9").await["reason"], "per_run_limit");

    let run = client.run("a").await;
    let spent = 400_000_000 + 2 * 8_550;
    for (field, value) in [
        ("runId", json!("a")),
        ("agentId", json!("bot")),
        ("status", json!("running")),
        ("paused", json!(false)),
        ("waitingForApproval", json!([])),
        ("calls", json!(3)),
        ("denied", json!(1)),
        ("spentUsd", json!(0.400_017_1)),
        ("spentNanos", json!(spent.to_string())),
        ("endedAt", json!(null)),
    ] {
        assert_eq!(run[field], value, "{field}");
    }
    fresh(text(&run, "/firstSeenAt"));
    fresh(text(&run, "/lastSeenAt"));

    let listed = client.runs("").await;
    assert_eq!(ids(&listed), ["a", "b:1.x_-"], "last seen first");
    assert_eq!(listed["runs"][0], run);
    assert_fields!(listed, { "total": 2, "limit": 50, "offset": 0 });
    let mut paged = Vec::new();
    for offset in 0..3 {
        let page = client.runs(&format!("?limit=1&offset={offset}")).await;
        assert_fields!(page, { "total": 2, "offset": offset });
        paged.extend(ids(&page).iter().map(|id| (*id).to_owned()));
    }
    paged.sort_unstable();
    assert_eq!(paged, ["a", "b:1.x_-"], "each on one page");
    assert_fields!(client.run("b%3A1%2Ex_-").await, { "runId": "b:1.x_-" }, "ids in paths are decoded");

    let record = client.account.keys.live().run("bot", "a");
    let before = fixture.management.fields(&record).await;
    let done = success(&client.end("a", "completed").await, 200)["run"].clone();
    let mut after = fixture.management.fields(&record).await;
    assert_eq!(after.remove("status").as_deref(), Some("completed"));
    assert!(
        after.remove("ended").is_some() && after == before,
        "nothing else changes"
    );
    assert_fields!(done, { "status": "completed", "spentNanos": run["spentNanos"] });
    fresh(text(&done, "/endedAt"));
    assert_fields!(success(&client.end("b:1.x_-", "failed").await, 200)["run"], { "status": "failed" });
    for (status, expected) in [
        ("completed", vec!["a"]),
        ("failed", vec!["b:1.x_-"]),
        ("running", vec![]),
        ("paused", vec![]),
    ] {
        let listed = client.runs(&format!("?status={status}")).await;
        assert_eq!(ids(&listed), expected, "{status}");
        assert_eq!(listed["total"], json!(expected.len()));
    }
}

#[tokio::test]
async fn a_run_ends_once_until_it_runs_again() {
    let fixture = RecordFixture::start().await;
    let client = fixture.client("builder", json!({})).await;
    client.call(Some("a")).await;
    let first = success(&client.end("a", "completed").await, 200);
    let audit = client.account.audit_types(Mode::Live).await;
    let version = client.account.version().await;
    let again = success(&client.end("a", "completed").await, 200);
    assert_eq!(again, first, "the same again changes nothing");
    let sentence = problem(&client.end("a", "failed").await, 409, "CONFLICT");
    assert!(sentence.contains("not as failed"), "{sentence}");
    assert_eq!(client.account.version().await, version);
    assert_eq!(client.account.audit_types(Mode::Live).await, audit);
    assert_eq!(audit.last().map(String::as_str), Some("agent.run.completed"));

    assert_eq!(client.call(Some("a")).await.0.status, 200);
    let run = client.run("a").await;
    assert_fields!(run, { "status": "running", "calls": 2, "endedAt": null });
    success(&client.end("a", "failed").await, 200);
}

#[tokio::test]
async fn paused_runs_name_what_they_wait_for() {
    let fixture = RecordFixture::start().await;
    let client = fixture
        .client("builder", json!({ "approvalThreshold": 0.5 }))
        .await;
    client.call(Some("busy")).await;
    client.call(Some("calm")).await;
    let mut waiting = Vec::new();
    for (run, amount) in [("busy", "0.6"), ("busy", "0.7"), ("new", "0.8")] {
        let spend = client.spend(run, amount).await;
        assert_eq!(spend["state"], "pending_approval");
        waiting.push(text(&spend, "/intent_id").to_owned());
    }
    let run = client.run("busy").await;
    assert_fields!(run, { "paused": true, "status": "running" });
    assert_fields!(run, { "waitingForApproval": [waiting[1], waiting[0]] }, "newest first");
    let new = client.run("new").await;
    assert_fields!(new, { "paused": true, "spentNanos": "0" });
    let paused = client.runs("?status=paused").await;
    assert_eq!((ids(&paused), &paused["total"]), (vec!["new", "busy"], &json!(2)));
    assert_eq!(client.run("calm").await["paused"], json!(false));
    let mut all = client.runs("").await;
    all["runs"]
        .as_array_mut()
        .unwrap()
        .retain(|run| run["paused"] == json!(true));
    assert_eq!(
        ids(&all),
        ["new", "busy"],
        "also one that has done nothing but wait"
    );

    let may = [Permission::Read, Permission::Approve];
    let key = client.account.issue(Mode::Live, &may, &[], None).await;
    let approver = fixture.management.admin.caller(&key.secret);
    for (intent, verb) in [(&waiting[0], "approve"), (&waiting[1], "deny")] {
        let body = json!({});
        let reply = approver.post(&format!("/v1/intents/{intent}/{verb}"), body).await;
        success(&reply, 200);
    }
    let intent = approver.get(&format!("/v1/intents/{}", waiting[0])).await;
    assert_eq!(success(&intent, 200)["intent"]["allowed_by"], json!(key.id));
    let run = client.run("busy").await;
    assert_fields!(run, { "paused": false, "waitingForApproval": [] });
    assert_eq!(run["spentNanos"], json!((600_000_000 + 8_550).to_string()));
    assert_eq!(ids(&client.runs("?status=paused").await), ["new"]);
}

/// Decision D70: a run of which every call and spend was denied leaves nothing behind, also while its agent is frozen.
#[tokio::test]
async fn a_denial_makes_no_run() {
    let fixture = RecordFixture::start().await;
    let policy = json!({ "maxSpendPerRun": 0.000001, "maxSpendPerTransaction": 0.5 });
    let client = fixture.client("builder", policy).await;
    for frozen in [false, true] {
        client.agent.frozen(frozen).await;
        for run in 0..5 {
            let run = format!("run-{run}");
            assert!([402, 403].contains(&client.call(Some(&run)).await.0.status));
            assert_eq!(client.spend(&run, "0.6").await["state"], "blocked");
            let path = format!("/v1/agents/bot/runs/{run}");
            problem(&client.api.get(&path).await, 404, "NOT_FOUND");
            problem(&client.end(&run, "failed").await, 404, "NOT_FOUND");
        }
    }
    let record = client.account.keys.live().run("bot", "*");
    let left: Vec<String> = fixture.management.redis.command(&["KEYS", &record]);
    assert_eq!(left, Vec::<String>::new(), "no record");
    let index = client.account.keys.live().runs("bot");
    let listed: u64 = fixture.management.redis.command(&["EXISTS", &index]);
    assert_eq!(listed, 0, "no index");
    assert_eq!(client.runs("").await["total"], json!(0));
}

#[tokio::test]
async fn an_unknown_run_is_refused() {
    let fixture = RecordFixture::start().await;
    let client = fixture.client("builder", json!({})).await;
    client.call(Some("a")).await;
    for path in [
        "/v1/agents/bot/runs/none",
        "/v1/agents/nobody/runs/a",
        "/v1/agents/nobody/runs",
    ] {
        problem(&client.api.get(path).await, 404, "NOT_FOUND");
    }
    problem(&client.end("none", "failed").await, 404, "NOT_FOUND");
    let long = "r".repeat(201);
    let key = format!("vk_live_{}", "0a".repeat(32));
    for bad in ["a%20b", "a%2Fb", "%C3%A9", &long, &key] {
        let sentence = problem(&client.end(bad, "failed").await, 400, "VALIDATION");
        assert!(sentence.starts_with("The run id must be"), "{bad}: {sentence}");
    }
    for status in ["", "running", "paused", "COMPLETED"] {
        problem(&client.end("a", status).await, 400, "VALIDATION");
    }
    let path = "/v1/agents/bot/runs/a";
    for body in [
        json!({}),
        json!({ "status": null }),
        json!({ "status": "failed", "why": "x" }),
    ] {
        problem(&client.api.post(path, body).await, 400, "VALIDATION");
    }
    for query in ["?status=ended", "?order=asc"] {
        let reply = client.api.get(&format!("/v1/agents/bot/runs{query}")).await;
        problem(&reply, 400, "VALIDATION");
    }
    let other = fixture.client("builder", json!({})).await;
    problem(&other.api.get(path).await, 404, "NOT_FOUND");
    problem(&other.end("a", "failed").await, 404, "NOT_FOUND");
    let tester = fixture.management.caller(&client.account, Mode::Test).await;
    problem(&tester.get(path).await, 404, "NOT_FOUND");
    assert_eq!(client.run("a").await["status"], "running");
}

/// A search for runs of one status finds all of them page by page, and no page reads more than its bound.
#[tokio::test]
async fn runs_of_a_status_are_found_behind_any_number_of_others() {
    use store::run::SCANNED_MAX;
    let fixture = RecordFixture::start().await;
    let client = fixture.client("enterprise", json!({})).await;
    let index = client.account.keys.live().runs("bot");
    let prefix = client.account.keys.live().run("bot", "");
    // Six old runs, every third of them failed, behind twice as many completed ones as one page searches.
    let fill = "for n = 1, tonumber(ARGV[2]) do local id = string.format('r%05d', n) \
        local status = n <= 6 and (n % 3 == 0 and 'failed' or '') or 'completed' \
        redis.call('ZADD', KEYS[1], tonumber(ARGV[1]) + n, id) \
        redis.call('HSET', KEYS[2] .. id, 'first', ARGV[1], 'last', tonumber(ARGV[1]) + n) \
        if status ~= '' then redis.call('HSET', KEYS[2] .. id, 'status', status, 'ended', ARGV[1]) end end return 1";
    let (now, count) = (clock::now_ms() - 100_000, 2 * SCANNED_MAX + 6);
    let (now, count) = (now.to_string(), count.to_string());
    let redis = &fixture.management.redis;
    assert_eq!(
        redis.command::<u64>(&["EVAL", fill, "2", &index, &prefix, &now, &count]),
        1
    );
    for (status, limit, expected, in_vain) in [
        ("failed", 50, vec!["r00006", "r00003"], 2),
        // Behind the last one are two more to search.
        ("failed", 1, vec!["r00006", "r00003"], 3),
        ("running", 3, vec!["r00005", "r00004", "r00002", "r00001"], 2),
    ] {
        let (mut found, mut cursor, mut empty) = (Vec::new(), String::new(), 0);
        loop {
            let page = client
                .runs(&format!("?status={status}&limit={limit}{cursor}"))
                .await;
            let here = ids(&page);
            empty += usize::from(here.is_empty());
            assert_eq!(page["total"], json!(here.len()), "{page}");
            found.extend(here.into_iter().map(str::to_owned));
            let Some(next) = page["nextCursor"].as_str() else {
                assert_eq!(page["partial"], json!(false));
                break;
            };
            cursor = format!("&cursor={next}");
        }
        assert_eq!(found, expected, "{status} in pages of {limit}");
        assert_eq!(empty, in_vain, "{status}: pages without a match");
    }
    let first = client.runs("?status=completed&limit=1&offset=999").await;
    assert_fields!(first, { "total": 1000, "partial": true });
    assert_eq!(ids(&first), ["r01007"]);
}
