//! A trail is verified while the caller watches.

use crate::audit_writer::{AuditWriter, lines};
use crate::fixture::{FULL, Fixture, problem};
use domain::mode::Mode;
use futures::StreamExt;
use harness::{AdminOptions, Caller, assert_fields, eventually, until};
use serde_json::{Value, json};
use std::time::Duration;

const SOON: Duration = Duration::from_secs(60);
/// Entries of a trail whose verification is still running at the next request.
const LONG: u64 = 40_000;

/// All lines of an answer.
async fn verify(caller: &Caller) -> Vec<Value> {
    let reply = caller.get("/v1/audit/verify").await;
    assert_eq!(reply.status, 200, "{}", reply.text());
    assert_eq!(reply.header("content-type"), Some("application/x-ndjson"));
    assert_eq!(reply.header("content-disposition"), None);
    let text = reply.text();
    text.lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect()
}

#[tokio::test]
async fn progress_is_reported_and_then_the_verdict() {
    let fixture = Fixture::start().await;
    let (account, caller) = fixture.account("builder").await;
    let tester = fixture.caller(&account, Mode::Test).await;
    let empty = verify(&tester).await;
    let verdict = empty.last().unwrap();
    assert_fields!(verdict, { "done": true, "ok": true });
    AuditWriter::new(&fixture.store, &account, Mode::Test)
        .write(&lines(2000))
        .await;
    let report = verify(&tester).await;
    let (verdict, steps) = report.split_last().unwrap();
    assert_eq!(verdict["ok"], json!(true), "{verdict}");
    assert_eq!(verdict["entries"], steps[0]["total"]);
    assert_eq!(verdict["firstBroken"], Value::Null);
    assert!(verdict["message"].as_str().unwrap().contains("are in order"));
    assert_eq!(steps[0]["checked"], json!(0));
    let checked: Vec<u64> = steps
        .iter()
        .map(|step| step["checked"].as_u64().unwrap())
        .collect();
    assert!(checked.is_sorted(), "{checked:?}");
    problem(&caller.get("/v1/audit/verify?x=1").await, 400, "VALIDATION");
}

#[tokio::test]
async fn a_trail_that_was_changed_is_reported_where_and_a_checkpoint_proves_its_end() {
    let often = |options: AdminOptions| options.env("TOLLGATE_AUDIT__CHECKPOINT_EVERY_MS", "100");
    let fixture = Fixture::start_with(often).await;
    let (account, caller) = fixture.account("builder").await;
    let writer = AuditWriter::new(&fixture.store, &account, Mode::Live);
    writer.write(&lines(1000)).await;
    eventually("a signed checkpoint", SOON, async || {
        let report = verify(&caller).await;
        (report.last()?["endProven"] == json!(true)).then_some(())
    })
    .await;
    let key = account.keys.live().audit();
    let line: String = fixture.redis.command(&["LINDEX", &key, "700"]);
    let changed = line.replace("bot-", "rob-");
    assert_ne!(changed, line);
    let _: String = fixture.redis.command(&["LSET", &key, "700", &changed]);
    let report = verify(&caller).await;
    let verdict = report.last().unwrap();
    assert_fields!(verdict, { "done": true, "ok": false });
    assert_eq!(verdict["firstBroken"]["seq"], json!(701), "{verdict}");
    assert_eq!(verdict["endProven"], json!(false));
    assert!(
        verdict["message"]
            .as_str()
            .unwrap()
            .contains("BROKEN at entry 701")
    );
}

/// Begins a verification and reads its first line.
async fn begin(
    fixture: &Fixture,
    key: &str,
) -> impl futures::Stream<Item = reqwest::Result<bytes::Bytes>> + use<> {
    let url = format!("http://{}/v1/audit/verify", fixture.admin.addr());
    let reply = harness::http_client()
        .get(url)
        .bearer_auth(key)
        .send()
        .await
        .unwrap();
    assert_eq!(reply.status(), 200);
    let mut stream = Box::pin(reply.bytes_stream());
    let first = stream.next().await.unwrap().unwrap();
    assert!(first.starts_with(br#"{"checked":0,"#), "{first:?}");
    stream
}

#[tokio::test]
async fn an_account_verifies_once_at_a_time_and_a_hang_up_stops_it() {
    // No sealing, so that all counted reads of the store are those of verifications.
    let still = |options: AdminOptions| options.env("TOLLGATE_AUDIT__SEAL_EVERY_MS", "600000");
    let fixture = Fixture::start_with(still).await;
    let mut callers = Vec::new();
    for _ in 0..3 {
        let account = fixture.seed.account("enterprise").await;
        AuditWriter::new(&fixture.store, &account, Mode::Live)
            .write(&lines(LONG))
            .await;
        let key = account.issue(Mode::Live, FULL, &[], None).await;
        let other = account.issue(Mode::Test, FULL, &[], None).await;
        store::audit::chain::Chain::new(&fixture.store, account.keys.live())
            .seal()
            .await
            .unwrap();
        callers.push((key.secret, fixture.admin.caller(&other.secret)));
    }
    let first = begin(&fixture, &callers[0].0).await;
    problem(&callers[0].1.get("/v1/audit/verify").await, 409, "CONFLICT");
    let second = begin(&fixture, &callers[1].0).await;
    let full = callers[2].1.get("/v1/audit/verify").await;
    problem(&full, 503, "SERVICE_UNAVAILABLE");
    assert_eq!(full.header("retry-after"), Some("5"));
    let reads = || fixture.redis.calls("lrange");
    let before = reads();
    drop((first, second));
    // The trail of test mode is empty; it can be verified once the verification of the long one has ended.
    for (_, caller) in &callers {
        until("a turn", async || {
            caller.get("/v1/audit/verify").await.status == 200
        })
        .await;
    }
    let (needed, read) = (LONG / 500, reads() - before);
    assert!(
        read < needed,
        "{read} reads after both disconnected, each trail takes {needed}"
    );
}
