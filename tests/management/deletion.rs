//! The deletion of an agent: the removed and the remaining records.

use crate::fixture::{Fixture, problem, success, text};
use domain::mode::Mode;
use serde_json::json;

#[tokio::test]
async fn deleting_an_agent_takes_everything_that_can_act_for_it() {
    let fixture = Fixture::start().await;
    let (account, caller) = fixture.account("builder").await;
    let made = success(&caller.post("/v1/agents", json!({ "name": "a" })).await, 200);
    let id = text(&made, "/agent/id").to_owned();
    let path = format!("/v1/agents/{id}");
    let mut keys = Vec::new();
    for _ in 0..3 {
        let reply = caller.post(&format!("{path}/virtual-keys"), json!({})).await;
        let key = success(&reply, 201);
        keys.push(text(&key, "/virtualKey/keyId").to_owned());
    }
    let reply = caller.delete(&format!("{path}/virtual-keys/{}", keys[0])).await;
    success(&reply, 200);
    let reply = caller.post("/v1/agents/other/virtual-keys", json!({})).await;
    let other = success(&reply, 201);
    let provider = json!({ "provider": "openai", "apiKey": "sk-abcdefgh" });
    let reply = caller.post(&format!("{path}/provider-keys"), provider).await;
    success(&reply, 201);
    let body = json!({ "maxSpendPerDay": 3 });
    let policy = success(&caller.post(&format!("/v1/policies/{id}"), body).await, 200);
    success(&caller.post(&format!("{path}/freeze"), json!({})).await, 200);
    let record = account.keys.live().agent(&id);
    let hset = async |field: &str, value: &str| {
        let mut set = redis::cmd("HSET");
        let _: i64 = fixture
            .store
            .command(set.arg(&record).arg(field).arg(value))
            .await
            .unwrap();
    };
    hset("d20777", "5").await;
    hset("m202611", "6").await;
    hset("s202611", "c1").await;

    hset("balance", "1").await;
    let sentence = problem(&caller.delete(&path).await, 409, "CONFLICT");
    assert!(sentence.contains("holds money"), "{sentence}");
    hset("balance", "0").await;
    success(&caller.delete(&path).await, 200);

    let mut left: Vec<(String, String)> = fixture.fields(&record).await.into_iter().collect();
    left.sort();
    let pairs: Vec<(&str, &str)> = left
        .iter()
        .map(|(name, value)| (name.as_str(), value.as_str()))
        .collect();
    assert_eq!(
        pairs,
        [
            ("d20777", "5"),
            ("frozen", "user"),
            ("m202611", "6"),
            ("s202611", "c1")
        ]
    );
    let mut range = redis::cmd("ZRANGE");
    let active: Vec<String> = fixture
        .store
        .command(range.arg(account.keys.active_keys()).arg(0).arg(-1))
        .await
        .unwrap();
    assert_eq!(active, [text(&other, "/virtualKey/keyId")]);
    for key in [
        account.keys.agent_keys(&id),
        account.keys.virtual_key(&keys[1]),
        account.keys.live().policy(text(&policy, "/policy/id")),
    ] {
        let exists: i64 = fixture
            .store
            .command(redis::cmd("EXISTS").arg(&key))
            .await
            .unwrap();
        assert_eq!(exists, 0, "{key}");
    }
    assert_eq!(success(&caller.get("/v1/policies").await, 200)["total"], json!(0));
    let sealed = account.sealed_agents().await;
    assert!(sealed.is_empty(), "{sealed:?}");
}

#[tokio::test]
async fn deleting_a_test_agent_leaves_the_live_one_of_the_same_id() {
    let fixture = Fixture::start().await;
    let (account, live) = fixture.account("builder").await;
    let test = fixture.caller(&account, Mode::Test).await;
    let made = success(&test.post("/v1/agents", json!({ "name": "t" })).await, 200);
    let id = text(&made, "/agent/id").to_owned();
    let body = json!({});
    let reply = live.post(&format!("/v1/agents/{id}/virtual-keys"), body).await;
    let key = success(&reply, 201);
    let provider = json!({ "provider": "openai", "apiKey": "sk-abcdefgh" });
    let reply = live
        .post(&format!("/v1/agents/{id}/provider-keys"), provider)
        .await;
    success(&reply, 201);
    success(&test.delete(&format!("/v1/agents/{id}")).await, 200);
    let listed = success(&live.get(&format!("/v1/agents/{id}/virtual-keys")).await, 200);
    assert_eq!(listed["virtualKeys"][0]["keyId"], key["virtualKey"]["keyId"]);
    assert_eq!(listed["virtualKeys"][0]["status"], json!("active"));
    let sealed = account.sealed_agents().await;
    assert!(
        sealed.contains(&id),
        "the live provider key is still found by a rotation"
    );
}

/// However many revoked keys an agent has, no script removes all of them at once.
#[tokio::test]
async fn an_agent_with_very_many_keys_is_deleted_in_small_steps_or_not_at_all() {
    const REVOKED: usize = 2500;
    let fixture = Fixture::start().await;
    let (account, caller) = fixture.account("builder").await;
    let made = success(&caller.post("/v1/agents", json!({ "name": "a" })).await, 200);
    let id = text(&made, "/agent/id").to_owned();
    let path = format!("/v1/agents/{id}");
    let reply = caller.post(&format!("{path}/virtual-keys"), json!({})).await;
    let key = success(&reply, 201);
    let key = text(&key, "/virtualKey/keyId");
    let (keys, record) = (&account.keys, account.keys.live().agent(&id));
    let mut fill = redis::pipe();
    for n in 0..REVOKED {
        let revoked = format!("vk_{n:026}");
        fill.cmd("COPY")
            .arg(keys.virtual_key(key))
            .arg(keys.virtual_key(&revoked))
            .ignore();
        fill.zadd(keys.agent_keys(&id), &revoked, 1000 + n).ignore();
    }
    fill.hset(&record, "balance", "1").ignore();
    for (name, value) in [("slowlog-log-slower-than", "0"), ("slowlog-max-len", "1000000")] {
        fill.cmd("CONFIG").arg("SET").arg(name).arg(value).ignore();
    }
    let () = fixture.store.pipeline(&fill).await.unwrap();
    let records = || {
        let pattern = keys.virtual_key("*");
        fixture.redis.command::<Vec<String>>(&["KEYS", &pattern]).len()
    };
    assert_eq!(caller.delete(&path).await.status, 409);
    assert_eq!(records(), REVOKED + 1, "an agent that stays keeps them");
    let _: u64 = fixture.redis.command(&["HSET", &record, "balance", "0"]);
    // Active keys cannot be removed in small steps: an agent is deleted with all its active keys, or not at all.
    let mut activate = redis::pipe();
    for n in 0..1000 {
        activate.zadd(keys.active_keys(), format!("vk_{n:026}"), 1000 + n);
    }
    let _: Vec<u64> = fixture.store.pipeline(&activate).await.unwrap();
    let sentence = problem(&caller.delete(&path).await, 409, "CONFLICT");
    assert!(sentence.contains("has 1001 active virtual keys"), "{sentence}");
    assert_eq!(records(), REVOKED + 1, "an agent that stays keeps them");
    let mut deactivate = redis::pipe();
    for n in 0..1000 {
        deactivate.zrem(keys.active_keys(), format!("vk_{n:026}"));
    }
    let _: Vec<u64> = fixture.store.pipeline(&deactivate).await.unwrap();
    let _: String = fixture.redis.command(&["SLOWLOG", "RESET"]);
    success(&caller.delete(&path).await, 200);
    assert_eq!(records(), 0);
    for list in [keys.agent_keys(&id), keys.active_keys()] {
        assert_eq!(fixture.redis.command::<u64>(&["EXISTS", &list]), 0, "{list}");
    }
    let logged = success(&caller.get("/v1/audit?type=agent.deleted").await, 200);
    let data = &logged["logs"][0]["data"];
    assert_eq!(data["virtualKeyCount"], json!(REVOKED + 1));
    assert_eq!(data["virtualKeys"].as_array().map(Vec::len), Some(100));
    assert_eq!(data["virtualKeys"][0], json!(key), "an active key comes first");
    // Redis names 31 arguments of a command and counts the others.
    type Slow = (u64, u64, u64, Vec<Vec<u8>>, String, String);
    let slow: Vec<Slow> = fixture.redis.command(&["SLOWLOG", "GET", "-1"]);
    let arguments = slow.iter().filter_map(|(.., words, _, _)| {
        let more = std::str::from_utf8(words.last()?).ok()?.strip_prefix("... (")?;
        more.split(' ').next()?.parse::<usize>().ok()
    });
    let most = arguments.max().unwrap_or_default();
    assert!((900..1100).contains(&most), "{most} arguments");
}
