//! The plan: owners change it where the operator lets them, and it decides on features of the dashboard.

use crate::fixture::{Fixture, problem, success, text};
use domain::mode::Mode;
use futures::future::{join, join_all};
use harness::{Role, SessionCaller, assert_fields};
use serde_json::{Value, json};
use std::time::Duration;
use store::account::script::{PlanMove, PlanSet, move_plan};

async fn choose(session: &SessionCaller, plan: &str) -> harness::Reply {
    session
        .post("/api/v1/account/plan", json!({ "plan": plan }))
        .await
}

async fn self_service() -> Fixture {
    Fixture::start_with(|options| options.env("TOLLGATE_PLANS__SELF_SERVICE", "true")).await
}

#[tokio::test]
async fn an_owner_changes_the_plan_and_it_is_recorded_who_did() {
    let fixture = self_service().await;
    let account = fixture.seed.account("free").await;
    let (owner, session) = fixture.member(&account, Role::Owner).await;
    let changed = success(&choose(&session, "startup").await, 200);
    assert_eq!(changed["account"]["plan"], json!("startup"));
    assert_eq!(changed["limits"]["activeVirtualKeys"], json!(50));
    assert_eq!(changed["usage"]["users"], json!(1));
    assert_eq!(changed["selfServicePlans"], json!(true));
    let body = success(&session.get("/api/v1/account").await, 200);
    assert_eq!(body, changed);
    let audit = account.audit(Mode::Live).await.into_iter();
    let set: Vec<(String, Value)> = audit
        .filter(|entry| entry.kind == "account.plan_set")
        .map(|entry| (entry.actor, json!(entry.data)))
        .collect();
    assert_eq!(
        set,
        [(
            owner.id.clone(),
            json!({ "plan": "startup", "previous": { "plan": "free" } })
        )]
    );
    success(&choose(&session, "startup").await, 200);
    success(&choose(&session.in_mode(Mode::Test), "free").await, 200);
    problem(&choose(&session, "gold").await, 400, "VALIDATION");
    let reply = session.post("/api/v1/account/plan", json!({})).await;
    problem(&reply, 400, "VALIDATION");
    for role in [Role::Admin, Role::Manager, Role::Viewer] {
        let (_, other) = fixture.member(&account, role).await;
        success(&other.get("/api/v1/account").await, 200);
        success(&other.get("/api/v1/overview").await, 200);
    }
}

#[tokio::test]
async fn an_owner_moves_down_and_the_operator_moves_up() {
    let fixture = Fixture::start().await;
    let account = fixture.seed.account("startup").await;
    let (_, session) = fixture.member(&account, Role::Owner).await;
    let plan = async || {
        let body = success(&session.get("/api/v1/account").await, 200);
        assert_eq!(body["selfServicePlans"], json!(false));
        text(&body, "/account/plan").to_owned()
    };
    problem(&choose(&session, "enterprise").await, 403, "PLAN_BY_OPERATOR");
    problem(&choose(&session, "gold").await, 400, "VALIDATION");
    success(&choose(&session, "startup").await, 200);
    success(&choose(&session, "builder").await, 200);
    problem(&choose(&session, "startup").await, 403, "PLAN_BY_OPERATOR");
    assert_eq!(plan().await, "builder");
    success(&choose(&session, "free").await, 200);
    success(&choose(&session, "free").await, 200);
    problem(&choose(&session, "builder").await, 403, "PLAN_BY_OPERATOR");
    assert_eq!(plan().await, "free");
    // An account whose plan the file no longer has can only go to free.
    let record = account.keys.record();
    fixture.redis.command::<i64>(&["HSET", &record, "plan", "gone"]);
    problem(&choose(&session, "builder").await, 403, "PLAN_BY_OPERATOR");
    success(&choose(&session, "free").await, 200);
}

/// The owner chooses the present plan of the account while the operator changes it.
#[tokio::test]
async fn an_owner_does_not_undo_what_the_operator_does_meanwhile() {
    let fixture = Fixture::start().await;
    let account = fixture.seed.account("startup").await;
    let (_, session) = fixture.member(&account, Role::Owner).await;
    for round in 0..30 {
        account.set_plan("startup").await;
        let asking = join_all((0..8).map(|_| async {
            for _ in 0..4 {
                let reply = choose(&session, "startup").await;
                assert!([200, 403].contains(&reply.status), "{}", reply.text());
            }
        }));
        let operator = async {
            tokio::time::sleep(Duration::from_millis(2 + round % 10)).await;
            account.set_plan("free").await;
        };
        join(asking, operator).await;
        let body = success(&session.get("/api/v1/account").await, 200);
        assert_eq!(text(&body, "/account/plan"), "free");
    }
    // The script by itself.
    let move_from = async |from, to| {
        let plans = PlanMove { from, to };
        move_plan(&fixture.store, &account.id, plans, "usr_1")
            .await
            .unwrap()
    };
    assert_eq!(move_from("startup", "builder").await, None);
    assert_eq!(move_from("startup", "free").await, None);
    assert_eq!(move_from("free", "free").await, Some(PlanSet::AlreadySo));
    assert_eq!(move_from("free", "builder").await, Some(PlanSet::Done));
    assert_eq!(move_from("builder", "free").await, Some(PlanSet::Done));
}

#[tokio::test]
async fn webhooks_are_in_the_dashboard_of_some_plans_and_the_next_request_knows() {
    let fixture = Fixture::start_with(|options| {
        let options = options.env("TOLLGATE_PLANS__SELF_SERVICE", "true");
        options.env("TOLLGATE_WEBHOOKS__ALLOW_PRIVATE", "true")
    })
    .await;
    let account = fixture.seed.account("builder").await;
    let (_, session) = fixture.member(&account, Role::Owner).await;
    let hook =
        json!({ "url": "http://127.0.0.1:9/", "events": ["agent.frozen"], "secret": "0123456789abcdef" });
    let (webhook, delivery) = ("wh_00000000000000000000000000", "whd_00000000000000000000000000");
    let base = format!("/api/v1/webhooks/{webhook}");
    let calls = [
        ("GET", "/api/v1/webhooks".to_owned()),
        ("POST", "/api/v1/webhooks".to_owned()),
        ("GET", base.clone()),
        ("PATCH", base.clone()),
        ("POST", format!("{base}/test")),
        ("GET", format!("{base}/deliveries")),
        ("GET", format!("/api/user/webhooks/{webhook}/deliveries")),
        ("POST", format!("{base}/deliveries/{delivery}/redeliver")),
    ];
    for (method, path) in &calls {
        let reply = session.send(method, path, &[], hook.to_string()).await;
        assert_eq!(reply.status, 403, "{method} {path}: {}", reply.text());
        let body = reply.json();
        assert_eq!(body["code"], json!("PLAN_FEATURE"), "{method} {path}");
        assert_fields!(body, { "plan": "builder", "upgradeTo": "startup" });
        assert!(
            body["upgradeUrl"].as_str().unwrap().ends_with("/plan?to=startup"),
            "{body}"
        );
    }
    success(&choose(&session, "startup").await, 200);
    for (method, path) in &calls {
        let reply = session.send(method, path, &[], hook.to_string()).await;
        assert!(
            [200, 201, 404].contains(&reply.status),
            "{method} {path}: {}",
            reply.text()
        );
    }
    let listed = success(&session.get("/api/v1/webhooks").await, 200);
    assert_eq!(listed["total"], json!(1));

    // After a move down a webhook can be disabled, and not changed otherwise.
    success(&choose(&session, "free").await, 200);
    let path = format!("/api/v1/webhooks/{}", text(&listed, "/webhooks/0/id"));
    for (body, status) in [
        (json!({ "status": "active" }), 403),
        (json!({ "status": "disabled", "description": "x" }), 403),
        (json!({ "status": "gone" }), 403),
        (json!({ "status": "disabled" }), 200),
    ] {
        let reply = session.send("PATCH", &path, &[], body.to_string()).await;
        assert_eq!(reply.status, status, "{body}: {}", reply.text());
    }
    for status in [200, 404] {
        let reply = session.send("DELETE", &path, &[], String::new()).await;
        assert_eq!(reply.status, status, "{}", reply.text());
    }
}

#[tokio::test]
async fn where_no_plan_has_webhooks_in_the_dashboard_there_is_no_way_up() {
    let (fixture, _plans) =
        Fixture::with_plans("[only]\nwebhooks_in_dashboard = false\n", |options| options).await;
    let account = fixture.seed.account("only").await;
    let (_, session) = fixture.member(&account, Role::Owner).await;
    let reply = session.get("/api/v1/webhooks").await;
    let body = reply.json();
    let expected = json!({ "error": body["error"], "code": "PLAN_FEATURE", "plan": "only",
        "upgradeTo": null, "upgradeUrl": null });
    assert_eq!((reply.status, body), (403, expected));
}
