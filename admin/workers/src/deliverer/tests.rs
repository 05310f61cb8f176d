//! Tests of which webhooks get a turn if there is no room for all.

use super::*;
use domain::mode::Mode;
use store::keys::Realm;

fn endpoint(account: &str, number: usize) -> WebhookLocation {
    WebhookLocation {
        realm: Realm::new(account, Mode::Live),
        webhook: format!("wh_{number}"),
    }
}

/// Turns need ids of tasks.
async fn id(turns: &mut JoinSet<()>) -> Id {
    turns.spawn(std::future::pending()).id()
}

#[tokio::test]
async fn an_account_has_a_part_of_the_slots() {
    let (mut slots, mut turns) = (Slots::new(16), JoinSet::new());
    let first = id(&mut turns).await;
    slots.enter(first, endpoint("acct_1", 1));
    let second = id(&mut turns).await;
    slots.enter(second, endpoint("acct_1", 2));
    assert!(!slots.has_room(&endpoint("acct_1", 3)), "two of sixteen");
    assert!(slots.has_room(&endpoint("acct_2", 1)));
    assert_eq!(slots.leave(first, Some(false)), Some(endpoint("acct_1", 1)));
    assert!(slots.has_room(&endpoint("acct_1", 3)));
    assert_eq!(slots.leave(first, Some(false)), None, "it left before");
}

#[tokio::test]
async fn accounts_together_leave_a_slot_to_the_next() {
    let (mut slots, mut turns) = (Slots::new(128), JoinSet::new());
    for account in 0..8 {
        for number in 0..20 {
            let endpoint = endpoint(&format!("acct_{account}"), number);
            if slots.has_room(&endpoint) {
                let id = id(&mut turns).await;
                slots.enter(id, endpoint);
            }
        }
    }
    assert!(slots.has_room(&endpoint("acct_new", 1)));
}

#[tokio::test]
async fn failing_webhooks_leave_room_for_the_others() {
    let (mut slots, mut turns) = (Slots::new(16), JoinSet::new());
    let name = |number: usize| format!("acct_{number}");
    for number in 0..20 {
        let id = id(&mut turns).await;
        slots.enter(id, endpoint(&name(number), 1));
        slots.leave(id, Some(true));
    }
    let mut ids = Vec::new();
    for number in 0..12 {
        let id = id(&mut turns).await;
        assert!(slots.has_room(&endpoint(&name(number), 1)), "{number}");
        slots.enter(id, endpoint(&name(number), 1));
        ids.push(id);
    }
    assert!(
        !slots.has_room(&endpoint(&name(13), 1)),
        "three quarters are failing ones"
    );
    assert!(slots.has_room(&endpoint("acct_healthy", 1)));
    slots.leave(ids[0], Some(false));
    assert!(slots.has_room(&endpoint(&name(13), 1)));
    let last = id(&mut turns).await;
    slots.enter(last, endpoint(&name(0), 1));
    assert_eq!(slots.failing_busy, 11, "it failed no longer");
}

#[tokio::test]
async fn a_single_slot_is_enough_for_all() {
    let (mut slots, mut turns) = (Slots::new(1), JoinSet::new());
    let one = id(&mut turns).await;
    assert!(slots.has_room(&endpoint("acct_1", 1)));
    slots.enter(one, endpoint("acct_1", 1));
    assert!(!slots.has_room(&endpoint("acct_2", 1)));
    slots.leave(one, Some(true));
    assert!(slots.has_room(&endpoint("acct_1", 1)), "a failing one too");
}

#[tokio::test]
async fn a_turn_without_an_attempt_says_nothing_of_the_receiver() {
    let (mut slots, mut turns) = (Slots::new(16), JoinSet::new());
    for (failing, remembered) in [
        (None, false),
        (Some(true), true),
        (None, true),
        (Some(false), false),
    ] {
        let id = id(&mut turns).await;
        slots.enter(id, endpoint("acct_1", 1));
        slots.leave(id, failing);
        assert_eq!(slots.is_failing(&endpoint("acct_1", 1)), remembered);
    }
}

#[tokio::test]
async fn failing_webhooks_of_the_past_do_not_hide_those_of_today() {
    let (mut slots, mut turns) = (Slots::new(16), JoinSet::new());
    let turn = id(&mut turns).await;
    for number in 0..=FAILING_MAX {
        slots.enter(turn, endpoint("acct_1", number));
        slots.leave(turn, Some(true));
    }
    assert!(slots.is_failing(&endpoint("acct_1", FAILING_MAX)));
    assert!(slots.failing.len() <= FAILING_MAX);
    assert_eq!(slots.failing_busy, 0);
}

#[tokio::test]
async fn a_scanned_webhook_has_every_second_turn() {
    let (mut slots, mut turns) = (Slots::new(16), JoinSet::new());
    let mut queues = WebhookQueues::default();
    for number in 0..3 {
        queues.hinted.push(endpoint(&format!("acct_hinted{number}"), 1));
        queues
            .scanned
            .push_back(endpoint(&format!("acct_scanned{number}"), 1));
    }
    let mut begun = Vec::new();
    for _ in 0..4 {
        // As if slots became free one by one.
        let mut checks = queues.checks();
        let next = queues.next(&slots, &mut checks).unwrap();
        begun.push(next.realm.account().to_owned());
        slots.enter(id(&mut turns).await, next);
    }
    assert_eq!(
        begun,
        ["acct_hinted0", "acct_scanned0", "acct_hinted1", "acct_scanned1"]
    );
}

#[tokio::test]
async fn a_webhook_without_room_waits_and_delays_no_other() {
    let (mut slots, mut turns) = (Slots::new(8), JoinSet::new());
    slots.enter(id(&mut turns).await, endpoint("acct_full", 0));
    let mut queues = WebhookQueues::default();
    for number in 0..CANDIDATES_MAX + 10 {
        queues.hinted.push(endpoint("acct_full", number));
    }
    queues.hinted.push(endpoint("acct_other", 1));
    let mut checks = queues.checks();
    assert_eq!(queues.next(&slots, &mut checks), None, "only some are asked");
    let mut checks = queues.checks();
    assert_eq!(queues.next(&slots, &mut checks), Some(endpoint("acct_other", 1)));
    assert_eq!(
        queues.hinted.len(),
        CANDIDATES_MAX + 9,
        "the others wait; the busy one is gone"
    );
}

#[tokio::test]
async fn a_clock_that_cannot_be_read_is_not_right() {
    let store = Store::open("redis://127.0.0.1:1", Duration::from_millis(50)).unwrap();
    let mut is_right = true;
    assert!(read_clock(&store, &mut is_right).await.is_err());
    assert!(!is_right);
}
