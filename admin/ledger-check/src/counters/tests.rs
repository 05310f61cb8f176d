//! The rules of counters on records made by hand.

use super::super::book::OwnerHold;
use super::*;
use store::call::unsettled_holds::HoldState;

/// Day 20,777 is 2026-11-20.
const TODAY: Period = Period {
    day: 20_777,
    month: 202_611,
};

fn owner(fields: &[(&str, &str)]) -> Owner {
    let fields = fields
        .iter()
        .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
    Owner {
        record: Some(OwnerRecord::from_fields(9, &fields.collect())),
        ..Owner::default()
    }
}

fn hold(id: &str, state: HoldState, nanos: u64) -> OwnerHold {
    OwnerHold {
        id: id.to_owned(),
        state,
        period: TODAY,
        nanos,
    }
}

#[test]
fn days_come_to_the_month() {
    let record = |fields: &[(&str, &str)]| owner(fields).record.unwrap();
    let right = [
        ("d20777", "5"),
        ("d20758", "7"),
        ("d20757", "100"),
        ("m202611", "12"),
        ("m202610", "3"),
    ];
    assert_eq!(month_differs(&record(&right), TODAY.month), None);
    assert_eq!(month_differs(&record(&[]), TODAY.month), None);
    let wrong = [("d20777", "5"), ("m202611", "6")];
    assert!(
        month_differs(&record(&wrong), TODAY.month)
            .unwrap()
            .1
            .contains("it is 6")
    );
    assert!(month_differs(&record(&[("d20777", "5")]), TODAY.month).is_some());
}

#[test]
fn a_counter_is_not_below_what_was_charged() {
    let mut bot = owner(&[("d20777", "10"), ("m202611", "10")]);
    bot.charged.insert((20_777, 202_611), 6);
    bot.holds.push(hold("allow_1", HoldState::Open, 4));
    assert_eq!(below(&bot, TODAY, &[]), Vec::<CounterFault>::new());
    bot.holds.push(hold("allow_2", HoldState::Kept, 1));
    assert_eq!(below(&bot, TODAY, &[]).len(), 2, "day and month");
    assert_eq!(
        below(&bot, TODAY, &["allow_2".to_owned()]),
        Vec::<CounterFault>::new()
    );
    // Counters of days long ago have been removed.
    bot.charged.insert((20_700, 202_609), 6);
    assert_eq!(
        below(&bot, TODAY, &["allow_2".to_owned()]),
        Vec::<CounterFault>::new()
    );
    bot.record = None;
    assert!(!below(&bot, TODAY, &[]).is_empty(), "a charge without a record");
}

#[test]
fn a_wallet_spends_what_its_transactions_say() {
    let mut bot = owner(&[("w20777", "10"), ("w20000", "1")]);
    assert_eq!(spends_differ(&bot, TODAY).unwrap().0, "w20777");
    bot.spends.insert(20_777, 10);
    assert_eq!(spends_differ(&bot, TODAY), None);
    bot.spends.insert(20_776, 1);
    assert_eq!(spends_differ(&bot, TODAY).unwrap().0, "w20776");
}

#[test]
fn a_slot_in_the_month_is_counted() {
    assert_eq!(add_month((1, 1), Some(5), true), (6, 2));
    assert_eq!(add_month((1, 1), None, false), (1, 1));
    let slots = [("s202611", "1"), ("s202612", "c2"), ("spend_limit", "5")];
    let record = owner(&slots).record.unwrap();
    assert_eq!(record.slots, [202_611, 202_612].into());
}
