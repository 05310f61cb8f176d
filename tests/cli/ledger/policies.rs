//! Data that decides about calls and can be changed with the edge's credential is compared with data that cannot.

use super::damage::{damage, each_is_found};
use super::fixture::{Fixture, hold, ok};
use serde_json::json;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

const POLICIES: &[&str] = &["policies"];

#[tokio::test]
async fn limits_freezes_and_active_keys() {
    let mut fixture = Fixture::build().await;
    let live = &fixture.tenants[0].live;
    for (name, limits) in [
        ("wide", json!({ "maxSpendPerDay": 7 })),
        ("narrow", json!({ "maxSpendPerDay": 5, "maxSpendPerRun": 3 })),
    ] {
        let mut policy = json!({ "name": name });
        policy
            .as_object_mut()
            .unwrap()
            .extend(limits.as_object().unwrap().clone());
        ok(live, "/v1/policies", policy).await;
    }
    ok(live, "/v1/agents/bob/freeze", json!({})).await;
    let made = live.post("/v1/agents/ann/virtual-keys", json!({})).await;
    let key = made.json()["virtualKey"]["keyId"]
        .as_str()
        .expect("an id")
        .to_owned();
    assert_eq!(
        live.delete(&format!("/v1/agents/ann/virtual-keys/{key}"))
            .await
            .status,
        200
    );
    let _ = hold(&fixture.tenants[0].account, Duration::from_secs(1000)).await;
    fixture.admin = None;
    let keys = fixture.tenants[0].account.keys.clone();
    let (ann, bob) = (keys.live().agent("ann"), keys.live().agent("bob"));
    let all = vec![
        damage(&ann, "HSET {} cap_day 9000000000000000", POLICIES),
        damage(&ann, "HSET {} cap 0", POLICIES),
        damage(&ann, "HDEL {} cap cap_run cap_day cap_month", POLICIES),
        damage(&ann, "HSET {} policy_id pol_other", POLICIES),
        damage(&ann, "HDEL {} policy_id", POLICIES),
        damage(keys.record(), "HSET {} live_day 9000000000000000", POLICIES),
        damage(keys.record(), "HDEL {} live_run", POLICIES),
        damage(
            keys.record(),
            "HDEL {} live_cap live_run live_day live_month",
            POLICIES,
        ),
        damage(keys.record(), "HSET {} test_cap 0", POLICIES),
        damage(&bob, "HDEL {} frozen", POLICIES),
        damage(&ann, "HSET {} frozen user", POLICIES),
        damage(keys.active_keys(), &format!("ZADD {{}} 9 {key}"), POLICIES).names(&key),
        damage(keys.active_keys(), "ZADD {} 9 vk_made_up", POLICIES).names("vk_made_up"),
    ];
    each_is_found(&fixture, all).await;
    // Revoked, and active again: with its time of revocation gone only the trail says so.
    let _: i64 = fixture.redis.command(&["ZADD", &keys.active_keys(), "9", &key]);
    let _: i64 = fixture
        .redis
        .command(&["HDEL", &keys.virtual_key(&key), "revoked_at"]);
    let found = fixture.cli.json_exit(&["ledger", "check", "--trail"], 1);
    let said = found["violations"].to_string();
    assert!(said.contains(&key) && said.contains("revoked"), "{found}");
}

/// Keys, policies and freezes that change while the check runs are no violations.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn changes_beside_the_check_are_in_order() {
    let fixture = Fixture::build().await;
    let live = fixture.tenants[0].live.clone();
    let policy = json!({ "name": "beside", "agentId": "beside", "maxSpendPerDay": 1 });
    ok(&live, "/v1/wallets/create", json!({ "botId": "beside" })).await;
    ok(&live, "/v1/policies", policy).await;
    let stop = Arc::new(AtomicBool::new(false));
    let over = Arc::clone(&stop);
    let changing = tokio::spawn(async move {
        let mut rounds = 0_u64;
        while !over.load(Ordering::Relaxed) {
            rounds += 1;
            let made = live.post("/v1/agents/beside/virtual-keys", json!({})).await;
            let key = made.json()["virtualKey"]["keyId"]
                .as_str()
                .expect("an id")
                .to_owned();
            ok(&live, "/v1/agents/beside/freeze", json!({})).await;
            let limit = json!({ "maxSpendPerDay": rounds });
            ok(&live, "/v1/policies/beside", limit).await;
            ok(&live, "/v1/agents/beside/unfreeze", json!({})).await;
            let path = format!("/v1/agents/beside/virtual-keys/{key}");
            assert_eq!(live.delete(&path).await.status, 200);
        }
        rounds
    });
    for _ in 0..4 {
        let cli = fixture.cli.clone();
        let check = move || cli.run(&["ledger", "check", "--trail", "--json"]);
        let output = tokio::task::spawn_blocking(check).await.expect("a check");
        assert_eq!(output.code, Some(0), "{output:?}");
    }
    stop.store(true, Ordering::Relaxed);
    assert!(changing.await.expect("changes") > 3);
}
