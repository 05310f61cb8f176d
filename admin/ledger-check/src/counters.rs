//! The rules of an agent's counters.

use super::book::{Owner, OwnerRecord};
use domain::period::{DAY_MS, Period};
use std::collections::BTreeMap;

/// Number of days whose counters certainly exist: the scripts remove those of more than 40 days ago.
pub(super) const DAYS_KEPT: u64 = 39;

/// A counter's field, and its fault.
pub(super) type CounterFault = (String, String);

/// Adds an agent to the sums of a month: its charge, and 1 if it has a slot in the plan.
pub(super) fn add_month(sums: (i128, i128), charged: Option<i128>, has_slot: bool) -> (i128, i128) {
    (sums.0 + charged.unwrap_or(0), sums.1 + i128::from(has_slot))
}

/// Returns the fault if the counters of the month's days do not sum to that of the month. All days of the current month
/// exist.
pub(super) fn month_differs(record: &OwnerRecord, month: u64) -> Option<CounterFault> {
    let in_month = |day: &u64| Period::at(day * DAY_MS).month == month;
    let days = record.counters.days.iter().filter(|(day, _)| in_month(day));
    let sum: i128 = days.map(|(_, nanos)| nanos).sum();
    let says = record.counters.months.get(&month).copied().unwrap_or(0);
    (sum != says).then(|| {
        (
            format!("m{month}"),
            format!("it is {says} nanos, but its days sum to {sum}"),
        )
    })
}

/// Returns the counters that are below the charges.
pub(super) fn below(owner: &Owner, today: Period, resolved: &[String]) -> Vec<CounterFault> {
    let (mut days, mut months) = (BTreeMap::<u64, u128>::new(), BTreeMap::<u64, u128>::new());
    let spends = owner
        .charged
        .iter()
        .map(|((day, month), nanos)| (*day, *month, *nanos));
    let holds = owner.holds.iter().filter(|hold| !resolved.contains(&hold.id));
    let holds = holds.map(|hold| (hold.period.day, hold.period.month, u128::from(hold.nanos)));
    for (day, month, nanos) in spends.chain(holds) {
        if day + DAYS_KEPT >= today.day {
            *days.entry(day).or_default() += nanos;
        }
        // Earlier months are kept for two years, and are not checked.
        if month == today.month {
            *months.entry(month).or_default() += nanos;
        }
    }
    let none = BTreeMap::new();
    let counters = owner.record.as_ref().map(|record| &record.counters);
    let short = |name: char, floors: BTreeMap<u64, u128>, counters: &BTreeMap<u64, i128>| {
        let low = floors.into_iter().filter_map(|(period, floor)| {
            let says = counters.get(&period).copied().unwrap_or(0);
            let floor = i128::try_from(floor).unwrap_or(i128::MAX);
            let detail = || format!("it is {says} nanos, but its spends and holds sum to {floor}");
            (says < floor).then(|| (format!("{name}{period}"), detail()))
        });
        low.collect::<Vec<_>>()
    };
    let mut low = short('d', days, counters.map_or(&none, |counters| &counters.days));
    low.extend(short(
        'm',
        months,
        counters.map_or(&none, |counters| &counters.months),
    ));
    low
}

/// Returns the fault if the wallet's counter of a day is not the sum of the day's spends.
pub(super) fn spends_differ(owner: &Owner, today: Period) -> Option<CounterFault> {
    let counters = &owner.record.as_ref()?.counters.spends;
    let days = owner.spends.keys().chain(counters.keys());
    let mut kept = days.filter(|day| **day + DAYS_KEPT >= today.day);
    kept.find_map(|day| {
        let sum = owner.spends.get(day).copied().unwrap_or(0);
        let says = counters.get(day).copied().unwrap_or(0);
        let detail = || format!("it is {says} nanos, but its spends sum to {sum}");
        (i128::try_from(sum) != Ok(says)).then(|| (format!("w{day}"), detail()))
    })
}

#[cfg(test)]
mod tests;
