//! Who has a turn when there is no room for all.

use super::*;
use shared::domain::mode::Mode;

fn endpoint(account: &str, number: usize) -> Endpoint {
    Endpoint {
        account: account.to_owned(),
        mode: Mode::Live,
        webhook: format!("wh_{number}"),
    }
}

/// Turns need ids of tasks.
async fn id(turns: &mut JoinSet<()>) -> Id {
    turns.spawn(std::future::pending()).id()
}

#[tokio::test]
async fn an_account_has_a_part_of_the_places() {
    let (mut places, mut turns) = (Places::new(16), JoinSet::new());
    let first = id(&mut turns).await;
    places.enter(first, endpoint("acct_1", 1));
    let second = id(&mut turns).await;
    places.enter(second, endpoint("acct_1", 2));
    assert!(!places.has_room(&endpoint("acct_1", 3)), "two of sixteen");
    assert!(places.has_room(&endpoint("acct_2", 1)));
    assert_eq!(places.leave(first, false), Some(endpoint("acct_1", 1)));
    assert!(places.has_room(&endpoint("acct_1", 3)));
    assert_eq!(places.leave(first, false), None, "it left before");
}

#[tokio::test]
async fn failing_webhooks_leave_room_for_the_others() {
    let (mut places, mut turns) = (Places::new(16), JoinSet::new());
    let name = |number: usize| format!("acct_{number}");
    for number in 0..20 {
        let id = id(&mut turns).await;
        places.enter(id, endpoint(&name(number), 1));
        places.leave(id, true);
    }
    let mut ids = Vec::new();
    for number in 0..12 {
        let id = id(&mut turns).await;
        assert!(places.has_room(&endpoint(&name(number), 1)), "{number}");
        places.enter(id, endpoint(&name(number), 1));
        ids.push(id);
    }
    assert!(
        !places.has_room(&endpoint(&name(13), 1)),
        "three quarters are failing ones"
    );
    assert!(places.has_room(&endpoint("acct_healthy", 1)));
    places.leave(ids[0], false);
    assert!(places.has_room(&endpoint(&name(13), 1)));
    let last = id(&mut turns).await;
    places.enter(last, endpoint(&name(0), 1));
    assert_eq!(places.failing_busy, 11, "it failed no longer");
}

#[tokio::test]
async fn a_single_place_is_enough_for_all() {
    let (mut places, mut turns) = (Places::new(1), JoinSet::new());
    let one = id(&mut turns).await;
    assert!(places.has_room(&endpoint("acct_1", 1)));
    places.enter(one, endpoint("acct_1", 1));
    assert!(!places.has_room(&endpoint("acct_2", 1)));
    places.leave(one, true);
    assert!(places.has_room(&endpoint("acct_1", 1)), "a failing one too");
}
