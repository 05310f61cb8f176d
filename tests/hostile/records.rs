//! Records made through the management API at full speed: budgets of records or technical limits end each attack
//! (decision D71).

use crate::fixture::{Fixture, Setup};
use domain::mode::Mode;
use harness::{CapPolicy, Nanos, Role, TEST_PASSWORD};
use serde_json::json;
use std::sync::atomic::{AtomicU64, Ordering};

/// More requests than a technical limit of the account allows in two minutes: 2 × 5 × 600.
const BEYOND_RATE: u64 = 7_000;

/// Both servers with the technical limits of the default configuration, which tests have raised.
fn limited(no_archive: bool, megabytes: u64, budgets: &[(&'static str, u64)]) -> Setup {
    let mut settings = vec![
        ("LIMITS__TEST_REQUESTS_PER_MINUTE", "600".to_owned()),
        ("LIMITS__SESSION_REQUESTS_PER_MINUTE", "600".to_owned()),
    ];
    settings.extend(budgets.iter().map(|(name, most)| (*name, most.to_string())));
    Setup {
        megabytes,
        no_archive,
        settings,
        ..Setup::default()
    }
}

/// Spends of a test-mode key with 16 kB of metadata each. Without limits 1,500 of them fill this store.
async fn test_mode_spends_with_large_metadata(no_archive: bool) {
    let fixture = limited(no_archive, 24, &[("LIMITS__TEXT_BYTES", 8 << 20)])
        .start()
        .await;
    let caller = fixture.management(Mode::Test).await;
    assert_eq!(caller.post("/v1/policies/bot", json!({})).await.status, 200);
    let metadata = json!({ "note": "x".repeat(16_000) });
    let answers = fixture
        .attack(BEYOND_RATE, async |_| {
            let spend = json!({ "agent": "bot", "amount": "0.01", "metadata": metadata });
            caller.post("/v1/spend", spend).await
        })
        .await;
    Fixture::only(&answers, &[200, 403, 429]);
    assert!(answers[&200] < 600 && answers[&429] > 1000, "{answers:?}");
}

/// The same with many keys, which share the account's budgets; the budget of text ends it.
async fn many_test_mode_keys_fill_no_more_than_the_budget(no_archive: bool) {
    let fixture = limited(no_archive, 40, &[("LIMITS__TEXT_BYTES", 8 << 20)])
        .start()
        .await;
    let mut callers = Vec::new();
    for _ in 0..10 {
        callers.push(fixture.management(Mode::Test).await);
    }
    assert_eq!(callers[0].post("/v1/policies/bot", json!({})).await.status, 200);
    let metadata = json!({ "note": "x".repeat(16_000) });
    let answers = fixture
        .attack(BEYOND_RATE, async |at| {
            let spend = json!({ "agent": "bot", "amount": "0.01", "metadata": metadata });
            callers[at as usize % callers.len()]
                .post("/v1/spend", spend)
                .await
        })
        .await;
    Fixture::only(&answers, &[200, 403, 429]);
    assert!(
        (500..600).contains(&answers[&200]) && answers[&403] > 1000,
        "{answers:?}"
    );
}

/// Agents made in test mode, with long descriptions, by many keys.
async fn agents_in_test_mode(no_archive: bool) {
    let fixture = limited(no_archive, 24, &[("LIMITS__AGENTS", 500)]).start().await;
    let mut callers = Vec::new();
    for _ in 0..10 {
        callers.push(fixture.management(Mode::Test).await);
    }
    let description = "x".repeat(2000);
    let answers = fixture
        .attack(BEYOND_RATE, async |at| {
            let agent = json!({ "name": format!("a{at}"), "description": description });
            callers[at as usize % callers.len()]
                .post("/v1/agents", agent)
                .await
        })
        .await;
    Fixture::only(&answers, &[200, 403, 429]);
    assert_eq!(answers[&200], 500, "{answers:?}");
}

/// Sessions of one user that do nothing but make policies.
async fn hammering_sessions(no_archive: bool) {
    let fixture = limited(no_archive, 24, &[("LIMITS__POLICIES", 500)])
        .start()
        .await;
    let user = fixture.attacker.user(Role::Owner).await;
    let mut sessions = Vec::new();
    for _ in 0..8 {
        sessions.push(fixture.admin.sign_in(&user.email, TEST_PASSWORD).await);
    }
    let answers = fixture
        .attack(BEYOND_RATE, async |at| {
            let session = &sessions[at as usize % sessions.len()];
            session
                .post(&format!("/api/v1/policies/bot-{at}"), json!({}))
                .await
        })
        .await;
    Fixture::only(&answers, &[200, 403, 429]);
    assert_eq!(answers[&200], 500, "{answers:?}");
    assert!(answers[&429] > 500, "{answers:?}");
}

/// Escrows that are never funded, with 16 kB of conditions each, by a live key of a plan without limits.
async fn escrows_that_are_never_funded(no_archive: bool) {
    let budgets = [("LIMITS__TEXT_BYTES", 6 << 20), ("LIMITS__ESCROWS", 2_000)];
    let fixture = limited(no_archive, 24, &budgets).start().await;
    let caller = fixture.management(Mode::Live).await;
    let mut wallets = Vec::new();
    for name in ["a", "b"] {
        let made = caller.post("/v1/agents", json!({ "name": name })).await.json();
        wallets.push(made["agent"]["id"].as_str().expect("an id").to_owned());
    }
    let ids = [
        caller.get(&format!("/v1/agents/{}", wallets[0])).await,
        caller.get(&format!("/v1/agents/{}", wallets[1])).await,
    ];
    let [from, to] = ids.map(|reply| reply.json()["agent"]["walletId"].clone());
    let conditions = json!({ "note": "x".repeat(16_000) });
    let answers = fixture
        .attack(4_000, async |at| {
            let mut escrow = json!({ "fromWalletId": from, "toWalletId": to, "amount": 1 });
            if at % 2 == 0 {
                escrow["conditions"] = conditions.clone();
            }
            caller.post("/v1/escrow/create", escrow).await
        })
        .await;
    Fixture::only(&answers, &[200, 403]);
    assert!(answers[&200] < 2_000 && answers[&403] > 1_000, "{answers:?}");
}

/// Provider keys for agents that do not exist, and virtual keys that are made and revoked, by a live key of a plan
/// without limits.
async fn churn_of_keys(no_archive: bool) {
    let budgets = [("LIMITS__PROVIDER_KEYS", 500), ("LIMITS__KEYS", 1_000)];
    let fixture = limited(no_archive, 24, &budgets).start().await;
    let caller = fixture.management(Mode::Live).await;
    let key = json!({ "provider": "openai", "apiKey": crate::fixture::PROVIDER_KEY });
    let (stored, made) = (AtomicU64::new(0), AtomicU64::new(0));
    let answers = fixture
        .attack(8_000, async |at| {
            if at % 2 == 0 {
                let reply = caller
                    .post(&format!("/v1/agents/p-{at}/provider-keys"), key.clone())
                    .await;
                stored.fetch_add(u64::from(reply.status == 201), Ordering::Relaxed);
                return reply;
            }
            let path = format!("/v1/agents/v-{at}/virtual-keys");
            let reply = caller.post(&path, json!({ "name": "k".repeat(200) })).await;
            if reply.status != 201 {
                return reply;
            }
            made.fetch_add(1, Ordering::Relaxed);
            let id = reply.json()["virtualKey"]["keyId"]
                .as_str()
                .expect("an id")
                .to_owned();
            caller.delete(&format!("{path}/{id}")).await
        })
        .await;
    Fixture::only(&answers, &[200, 201, 403]);
    assert_eq!(stored.into_inner(), 500, "{answers:?}");
    // Keys that were seeded count as well.
    assert!((900..1_000).contains(&made.into_inner()), "{answers:?}");
}

/// A webhook on a closed port, and spends that violate a policy.
async fn violations_with_webhooks_on_a_dead_port(no_archive: bool) {
    let fixture = limited(no_archive, 40, &[]).start().await;
    let caller = fixture.management(Mode::Live).await;
    for at in 0..20 {
        let hook = json!({ "url": format!("http://127.0.0.1:1/{at}"), "events": ["policy.violation"], "secret": "s".repeat(32) });
        assert_eq!(caller.post("/v1/webhooks", hook).await.status, 201);
    }
    let policy = CapPolicy {
        enabled: true,
        per_run: Some(Nanos::ZERO),
        ..CapPolicy::default()
    };
    let (_agent, calls) = fixture.agent("bot", policy).await;
    let answers = fixture
        .attack(8_000, async |_| {
            let body = harness::chat_body("gpt-4o-mini", "hello");
            calls.chat_with(&[("x-service-run-id", "run")], body).await
        })
        .await;
    assert_eq!(answers.into_keys().collect::<Vec<_>>(), [402]);
}

/// Each row with a reachable archive, and without one, which `make verify` runs.
macro_rules! rows {
    ($($(#[$attribute:meta])* $row:ident;)+) => {
        mod with_an_archive {
            $($(#[$attribute])* #[tokio::test(flavor = "multi_thread")]
            async fn $row() {
                super::$row(false).await;
            })+
        }

        mod without_an_archive {
            $(#[ignore = "long: make verify runs it"]
            #[tokio::test(flavor = "multi_thread")]
            async fn $row() {
                super::$row(true).await;
            })+
        }
    };
}

rows! {
    test_mode_spends_with_large_metadata;
    #[ignore = "long: make verify runs it"]
    many_test_mode_keys_fill_no_more_than_the_budget;
    agents_in_test_mode;
    hammering_sessions;
    escrows_that_are_never_funded;
    churn_of_keys;
    violations_with_webhooks_on_a_dead_port;
}
