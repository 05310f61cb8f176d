//! Some intents move to the archive, others stay, and the API answers the same before and after.

use super::fixture::{IntentFixture, MODE, age, made_at};
use crate::fixture::{success, text};
use domain::budget::Budget;
use harness::{Caller, assert_fields};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use store::account::usage::RealmUsage;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_list_document_and_export_is_the_same_wherever_the_intents_are() {
    let fixture = IntentFixture::build().await;
    for round in 0..3 {
        fixture.make_some_of_each(round).await;
    }
    // The intents that stay are newer than all archived ones.
    let open = fixture.funded().await;
    let waiting = fixture.waiting("ann", "waits").await;
    let before = fixture.bodies().await;
    let all = fixture.all().await;
    let (total, stays) = (all.len() as u64, 3);
    assert_eq!(fixture.live(), total);
    fixture.check(0);
    // At the first spend of the second and of the third round, and at the end.
    let round = (total - stays) / 3;
    let at = |from_the_oldest: u64| {
        let newest = usize::try_from(total - 1 - from_the_oldest).unwrap();
        made_at(&all[newest])
    };
    let mut left = total;
    for now_ms in [at(round), at(2 * round), fixture.now_ms().await] {
        let moved = fixture.move_until(now_ms).await.unwrap();
        assert!(moved > 0);
        left -= moved;
        assert_eq!(fixture.live(), left);
        for (then, now) in before.iter().zip(fixture.bodies().await) {
            assert_eq!(then, &now, "{}", then.0);
        }
        fixture.check(0);
    }
    assert_eq!(left, stays, "the open escrow's two, and the one that waits");
    // Records that nothing refers to are gone from the store.
    let prefix = format!("{}/{MODE}/", fixture.account.keys.prefix());
    let keys: Vec<String> = fixture
        .management
        .redis
        .command(&["KEYS", &format!("{prefix}intents/agent/bob")]);
    assert_eq!(keys, Vec::<String>::new());
    // Both open intents end, and move too.
    fixture.decide(&waiting, "approve").await;
    fixture.escrow("release", json!({ "escrowId": open })).await;
    let ids = async || {
        let all = fixture.all().await;
        let ids: BTreeSet<String> = all.iter().map(|one| text(one, "/intent_id").to_owned()).collect();
        (all.len(), ids)
    };
    let (before, had) = (fixture.bodies().await, ids().await);
    assert_eq!(fixture.move_all().await, stays + 1);
    assert_eq!(fixture.live(), 0);
    // Of the account's kept text only the conditions of its escrows are left: an archived intent counts no more.
    let escrows: Vec<String> = fixture
        .management
        .redis
        .command(&["KEYS", &format!("{prefix}escrow/*")]);
    let records = escrows.iter().filter(|key| !key.ends_with("/siblings"));
    let conditions = records.map(|key| {
        fixture
            .management
            .redis
            .command::<u64>(&["HSTRLEN", key, "conditions"])
    });
    let usage = RealmUsage::read(&fixture.management.store, &fixture.account.keys.in_mode(MODE))
        .await
        .unwrap();
    assert_eq!(usage.count(Budget::TextBytes), conditions.sum::<u64>());
    assert_eq!(usage.count(Budget::Intents), 0);
    assert_eq!(ids().await, had);
    let documents = before.iter().filter(|(path, _)| !path.contains("limit="));
    for (path, then) in documents {
        assert_eq!(then, &fixture.get(path).await.text(), "{path}");
    }
    fixture.check(0);
    let decided = fixture
        .approver
        .post(&format!("/v1/intents/{waiting}/approve"), json!({}))
        .await;
    assert_eq!(decided.status, 409, "an archived intent is known to be decided");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn open_and_young_intents_stay_however_old_their_neighbours_are() {
    let fixture = IntentFixture::build().await;
    let waiting = fixture.waiting("ann", "waits").await;
    let open = fixture.funded().await;
    let settled = fixture.settled("bob", 2, "old").await;
    let (store, realm) = (&fixture.management.store, fixture.account.keys.in_mode(MODE));
    // Too young; and old, but not yet enough to fill a segment.
    let now_ms = fixture.now_ms().await;
    for (after_ms, gather_ms) in [(3_600_000, 0), (0, 3_600_000)] {
        let young = archive::intents::Age {
            after_ms,
            gather_ms,
            ..age(now_ms)
        };
        let moved = fixture
            .archive
            .move_intents(store, &realm, young, 0)
            .await
            .unwrap();
        assert_eq!((moved.intents, moved.next), (0, 0));
    }
    assert_eq!(fixture.move_all().await, 1);
    assert_eq!(fixture.live(), 3);
    let ids: Vec<Value> = fixture
        .all()
        .await
        .iter()
        .map(|intent| intent["intent_id"].clone())
        .collect();
    assert_eq!(
        (ids.len(), &ids[2], &ids[3]),
        (4, &json!(waiting), &json!(settled))
    );
    fixture
        .escrow("dispute", json!({ "escrowId": open, "reason": "late" }))
        .await;
    assert_eq!(fixture.move_all().await, 0, "a disputed escrow is still open");
    let number = open.to_string();
    let resolved = fixture
        .cli()
        .json(&["escrow", "resolve", "--escrow", &number, "--to", "payer"]);
    assert_eq!(resolved["status"], json!("refunded"), "{resolved}");
    assert_eq!(fixture.move_all().await, 3);
    let dispute = success(&fixture.get("/v1/intents?kind=escrow_dispute").await, 200);
    assert_eq!(dispute["total"], json!(1), "{dispute}");
    fixture.check(0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_young_key_is_replayed_and_that_of_an_archived_intent_runs_anew() {
    let fixture = IntentFixture::build().await;
    let old = fixture.settled("bob", 2, "old").await;
    assert_eq!(fixture.move_all().await, 1);
    let first = success(&fixture.spend("ann", 3, "young").await, 200);
    let again = success(&fixture.spend("ann", 3, "young").await, 200);
    assert_eq!(first["transactionId"], again["transactionId"]);
    assert_eq!(fixture.all().await.len(), 2);
    // A new spend under the key has another id; the archived intent is unchanged, wherever the newer one is.
    let newer = fixture.settled("bob", 5, "old").await;
    assert_ne!(newer, old);
    assert_eq!(fixture.settled("bob", 5, "old").await, newer, "it is replayed");
    assert_eq!(fixture.all().await.len(), 3);
    for _ in 0..2 {
        for (id, amount) in [(&old, 2), (&newer, 5)] {
            let shown = success(&fixture.get(&format!("/v1/intents/{id}")).await, 200);
            assert_eq!(shown["intent"]["amount"], json!(amount), "{id}");
        }
        fixture.check(0);
        fixture.move_all().await;
    }
    assert_eq!(fixture.live(), 0);
    let newest = fixture.settled("bob", 2, "old").await;
    assert!(
        newest != newer && newest != old,
        "a third one, of the first one's request"
    );
    let listed = success(&fixture.get("/v1/intents?agentId=bob").await, 200);
    let ids = ["/intents/0", "/intents/1", "/intents/2"]
        .map(|at| text(&listed, &format!("{at}/intent_id")).to_owned());
    assert_eq!(ids, [newest, newer, old]);
}

/// A settled release is the proof that the money went: neither its own request again nor another one under its key
/// changes what its id shows, also where the archive cannot be read.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_request_under_the_key_of_an_archived_intent_takes_its_place() {
    let fixture = IntentFixture::build().await;
    let escrow = fixture.funded().await;
    let body = json!({ "escrowId": escrow });
    let send = async |path: &str, body: &Value| fixture.caller.post_once(path, "release", body.clone()).await;
    let released = success(&send("/v1/escrow/release", &body).await, 200);
    let id = text(&released, "/intent_id").to_owned();
    fixture.move_all().await;
    // Without the other calls on the escrow, of which there may be more.
    let shown = async || {
        let whole = success(&fixture.get(&format!("/v1/intents/{id}")).await, 200);
        let csv = fixture.get(&format!("/v1/intents/{id}/export?format=csv")).await;
        assert_eq!(csv.status, 200, "{}", csv.text());
        (whole["intent"]["timeline"].clone(), csv.text())
    };
    let before = shown().await;
    let again = send("/v1/escrow/release", &body).await;
    assert_eq!(again.status, 409, "{}", again.text());
    let again = again.json();
    let newer = text(&again, "/intent_id");
    assert_ne!(newer, id);
    assert_fields!(again, { "replayed": null, "status": "released" }, "{again}");
    assert_eq!(shown().await, before);
    let escrow = success(&fixture.get(&format!("/v1/escrow/{escrow}")).await, 200);
    assert_ne!(text(&escrow, "/escrow/intent_id"), newer, "{escrow}");
    // The archived id in the body is that intent's own key.
    let own = json!({ "intent_id": id, "escrowId": body["escrowId"] });
    let replayed = fixture.caller.post("/v1/escrow/release", own).await.json();
    assert_fields!(replayed, { "replayed": true, "intent_id": id }, "{replayed}");
    let other = json!({ "intent_id": id, "escrowId": body["escrowId"], "reason": "late" });
    let other = fixture.caller.post("/v1/escrow/dispute", other).await;
    assert_eq!(other.status, 422, "{}", other.text());
    let ids: Vec<String> = fixture
        .all()
        .await
        .iter()
        .map(|one| text(one, "/intent_id").to_owned())
        .collect();
    assert_eq!(
        ids.iter().collect::<BTreeSet<_>>().len(),
        ids.len(),
        "each once: {ids:?}"
    );
    fixture.check(0);
    fixture.move_all().await;
    // A request on another route works without the archive.
    let [from, to] = &fixture.wallets;
    let transfer = json!({ "from": from, "to": to, "amount": 1 });
    let away = fixture.root.path().with_extension("away");
    std::fs::rename(fixture.root.path(), &away).unwrap();
    let done = success(&send("/v1/wallets/transfer", &transfer).await, 200);
    let replayed = success(&send("/v1/wallets/transfer", &transfer).await, 200);
    assert_eq!(done["transactionId"], replayed["transactionId"]);
    std::fs::rename(&away, fixture.root.path()).unwrap();
    assert_eq!(shown().await, before);
}

/// Release and dispute are final: under a key that is free again, they find that the escrow is resolved.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_key_of_an_archived_release_or_dispute_is_refused_and_not_held() {
    let fixture = IntentFixture::build().await;
    let other = fixture.management.seed.account("enterprise").await;
    let stranger = fixture.management.caller(&other, MODE).await;
    let body = json!({ "botId": "eve" });
    let made = stranger.post("/v1/wallets/create", body).await;
    let elsewhere = success(&made, 200)["wallet"]["walletId"].clone();
    let send = async |by: &Caller, word: &str, escrow: &Value, key: &str| {
        let body = json!({ "escrowId": escrow });
        by.post_once(&format!("/v1/escrow/{word}"), key, body).await
    };
    let cases = [
        ("release", &fixture.caller, fixture.funded().await),
        ("release", &stranger, fixture.funded_for(&elsewhere).await),
        ("dispute", &fixture.caller, fixture.funded_for(&elsewhere).await),
        ("dispute", &stranger, fixture.funded_for(&elsewhere).await),
    ];
    for (n, (word, by, escrow)) in cases.iter().enumerate() {
        success(&send(by, word, escrow, &n.to_string()).await, 200);
        if *word == "dispute" {
            let number = escrow.to_string();
            let resolved = fixture
                .cli()
                .json(&["escrow", "resolve", "--escrow", &number, "--to", "payer"]);
            assert_eq!(resolved["status"], json!("refunded"), "{resolved}");
        }
    }
    fixture.move_all().await;
    fixture.move_all_of(&other).await;
    for (n, (word, by, escrow)) in cases.iter().enumerate() {
        let status = if *word == "release" {
            "released"
        } else {
            "refunded"
        };
        let bodies = send(by, word, escrow, &n.to_string()).await;
        assert_eq!(bodies.status, 409, "{n}: {}", bodies.text());
        let refused = bodies.json();
        assert_fields!(refused, {
            "code": "ESCROW_RESOLVED", "status": status, "replayed": null,
        }, "{n}: {refused}");
        let again = send(by, word, escrow, &n.to_string()).await.json();
        assert_eq!(again["replayed"], json!(true), "{n}: {again}");
        // Nor is the key locked: another request under it is a reuse.
        let word = if *word == "release" { "dispute" } else { "release" };
        let bodies = send(by, word, escrow, &n.to_string()).await;
        assert_eq!(bodies.json()["code"], json!("IDEMPOTENCY_KEY_REUSED"), "{n}");
        let intent = text(&refused, "/intent_id");
        let shown = success(&by.get(&format!("/v1/intents/{intent}")).await, 200);
        assert_eq!(shown["intent"]["state"], json!("blocked"), "{n}");
    }
    fixture.check(0);
}

/// The server's own archiver, with an intent older than 90 days and the week of waiting for others.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_moves_what_is_old_and_leaves_what_is_young() {
    const DAY_MS: u64 = 86_400_000;
    let fixture = IntentFixture::build().await;
    let now_ms = fixture.now_ms().await;
    let mut ids = Vec::new();
    for (n, days) in [98, 96, 1].into_iter().enumerate() {
        let id = fixture.settled("ann", 1, &n.to_string()).await;
        let key = fixture.account.keys.in_mode(MODE).intent(&id);
        let at = (now_ms - days * DAY_MS).to_string();
        let _: u64 = fixture.management.redis.command(&["HSET", &key, "at", &at]);
        ids.push(id);
    }
    for _ in 0..600 {
        if fixture.live() < 3 {
            break;
        }
        tokio::time::sleep(std::time::Duration::from_millis(100)).await;
    }
    assert_eq!(fixture.live(), 1, "{}", fixture.management.admin.logs());
    let listed: Vec<String> = fixture
        .all()
        .await
        .iter()
        .map(|one| text(one, "/intent_id").to_owned())
        .collect();
    ids.reverse();
    assert_eq!(listed, ids);
    assert!(fixture.management.admin.logs().contains("archived intents"));
}

/// Intents behind any number of others that must stay still move, in steps of bounded work.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn many_that_have_to_stay_stand_in_nobodys_way() {
    /// Copies an intent under other ids, in all its lists.
    const COPY: &str = "local fields = redis.call('HGETALL', KEYS[1] .. ARGV[1]) \
        for n = 1, tonumber(ARGV[2]) do \
          local id = string.format('%s%06d', string.sub(ARGV[1], 1, -7), n) \
          redis.call('HSET', KEYS[1] .. id, unpack(fields)) \
          redis.call('HSET', KEYS[1] .. id, 'id', id) \
          for list = 2, #KEYS do redis.call('RPUSH', KEYS[list], id) end \
        end return 1";
    let fixture = IntentFixture::build().await;
    let waiting = fixture.waiting("ann", "waits").await;
    let keys = &fixture.account.keys;
    let prefix = keys.in_mode(MODE).intent("");
    let lists = ["intents", "intents/kind/spend", "intents/agent/ann"]
        .map(|list| format!("{}/{MODE}/{list}", keys.prefix()));
    let [all, kind, agent] = &lists;
    let copied: u64 = fixture
        .management
        .redis
        .command(&["EVAL", COPY, "4", &prefix, all, kind, agent, &waiting, "4500"]);
    assert_eq!(copied, 1);
    let unfunded = fixture.unfunded().await;
    let mut settled = Vec::new();
    for n in 0..5 {
        settled.push(fixture.settled("bob", 2, &format!("old {n}")).await);
    }
    let before = fixture.live();
    let realm = fixture.account.keys.in_mode(MODE);
    let (age, mut from, mut moved) = (age(fixture.now_ms().await), 0, 0);
    let mut steps = Vec::new();
    for _ in 0..4 {
        let step = fixture
            .archive
            .move_intents(&fixture.management.store, &realm, age, from)
            .await
            .unwrap();
        (from, moved) = (step.next, moved + step.intents);
        steps.push(step.next);
    }
    assert_eq!(steps[..2], [2_008, 4_016], "each reads a bounded number");
    assert_eq!(
        moved, 6,
        "the settled intents, and the intent of the unfunded escrow: {steps:?}"
    );
    assert_eq!(fixture.live(), before - 6);
    for id in &settled {
        success(&fixture.get(&format!("/v1/intents/{id}")).await, 200);
    }
    let escrow = fixture.escrow("fund", json!({ "escrowId": unfunded })).await;
    assert_eq!(escrow["success"], json!(true), "it can be funded even so");
}

/// Removing an intent from a list costs a step for each item before it, so there is a bound on these.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_that_stands_too_far_behind_others_stays_until_those_have_left() {
    use store::intent::archive::PASSED_MAX;
    let fixture = IntentFixture::build().await;
    let list = format!("{}/{MODE}/intents/state/settled", fixture.account.keys.prefix());
    let fill = "for n = 1, tonumber(ARGV[1]) do redis.call('RPUSH', KEYS[1], 'another') end return 1";
    let count = (PASSED_MAX + 1).to_string();
    let redis = &fixture.management.redis;
    assert_eq!(redis.command::<u64>(&["EVAL", fill, "1", &list, &count]), 1);
    let id = fixture.settled("ann", 1, "far").await;
    assert_eq!(fixture.move_all().await, 0, "one place too far");
    let _: String = redis.command(&["LPOP", &list]);
    assert_eq!(fixture.move_all().await, 1, "at the bound");
    assert_eq!(redis.command::<u64>(&["LLEN", &list]), PASSED_MAX as u64);
    success(&fixture.get(&format!("/v1/intents/{id}")).await, 200);
}
