//! Every denial: exact status, headers and body, nothing sent to the provider, nothing charged.

use super::fixture::{Actor, Fixture, cap, estimated_body, open_cap};
use super::shape::{denied, refused};
use domain::denial::Denial;
use harness::{CapPolicy, Reply, until};
use serde_json::json;

/// The estimate of the calls here.
const ESTIMATE: u64 = 1000;
/// The tracked USD of the free plan, in nanos.
const FREE_TRACKED: u64 = 50_000_000_000;

/// An agent whose next call is denied for `reason`.
async fn agent_denied_for(fixture: &Fixture, reason: &str) -> Actor {
    let below = Some(ESTIMATE - 1);
    let policy = match reason {
        "per_run_limit" => cap(below, None, None),
        "daily_limit" => cap(None, below, None),
        "monthly_limit" => cap(None, None, below),
        "cap_disabled" => CapPolicy::default(),
        _ => open_cap(),
    };
    let account = fixture.seed.account("free").await;
    if reason == "plan_key_limit" {
        account.agent("older").virtual_key().await;
    }
    let agent = account.agent("bot");
    agent.cap(policy).await;
    if reason != "no_provider_key" {
        agent.provider_key("sk-test-provider-key").await;
    }
    let (key_id, key) = agent.virtual_key_with_id().await;
    match reason {
        "plan_limit" => fixture.set_tracked(&agent, FREE_TRACKED - ESTIMATE + 1),
        "plan_agent_limit" => fixture.set_slots(&agent, 1),
        "frozen" => agent.frozen(true).await,
        "service_unavailable" => {
            agent
                .provider_key_sealed("pk_broken", "not sealed by anyone")
                .await
        }
        "rate_limited" => {
            let rate = account.keys.rate(&key_id);
            let _: String = fixture.redis.command(&["SET", &rate, "10", "PX", "60000"]);
        }
        _ => {}
    }
    let caller = fixture.edge.caller(&key);
    Actor {
        agent,
        key_id,
        key,
        caller,
    }
}

/// Day, month and tracked USD.
async fn charged(actor: &Actor) -> (u64, u64, u64) {
    let counters = actor.agent.counters().await;
    (counters.day_nanos, counters.month_nanos, counters.tracked_nanos)
}

#[tokio::test]
async fn every_denial_has_its_status_headers_and_body() {
    let fixture = Fixture::new().await;
    for reason in Denial::ALL.iter().map(|denial| denial.reason()) {
        let actor = agent_denied_for(&fixture, reason).await;
        let before = charged(&actor).await;
        let reply = actor
            .caller
            .chat_with(&[("X-Service-Run-Id", "run-1")], estimated_body(ESTIMATE))
            .await;
        denied(&reply, reason);
        let (day, month, tracked) = charged(&actor).await;
        assert_eq!((day, month, tracked), before, "{reason} charges nothing");
        assert_eq!(actor.agent.run_spent("run-1").await.unwrap_or(0), 0, "{reason}");
    }
    assert_eq!(fixture.upstream.arrived(), 0, "nothing is sent on a denial");
    assert_eq!(fixture.upstream.connections(), 0);
}

#[tokio::test]
async fn plan_denials_name_the_plan_the_limit_and_the_way_up() {
    let fixture =
        Fixture::with(|options| options.env("TOLLGATE_ADMIN__PUBLIC_URL", "https://console.test")).await;
    for (reason, limit) in [
        ("plan_key_limit", "1"),
        ("plan_agent_limit", "1"),
        ("plan_limit", "50"),
    ] {
        let reply = agent_denied_for(&fixture, reason)
            .await
            .caller
            .chat(estimated_body(ESTIMATE))
            .await;
        denied(&reply, reason);
        let body = reply.json();
        let shown = json!([body["plan"], body["limit"], body["upgradeTo"], body["upgradeUrl"]]);
        assert_eq!(
            shown,
            json!(["free", limit, "builder", "https://console.test/plan?to=builder"])
        );
    }
}

#[tokio::test]
async fn every_decision_has_an_id_of_its_own() {
    let fixture = Fixture::new().await;
    let actor = agent_denied_for(&fixture, "frozen").await;
    let mut ids = std::collections::HashSet::new();
    for _ in 0..5 {
        let reply: Reply = actor.caller.chat(estimated_body(1)).await;
        assert!(
            ids.insert(reply.json()["id"].as_str().expect("an id").to_owned()),
            "{reply:?}"
        );
    }
}

/// Specification §4.4 "Fail closed": a failed plan lookup is a 503.
#[tokio::test]
async fn an_account_of_an_unknown_plan_is_denied() {
    let fixture = Fixture::new().await;
    for plan in ["no-such-plan", ""] {
        let actor = fixture.actor("free", open_cap()).await;
        actor.agent.account.set_plan(plan).await;
        for _ in 0..2 {
            let reply = actor.caller.chat(estimated_body(ESTIMATE)).await;
            denied(&reply, "service_unavailable");
        }
        assert_eq!(actor.agent.counters().await.tracked_nanos, 0, "plan {plan:?}");
    }
    assert_eq!(fixture.upstream.arrived(), 0);
}

/// Specification §4.4 "Fail closed": a stored key that cannot be decrypted is a 503, and the charge is released.
#[tokio::test]
async fn a_call_whose_provider_key_cannot_be_decrypted_is_denied() {
    let fixture = Fixture::new().await;
    let actor = fixture.actor("free", open_cap()).await;
    let stolen = fixture.actor("free", open_cap()).await;
    let record = stolen.agent.account.keys.live().agent("bot");
    let sealed: Vec<String> = fixture
        .redis
        .command(&["HMGET", &record, "pk_id:openai", "pk_sealed:openai"]);
    for (what, id, form) in [
        ("nonsense", "pk_1", "x"),
        ("another account's", sealed[0].as_str(), sealed[1].as_str()),
    ] {
        actor.agent.provider_key_sealed(id, form).await;
        let reply = actor.caller.chat(estimated_body(ESTIMATE)).await;
        denied(&reply, "service_unavailable");
        // One id for the caller and the audit trail, and the trail says that the call was denied.
        let id = reply.json()["id"].as_str().expect("an id").to_owned();
        let entry = fixture.last_entry(&actor).await;
        assert_eq!(
            (&entry.id, entry.kind.as_str()),
            (&id, "decision.denied"),
            "{what}"
        );
        assert_eq!(entry.data["reason"], "service_unavailable", "{what}");
        assert_eq!(entry.data["outcome"], "unsent", "{what}");
        let counters = actor.agent.counters().await;
        assert_eq!((counters.day_nanos, counters.tracked_nanos), (0, 0), "{what}");
    }
    assert_eq!(fixture.upstream.arrived(), 0);
}

/// The largest call that a body can ask for is computed exactly.
#[tokio::test]
async fn the_largest_call_is_estimated_exactly() {
    let fixture = Fixture::new().await;
    let actor = fixture.actor("enterprise", open_cap()).await;
    let body = json!({
        "model": "sound", "max_tokens": 10_000_000, "n": 128, "modalities": ["text", "audio"],
        "messages": [{ "role": "user", "content": "x" }],
    });
    // 128 × 10,000,000 tokens at 80 USD per million are 102,400 USD, and one token of prompt and four around it 10,000
    // nanos.
    let reply = actor.caller.chat(body.clone()).await;
    assert_eq!(
        super::fixture::amounts(&reply).0,
        102_400_000_010_000,
        "{reply:?}"
    );
    let limited = fixture
        .actor("enterprise", cap(None, Some(102_400_000_009_999), None))
        .await;
    denied(&limited.caller.chat(body).await, "daily_limit");
    assert_eq!(fixture.upstream.arrived(), 1);
}

/// An estimate beyond any amount is decided in the store like every other: the key and its rate come first, every limit
/// denies it, and without one the denial is recorded all the same (decisions D30, D40).
#[tokio::test]
async fn an_estimate_beyond_any_amount_is_counted_and_recorded() {
    let fixture = Fixture::alone().await;
    let overlay = r#"{"models":{"beyond":{"rates":{"standard":{"input":"0","output":"1000000"}}}}}"#;
    let _: String = fixture.redis.command(&["SET", store::keys::PRICES, overlay]);
    let actor = fixture.actor("enterprise", open_cap()).await;
    let free = fixture.actor("free", open_cap()).await;
    // 10,000,000 tokens at one USD each.
    let body = json!({
        "model": "beyond", "max_tokens": 10_000_000, "messages": [{ "role": "user", "content": "x" }],
    });
    let probe = fixture.actor("enterprise", cap(None, Some(1), None)).await;
    until("the imported price", async || {
        let reply = probe.caller.chat(body.clone()).await;
        denied(&reply, "daily_limit");
        // An estimate beyond any amount has no header.
        reply.header("x-service-estimated-usd").is_none()
    })
    .await;
    denied(&free.caller.chat(body.clone()).await, "plan_limit");
    for (policy, reason) in [
        (open_cap(), "service_unavailable"),
        (cap(None, Some(u64::pow(10, 15)), None), "daily_limit"),
    ] {
        actor.agent.cap(policy).await;
        let reply = actor.caller.chat(body.clone()).await;
        denied(&reply, reason);
        let id = reply.json()["id"].as_str().expect("an id").to_owned();
        assert_eq!(reply.header("x-service-estimated-usd"), None);
        let says_so = reply.json()["message"]
            .as_str()
            .expect("a message")
            .contains("beyond any amount");
        assert_eq!(says_so, reason == "service_unavailable");
        let entry = fixture.last_entry(&actor).await;
        assert_eq!((entry.kind.as_str(), &entry.id), ("decision.denied", &id));
        assert_eq!(entry.data["reason"], reason);
        assert_eq!(
            (&entry.data["model"], &entry.data["estimateNanos"]),
            (&json!("beyond"), &json!(null))
        );
    }
    let rate = |actor: &Actor| actor.agent.account.keys.rate(&actor.key_id);
    let requests: u64 = fixture.redis.command(&["GET", &rate(&actor)]);
    assert_eq!(requests, 2, "each counts");
    let _: String = fixture.redis.command(&["SET", &rate(&free), "10", "PX", "60000"]);
    denied(&free.caller.chat(body.clone()).await, "rate_limited");
    free.agent.account.revoke(&free.key_id).await;
    refused(&free.caller.chat(body.clone()).await, 401, "invalid_api_key");
    for actor in [&actor, &free] {
        assert_eq!(charged(actor).await, (0, 0, 0));
        assert_eq!(actor.agent.open_holds().await, 0);
    }
    assert_eq!(fixture.upstream.arrived(), 0);
}
