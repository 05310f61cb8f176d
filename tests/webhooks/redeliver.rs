//! A delivery that ended, or that waits for a later event, is sent again at its owner's request.

use crate::fixture::{Fixture, Owner, accepting, attempts, problem, quick, receiver, success, text, url};
use domain::mode::Mode;
use harness::{Answer, Redis, Reply, assert_fields};
use serde_json::{Value, json};
use store::webhook::delivery::EARLIER_MAX;

const FROZEN: &[&str] = &["agent.frozen"];

/// Three attempts, quickly one after the other.
async fn fixture() -> Fixture {
    let three = |options: harness::AdminOptions| {
        quick(options)
            .env("TOLLGATE_WEBHOOKS__RETRY_DELAYS_MS", "1,1")
            .env("TOLLGATE_WEBHOOKS__MAX_ATTEMPTS", "3")
    };
    Fixture::start_with(Redis::start(), three).await
}

async fn again(owner: &Owner, webhook: &str, delivery: &str) -> Reply {
    let path = format!("/v1/webhooks/{webhook}/deliveries/{delivery}/redeliver");
    owner.caller.send("POST", &path, &[], "").await
}

/// Waits until a delivery is in this state and has had so many attempts.
async fn ended(owner: &Owner, webhook: &str, status: &str, count: usize) -> Value {
    owner
        .wait_for(webhook, "the end of the delivery", |delivery| {
            delivery["status"] == status && attempts(delivery) == count
        })
        .await
}

#[tokio::test]
async fn a_receiver_that_recovered_gets_what_it_missed_to_the_byte() {
    let fixture = fixture().await;
    let owner = fixture.owner().await;
    let target = receiver(|_| Answer::bytes(500, "away"));
    let webhook = owner.register(&url(&target), FROZEN).await;
    owner.freeze("bot").await;
    let failed = ended(&owner, &webhook, "failed", 3).await;
    let id = text(&failed, "/id");

    // It fails three more times: a redelivered one has all its attempts again, and keeps its history.
    let replies = success(&again(&owner, &webhook, id).await, 200);
    assert_eq!(
        replies,
        json!({ "success": true, "deliveryId": id, "status": "pending" })
    );
    ended(&owner, &webhook, "failed", 6).await;
    target.set(|_| Answer::bytes(200, "back"));
    success(&again(&owner, &webhook, id).await, 200);
    let delivered = ended(&owner, &webhook, "delivered", 7).await;
    assert_eq!(delivered["attempts"][6]["responseCode"], json!(200));
    assert_eq!(delivered["attempts"][0]["responseCode"], json!(500));
    let requests = target.requests();
    assert_eq!(requests.len(), 7);
    for request in &requests {
        assert_eq!(request.body, requests[0].body, "the same event, to the byte");
        assert_eq!(request.header("webhook-id"), Some(id));
    }

    // An accepted delivery can be redelivered, too, as often as requested; its history is bounded.
    for round in 8..=EARLIER_MAX + 4 {
        success(&again(&owner, &webhook, id).await, 200);
        ended(&owner, &webhook, "delivered", round.min(EARLIER_MAX + 1)).await;
        // Beyond the bound the number of attempts stays, so the receiver's record shows the arrival.
        target.wait_for(round, crate::fixture::SOON).await;
    }
    let audit = success(&owner.caller.get("/v1/audit?type=webhook.redelivered").await, 200);
    assert_eq!(audit["total"], json!(EARLIER_MAX + 4 - 5));
    assert_fields!(audit["logs"][0], { "data": { "webhookId": webhook, "deliveryId": id } });
}

#[tokio::test]
async fn waiting_disabled_and_unknown_deliveries_are_not_sent_again() {
    let fixture = fixture().await;
    let (owner, stranger) = (fixture.owner().await, fixture.owner().await);
    let target = accepting();
    let webhook = owner.register(&url(&target), FROZEN).await;
    let other = owner.register(&url(&target), &["wallet.deposit"]).await;
    owner.freeze("bot").await;
    let delivered = ended(&owner, &webhook, "delivered", 1).await;
    let id = text(&delivered, "/id");
    let unknown = "whd_00000000000000000000000000";
    for (webhook, delivery) in [
        (webhook.as_str(), unknown),
        (&other, id),
        ("wh_00000000000000000000000000", id),
        (&webhook, "x"),
    ] {
        problem(&again(&owner, webhook, delivery).await, 404, "NOT_FOUND");
    }
    problem(&again(&stranger, &webhook, id).await, 404, "NOT_FOUND");
    let tester = fixture.admin.caller(&owner.account.api_key(Mode::Test).await);
    let path = format!("/v1/webhooks/{webhook}/deliveries/{id}/redeliver");
    problem(&tester.send("POST", &path, &[], "").await, 404, "NOT_FOUND");

    let change = |status: &str| json!({ "status": status });
    let hook = format!("/v1/webhooks/{webhook}");
    success(&owner.caller.patch(&hook, change("disabled")).await, 200);
    problem(&again(&owner, &webhook, id).await, 409, "CONFLICT");
    success(&owner.caller.patch(&hook, change("active")).await, 200);
    target.set(|_| Answer::hang());
    success(&again(&owner, &webhook, id).await, 200);
    problem(&again(&owner, &webhook, id).await, 409, "CONFLICT");
}

/// A quiet account: no event comes that would give the delivery another attempt.
#[tokio::test]
async fn a_redelivery_of_a_parked_delivery_begins_at_once_with_all_attempts() {
    let fixture = Fixture::start_with(Redis::start(), quick).await;
    let owner = fixture.owner().await;
    let target = receiver(|_| Answer::bytes(500, "away"));
    let webhook = owner.register(&url(&target), FROZEN).await;
    owner.freeze("bot").await;
    let parked = ended(&owner, &webhook, "pending", 3).await;
    let id = text(&parked, "/id");
    assert_fields!(parked, { "nextAttemptAt": null });

    // The receiver is still away: after three more attempts the delivery waits again.
    success(&again(&owner, &webhook, id).await, 200);
    let parked = ended(&owner, &webhook, "pending", 6).await;
    assert_fields!(parked, { "nextAttemptAt": null });
    // Of several requests one is accepted, and the attempt is scheduled or under way for the others.
    target.set(|_| Answer::hang());
    let replies = futures::future::join_all((0..8).map(|_| again(&owner, &webhook, id))).await;
    assert_eq!(replies.iter().filter(|reply| reply.status == 200).count(), 1);
    for reply in replies.iter().filter(|reply| reply.status != 200) {
        let sentence = problem(reply, 409, "CONFLICT");
        assert_eq!(
            sentence,
            "An attempt of this delivery is scheduled or being made."
        );
    }
    target.set(|_| Answer::bytes(200, "back"));
    let delivered = owner
        .wait_for(&webhook, "the delivery", |delivery| {
            delivery["status"] == "delivered"
        })
        .await;
    assert!(attempts(&delivered) > 6, "{delivered}");
    let audit = success(&owner.caller.get("/v1/audit?type=webhook.redelivered").await, 200);
    assert_eq!(audit["total"], json!(2));
    let pending = owner.deliveries_with(&webhook, "status=pending").await;
    assert_eq!(pending, (vec![], 0));
}

#[tokio::test]
async fn of_many_requests_at_once_one_is_accepted() {
    let fixture = fixture().await;
    let owner = fixture.owner().await;
    let target = accepting();
    let webhook = owner.register(&url(&target), FROZEN).await;
    owner.freeze("bot").await;
    let delivered = ended(&owner, &webhook, "delivered", 1).await;
    let id = text(&delivered, "/id");
    target.set(|_| Answer::hang());
    let replies = futures::future::join_all((0..16).map(|_| again(&owner, &webhook, id))).await;
    let received = replies.iter().filter(|reply| reply.status == 200).count();
    assert_eq!(received, 1);
    for reply in replies.iter().filter(|reply| reply.status != 200) {
        problem(reply, 409, "CONFLICT");
    }
}
