//! Policies: bodies, errors, and effects.

use crate::fixture::{Fixture, fresh, minted, problem, success, text};
use domain::mode::Mode;
use harness::assert_fields;
use serde_json::{Value, json};

#[tokio::test]
async fn an_agents_policy_is_one_and_posting_again_changes_what_is_given() {
    let fixture = Fixture::start().await;
    let (account, caller) = fixture.account("builder").await;
    let body = json!({ "name": "Böt limits", "agentId": "bot", "maxSpendPerDay": 10.5, "maxSpendPerRun": "0.000000001",
        "maxSpendPerTransaction": 2, "lowBalanceThreshold": 0 });
    let reply = caller.post("/api/v1/policies", body).await;
    let made = success(&reply, 200);
    let id = text(&made, "/policy/id").to_owned();
    minted(&id, "pol_");
    fresh(text(&made, "/policy/createdAt"));
    assert!(
        reply.text().contains("\"maxSpendPerRun\":0.000000001,"),
        "{}",
        reply.text()
    );
    let mut expected = json!({ "success": true, "policy": {
        "id": id, "name": "Böt limits", "agentId": "bot", "maxSpendPerDay": 10.5, "maxSpendPerTransaction": 2,
        "maxSpendPerRun": made["policy"]["maxSpendPerRun"], "maxSpendPerMonth": null, "currency": "USD",
        "capEnabled": true, "approvalThreshold": null, "lowBalanceThreshold": 0, "revision": 1,
        "createdAt": made["policy"]["createdAt"], "updatedAt": made["policy"]["createdAt"],
    }});
    assert_eq!(made, expected);
    let effect = async || {
        let fields = fixture.fields(&account.keys.live().agent("bot")).await;
        let names = [
            "cap",
            "cap_run",
            "cap_day",
            "cap_month",
            "cap_txn",
            "cap_approval",
            "cap_low",
        ];
        names.map(|name| fields.get(name).cloned().unwrap_or_default())
    };
    assert_eq!(
        effect().await,
        ["1", "1", "10500000000", "", "2000000000", "", "0"]
    );

    let body = json!({ "maxSpendPerDay": null, "maxSpendPerMonth": 100, "capEnabled": false, "currency": "USDC",
        "maxSpendPerTransaction": null, "approvalThreshold": 3 });
    let again = success(&caller.post("/v1/policies/bot", body).await, 200);
    expected["policy"]["maxSpendPerDay"] = Value::Null;
    expected["policy"]["maxSpendPerMonth"] = json!(100);
    expected["policy"]["revision"] = json!(2);
    expected["policy"]["capEnabled"] = json!(false);
    expected["policy"]["currency"] = json!("USDC");
    expected["policy"]["maxSpendPerTransaction"] = Value::Null;
    expected["policy"]["approvalThreshold"] = json!(3);
    expected["policy"]["updatedAt"] = again["policy"]["updatedAt"].clone();
    assert_eq!(again, expected);
    assert_eq!(
        effect().await,
        ["0", "1", "", "100000000000", "", "3000000000", "0"]
    );
    let body = json!({ "name": "Other", "agentId": "bot", "capEnabled": null, "currency": null });
    let third = success(&caller.post("/v1/policies", body).await, 200);
    assert_fields!(third["policy"], { "capEnabled": true, "currency": "USD", "id": id });

    // A request that changes nothing is answered with the policy as it is, and leaves no entry.
    let entries = async || success(&caller.get("/v1/audit?type=policy.set").await, 200)["total"].clone();
    let before = entries().await;
    for same in [
        json!({}),
        json!({ "name": "Other", "maxSpendPerDay": null, "maxSpendPerMonth": 100 }),
    ] {
        let again = success(&caller.post("/v1/policies/bot", same).await, 200);
        assert_eq!(again["policy"], third["policy"]);
    }
    assert_eq!(entries().await, before);

    let listed = success(&caller.get("/v1/policies?agentId=bot").await, 200);
    let expected = json!({ "success": true, "policies": [third["policy"]], "total": 1, "limit": 50, "offset": 0, "nextCursor": null });
    assert_eq!(listed, expected);
    assert_eq!(
        success(&caller.delete(&format!("/v1/policies/{id}")).await, 200),
        json!({ "success": true })
    );
    assert_eq!(effect().await, [""; 7]);
    let reply = caller.delete(&format!("/v1/policies/{id}")).await;
    problem(&reply, 404, "NOT_FOUND");
    problem(&caller.get("/v1/agents/bot").await, 404, "NOT_FOUND");
    let kinds = account.audit_types(Mode::Live).await;
    assert_eq!(
        &kinds[1..],
        ["policy.set", "policy.set", "policy.set", "policy.deleted"]
    );
    // The audit trail names fields as the API does; amounts are numbers, with exact nano-USD beside them.
    let logged = success(&caller.get("/v1/audit?type=policy.set").await, 200);
    let data = |n: usize| logged["logs"][n]["data"].clone();
    let first = json!({ "policyId": id, "new": true, "fields": {
        "name": "Böt limits", "agentId": "bot", "currency": "USD", "capEnabled": true,
        "maxSpendPerDay": 10.5, "maxSpendPerDayNanos": "10500000000",
        "maxSpendPerRun": 1e-9, "maxSpendPerRunNanos": "1",
        "maxSpendPerTransaction": 2, "maxSpendPerTransactionNanos": "2000000000",
        "lowBalanceThreshold": 0, "lowBalanceThresholdNanos": "0",
    }});
    let second = json!({ "policyId": id, "new": false, "fields": {
        "currency": "USDC", "capEnabled": false, "maxSpendPerDay": null, "maxSpendPerDayNanos": null,
        "maxSpendPerMonth": 100, "maxSpendPerMonthNanos": "100000000000",
        "maxSpendPerTransaction": null, "maxSpendPerTransactionNanos": null,
        "approvalThreshold": 3, "approvalThresholdNanos": "3000000000",
    }, "previous": {
        "currency": "USD", "capEnabled": true, "maxSpendPerDay": 10.5, "maxSpendPerDayNanos": "10500000000",
        "maxSpendPerMonth": null, "maxSpendPerMonthNanos": null,
        "maxSpendPerTransaction": 2, "maxSpendPerTransactionNanos": "2000000000",
        "approvalThreshold": null, "approvalThresholdNanos": null,
    }});
    // A field that was given its own value is no changed one.
    let third = json!({ "policyId": id, "new": false,
        "fields": { "name": "Other", "currency": "USD", "capEnabled": true },
        "previous": { "name": "Böt limits", "currency": "USDC", "capEnabled": false } });
    let deleted = success(&caller.get("/v1/audit?type=policy.deleted").await, 200);
    let left = json!({ "policyId": id, "previous": {
        "name": "Other", "agentId": "bot", "currency": "USD", "capEnabled": true,
        "maxSpendPerRun": 1e-9, "maxSpendPerRunNanos": "1",
        "maxSpendPerMonth": 100, "maxSpendPerMonthNanos": "100000000000",
        "approvalThreshold": 3, "approvalThresholdNanos": "3000000000",
        "lowBalanceThreshold": 0, "lowBalanceThresholdNanos": "0",
    }});
    assert_eq!(deleted["logs"][0]["data"], left);
    assert_eq!(data(0), third);
    assert_eq!([data(2), data(1)], [first, second]);
}

#[tokio::test]
async fn the_strictest_of_all_account_wide_policies_binds() {
    let fixture = Fixture::start().await;
    let (account, caller) = fixture.account("builder").await;
    let test = fixture.caller(&account, Mode::Test).await;
    let effect = async |mode: &str| {
        let fields = fixture.fields(&account.keys.record()).await;
        ["cap", "run", "day", "month"].map(|name| fields.get(&format!("{mode}_{name}")).cloned())
    };
    let some = |texts: [&str; 4]| texts.map(|text| Some(text.to_owned()));
    assert_eq!(effect("live").await, [None, None, None, None]);
    let set = async |body: Value| success(&caller.post("/v1/policies", body).await, 200);
    let loose = set(json!({ "name": "a", "maxSpendPerDay": 5, "maxSpendPerRun": 2 })).await;
    assert_eq!(loose["policy"]["agentId"], Value::Null);
    assert_eq!(effect("live").await, some(["1", "2000000000", "5000000000", ""]));
    let tight =
        set(json!({ "name": "a", "agentId": null, "maxSpendPerDay": 3, "maxSpendPerMonth": 9 })).await;
    assert_ne!(
        tight["policy"]["id"], loose["policy"]["id"],
        "each post makes another"
    );
    assert_eq!(
        effect("live").await,
        some(["1", "2000000000", "3000000000", "9000000000"])
    );
    // Limits are compared as numbers, not as texts, and zero is a limit.
    let off =
        set(json!({ "name": "b", "capEnabled": false, "maxSpendPerDay": 10, "maxSpendPerRun": 0 })).await;
    assert_eq!(effect("live").await, some(["0", "0", "3000000000", "9000000000"]));
    assert_eq!(effect("test").await, [None, None, None, None], "modes do not mix");
    let body = json!({ "name": "t", "maxSpendPerDay": 1 });
    success(&test.post("/v1/policies", body).await, 200);
    assert_eq!(effect("test").await, some(["1", "", "1000000000", ""]));

    let delete = async |made: &Value| {
        let path = format!("/v1/policies/{}", text(made, "/policy/id"));
        success(&caller.delete(&path).await, 200);
    };
    delete(&tight).await;
    assert_eq!(effect("live").await, some(["0", "0", "5000000000", ""]));
    delete(&off).await;
    assert_eq!(effect("live").await, some(["1", "2000000000", "5000000000", ""]));
    let listed = success(&caller.get("/v1/policies").await, 200);
    assert_eq!(listed["total"], json!(1));
    delete(&loose).await;
    assert_eq!(effect("live").await, [None, None, None, None]);
    assert_eq!(effect("test").await, some(["1", "", "1000000000", ""]));
}

/// Of several limits of spends the smallest applies, and of several thresholds for a low balance the one that is
/// reached first.
#[tokio::test]
async fn the_strictest_limits_of_spends_bind() {
    let fixture = Fixture::start().await;
    let (account, caller) = fixture.account("builder").await;
    let effect = async || {
        let fields = fixture.fields(&account.keys.record()).await;
        ["live_txn", "live_approval", "live_low"].map(|name| fields.get(name).cloned())
    };
    let some = |texts: [&str; 3]| texts.map(|text| Some(text.to_owned()));
    let set = async |body: Value| {
        let made = success(&caller.post("/v1/policies", body).await, 200);
        text(&made, "/policy/id").to_owned()
    };
    let one = set(json!({ "name": "a", "maxSpendPerTransaction": 10, "lowBalanceThreshold": 2 })).await;
    assert_eq!(effect().await, some(["10000000000", "", "2000000000"]));
    let two = set(
        json!({ "name": "b", "maxSpendPerTransaction": 9, "approvalThreshold": 0,
        "lowBalanceThreshold": 10 }),
    )
    .await;
    assert_eq!(effect().await, some(["9000000000", "0", "10000000000"]));
    for id in [two, one] {
        success(&caller.delete(&format!("/v1/policies/{id}")).await, 200);
    }
    assert_eq!(effect().await, [None, None, None]);
}

#[tokio::test]
async fn bad_policies_are_refused_and_name_the_field() {
    let fixture = Fixture::start().await;
    let (account, caller) = fixture.account("builder").await;
    let version = account.version().await;
    for (body, named) in [
        (r#"{}"#, "name is required."),
        (r#"{"agentId":"bot"}"#, "name is required."),
        (r#"{"name":null}"#, "name must not be null."),
        (r#"{"name":"a","agentId":"user"}"#, "agentId must be"),
        (r#"{"name":"a","agentId":"a b"}"#, "agentId must be"),
        (r#"{"name":"a","agentId":"."}"#, "agentId must not be `.` or `..`"),
        (
            r#"{"name":"a","agentId":".."}"#,
            "agentId must not be `.` or `..`",
        ),
        (r#"{"name":"a","agentId":7}"#, "agentId must be a string."),
        (
            r#"{"name":"a","currency":"EUR"}"#,
            "currency must be USD or USDC.",
        ),
        (r#"{"name":"a","currency":1}"#, "currency must be a string."),
        (
            r#"{"name":"a","capEnabled":"yes"}"#,
            "capEnabled must be true or false.",
        ),
        (
            r#"{"name":"a","maxSpendPerDay":-1}"#,
            "maxSpendPerDay must not be negative.",
        ),
        (
            r#"{"name":"a","maxSpendPerTransaction":1e-10}"#,
            "maxSpendPerTransaction must have at most nine",
        ),
        (
            r#"{"name":"a","maxSpendPerRun":9000000.1}"#,
            "maxSpendPerRun must be at most",
        ),
        (
            r#"{"name":"a","maxSpendPerMonth":true}"#,
            "maxSpendPerMonth must be a decimal",
        ),
        (
            r#"{"name":"a","approvalThreshold":"1,5"}"#,
            "approvalThreshold must be a decimal",
        ),
        (
            r#"{"name":"a","lowBalanceThreshold":[]}"#,
            "lowBalanceThreshold must be a decimal",
        ),
        (
            r#"{"name":"a","maxSpendPerWeek":1}"#,
            "\"maxSpendPerWeek\" is not a field",
        ),
    ] {
        let reply = caller.send("POST", "/v1/policies", &[], body).await;
        let sentence = problem(&reply, 400, "VALIDATION");
        assert!(sentence.contains(named), "{body}: {sentence}");
    }
    let body = json!({ "agentId": "other" });
    let sentence = problem(&caller.post("/v1/policies/bot", body).await, 400, "VALIDATION");
    assert!(sentence.contains("agentId"), "{sentence}");
    let reply = caller.post("/v1/policies/user", json!({})).await;
    problem(&reply, 400, "VALIDATION");
    problem(&caller.get("/v1/policies?agentId=a%20b").await, 400, "VALIDATION");
    for id in ["bot", "pol_1", "pol_%7Bx%7D0000000000000000000000", "..%2F"] {
        let reply = caller.delete(&format!("/v1/policies/{id}")).await;
        problem(&reply, 404, "NOT_FOUND");
    }
    assert_eq!(account.version().await, version, "nothing was changed");
    let reply = caller.post("/v1/policies/bot", json!({ "agentId": "bot" })).await;
    success(&reply, 200);
}

#[tokio::test]
async fn account_wide_policies_are_bounded() {
    let fixture = Fixture::start().await;
    let (_, caller) = fixture.account("builder").await;
    for n in 0..100 {
        let body = json!({ "name": format!("p{n}") });
        success(&caller.post("/v1/policies", body).await, 200);
    }
    let reply = caller.post("/v1/policies", json!({ "name": "p" })).await;
    problem(&reply, 409, "CONFLICT");
    success(&caller.post("/v1/policies/bot", json!({})).await, 200);
    let listed = success(&caller.get("/v1/policies?limit=200").await, 200);
    assert_eq!(listed["total"], json!(101));
    assert_eq!(listed["policies"].as_array().unwrap().len(), 101);
}
