//! Tests of the fence of a confirmed write, and of how long a replica is expected.

use super::*;

#[test]
fn a_fence_is_in_the_slot_of_its_key() {
    let made = fence("{b0007}/acct_1/live/intent/int_1");
    assert_eq!(made.as_deref(), Some("{b0007}/fence"));
    assert_eq!(fence("tollgate/wallet-number"), None);
}

#[test]
fn traces_of_a_replica_count_if_a_node_may_have_followed() {
    let own = "m1 127.0.0.1:1@2 myself,master - 0 0 1 connected 0-5460\n";
    let failed = "r1 127.0.0.1:3@4 slave,fail m1 0 0 1 connected\n";
    for (nodes, has_traces, had_replica) in [
        (own.to_owned(), true, false),
        (own.to_owned() + failed, true, true),
        (own.to_owned() + failed, false, false),
    ] {
        let offer = Offer {
            had_replica: has_traces,
            ..Offer::from_info("", None)
        };
        let found = offer_of_listed(offer, &nodes);
        assert_eq!((found.had_replica, found.listed), (had_replica, 0), "{nodes}");
    }
}

#[test]
fn a_replica_is_expected_for_a_while_after_it_followed() {
    let new_writes = || {
        let client = redis::Client::open("redis://127.0.0.1:1").unwrap();
        let (wait, timeout) = (Duration::ZERO, Duration::ZERO);
        ConfirmedWrites::new(Durability::Auto, wait, timeout, Dial::Single(Box::new(client)))
    };
    let waits_for = |writes: &ConfirmedWrites, listed: u64, had_replica: bool| {
        let offer = Offer {
            had_replica,
            ..Offer::from_info("", None).listed(listed)
        };
        writes.remember(&None, &offer)
    };
    let [none, one] = [0, 1].map(Confirmation::by_replicas);
    let writes = new_writes();
    assert_eq!(waits_for(&writes, 0, false), Ok(none));
    assert_eq!(waits_for(&writes, 0, true), Ok(none), "not the first query");
    assert_eq!(waits_for(&writes, 1, false), Ok(one));
    assert_eq!(waits_for(&writes, 0, false), Ok(one), "it may take over");
    writes.with_servers(|servers| {
        let known = servers.get_mut(&None).unwrap();
        known.replica_at = known.replica_at.map(|last| last - REPLICA_EXPECTED);
    });
    assert_eq!(waits_for(&writes, 0, false), Ok(none), "it is gone");
    assert_eq!(waits_for(&new_writes(), 0, true), Ok(one), "the first query");
}
