//! Tests of the fence of a confirmed write, and of how long a replica is expected.

use super::*;

#[test]
fn a_fence_is_in_the_slot_of_its_key() {
    let made = fence("{b0007}/acct_1/live/intent/int_1");
    assert_eq!(made.as_deref(), Some("{b0007}/fence"));
    assert_eq!(fence("tollgate/wallet-number"), None);
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
