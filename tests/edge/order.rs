//! If a call has several flaws, the documented one decides the answer (specification §4.4 "Processing order", decisions
//! D29, D63): all pairs and triples of flaws, and each flaw with all that come after it.

use super::fixture::{Fixture, cap, estimated_body};
use super::shape::denied;
use harness::{Caller, RawClient, Reply};
use std::time::Duration;

const ESTIMATE: u64 = 1000;
const FREE_TRACKED: u64 = 50_000_000_000;
/// The edge's limit of a body, in bytes.
const BODY_MAX: usize = 4000;

/// Flaws of a call, in the order in which it is answered: status, and reason or error code.
const FLAWS: [(u16, &str); 14] = [
    (401, "malformed key"),
    (413, "payload_too_large"),
    (401, "revoked key"),
    (402, "plan_key_limit"),
    (429, "rate_limited"),
    (400, "missing_model"),
    (403, "no_provider_key"),
    (403, "frozen"),
    (403, "cap_disabled"),
    (402, "per_run_limit"),
    (402, "daily_limit"),
    (402, "monthly_limit"),
    (402, "plan_agent_limit"),
    (402, "plan_limit"),
];

/// A set of flaws, by their place in [`FLAWS`].
#[derive(Clone, Copy)]
struct FlawSet(u16);

impl FlawSet {
    fn has(self, name: &str) -> bool {
        let at = FLAWS.iter().position(|(_, flaw)| *flaw == name);
        self.0 & (1 << at.unwrap_or_else(|| panic!("no such flaw: {name}"))) != 0
    }

    /// The limit that the estimate just passes, or just meets.
    fn limit(self, name: &str) -> Option<u64> {
        Some(if self.has(name) { ESTIMATE - 1 } else { ESTIMATE })
    }
}

/// Makes a call with these flaws and no others; every limit that is not among them is met exactly.
async fn call(fixture: &Fixture, anyone: &Caller, flawed: FlawSet) -> Reply {
    let account = fixture.seed.account("free").await;
    if flawed.has("plan_key_limit") {
        account.agent("older").virtual_key().await;
    }
    let agent = account.agent("bot");
    let mut policy = cap(
        flawed.limit("per_run_limit"),
        flawed.limit("daily_limit"),
        flawed.limit("monthly_limit"),
    );
    policy.enabled = !flawed.has("cap_disabled");
    agent.cap(policy).await;
    if !flawed.has("no_provider_key") {
        agent.provider_key("sk-test-provider-key").await;
    }
    if flawed.has("frozen") {
        agent.frozen(true).await;
    }
    fixture.set_slots(&agent, u64::from(flawed.has("plan_agent_limit")));
    fixture.set_tracked(
        &agent,
        FREE_TRACKED - ESTIMATE + u64::from(flawed.has("plan_limit")),
    );
    let (key_id, key) = agent.virtual_key_with_id().await;
    let requests = if flawed.has("rate_limited") { "10" } else { "9" };
    let rate = account.keys.rate(&key_id);
    let _: String = fixture.redis.command(&["SET", &rate, requests, "PX", "60000"]);
    if flawed.has("revoked key") {
        account.revoke(&key_id).await;
    }
    let mut body = estimated_body(ESTIMATE);
    if flawed.has("missing_model") {
        body["model"] = serde_json::Value::Null;
    }
    let mut body = body.to_string();
    if flawed.has("payload_too_large") {
        body += &" ".repeat(BODY_MAX);
    }
    let key = if flawed.has("malformed key") {
        key.to_uppercase()
    } else {
        key
    };
    let bearer = format!("Bearer {key}");
    let headers = [("authorization", bearer.as_str()), ("x-service-run-id", "run")];
    anyone.send("POST", "/v1/chat/completions", &headers, body).await
}

fn sets() -> Vec<u16> {
    let bits = || (0..FLAWS.len()).map(|at| 1_u16 << at);
    let mut sets: Vec<u16> = bits().collect();
    for a in bits() {
        for b in bits() {
            sets.extend(bits().map(|c| a | b | c));
        }
        // This flaw and all that come after it.
        sets.push(!(a - 1) & ((1 << FLAWS.len()) - 1));
    }
    sets.sort_unstable();
    sets.dedup();
    sets
}

#[tokio::test]
async fn the_first_flaw_in_the_documented_order_answers() {
    let limit = BODY_MAX.to_string();
    let fixture = Fixture::with(|options| options.env("TOLLGATE_PROXY__MAX_BODY_BYTES", limit)).await;
    let anyone = fixture.edge.caller("");
    let sets = sets();
    assert_eq!(
        sets.len(),
        14 + 91 + 364 + 11,
        "all singles, pairs, triples, and eleven longer tails"
    );
    for set in sets {
        let reply = call(&fixture, &anyone, FlawSet(set)).await;
        let (status, name) = FLAWS[set.trailing_zeros() as usize];
        let wanted = if name.ends_with("key") && status == 401 {
            "invalid_api_key"
        } else {
            name
        };
        assert_eq!(
            (reply.status, reply.error_code().as_str()),
            (status, wanted),
            "{set:014b}: {reply:?}"
        );
        if matches!(status, 402 | 403 | 429) {
            denied(&reply, name);
        }
    }
    assert_eq!(fixture.upstream.arrived(), 0, "none of them was forwarded");
    let reply = call(&fixture, &anyone, FlawSet(0)).await;
    assert_eq!(
        reply.status, 200,
        "without a flaw, with every limit met exactly: {reply:?}"
    );
}

/// Longest wait for an answer, on a slow machine.
const SOON: Duration = Duration::from_secs(20);

/// Sends a call of this key whose body starts with `body` and then stops. Returns status and error code of the answer.
async fn stopped_call(fixture: &Fixture, key: &str, body: &str) -> (u16, String) {
    let mut client = RawClient::connect(fixture.edge.addr()).await;
    let head = format!(
        "POST /v1/chat/completions HTTP/1.1\r\nHost: edge\r\nAuthorization: Bearer {key}\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n"
    );
    // In one write, so that only the missing part is late. The edge may have answered before it has read all.
    let _ = client.send(format!("{head}{:x}\r\n{body}\r\n", body.len())).await;
    let reply = client.reply(SOON).await.expect("an answer");
    let body: serde_json::Value = serde_json::from_slice(&reply.body).expect("an error");
    let code = body["error"]["code"].as_str().unwrap_or_default();
    (reply.status, code.to_owned())
}

/// The order: the key's form, the store's checks of key and rate, the end of the reading, the body's flaws. The reading
/// ends at the bound of length or of time, whichever is reached first.
#[tokio::test]
async fn the_reading_ends_by_length_or_by_time_and_what_speaks_against_the_key_goes_before() {
    let limit = BODY_MAX.to_string();
    let fixture = Fixture::with(|options| {
        options
            .env("TOLLGATE_PROXY__MAX_BODY_BYTES", limit)
            .env("TOLLGATE_PROXY__CLIENT_TIMEOUT_MS", "1000")
    })
    .await;
    let whole = estimated_body(ESTIMATE).to_string();
    let grown = " ".repeat(BODY_MAX + 1);
    for (body, end) in [
        ("no JSON", (408, "request_timeout")),
        (&*whole, (408, "request_timeout")),
        (&*grown, (413, "payload_too_large")),
    ] {
        for (flaw, expected) in [
            ("", end),
            ("no_provider_key", end),
            ("malformed key", (401, "invalid_api_key")),
            ("revoked key", (401, "invalid_api_key")),
            ("plan_key_limit", (402, "plan_key_limit")),
            ("rate_limited", (429, "rate_limited")),
        ] {
            let account = fixture.seed.account("free").await;
            if flaw == "plan_key_limit" {
                account.agent("older").virtual_key().await;
            }
            let agent = account.agent("bot");
            agent.cap(cap(None, None, None)).await;
            if flaw != "no_provider_key" {
                agent.provider_key("sk-test-provider-key").await;
            }
            let (key_id, key) = agent.virtual_key_with_id().await;
            let rate = account.keys.rate(&key_id);
            let before = if flaw == "rate_limited" { "10" } else { "5" };
            let _: String = fixture.redis.command(&["SET", &rate, before, "PX", "60000"]);
            if flaw == "revoked key" {
                account.revoke(&key_id).await;
            }
            let sent = if flaw == "malformed key" {
                key.to_uppercase()
            } else {
                key
            };
            let (status, code) = stopped_call(&fixture, &sent, body).await;
            assert_eq!((status, &*code), expected, "{flaw}: {}", body.trim());
            if flaw.is_empty() || flaw == "no_provider_key" {
                let counted: String = fixture.redis.command(&["GET", &rate]);
                assert_eq!(counted, "6", "counted once");
            }
        }
    }
    assert_eq!(fixture.upstream.arrived(), 0);
}
