//! Intents: the document and its proof, both exports, the list, and who sees what (specification "Payout intent",
//! decisions D24, D25, D50).

use crate::fixture::{Fixture, fresh, minted, problem, success, text};
use crate::spender::{Spender, USD, denied};
use domain::intent::Reason;
use harness::{Reply, assert_fields};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use std::collections::BTreeMap;

/// RFC 8785, as far as these documents need it.
fn jcs(value: &Value) -> String {
    match value {
        Value::Object(map) => {
            let sorted: BTreeMap<_, _> = map.iter().collect();
            let members = sorted
                .iter()
                .map(|(name, value)| format!("{}:{}", json!(name), jcs(value)));
            format!("{{{}}}", members.collect::<Vec<_>>().join(","))
        }
        Value::Number(number) => {
            let number = number.as_f64().unwrap();
            if number >= 1e-6 {
                format!("{number}")
            } else {
                format!("{number:e}")
            }
        }
        other => other.to_string(),
    }
}

/// Verifies a timeline with nothing but the published construction. Returns its event types.
#[track_caller]
pub fn verified(document: &Value) -> Vec<String> {
    let mut previous = "genesis".to_owned();
    let mut types = Vec::new();
    for entry in document["timeline"].as_array().unwrap() {
        let mut hashed = entry.clone();
        let hash = hashed.as_object_mut().unwrap().remove("entry_hash").unwrap();
        assert_eq!(hashed["previous_entry_hash"], json!(previous));
        let expected = hex::encode(Sha256::digest(format!("{previous}\n{}", jcs(&hashed))));
        assert_eq!(hash, json!(expected), "{entry}");
        assert_eq!(entry.as_object().unwrap().len(), 8, "{entry}");
        fresh(text(entry, "/at"));
        assert!(!text(entry, "/action").is_empty());
        types.push(text(entry, "/event_type").to_owned());
        previous = expected;
    }
    types
}

pub async fn export(spender: &Spender, id: &str, query: &str) -> Reply {
    spender
        .caller
        .get(&format!("/api/v1/intents/{id}/export{query}"))
        .await
}

/// The document of a JSON export, which must be an attachment with the intent's file name.
pub async fn exported(spender: &Spender, id: &str) -> Value {
    let reply = export(spender, id, "").await;
    assert_eq!(reply.status, 200, "{}", reply.text());
    assert_eq!(reply.header("content-type"), Some("application/json"));
    let name = format!("attachment; filename=\"{id}.json\"");
    assert_eq!(reply.header("content-disposition"), Some(name.as_str()));
    assert_eq!(export(spender, id, "?format=json").await.body, reply.body);
    reply.json()
}

#[tokio::test]
async fn the_document_of_a_spend_proves_itself() {
    let fixture = Fixture::start().await;
    let spender = Spender::new(&fixture, "builder").await;
    let bot = spender
        .agent(&fixture, 100 * USD, json!({ "maxSpendPerDay": 20 }))
        .await;
    let description = "Zwei \"Bücher\"\n\u{1f4da}";
    let metadata =
        json!({ "order": { "id": 4711, "lines": [1, "zwei", null] }, "a": 9_007_199_254_740_993_u64 });
    let body = json!({ "agent": bot, "amount": 12.5, "recipient": "Books Ltd", "description": description,
        "runId": "run:1", "metadata": metadata });
    let done = success(&spender.spend("", body).await, 200);
    let id = text(&done, "/intent_id");
    let document = exported(&spender, id).await;
    let policy = text(&document, "/allowed_by");
    minted(policy, "pol_");
    fresh(text(&document, "/created_at"));
    let expected = json!({
        "intent_id": id, "kind": "spend", "state": "settled", "amount": 12.5, "currency": "USD", "agentId": bot,
        "recipient": "Books Ltd", "description": description, "runId": "run:1", "metadata": metadata,
        "allowed_by": policy, "blocked_reason": null, "reason": null, "rail_reference": null, "xor_group": null, "xor_siblings": [],
        "timeline": document["timeline"], "downstream": { "transaction": { "id": done["transactionId"], "amount": 12.5 } },
        "created_at": document["created_at"], "updated_at": document["created_at"],
    });
    assert_eq!(document, expected);
    assert_eq!(verified(&document), ["spend_requested", "spend_approved"]);
    let requested = &document["timeline"][0];
    assert_eq!(requested["reasoning"], json!(description));
    assert_fields!(requested, { "amount": 12.5, "amountNanos": "12500000000" });
    let got = success(&spender.caller.get(&format!("/v1/intents/{id}")).await, 200);
    assert_eq!(got, json!({ "success": true, "intent": document }));

    let reply = spender
        .spend("", json!({ "agent": bot, "amount": "7.500000001" }))
        .await;
    let refused = denied(&reply, "daily_limit");
    let document = exported(&spender, &refused).await;
    assert_eq!(verified(&document), ["spend_requested", "spend_blocked"]);
    assert_fields!(document, { "allowed_by": null, "blocked_reason": Reason::DailyLimit.sentence(),
        "reason": "daily_limit", "runId": null, "metadata": null });
    assert_eq!(document["timeline"][1]["reasoning"], document["blocked_reason"]);
    assert_eq!(document["downstream"], json!({}));
    let raw = export(&spender, &refused, "").await.text();
    assert!(raw.contains("\"amount\":7.500000001,\"currency\""), "{raw}");
    let reply = spender.spend("", json!({ "agent": bot, "amount": "1e-9" })).await;
    let tiny = success(&reply, 200);
    verified(&exported(&spender, text(&tiny, "/intent_id")).await);
}

#[tokio::test]
async fn a_decided_intent_extends_its_proof() {
    let fixture = Fixture::start().await;
    let spender = Spender::new(&fixture, "builder").await;
    let (approver, key) = spender.approver(&fixture).await;
    let bot = spender
        .agent(&fixture, 100 * USD, json!({ "approvalThreshold": 1 }))
        .await;
    let reply = spender.spend("", json!({ "agent": bot, "amount": 3 })).await;
    let reported = success(&reply, 202);
    let id = text(&reported, "/intent_id");
    let before = exported(&spender, id).await;
    assert_eq!(verified(&before), ["spend_requested", "approval_requested"]);
    assert_fields!(before, { "state": "pending_approval", "allowed_by": null, "downstream": {} });
    let body = json!({});
    let reply = approver.post(&format!("/v1/intents/{id}/approve"), body).await;
    success(&reply, 200);
    let after = exported(&spender, id).await;
    assert_eq!(verified(&after).len(), 4);
    assert_eq!(after["timeline"][0], before["timeline"][0]);
    assert_eq!(after["timeline"][1], before["timeline"][1]);
    assert_eq!(after["timeline"][2]["reasoning"], json!(format!("By {key}.")));
    assert_eq!(after["allowed_by"], json!(key));
    assert_eq!(after["updated_at"], after["timeline"][3]["at"]);
    assert_eq!(after["created_at"], before["created_at"]);
}

#[tokio::test]
async fn the_csv_is_a_header_and_a_row() {
    let fixture = Fixture::start().await;
    let spender = Spender::new(&fixture, "builder").await;
    let bot = spender.agent(&fixture, USD, json!({})).await;
    let body =
        json!({ "agent": bot, "amount": "0.000000001", "currency": "USDC", "description": "=1+1,\"x\"" });
    let done = success(&spender.spend("", body.clone()).await, 200);
    let mut dear = body;
    dear["amount"] = json!(2);
    let short = denied(&spender.spend("", dear).await, "insufficient_balance");
    for id in [text(&done, "/intent_id"), &short] {
        let document = exported(&spender, id).await;
        let reply = export(&spender, id, "?format=csv").await;
        assert_eq!(reply.status, 200);
        assert_eq!(reply.header("content-type"), Some("text/csv; charset=utf-8"));
        let name = format!("attachment; filename=\"{id}.csv\"");
        assert_eq!(reply.header("content-disposition"), Some(name.as_str()));
        let cell = |name: &str| document[name].as_str().unwrap_or_default();
        let amount = if id == short { "2" } else { "0.000000001" };
        let expected = format!(
            "intent_id,kind,state,amount,currency,allowed_by,blocked_reason,rail_reference,created_at,updated_at\r\n\
             {id},spend,{},{amount},USDC,{},{},,{},{}\r\n",
            cell("state"),
            cell("allowed_by"),
            cell("blocked_reason"),
            cell("created_at"),
            cell("updated_at"),
        );
        assert_eq!(reply.text(), expected);
    }
    for bad in ["xml", "", "CSV", "json&format=csv"] {
        let reply = export(&spender, &short, &format!("?format={bad}")).await;
        let sentence = problem(&reply, 400, "VALIDATION");
        assert!(sentence.starts_with("format"), "{sentence}");
    }
    problem(&export(&spender, &short, "?as=csv").await, 400, "VALIDATION");
}

#[tokio::test]
async fn lists_are_newest_first_and_filtered() {
    let fixture = Fixture::start().await;
    let spender = Spender::new(&fixture, "builder").await;
    let (approver, _) = spender.approver(&fixture).await;
    let one = spender
        .agent(&fixture, 100 * USD, json!({ "approvalThreshold": 5 }))
        .await;
    let two = spender.agent(&fixture, 0, json!({})).await;
    let mut ids = Vec::new();
    for (agent, amount) in [(&one, 1), (&two, 1), (&one, 6), (&one, 7), (&one, 2)] {
        let reply = spender
            .spend("", json!({ "agent": agent, "amount": amount }))
            .await;
        ids.push(text(&reply.json(), "/intent_id").to_owned());
    }
    let list = async |query: &str| {
        let listed = success(&spender.caller.get(&format!("/v1/intents{query}")).await, 200);
        let names = listed["intents"].as_array().unwrap().iter();
        let at = names.map(|intent| {
            let id = text(intent, "/intent_id");
            ids.iter().position(|known| known == id).unwrap()
        });
        (at.collect::<Vec<_>>(), listed["total"].as_u64().unwrap())
    };
    assert_eq!(list("").await, (vec![4, 3, 2, 1, 0], 5));
    assert_eq!(list("?limit=2&offset=1").await, (vec![3, 2], 5));
    assert_eq!(list("?offset=5").await, (vec![], 5));
    assert_eq!(list("?kind=spend&limit=1").await, (vec![4], 5));
    assert_eq!(list("?kind=escrow_release").await, (vec![], 0));
    assert_eq!(list(&format!("?agentId={one}")).await, (vec![4, 3, 2, 0], 4));
    assert_eq!(list(&format!("?agentId={two}")).await, (vec![1], 1));
    assert_eq!(list("?agentId=user").await, (vec![], 0));
    assert_eq!(list("?agentId=nobody").await, (vec![], 0));
    assert_eq!(list("?state=pending_approval").await, (vec![3, 2], 2));
    assert_eq!(
        list("?state=pending_approval&limit=1&offset=1").await,
        (vec![2], 2)
    );
    let body = json!({});
    let reply = approver.post(&format!("/v1/intents/{}/deny", ids[3]), body).await;
    success(&reply, 200);
    let reply = approver
        .post(&format!("/v1/intents/{}/approve", ids[2]), json!({}))
        .await;
    success(&reply, 200);
    // In the order in which they came into the state.
    assert_eq!(list("?state=settled").await, (vec![2, 4, 0], 3));
    assert_eq!(list("?state=blocked").await, (vec![3, 1], 2));
    // Filters without an index of their own search the list.
    assert_eq!(
        list(&format!("?agentId={one}&state=settled")).await,
        (vec![4, 2, 0], 3)
    );
    assert_eq!(
        list(&format!("?agentId={two}&state=blocked&kind=spend")).await,
        (vec![1], 1)
    );
    assert_eq!(
        list(&format!("?agentId={one}&kind=escrow_fund")).await,
        (vec![], 0)
    );
    assert_eq!(
        list("?kind=spend&state=settled&limit=1&offset=1").await,
        (vec![2], 2)
    );
    assert_eq!(
        list(&format!("?agentId={one}&state=pending_approval")).await,
        (vec![], 0)
    );
    assert_eq!(list("").await, (vec![4, 3, 2, 1, 0], 5));

    let listed = success(&spender.caller.get("/v1/intents?limit=1").await, 200);
    let mut whole = exported(&spender, &ids[4]).await;
    for only_whole in ["timeline", "xor_siblings", "downstream"] {
        whole.as_object_mut().unwrap().remove(only_whole);
    }
    let next = text(&listed, "/nextCursor");
    let expected = json!({ "success": true, "intents": [whole], "total": 5, "limit": 1, "offset": 0, "nextCursor": next });
    assert_eq!(listed, expected);
    for (query, named) in [
        ("?kind=transfer", "kind must be one of spend, "),
        ("?kind=", "kind must be one of"),
        (
            "?state=done",
            "state must be one of pending_approval, settled, blocked.",
        ),
        ("?agentId=a%20b", "agentId must be"),
        ("?intent=1", "\"intent\" is not a query parameter here"),
    ] {
        let reply = spender.caller.get(&format!("/v1/intents{query}")).await;
        let sentence = problem(&reply, 400, "VALIDATION");
        assert!(sentence.contains(named), "{query}: {sentence}");
    }
}

#[tokio::test]
async fn an_intent_is_visible_in_its_account_and_mode_only() {
    let fixture = Fixture::start().await;
    let spender = Spender::new(&fixture, "builder").await;
    let bot = spender.agent(&fixture, USD, json!({})).await;
    let reply = spender.spend("k", json!({ "agent": bot, "amount": 1 })).await;
    let done = success(&reply, 200);
    let id = text(&done, "/intent_id");
    let stranger = Spender::new(&fixture, "builder").await;
    let test = spender.in_test_mode(&fixture).await;
    for outsider in [&stranger, &test] {
        for path in ["", "/export", "/export?format=csv"] {
            let reply = outsider.caller.get(&format!("/v1/intents/{id}{path}")).await;
            problem(&reply, 404, "NOT_FOUND");
        }
        let listed = success(&outsider.caller.get("/v1/intents").await, 200);
        assert_eq!(listed["total"], json!(0));
    }
    for unknown in [
        "int_00000000000000000000000000",
        "int_1",
        "txn_00000000000000000000000000",
        "%2e%2e",
    ] {
        for path in ["", "/export"] {
            let reply = spender.caller.get(&format!("/v1/intents/{unknown}{path}")).await;
            problem(&reply, 404, "NOT_FOUND");
        }
    }
}

/// A record that was changed directly in the store is not exported as proof.
#[tokio::test]
async fn a_tampered_intent_is_not_exported() {
    let fixture = Fixture::start().await;
    let spender = Spender::new(&fixture, "builder").await;
    let bot = spender
        .agent(&fixture, 100 * USD, json!({ "maxSpendPerTransaction": 5 }))
        .await;
    let body = json!({ "agent": bot, "amount": 6, "description": "A book" });
    let id = denied(&spender.spend("", body).await, "per_transaction_limit");
    let key = spender.account.keys.in_mode(spender.mode).intent(&id);
    let whole = fixture.fields(&key).await;
    for (field, value) in [
        ("amount", "6000000001"),
        ("note", "Two books"),
        ("reason", "daily_limit"),
        ("at", "1"),
        ("head", "00"),
        ("kind", "escrow_create"),
    ] {
        let mut set = redis::cmd("HSET");
        let _: u64 = fixture
            .store
            .command(set.arg(&key).arg(field).arg(value))
            .await
            .unwrap();
        for path in ["", "/export", "/export?format=csv"] {
            let reply = spender.caller.get(&format!("/v1/intents/{id}{path}")).await;
            problem(&reply, 500, "INTERNAL");
        }
        let mut set = redis::cmd("HSET");
        let _: u64 = fixture
            .store
            .command(set.arg(&key).arg(field).arg(&whole[field]))
            .await
            .unwrap();
    }
    exported(&spender, &id).await;
    assert!(
        fixture
            .admin
            .logs()
            .contains("does not match the hash stored with it"),
        "the operator is warned"
    );
}

#[tokio::test]
async fn intents_are_found_by_run_and_time() {
    let fixture = Fixture::start().await;
    let spender = Spender::new(&fixture, "builder").await;
    let bot = spender
        .agent(&fixture, 100 * USD, json!({ "approvalThreshold": 5 }))
        .await;
    let (mut ids, mut times) = (Vec::new(), Vec::new());
    for (run, amount) in [("a", 1), ("b", 1), ("a", 6), ("", 1), ("a", 1)] {
        let run = Some(run).filter(|run| !run.is_empty());
        let body = json!({ "agent": bot, "amount": amount, "runId": run });
        let made = spender.spend("", body).await.json();
        let id = text(&made, "/intent_id").to_owned();
        let shown = success(&spender.caller.get(&format!("/v1/intents/{id}")).await, 200);
        times.push(text(&shown, "/intent/created_at").to_owned());
        ids.push(id);
        tokio::time::sleep(std::time::Duration::from_millis(5)).await;
    }
    let page = async |query: &str| {
        let listed = success(&spender.caller.get(&format!("/v1/intents?{query}")).await, 200);
        let names = listed["intents"].as_array().unwrap().iter();
        let at = names.map(|intent| {
            let id = text(intent, "/intent_id");
            ids.iter().position(|known| known == id).unwrap()
        });
        (at.collect::<Vec<_>>(), listed)
    };
    let list = async |query: &str| {
        let (found, listed) = page(query).await;
        let next = listed["nextCursor"].clone();
        assert_eq!(
            (&listed["partial"], next),
            (&json!(false), Value::Null),
            "{query}"
        );
        assert_eq!(listed["total"], json!(found.len()));
        found
    };
    let (from, to) = (format!("from={}", times[1]), format!("to={}", times[3]));
    assert_eq!(list("runId=a").await, [4, 2, 0]);
    assert_eq!(list("runId=none").await, [0; 0]);
    assert_eq!(list("runId=a&state=pending_approval").await, [2]);
    assert_eq!(list(&format!("runId=a&agentId={bot}&{from}")).await, [4, 2]);
    assert_eq!(list(&from).await, [4, 3, 2, 1], "from the moment on");
    assert_eq!(list(&to).await, [2, 1, 0], "before the moment");
    assert_eq!(list(&format!("{from}&{to}&kind=spend")).await, [2, 1]);
    assert_eq!(list("from=2099-01-01T00:00:00Z").await, [0; 0]);
    let (found, listed) = page("runId=a&limit=1&offset=1").await;
    assert_eq!((found, &listed["partial"]), (vec![2], &json!(true)));

    // Page by page: a page ends right after its last match.
    for limit in [1, 2] {
        let (mut cursor, mut found) = (String::new(), Vec::new());
        loop {
            let (part, listed) = page(&format!("runId=a&limit={limit}{cursor}")).await;
            assert!(part.len() <= limit);
            found.extend(part);
            match listed["nextCursor"].as_str() {
                Some(next) => cursor = format!("&cursor={next}"),
                None => break,
            }
        }
        assert_eq!(found, [4, 2, 0]);
    }
    for (query, named) in [
        ("runId=a%20b", "runId must be"),
        ("from=yesterday", "from must be an ISO 8601 timestamp"),
        ("to=2026", "to must be an ISO 8601 timestamp"),
    ] {
        let reply = spender.caller.get(&format!("/v1/intents?{query}")).await;
        let sentence = problem(&reply, 400, "VALIDATION");
        assert!(sentence.contains(named), "{query}: {sentence}");
    }
}
