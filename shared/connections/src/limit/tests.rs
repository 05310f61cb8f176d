//! Tests of slots: which connection gets one, which makes room, and that the limits hold.

use super::*;
use futures::FutureExt as _;
use std::pin::pin;

fn peer(text: &str) -> IpAddr {
    text.parse().unwrap()
}

/// Takes a slot without waiting.
fn admit(limit: &ConnectionLimit, peer: IpAddr) -> Result<OpenConnection, ReachedLimit> {
    limit
        .admit(peer)
        .now_or_never()
        .expect("few connections are being closed")
}

/// Returns a connection with a request of a known caller in flight.
fn busy(limit: &ConnectionLimit, from: &str) -> Result<(OpenConnection, UnderWay), ReachedLimit> {
    let open = admit(limit, peer(from))?;
    let under_way = open.requests().begin().unwrap();
    Ok((open, under_way))
}

fn is_closed(connection: &OpenConnection) -> bool {
    connection.closed_for_another().now_or_never().is_some()
}

/// Lets the pause between two choices pass.
fn later(limit: &ConnectionLimit) {
    let mut open = limit.shared.open.lock();
    open.chosen.at = None;
    open.chosen_of_address.at = None;
}

/// Makes the current pauses last.
fn at_once(limit: &ConnectionLimit) {
    let ends = Instant::now() + Duration::from_secs(60);
    let mut open = limit.shared.open.lock();
    for of in [None, Some(peer("192.0.2.1"))] {
        let at = &mut open.chosen(of).at;
        *at = at.map(|_| ends);
    }
}

#[test]
fn the_limit_of_an_address_leaves_room_for_others_and_ends_with_its_connections() {
    let limit = ConnectionLimit::new(3, 2, Vec::new());
    let first = busy(&limit, "192.0.2.1").unwrap();
    let _second = busy(&limit, "192.0.2.1").unwrap();
    assert_eq!(
        admit(&limit, peer("192.0.2.1")).unwrap_err(),
        ReachedLimit::Address
    );
    assert_eq!(
        admit(&limit, peer("::ffff:192.0.2.1")).unwrap_err(),
        ReachedLimit::Address
    );
    let _other = busy(&limit, "192.0.2.2").unwrap();
    assert_eq!(admit(&limit, peer("192.0.2.3")).unwrap_err(), ReachedLimit::All);
    assert_eq!(limit.open(), 3);
    drop(first);
    assert!(admit(&limit, peer("192.0.2.1")).is_ok());
}

#[test]
fn an_idle_connection_gives_way_and_unknown_callers_go_first() {
    let limit = ConnectionLimit::new(4, 4, Vec::new());
    let (known, request) = busy(&limit, "192.0.2.1").unwrap();
    drop(request);
    let (at_work, _request) = busy(&limit, "192.0.2.2").unwrap();
    let early = admit(&limit, peer("192.0.2.3")).unwrap();
    let late = admit(&limit, peer("192.0.2.4")).unwrap();
    let closed = || [&known, &at_work, &early, &late].map(is_closed);
    let next = busy(&limit, "192.0.2.5").unwrap();
    assert_eq!(closed(), [false, false, true, false]);
    assert!(
        early.requests().begin().is_none(),
        "nothing is done for it any more"
    );
    let another = busy(&limit, "192.0.2.6").unwrap();
    assert_eq!(closed(), [false, false, false, true]);
    later(&limit);
    let third = busy(&limit, "192.0.2.7").unwrap();
    assert_eq!(closed(), [true, false, false, false]);
    later(&limit);
    assert_eq!(admit(&limit, peer("192.0.2.8")).unwrap_err(), ReachedLimit::All);
    drop((known, early, late));
    assert_eq!(limit.open(), 4, "a slot is freed once");
    drop((next, another, third));
    assert_eq!(limit.open(), 1);
}

#[test]
fn an_address_with_many_connections_makes_room_before_others_do() {
    let limit = ConnectionLimit::new(3, 2, Vec::new());
    let one = admit(&limit, peer("192.0.2.1")).unwrap();
    let many = [(); 2].map(|()| admit(&limit, peer("192.0.2.2")).unwrap());
    let third = admit(&limit, peer("192.0.2.2")).unwrap();
    assert_eq!(
        (is_closed(&many[0]), is_closed(&one)),
        (true, false),
        "its own limit"
    );
    later(&limit);
    let other = admit(&limit, peer("192.0.2.3")).unwrap();
    assert_eq!(
        (is_closed(&many[1]), is_closed(&one)),
        (true, false),
        "the limit for all"
    );
    drop((third, other));
}

#[test]
fn a_few_connections_of_one_address_are_no_more_than_one_of_another() {
    let limit = ConnectionLimit::new(4 * PARTS, 2 * PARTS, Vec::new());
    let addresses = 0..u32::try_from(4 * PARTS - 2).unwrap();
    let flood: Vec<_> = addresses
        .map(|n| admit(&limit, IpAddr::V4((n << 8).into())).unwrap())
        .collect();
    std::thread::sleep(Duration::from_millis(2));
    let caller = [(); 2].map(|()| admit(&limit, peer("192.0.2.1")).unwrap());
    let _next = admit(&limit, peer("192.0.2.2")).unwrap();
    assert!(is_closed(&flood[0]) && !caller.iter().any(is_closed));
}

#[test]
fn choosing_who_goes_is_done_for_some_at_once_and_not_all_the_time() {
    let strangers = CHOSEN_AT_ONCE + 10;
    let limit = ConnectionLimit::new(strangers, strangers, Vec::new());
    let held: Vec<_> = (0..strangers)
        .map(|_| admit(&limit, peer("192.0.2.1")).unwrap())
        .collect();
    let next: Vec<_> = (0..CHOSEN_AT_ONCE)
        .map(|_| busy(&limit, "192.0.2.2").unwrap())
        .collect();
    let (closed, idle): (Vec<_>, Vec<_>) = held.into_iter().partition(is_closed);
    assert_eq!(
        (next.len(), closed.len(), idle.len()),
        (CHOSEN_AT_ONCE, CHOSEN_AT_ONCE, 10)
    );
    drop(closed);
    limit.shared.open.lock().chosen.at = Some(Instant::now() + Duration::from_secs(60));
    assert_eq!(admit(&limit, peer("192.0.2.2")).unwrap_err(), ReachedLimit::All);
    later(&limit);
    assert!(admit(&limit, peer("192.0.2.2")).is_ok());
}

#[test]
fn a_connection_waits_while_many_closed_ones_have_their_descriptors() {
    let limit = ConnectionLimit::new(2 * CLOSING_MAX, CLOSING_MAX, Vec::new());
    let mut held: Vec<_> = (0..2 * CLOSING_MAX)
        .map(|_| admit(&limit, peer("192.0.2.1")).unwrap())
        .collect();
    let mut next = pin!(limit.admit(peer("192.0.2.2")));
    assert!(next.as_mut().now_or_never().is_none(), "all permits are taken");
    assert_eq!(limit.open(), CLOSING_MAX);
    // One that was not closed frees its slot, and no descriptor of a closed one.
    drop(held.pop());
    assert!(next.as_mut().now_or_never().is_none());
    drop(held.swap_remove(0));
    let next = next
        .now_or_never()
        .expect("one of the closed ones ended")
        .unwrap();
    drop((held, next));
    assert_eq!(limit.open(), 0);
    assert_eq!(limit.shared.closing.available_permits(), CLOSING_MAX);
}

proptest::proptest! {
    /// For any sequence of events: the total and per-address limits hold, no connection with a request in flight is
    /// closed, and a connection is refused only if all others have requests in flight or a choice was just made.
    #[test]
    fn slots_are_never_more_than_there_are(steps in proptest::collection::vec((0_u8..4, 0_u8..6, 0_usize..8), 0..80)) {
        let (max, max_per_address) = (4, 2);
        let limit = ConnectionLimit::new(max, max_per_address, Vec::new());
        let mut open: Vec<(OpenConnection, Option<UnderWay>)> = Vec::new();
        for (what, address, which) in steps {
            let which = which.checked_rem(open.len());
            match (what, which) {
                (0, _) => {
                    later(&limit);
                    let slots = |limit: &ConnectionLimit| limit.shared.open.lock().slots.len();
                    let before = slots(&limit);
                    match admit(&limit, peer(&format!("192.0.2.{address}"))) {
                        Ok(slot) => open.push((slot, None)),
                        Err(ReachedLimit::All) => proptest::prop_assert_eq!(before, max),
                        Err(ReachedLimit::Address) => proptest::prop_assert!(before >= max_per_address),
                    }
                }
                (1, Some(which)) => open[which].1 = open[which].0.requests().begin(),
                (2, Some(which)) => open[which].1 = None,
                (_, Some(which)) => drop(open.swap_remove(which)),
                _ => {}
            }
            for (slot, request) in &open {
                proptest::prop_assert!(request.is_none() || !is_closed(slot));
            }
            let shared = limit.shared.open.lock();
            proptest::prop_assert!(shared.slots.len() <= max);
            proptest::prop_assert!(shared.by_address.values().all(|count| (1..=max_per_address).contains(count)));
            proptest::prop_assert_eq!(shared.by_address.values().sum::<usize>(), shared.slots.len());
        }
    }
}

proptest::proptest! {
    /// Whatever a client does at its own limit, a new client finds an idle slot, even right afterwards.
    #[test]
    fn a_client_at_its_own_limit_does_not_exclude_others(
        busy_ones in 0_usize..=3,
        attempts in 1_usize..10,
        newcomers in 1_usize..=2,
    ) {
        let limit = ConnectionLimit::new(5, 3, Vec::new());
        let others = ["192.0.2.2", "192.0.2.3"].map(|from| admit(&limit, peer(from)).unwrap());
        let mut own: Vec<_> = (0..3).map(|_| admit(&limit, peer("192.0.2.1")).unwrap()).collect();
        let requests: Vec<_> = own.iter().take(busy_ones).map(|open| open.requests().begin()).collect();
        for _ in 0..attempts {
            if let Ok(next) = admit(&limit, peer("192.0.2.1")) {
                own.push(next);
            }
        }
        at_once(&limit);
        for number in 0..newcomers {
            let newcomer = admit(&limit, IpAddr::from([198, 51, 100, u8::try_from(number).unwrap()]));
            proptest::prop_assert!(newcomer.is_ok(), "{newcomer:?}");
        }
        drop((others, requests));
    }
}

#[test]
fn all_addresses_of_an_ipv6_site_are_one() {
    let limit = ConnectionLimit::new(10, 1, Vec::new());
    let _open = busy(&limit, "2001:db8:0:1::1").unwrap();
    assert_eq!(
        admit(&limit, peer("2001:db8:0:1:ffff::2")).unwrap_err(),
        ReachedLimit::Address
    );
    assert!(admit(&limit, peer("2001:db8:0:2::1")).is_ok());
}

#[test]
fn a_trusted_proxy_counts_in_all_only() {
    let limit = ConnectionLimit::new(3, 1, vec!["10.0.0.0/8".parse().unwrap()]);
    let _open = [(); 3].map(|()| busy(&limit, "10.1.2.3").unwrap());
    assert_eq!(admit(&limit, peer("10.1.2.3")).unwrap_err(), ReachedLimit::All);
}

#[test]
fn nothing_is_remembered_of_addresses_without_a_connection() {
    let limit = ConnectionLimit::new(2, 2, Vec::new());
    for n in 0..100_u32 {
        drop(admit(&limit, IpAddr::V4(n.into())).unwrap());
    }
    assert!(limit.shared.open.lock().by_address.is_empty());
    assert_eq!(limit.open(), 0);
}
