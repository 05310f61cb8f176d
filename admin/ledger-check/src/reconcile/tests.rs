//! Comparisons with few items, and with more than are stored.

use super::*;

type Item<'a> = (Side, &'a str, &'a [&'a str]);

/// Makes two passes over the same items. Returns the items without a counterpart.
fn mismatch(comparison: Comparison, items: &[Item<'_>]) -> Vec<Mismatch> {
    let seed = RandomState::new();
    let mut reconciliation = Reconciliation::new(seed.clone(), Suspects::new());
    let pass = |reconciliation: &mut Reconciliation| {
        for (side, key, parts) in items {
            reconciliation.add(comparison, *side, ("acct live", key), parts);
        }
    };
    pass(&mut reconciliation);
    let first = reconciliation.finish();
    assert!(first.mismatch.is_empty(), "a first pass stores no items");
    let mut reconciliation = Reconciliation::new(seed, first.suspects);
    pass(&mut reconciliation);
    reconciliation.finish().mismatch
}

#[test]
fn equal_sides_are_not_suspected() {
    let mut reconciliation = Reconciliation::new(RandomState::new(), Suspects::new());
    for n in 0..1000 {
        let key = n.to_string();
        reconciliation.add(Comparison::Deposit, Side::Record, ("a live", &key), &["x", &key]);
        reconciliation.add(Comparison::Deposit, Side::Match, ("a live", &key), &["x", &key]);
    }
    assert_eq!(reconciliation.finish(), Reconciled::default());
}

#[test]
fn items_without_a_counterpart_are_reported() {
    let found = mismatch(
        Comparison::IntentTransaction,
        &[
            (Side::Record, "1", &["txn_1", "5"]),
            (Side::Match, "1", &["txn_1", "6"]),
            (Side::Record, "2", &["txn_2", "5"]),
            (Side::Match, "2", &["txn_2", "5"]),
            (Side::Match, "3", &["txn_3", "5"]),
        ],
    );
    assert_eq!(found.len(), 2);
    assert_eq!((found[0].key.as_str(), found[1].key.as_str()), ("1", "3"));
    assert_eq!(found[0].records, ["txn_1 5"]);
    assert_eq!(found[0].matches, ["txn_1 6"]);
    assert_eq!(found[1].records, Vec::<String>::new());
}

#[test]
fn a_record_seen_twice_is_one_and_a_match_seen_twice_is_two() {
    let twice = [
        (Side::Record, "1", &["x"][..]),
        (Side::Record, "1", &["x"]),
        (Side::Match, "1", &["x"]),
    ];
    assert_eq!(mismatch(Comparison::EscrowMoney, &twice), []);
    let paid_twice = [
        (Side::Record, "1", &["x"][..]),
        (Side::Match, "1", &["x"]),
        (Side::Match, "1", &["x"]),
    ];
    assert_eq!(mismatch(Comparison::EscrowMoney, &paid_twice).len(), 1);
    assert_eq!(
        mismatch(Comparison::EscrowWinner, &paid_twice),
        [],
        "both sides come from the scan of the keys"
    );
}

#[test]
fn money_in_transit_counts_until_it_has_arrived() {
    let there = (Side::Match, "1", &["x"][..]);
    let (record, transit) = (
        (Side::Record, "1", &["x"][..]),
        (Side::InTransit, "1", &["x"][..]),
    );
    assert_eq!(mismatch(Comparison::EscrowMoney, &[record, transit]), []);
    assert_eq!(
        mismatch(Comparison::EscrowMoney, &[record, transit, there]),
        [],
        "it arrived meanwhile"
    );
    assert_eq!(mismatch(Comparison::EscrowMoney, &[transit]).len(), 1);
}

/// Intents of a busy store: each pass sees some whose lists do not contain them yet. One is in no list at all.
#[test]
fn items_beyond_the_bound_are_no_mismatches() {
    const LOST: &str = "777";
    let seed = RandomState::new();
    let mut suspects = Suspects::new();
    let mut found = Vec::new();
    for pass in 0..4 {
        let mut reconciliation = Reconciliation::new(seed.clone(), suspects);
        reconciliation.items_max = 50;
        let late = |key: &str| key.parse::<usize>().unwrap() % 200 == pass;
        for side in [Side::Record, Side::Match] {
            for n in 0..20_000 {
                let key = n.to_string();
                let is_listed = key != LOST && !late(&key);
                if side == Side::Record || is_listed {
                    reconciliation.add(Comparison::IntentList, side, ("a live", &key), &["all"]);
                }
            }
        }
        assert!(reconciliation.held <= 50);
        let of_pass = reconciliation.finish();
        found = of_pass.mismatch.into_iter().map(|one| one.key).collect();
        assert!(
            found.iter().all(|key| key == LOST || late(key)),
            "{pass}: {found:?}"
        );
        match pass {
            1 => assert!(!of_pass.left_out.is_empty() || found.contains(&LOST.to_owned())),
            _ => assert_eq!(of_pass.left_out, [], "{pass}"),
        }
        suspects = of_pass.suspects;
    }
    assert!(found.contains(&LOST.to_owned()), "{found:?}");
}

/// More differs than can be stored: what is stored is reported, and the rest is known to be left out.
#[test]
fn skipped_records_are_reported() {
    let seed = RandomState::new();
    let mut reconciliation = Reconciliation::new(seed.clone(), Suspects::new());
    let mut last = Vec::new();
    for pass in 0..3 {
        reconciliation.items_max = 50;
        for n in 0..1000 {
            let key = n.to_string();
            reconciliation.add(Comparison::Deposit, Side::Record, ("a live", &key), &["x"]);
        }
        let of_pass = reconciliation.finish();
        let keys: Vec<String> = of_pass.mismatch.iter().map(|one| one.key.clone()).collect();
        if pass > 0 {
            assert!((25..=50).contains(&keys.len()), "{keys:?}");
            assert!(
                matches!(of_pass.left_out[..], [(Comparison::Deposit, 900..)]),
                "{:?}",
                of_pass.left_out
            );
        }
        if pass > 1 {
            assert_eq!(keys, last, "the next pass confirms them");
        }
        last = keys;
        reconciliation = Reconciliation::new(seed.clone(), of_pass.suspects);
    }
}

#[test]
fn each_comparison_has_its_own_sums() {
    let indexes: Vec<usize> = Comparison::ALL
        .iter()
        .map(|comparison| *comparison as usize)
        .collect();
    assert_eq!(indexes, (0..COMPARISONS).collect::<Vec<_>>());
}

#[test]
fn equal_transfers_are_counted() {
    use Side::{InTransit, Match, MatchMeanwhile, Record, RecordMeanwhile};
    for (sides, sent, received) in [
        (&[Record, Record, Match, Match][..], 0, 0),
        (&[Record, Record, Match], 1, 0),
        (&[Record, Match, Match], 0, 1),
        (&[Record, Match, Match, Match], 0, 2),
        (&[Record, InTransit], 0, 0),
        (&[Record, Match, InTransit], 0, 1),
        (&[InTransit], 0, 1),
        (&[Record, MatchMeanwhile], 0, 0),
        (&[Record, Record, MatchMeanwhile], 1, 0),
        (&[RecordMeanwhile, Match], 0, 0),
        (&[RecordMeanwhile, InTransit], 0, 0),
        (&[RecordMeanwhile, InTransit, Match], 0, 1),
        (&[Record, RecordMeanwhile, MatchMeanwhile], 0, 0),
        (&[RecordMeanwhile], 0, 0),
        (&[MatchMeanwhile, MatchMeanwhile], 0, 0),
    ] {
        let items: Vec<Item<'_>> = sides.iter().map(|side| (*side, "1 to 2", &[][..])).collect();
        let found = mismatch(Comparison::Transfer, &items);
        let reported = |number: u64| Vec::from_iter((number > 0).then(|| number.to_string()));
        match (sent, received) {
            (0, 0) => assert_eq!(found, [], "{sides:?}"),
            _ => {
                assert_eq!(found.len(), 1, "{sides:?}");
                let found = (&found[0].records, &found[0].matches);
                assert_eq!(found, (&reported(sent), &reported(received)), "{sides:?}");
            }
        }
    }
}
