//! Limits that agents and keys of an account share, and whose policy holds (decisions D20, D21). That each limit is met
//! exactly, and passed by one nano, is in `order.rs` and `ledger/race.rs`.

use super::shape::denied;
use super::stage::{Actor, Stage, cap, estimated_body, open_cap};
use harness::CapPolicy;

/// Calls in run `r`; the estimate stays charged.
async fn spend(actor: &Actor, nanos: u64) -> harness::Reply {
    actor
        .caller
        .chat_with(&[("x-service-run-id", "r")], estimated_body(nanos))
        .await
}

async fn allowed(actor: &Actor, nanos: u64) {
    let reply = spend(actor, nanos).await;
    assert_eq!(reply.status, 200, "{nanos}: {reply:?}");
}

/// 60 of 100, then one too many, then exactly the rest, then nothing more.
async fn up_to_a_hundred(actor: &Actor, reason: &str) {
    allowed(actor, 60).await;
    denied(&spend(actor, 41).await, reason);
    allowed(actor, 40).await;
    denied(&spend(actor, 1).await, reason);
    assert_eq!(actor.agent.counters().await.day_nanos, 100);
}

/// The budget belongs to the account: both agents spend from it.
#[tokio::test]
async fn all_agents_share_the_tracked_usd() {
    let stage = Stage::new().await;
    stage.estimates_stay();
    let account = stage.seed.account("builder").await;
    let one = stage.equip(account.agent("one"), open_cap()).await;
    let two = stage.equip(account.agent("two"), open_cap()).await;
    stage.set_tracked(&one.agent, 500_000_000_000 - 100);
    allowed(&one, 60).await;
    denied(&spend(&two, 41).await, "plan_limit");
    allowed(&two, 40).await;
    denied(&spend(&one, 1).await, "plan_limit");
    let (one, two) = (one.agent.counters().await, two.agent.counters().await);
    assert_eq!(
        (one.day_nanos, two.day_nanos),
        (60, 40),
        "caps are each agent's own"
    );
}

#[tokio::test]
async fn the_plan_s_agents_of_the_month_are_counted_at_their_first_approved_call() {
    let stage = Stage::new().await;
    stage.estimates_stay();
    let account = stage.seed.account("builder").await;
    let first = stage.equip(account.agent("first"), open_cap()).await;
    let capped = stage
        .equip(account.agent("capped"), cap(None, Some(10), None))
        .await;
    stage.set_slots(&first.agent, 8);
    // A denied call takes no place.
    denied(&spend(&capped, 11).await, "daily_limit");
    assert_eq!(first.agent.counters().await.slots, 8);
    allowed(&first, 1).await;
    allowed(&first, 1).await;
    assert_eq!(
        first.agent.counters().await.slots,
        9,
        "one place, however many calls"
    );
    allowed(&capped, 1).await;
    let late = stage.equip(account.agent("late"), open_cap()).await;
    denied(&spend(&late, 1).await, "plan_agent_limit");
    allowed(&first, 1).await;
    allowed(&capped, 1).await;
    assert_eq!(first.agent.counters().await.slots, 10);
}

/// On the free plan one agent and one key: the agent that called first keeps its place after its key is gone.
#[tokio::test]
async fn on_the_free_plan_a_second_agent_waits_for_the_next_month() {
    let stage = Stage::new().await;
    let account = stage.seed.account("free").await;
    let one = stage.equip(account.agent("one"), open_cap()).await;
    allowed(&one, 100).await;
    account.revoke(&one.key_id).await;
    let two = stage.equip(account.agent("two"), open_cap()).await;
    denied(&spend(&two, 1).await, "plan_agent_limit");
}

#[tokio::test]
async fn the_oldest_keys_win() {
    let stage = Stage::new().await;
    let account = stage.seed.account("builder").await;
    let mut actors = Vec::new();
    for number in 0..12 {
        // Several keys for each agent: they count across the account.
        let agent = account.agent(&format!("bot-{}", number % 3));
        actors.push(stage.equip(agent, open_cap()).await);
    }
    for (number, actor) in actors.iter().enumerate() {
        let reply = spend(actor, 100).await;
        if number < 10 {
            assert_eq!(reply.status, 200, "key {number}: {reply:?}");
        } else {
            denied(&reply, "plan_key_limit");
            denied(&actor.caller.get("/v1/models").await, "plan_key_limit");
        }
    }
    account.revoke(&actors[3].key_id).await;
    allowed(&actors[10], 100).await;
    denied(&spend(&actors[11], 100).await, "plan_key_limit");
    account.set_plan("startup").await;
    allowed(&actors[11], 100).await;
    account.set_plan("free").await;
    allowed(&actors[0], 100).await;
    denied(&spend(&actors[1], 100).await, "plan_key_limit");
}

/// A policy without an agent holds for the agents that have none of their own (decision D20).
#[tokio::test]
async fn the_account_s_policy_holds_for_agents_without_their_own() {
    let stage = Stage::new().await;
    stage.estimates_stay();
    let actor = stage.actor("enterprise", open_cap()).await;
    actor.agent.no_cap().await;
    denied(&spend(&actor, 1).await, "cap_disabled");
    let account = &actor.agent.account;
    account.cap(Some(cap(None, Some(100), None))).await;
    up_to_a_hundred(&actor, "daily_limit").await;
    // An own policy replaces it, also where it is wider or switched off.
    actor.agent.cap(cap(None, Some(110), None)).await;
    allowed(&actor, 10).await;
    denied(&spend(&actor, 1).await, "daily_limit");
    actor.agent.cap(CapPolicy::default()).await;
    denied(&spend(&actor, 1).await, "cap_disabled");
    actor.agent.no_cap().await;
    account.cap(Some(CapPolicy::default())).await;
    denied(&spend(&actor, 1).await, "cap_disabled");
    account.cap(None).await;
    denied(&spend(&actor, 1).await, "cap_disabled");
}
