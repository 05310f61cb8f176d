//! Many callers at once: limits hold exactly, and no writer leaves a stale result.

use crate::fixture::{FULL, Fixture, success, text};
use crypto::virtual_key::{self, WellFormed};
use domain::mode::Mode;
use futures::future::join_all;
use harness::{Caller, Nanos, RawClient, eventually};
use secrecy::ExposeSecret;
use serde_json::{Map, Value, json};
use std::time::Duration;
use store::account::script::set_plan;
use store::agent::script::{AgentCreated, NewAgent};
use store::policy::PolicyRecord;
use store::sanity;
use store::script::change::Scope;
use store::script::plan_limit::PlanLimit;
use store::virtual_key::script::{NewVirtualKey, VirtualKeyCreated};

#[tokio::test(flavor = "multi_thread")]
async fn exactly_as_many_keys_as_the_plan_allows() {
    let fixture = Fixture::start().await;
    let (account, caller) = fixture.account("builder").await;
    let tasks = (0..20).map(|n| {
        let caller = caller.clone();
        async move {
            caller
                .post(&format!("/v1/agents/bot-{}/virtual-keys", n % 3), json!({}))
                .await
        }
    });
    let statuses: Vec<u16> = join_all(tasks).await.iter().map(|reply| reply.status).collect();
    let made = statuses.iter().filter(|status| **status == 201).count();
    let refused = statuses.iter().filter(|status| **status == 402).count();
    assert_eq!((made, refused), (10, 10), "{statuses:?}");
    let mut card = redis::cmd("ZCARD");
    let active: u64 = fixture
        .store
        .command(card.arg(account.keys.active_keys()))
        .await
        .unwrap();
    assert_eq!(active, 10);
    assert_eq!(
        account.audit_types(Mode::Live).await.len(),
        11,
        "one entry for each key, none for a refusal"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn exactly_as_many_agents_as_the_plan_allows() {
    let fixture = Fixture::start().await;
    let (_, caller) = fixture.account("free").await;
    let tasks = (0..20).map(|n| {
        let caller = caller.clone();
        async move { caller.post("/v1/agents", json!({ "name": n.to_string() })).await }
    });
    let replies = join_all(tasks).await;
    let made: Vec<Value> = replies
        .iter()
        .filter(|reply| reply.status == 200)
        .map(|reply| reply.json())
        .collect();
    let refused = replies.iter().filter(|reply| reply.status == 403).count();
    assert_eq!((made.len(), refused), (5, 15));
    let mut numbers: Vec<u64> = made
        .iter()
        .map(|body| body["agent"]["walletId"].as_u64().unwrap())
        .collect();
    numbers.sort_unstable();
    numbers.dedup();
    assert_eq!(numbers.len(), 5, "wallet numbers are unique");
}

/// Goes through the changes of a record that began with `fields`, in the entries that `query` selects: the previous
/// values of each change are those that the earlier ones left. Returns the number of entries.
async fn each_change_names_the_values_that_it_replaced(
    caller: &Caller,
    query: &str,
    mut fields: Map<String, Value>,
) -> usize {
    let path = format!("/v1/audit?limit=200&{query}");
    let listed = success(&caller.get(&path).await, 200);
    let entries = listed["logs"].as_array().expect("entries");
    for entry in entries.iter().rev() {
        let data = &entry["data"];
        let given = data.get("fields").unwrap_or(data).as_object().expect("fields");
        let previous = data["previous"].as_object();
        assert_ne!(previous.is_some(), data["new"] == true, "{entry}");
        for (name, previous) in previous.into_iter().flatten() {
            let left = fields.get(name).unwrap_or(&Value::Null);
            assert_eq!(previous, left, "{name}: {entry}");
            assert_ne!(previous, &given[name], "{name}: {entry}");
        }
        fields.extend(given.clone());
    }
    entries.len()
}

#[tokio::test(flavor = "multi_thread")]
async fn parallel_writers_of_one_agents_policy_leave_one_that_is_in_effect() {
    let fixture = Fixture::start().await;
    let (account, caller) = fixture.account("builder").await;
    for round in 0..5 {
        let agent = format!("bot-{round}");
        let tasks = (0..20_u64).map(|n| {
            let (caller, agent) = (caller.clone(), agent.clone());
            async move {
                let body = match n % 3 {
                    0 => json!({ "maxSpendPerDay": n }),
                    1 => json!({ "maxSpendPerRun": n, "capEnabled": n % 2 == 0 }),
                    _ => json!({ "maxSpendPerMonth": n, "maxSpendPerDay": null }),
                };
                let made = success(&caller.post(&format!("/v1/policies/{agent}"), body).await, 200);
                text(&made, "/policy/id").to_owned()
            }
        });
        let mut ids = join_all(tasks).await;
        ids.sort();
        ids.dedup();
        assert_eq!(ids.len(), 1, "there is one policy for an agent");
        let policy = PolicyRecord::find_by_agent(&fixture.store, &account.keys.live(), &agent)
            .await
            .unwrap()
            .unwrap();
        let fields = fixture.fields(&account.keys.live().agent(&agent)).await;
        let limit = |limit: Option<Nanos>| limit.map(|nanos| nanos.get().to_string()).unwrap_or_default();
        assert_eq!(fields["cap"], u8::from(policy.cap_enabled).to_string());
        assert_eq!(fields["cap_run"], limit(policy.per_run));
        assert_eq!(fields["cap_day"], limit(policy.per_day));
        assert_eq!(fields["cap_month"], limit(policy.per_month));
        assert!(
            policy.per_run.is_some() && policy.per_month.is_some(),
            "no writer undid another's field: {policy:?}"
        );
    }
    assert_eq!(account.audit_types(Mode::Live).await.len(), 101);
    for round in 0..5 {
        let query = format!("type=policy.set&agentId=bot-{round}");
        each_change_names_the_values_that_it_replaced(&caller, &query, Map::new()).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_deletion_names_the_values_of_the_last_of_parallel_changes_before_it() {
    let fixture = Fixture::start().await;
    let (_, caller) = fixture.account("builder").await;
    for round in 0..10 {
        let path = format!("/v1/policies/bot-{round}");
        let set = async |n: u64| caller.post(&path, json!({ "maxSpendPerDay": n })).await;
        let made = success(&set(1).await, 200);
        let delete = format!("/v1/policies/{}", text(&made, "/policy/id"));
        let (_, deleted) = tokio::join!(join_all((2..10).map(set)), caller.delete(&delete));
        success(&deleted, 200);
        let logged = success(&caller.get(&format!("/v1/audit?agentId=bot-{round}")).await, 200);
        let entries: Vec<&Value> = logged["logs"].as_array().unwrap().iter().rev().collect();
        let at = entries
            .iter()
            .position(|entry| entry["type"] == "policy.deleted")
            .unwrap();
        let (last, deleted) = (&entries[at - 1]["data"], &entries[at]["data"]);
        assert_eq!(
            deleted["previous"]["maxSpendPerDay"], last["fields"]["maxSpendPerDay"],
            "{logged}"
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn parallel_changes_of_an_agent_and_of_a_plan_each_name_the_values_that_they_replaced() {
    let fixture = Fixture::start().await;
    let (account, caller) = fixture.account("builder").await;
    let made = success(&caller.post("/v1/agents", json!({ "name": "a" })).await, 200);
    let path = format!("/v1/agents/{}", text(&made, "/agent/id"));
    // No more changes of a field than attempts that compare.
    let changes = (0..12_u64).map(|n| {
        let (caller, path) = (caller.clone(), path.clone());
        async move {
            let body = match n % 3 {
                0 => json!({ "spendLimit": n, "name": n.to_string() }),
                1 => json!({ "description": format!("d{n}") }),
                _ => json!({ "spendLimit": null, "type": n.to_string() }),
            };
            success(&caller.patch(&path, body).await, 200)
        }
    });
    let plans = (0..30).map(|n| {
        let plan = ["free", "startup", "enterprise"][n % 3];
        let (store, id) = (&fixture.store, &account.id);
        async move { set_plan(store, id, plan, "operator").await.unwrap() }
    });
    tokio::join!(join_all(changes), join_all(plans));

    let Value::Object(born) = json!({ "name": "a", "type": "custom" }) else {
        unreachable!()
    };
    let query = format!("type=agent.updated&agentId={}", text(&made, "/agent/id"));
    let entries = each_change_names_the_values_that_it_replaced(&caller, &query, born).await;
    assert!((10..=12).contains(&entries), "{entries} changes");
    let Value::Object(born) = json!({ "plan": "builder" }) else {
        unreachable!()
    };
    let entries = each_change_names_the_values_that_it_replaced(&caller, "type=account.plan_set", born).await;
    assert!((1..=30).contains(&entries), "{entries} changes");
}

#[tokio::test(flavor = "multi_thread")]
async fn deleting_an_agent_races_with_new_keys_for_it() {
    let fixture = Fixture::start().await;
    let (account, caller) = fixture.account("enterprise").await;
    for _ in 0..8 {
        let made = success(&caller.post("/v1/agents", json!({ "name": "a" })).await, 200);
        let id = text(&made, "/agent/id").to_owned();
        let path = format!("/v1/agents/{id}");
        let keys = (0..6).map(|_| {
            let (caller, path) = (caller.clone(), format!("{path}/virtual-keys"));
            async move { success(&caller.post(&path, json!({})).await, 201) }
        });
        let (deleted, made) = tokio::join!(caller.delete(&path), join_all(keys));
        success(&deleted, 200);
        // The deletion removes earlier keys; a later key creates the agent again.
        let mut range = redis::cmd("ZRANGE");
        let of_agent: Vec<String> = fixture
            .store
            .command(range.arg(account.keys.agent_keys(&id)).arg(0).arg(-1))
            .await
            .unwrap();
        for body in &made {
            let key = text(body, "/virtualKey/keyId").to_owned();
            let mut score = redis::cmd("ZSCORE");
            let active: Option<f64> = fixture
                .store
                .command(score.arg(account.keys.active_keys()).arg(&key))
                .await
                .unwrap();
            let exists: bool = fixture
                .store
                .command(redis::cmd("EXISTS").arg(account.keys.virtual_key(&key)))
                .await
                .unwrap();
            let listed = of_agent.contains(&key);
            assert_eq!((listed, exists), (active.is_some(), active.is_some()), "{key}");
        }
    }
}

/// The plan can change between a request's read of it and its script: the script detects that, and refuses the old
/// limit.
#[tokio::test]
async fn a_limit_of_another_plan_is_never_applied() {
    let fixture = Fixture::start().await;
    let account = fixture.seed.account("free").await;
    let scope = Scope {
        account: &account.id,
        mode: Mode::Live,
        actor: "test",
    };
    let limit = PlanLimit {
        plan: "builder",
        most: Some(10),
    };
    let secret = virtual_key::mint(&sanity::record(&fixture.store).await.unwrap().check_secret).unwrap();
    let key = NewVirtualKey {
        agent: "bot",
        key_id: "vk_1",
        name: "n",
        secret: WellFormed::parse(secret.expose_secret().as_bytes()).unwrap(),
        limit,
    };
    let refused = key.create(&fixture.store, &scope).await.unwrap();
    assert_eq!(refused, VirtualKeyCreated::OtherPlan("free".to_owned()));
    let agent = NewAgent {
        id: "bot",
        name: "n",
        kind: "custom",
        description: None,
        limit: Some(limit),
    };
    let refused = agent.create(&fixture.store, &scope).await.unwrap();
    assert_eq!(refused, AgentCreated::OtherPlan("free".to_owned()));
    let keys = fixture.redis.command::<Vec<String>>(&["KEYS", "*"]);
    let made = |key: &&String| key.contains("/vk/") || key.contains("agent") || key.contains("/wallet/");
    assert_eq!(keys.iter().find(made), None, "nothing is left of them");
}

/// A key is issued in three steps: look-up, record, look-up made to last. A caller that disconnects stops none of them.
#[tokio::test(flavor = "multi_thread")]
async fn callers_who_hang_up_leave_whole_keys_or_none() {
    const CALLERS: u64 = 40;
    let fixture = Fixture::start().await;
    let account = fixture.seed.account("enterprise").await;
    let key = account.issue(Mode::Live, FULL, &[], None).await;
    let request = format!(
        "POST /v1/agents/bot/virtual-keys HTTP/1.1\r\nHost: x\r\nx-api-key: {}\r\nContent-Length: 0\r\n\r\n",
        key.secret
    );
    for n in 0..CALLERS {
        let mut client = RawClient::connect(fixture.admin.addr()).await;
        client.send(&request).await;
        tokio::time::sleep(Duration::from_micros(n * 100)).await;
        client.reset();
    }
    let whole = async || {
        let mut card = redis::cmd("ZCARD");
        let active: u64 = fixture
            .store
            .command(card.arg(account.keys.active_keys()))
            .await
            .unwrap();
        let lookups = fixture.redis.command::<Vec<String>>(&["KEYS", "tollgate/vk/*"]);
        let lasting = lookups
            .iter()
            .filter(|key| fixture.redis.command::<i64>(&["TTL", key]) == -1);
        let lasting = lasting.count() as u64;
        (lasting == active && lookups.len() as u64 == active && active > 0).then_some(active)
    };
    eventually("whole keys", Duration::from_secs(10), whole).await;
}
