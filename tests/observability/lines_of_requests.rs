//! The log line of an answer is found by the id that the answer has, and the line of an unknown caller names the
//! caller's address.

use crate::fixture::{Fixture, SOON, body};
use harness::{RawClient, Reply, eventually};
use serde_json::{Value, json};

/// Setting by which the servers trust the test as a proxy.
const PROXIES: (&str, &str) = ("TOLLGATE_NETWORK__TRUSTED_PROXIES", "127.0.0.0/8");
/// Most lines about unknown callers of one address in a second.
const LINES_A_SECOND: usize = 50;
const REQUEST_ID: &str = "x-request-id";
const CHAT: &str = "/v1/chat/completions";

/// The lines of a program's log.
fn lines(logs: &str) -> Vec<Value> {
    logs.lines()
        .map(|line| serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line}")))
        .collect()
}

/// The one line whose `field` is the answer's id.
async fn line_of(logs: impl Fn() -> String, field: &str, reply: &Reply) -> Value {
    let id = reply.header(REQUEST_ID).expect("an id").to_owned();
    let found = eventually(&format!("the line of {id}: {reply:?}"), SOON, async || {
        let lines = lines(&logs());
        let found: Vec<Value> = lines.into_iter().filter(|line| line[field] == *id).collect();
        (!found.is_empty()).then_some(found)
    })
    .await;
    assert_eq!(found.len(), 1, "{found:?}");
    found[0].clone()
}

#[tokio::test]
async fn a_denied_or_refused_request_is_found_by_the_id_of_its_answer() {
    let fixture = Fixture::new().await;
    let rich = fixture.rich().await.caller;
    let poor = fixture.poor().await.caller;
    let stranger = fixture.edge.caller(&format!("vk_live_{}", "0a".repeat(32)));
    let logs = || fixture.edge.logs();
    for (number, (caller, path, text, reason, is_known)) in [
        (&poor, CHAT, body().to_string(), "daily_limit", true),
        (&rich, CHAT, "{".to_owned(), "invalid_json", true),
        (&stranger, CHAT, body().to_string(), "invalid_api_key", false),
        (
            &stranger,
            "/v1/models",
            String::new(),
            "method_not_allowed",
            false,
        ),
        (&rich, "/v1/nowhere", String::new(), "not_found", false),
    ]
    .into_iter()
    .enumerate()
    {
        let own = format!("mine.{number}");
        for headers in [vec![], vec![(REQUEST_ID, own.as_str())]] {
            let reply = caller.send("POST", path, &headers, text.clone()).await;
            if let Some((_, sent)) = headers.first() {
                assert_eq!(reply.header(REQUEST_ID), Some(*sent));
            }
            let line = line_of(logs, "request.id", &reply).await;
            assert_eq!(line["reason"], reason, "{line}");
            assert_eq!(line["account.id"].is_string(), is_known, "{line}");
            let address = if is_known { Value::Null } else { json!("127.0.0.1") };
            assert_eq!(line["client.address"], address, "{line}");
        }
    }
}

#[tokio::test]
async fn a_denied_list_of_models_names_its_account() {
    let fixture = Fixture::new().await;
    let actor = fixture.actor("free", harness::open_cap()).await;
    let mut denied = actor.caller.get("/v1/models").await;
    while denied.status == 200 {
        denied = actor.caller.get("/v1/models").await;
    }
    assert_eq!(denied.status, 429, "{denied:?}");
    let line = line_of(|| fixture.edge.logs(), "request.id", &denied).await;
    assert_eq!(line["reason"], "rate_limited", "{line}");
    assert!(
        line["account.id"].is_string() && line["agent.id"].is_string(),
        "{line}"
    );
}

#[tokio::test]
async fn the_address_of_an_unknown_caller_is_the_one_that_a_trusted_proxy_reports() {
    let fixture = Fixture::with(
        |options| options.env(PROXIES.0, PROXIES.1),
        |options| options.env(PROXIES.0, PROXIES.1),
    )
    .await;
    let forwarded = [("x-forwarded-for", "192.0.2.1, 203.0.113.9")];
    let nobody = fixture.edge.caller("");
    let reply = nobody
        .send("POST", "/v1/chat/completions", &forwarded, "{}")
        .await;
    assert_eq!(reply.status, 401);
    let line = line_of(|| fixture.edge.logs(), "request.id", &reply).await;
    assert_eq!(line["client.address"], "203.0.113.9", "{line}");

    let login = json!({"email": "nobody@example.com", "password": "a wrong password"}).to_string();
    let origin = fixture.admin.url();
    let headers = [
        forwarded[0],
        ("content-type", "application/json"),
        ("origin", &*origin),
    ];
    let nobody = fixture.admin.caller("");
    let reply = nobody.send("POST", "/api/user/login", &headers, login).await;
    assert_eq!(reply.status, 401);
    let line = line_of(|| fixture.admin.logs(), "request_id", &reply).await;
    assert_eq!(
        (&line["http.route"], &line["client.address"]),
        (&json!("/login"), &json!("203.0.113.9")),
        "{line}"
    );
}

#[tokio::test]
async fn malformed_heads_leave_a_bounded_number_of_lines_with_their_address() {
    let fixture = Fixture::new().await;
    for (addr, word, logs) in [
        (
            fixture.edge.addr(),
            "request refused",
            &(|| fixture.edge.logs()) as &dyn Fn() -> String,
        ),
        (fixture.admin.addr(), "malformed request", &|| {
            fixture.admin.logs()
        }),
    ] {
        let began = std::time::Instant::now();
        for _ in 0..4 * LINES_A_SECOND {
            let mut client = RawClient::connect(addr).await;
            assert!(client.send("no HTTP\r\n\r\n").await);
            assert_eq!(client.reply(SOON).await.map(|reply| reply.status), Some(400));
        }
        let seconds = usize::try_from(began.elapsed().as_secs()).unwrap() + 2;
        let found = eventually("the lines", SOON, async || {
            let mut found = lines(&logs());
            found.retain(|line| line["message"] == word);
            (!found.is_empty()).then_some(found)
        })
        .await;
        assert!(
            found.len() <= seconds * LINES_A_SECOND,
            "{} lines in {seconds} s",
            found.len()
        );
        assert!(
            found.iter().all(|line| line["client.address"] == "127.0.0.1"),
            "{found:?}"
        );
    }
}
