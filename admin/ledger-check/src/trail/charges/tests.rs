//! Tests of what an entry charges, and of counters compared with the sums of the trail.

use super::*;
use domain::period::DAY_MS;

const TODAY: Period = Period {
    day: 20_780,
    month: 202_611,
};
const MEMO: &str = "acct_x bot - vk_1 p1 gpt-4o";

fn ended(seq: u64, outcome: &str, cost: u64, id: &str, day: u64) -> Entry {
    let at_ms = day * DAY_MS;
    let month = Period::at(at_ms).month;
    let line = format!("{seq} {at_ms} A {outcome} {cost} allow_{id} H 200 {day} {month} 0 ,,,,,, {MEMO}");
    Entry::from_line(seq, line.as_bytes())
}

fn spend(seq: u64, nanos: u64, day: u64) -> Entry {
    let at_ms = day * DAY_MS;
    let data = format!(r#"{{"amountNanos":"{nanos}"}}"#);
    let fields = format!(r#"{{"type":"spend.requested","agentId":"bot","actor":"k","data":{data}}}"#);
    let line = format!("{seq} {at_ms} {fields} outcome=settled");
    Entry::from_line(seq, line.as_bytes())
}

fn charges(entries: &[Entry], days: &[(u64, i128)], held: u64) -> Charges {
    let mut counters = Counters::default();
    for (day, nanos) in days {
        counters.days.insert(*day, *nanos);
        *counters
            .months
            .entry(Period::at(*day * DAY_MS).month)
            .or_default() += nanos;
    }
    let mut charges = Charges::default();
    charges.set_until(100, TODAY.day * DAY_MS);
    let snapshot = AgentSnapshot {
        until: 100,
        counters,
        held,
    };
    charges.add("bot".to_owned(), snapshot);
    for entry in entries {
        charges.add_entry(entry).unwrap();
    }
    charges
}

fn fields(entries: &[Entry], days: &[(u64, i128)], held: u64) -> Vec<String> {
    let found = charges(entries, days, held).agents_differ(TODAY);
    found.into_iter().map(|(_, field, _)| field).collect()
}

#[test]
fn every_end_of_a_call_counts_what_the_script_moved() {
    let day = TODAY.day;
    let entries = [
        ended(1, "settled", 120, "a", day),
        ended(2, "released", 0, "b", day),
        ended(3, "estimated", 200, "c", day),
        ended(4, "kept", 200, "d", day),
        ended(5, "corrected", 50, "d", day),
        ended(6, "kept", 200, "e", day - 1),
        ended(7, "voided", 0, "e", day - 1),
        ended(8, "kept", 200, "f", day - 1),
        ended(9, "estimated", 200, "f", day - 1),
        ended(10, "voided", 0, "g", day),
        spend(11, 7, day),
    ];
    let right = [(day, 120 + 200 + 50 + 7), (day - 1, 200)];
    assert_eq!(fields(&entries, &right, 0), Vec::<String>::new());
    // A correction replaces the charge of the entry, even if the hold was edited since.
    let mut corrected = ended(2, "corrected", 0, "d", day);
    corrected.data.insert("estimateNanos".to_owned(), "5000".into());
    let kept = [ended(1, "kept", 200, "d", day), corrected];
    assert_eq!(fields(&kept, &[(day, 0)], 0), Vec::<String>::new());
    let low = [(day, 120 + 200 + 50 + 6), (day - 1, 200)];
    let d = format!("d{day}");
    assert_eq!(fields(&entries, &low, 0), [d.as_str(), "m202611"]);
    let found = charges(&entries, &low, 0).agents_differ(TODAY);
    assert!(
        found[0]
            .2
            .starts_with("it is 376 nanos, but the audit entries up to 100 sum to 377"),
        "{found:?}"
    );
}

#[test]
fn counters_exceed_the_trail_by_exactly_the_open_holds() {
    let day = TODAY.day;
    let entries = [ended(1, "settled", 120, "a", day - 1), spend(2, 5, day)];
    for (yesterday, today) in [(120, 205), (320, 5), (170, 155)] {
        assert_eq!(
            fields(&entries, &[(day - 1, yesterday), (day, today)], 200),
            Vec::<String>::new()
        );
    }
    let d = format!("d{day}");
    assert_eq!(
        fields(&entries, &[(day - 1, 120), (day, 204)], 200),
        [d.as_str(), "m202611"]
    );
    assert_eq!(
        fields(&entries, &[(day - 1, 120), (day, 5)], 200),
        [d.as_str(), "m202611"]
    );
    assert_eq!(
        fields(&entries, &[(day - 1, 119), (day, 206)], 200),
        [format!("d{}", day - 1), d]
    );
    assert_eq!(
        fields(&[], &[], 200),
        Vec::<String>::new(),
        "without any counter, the check of held amounts reports it"
    );
}

#[test]
fn expired_counters_are_not_compared() {
    let day = TODAY.day - 40;
    let entries = [spend(1, 5, day)];
    let found = charges(&entries, &[], 0);
    let fields: Vec<_> = found
        .agents_differ(TODAY)
        .into_iter()
        .map(|(_, field, _)| field)
        .collect();
    assert_eq!(fields, ["m202610"], "its month is kept");
}

#[test]
fn entries_after_the_snapshot_are_ignored_and_those_of_deleted_agents_are_not() {
    let day = TODAY.day;
    let mut charges = charges(&[], &[], 0);
    charges.add_entry(&spend(101, 5, day)).unwrap();
    assert_eq!(charges.agents_differ(TODAY), [], "after the record was read");
    charges.agents.clear();
    charges.add_entry(&spend(99, 5, day)).unwrap();
    assert_eq!(charges.agents_differ(TODAY).len(), 2);
}

#[test]
fn a_run_is_compared_with_the_entries_of_its_record() {
    let day = TODAY.day;
    let of_run = |seq: u64, cost: u64, day: u64| {
        let at_ms = day * DAY_MS;
        let memo = MEMO.replace(" - ", " run-1 ");
        let line = format!("{seq} {at_ms} A settled {cost} allow_{seq} H 200 {day} 202611 1 ,,,,,, {memo}");
        Entry::from_line(seq, line.as_bytes())
    };
    for (spent, held, right) in [
        (120, 0, true),
        (119, 0, false),
        (121, 0, false),
        (320, 200, true),
        (321, 200, false),
    ] {
        let mut charges = charges(&[], &[], 0);
        let began_ms = day * DAY_MS;
        let snapshot = RunSnapshot::new(3, began_ms, (spent, held));
        charges.add_run("bot".to_owned(), "run-1".to_owned(), snapshot);
        // One of an earlier record, one of another run, one after the record was read.
        for entry in [
            of_run(1, 7, day - 36),
            of_run(2, 120, day),
            ended(3, "settled", 9, "a", day),
            of_run(4, 5, day),
        ] {
            charges.add_entry(&entry).unwrap();
        }
        assert_eq!(charges.runs_differ().is_empty(), right, "{spent} {held}");
    }
}

#[test]
fn a_run_that_was_charged_has_a_record_until_it_expires() {
    let day = TODAY.day;
    let call = |seq: u64, run: &str, age_days: u64| {
        let at_ms = (day - age_days) * DAY_MS;
        let id = IdKind::Allow.mint(at_ms).unwrap();
        let memo = MEMO.replace(" - ", &format!(" {run} "));
        // It ended today.
        let line = format!(
            "{seq} {} A settled 5 {id} H 200 {day} 202611 1 ,,,,,, {memo}",
            day * DAY_MS
        );
        Entry::from_line(seq, line.as_bytes())
    };
    for (run, age_days, is_missing) in [
        ("run-1", 0, true),
        ("run-1", 34, true),
        ("run-1", 35, false),
        ("req_1", 0, false),
        ("-", 0, false),
    ] {
        let mut charges = charges(&[], &[], 0);
        charges.add_entry(&call(1, run, age_days)).unwrap();
        charges.add_entry(&call(101, "later", 0)).unwrap();
        let found = charges.runs_differ();
        assert_eq!(found.len(), usize::from(is_missing), "{run} {age_days} {found:?}");
        assert!(found.iter().all(|(agent, name, _)| agent == "bot" && name == run));
    }
}

#[test]
fn a_bounded_number_of_runs_without_a_record_is_remembered() {
    let mut charges = charges(&[], &[], 0);
    charges.until = u64::MAX;
    for seq in 1..=UNRECORDED_MAX as u64 + 1 {
        let data = format!(r#"{{"amountNanos":"5","runId":"run-{seq}"}}"#);
        let fields = format!(r#"{{"type":"spend.requested","agentId":"bot","actor":"k","data":{data}}}"#);
        let line = format!("{seq} {} {fields} outcome=settled", TODAY.day * DAY_MS);
        charges
            .add_entry(&Entry::from_line(seq, line.as_bytes()))
            .unwrap();
    }
    assert_eq!(charges.runs_differ().len(), UNRECORDED_MAX);
}

#[test]
fn the_account_is_the_sum_and_at_most_what_is_held_beyond() {
    let day = TODAY.day;
    let charges = charges(&[spend(1, 5, day), spend(2, 7, day - 30)], &[], 20);
    let tracked = |october: i128, november: i128| PeriodSums::from([(202_610, october), (202_611, november)]);
    for (october, november) in [(7, 5), (27, 5), (7, 0)] {
        assert_eq!(charges.account_differs(&tracked(october, november), TODAY), []);
    }
    for october in [0, 6, 28] {
        assert_eq!(charges.account_differs(&tracked(october, 5), TODAY).len(), 1);
    }
}
