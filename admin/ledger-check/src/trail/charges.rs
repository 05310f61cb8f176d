//! Sums of the charges in the trail, by agent, day and month: calls that ended, and settled spends. A counter equals
//! such a sum plus the holds of open calls, which have no entry yet.

use super::super::book::Counters;
use super::super::counters::DAYS_KEPT;
use super::legs::{EntryFields, MissingField};
use domain::entry::{Entry, HoldOutcome};
use domain::id::{Kind, made_at_ms};
use domain::period::Period;
use std::collections::{BTreeMap, HashMap};
use std::hash::{DefaultHasher, Hash, Hasher};
use store::call::authorize::RUN_LIFE;

/// Like [`DAYS_KEPT`] for months, in the distance of their numbers.
const MONTHS_KEPT: u64 = 199;
/// Days after which a kept hold cannot be corrected any more.
const KEPT_DAYS: u64 = 40;
/// Number of remembered kept holds from which on old ones are forgotten.
const KEPT_MANY: usize = 100_000;

/// Entries that are this much older than a run's record belong to an earlier record of the same run id: a record
/// expires 35 days after its last call. Exceeds any difference between servers' clocks.
const SAME_RUN_MS: u64 = 12 * 3_600_000;

/// Prefix of the ids of runs that no caller named: they have no record. A caller's own run id with it is not checked.
const UNNAMED: &str = Kind::Request.prefix();
/// Maximum number of runs without a record that are reported.
const UNRECORDED_MAX: usize = 1_000;

/// Nano-USD by day or month. A sum is negative if it has a correction without the charge.
type Sums = BTreeMap<u64, i128>;

/// An agent's record when the trail had `until` entries.
#[derive(Debug, Default)]
pub(super) struct Snapshot {
    pub(super) until: u64,
    pub(super) counters: Counters,
    /// Sum of its open holds.
    pub(super) held: u64,
}

/// A run's record when the trail had `until` entries, and the sum of its charges in the trail.
#[derive(Debug)]
pub(super) struct RunSnapshot {
    until: u64,
    /// Earlier entries belong to an earlier record.
    from_ms: u64,
    spent: i128,
    /// Sum of its agent's open holds, of this run and others.
    held: i128,
    sum: i128,
}

impl RunSnapshot {
    /// Creates the snapshot of a run that began at `first_ms`.
    pub(super) fn new(until: u64, first_ms: u64, (spent, held): (i128, u64)) -> Self {
        Self {
            until,
            from_ms: first_ms.saturating_sub(SAME_RUN_MS),
            spent,
            held: held.into(),
            sum: 0,
        }
    }
}

/// Charges of an agent in the trail, up to its snapshot.
#[derive(Debug, Default)]
struct Charged {
    snapshot: Snapshot,
    days: Sums,
    months: Sums,
}

/// The charges of an account and mode.
#[derive(Debug, Default)]
pub(super) struct Charges {
    agents: HashMap<String, Charged>,
    /// Runs by agent and id.
    runs: HashMap<String, HashMap<String, RunSnapshot>>,
    /// Charges of the whole account, up to `until`.
    months: Sums,
    /// Number of entries when the account's record was read.
    until: u64,
    /// Runs without a record, by agent and id, and the number of their first entry. Only of calls and spends made since
    /// `runs_since_ms`, whose runs have records.
    unrecorded: BTreeMap<(String, String), u64>,
    runs_since_ms: u64,
    /// Day and charge in nano-USD of kept holds, by a hash of the id. The next entry of the hold replaces the charge.
    kept: HashMap<u64, (u64, i128)>,
}

/// A counter that differs from the trail: agent, field or run, and the fault.
pub(super) type CounterMismatch = (String, String, String);

/// Charge of one entry.
struct Charge<'a> {
    agent: &'a str,
    /// Time of the decision, in ms since 1970.
    made_ms: u64,
    run: Option<&'a str>,
    period: Period,
    nanos: i128,
}

impl Charges {
    /// Creates the charges of an account whose record was read at `now_ms`, when the trail had `until` entries.
    pub(super) fn until(until: u64, now_ms: u64) -> Self {
        let life = u64::try_from(RUN_LIFE.as_millis()).unwrap_or(u64::MAX);
        Self {
            until,
            runs_since_ms: now_ms.saturating_sub(life).saturating_add(SAME_RUN_MS),
            ..Self::default()
        }
    }

    /// Adds the record of an agent.
    pub(super) fn add(&mut self, agent: String, snapshot: Snapshot) {
        self.agents.entry(agent).or_default().snapshot = snapshot;
    }

    /// Adds the record of a run.
    pub(super) fn add_run(&mut self, agent: String, run: String, snapshot: RunSnapshot) {
        self.runs.entry(agent).or_default().insert(run, snapshot);
    }

    /// Adds the charge of the next entry.
    pub(super) fn add_entry(&mut self, entry: &Entry) -> Result<(), MissingField> {
        let Some(charge) = self.charge(entry)? else {
            return Ok(());
        };
        let until = self.until;
        if !self.agents.contains_key(charge.agent) {
            // Its record was deleted, and its counters with it.
            let snapshot = Snapshot {
                until,
                ..Snapshot::default()
            };
            self.add(charge.agent.to_owned(), snapshot);
        }
        if entry.seq <= until {
            *self.months.entry(charge.period.month).or_default() += charge.nanos;
        }
        if let Some(agent) = self.agents.get_mut(charge.agent)
            && entry.seq <= agent.snapshot.until
        {
            *agent.days.entry(charge.period.day).or_default() += charge.nanos;
            *agent.months.entry(charge.period.month).or_default() += charge.nanos;
        }
        let Some(run_id) = charge.run else { return Ok(()) };
        let runs = self.runs.get_mut(charge.agent);
        match runs.and_then(|runs| runs.get_mut(run_id)) {
            Some(run) if entry.seq <= run.until && entry.at_ms >= run.from_ms => run.sum += charge.nanos,
            Some(_) => {}
            None => {
                let has_record = !run_id.starts_with(UNNAMED) && charge.made_ms >= self.runs_since_ms;
                if has_record && entry.seq <= until && self.unrecorded.len() < UNRECORDED_MAX {
                    let name = (charge.agent.to_owned(), run_id.to_owned());
                    self.unrecorded.entry(name).or_insert(entry.seq);
                }
            }
        }
        Ok(())
    }

    fn charge<'a>(&mut self, entry: &'a Entry) -> Result<Option<Charge<'a>>, MissingField> {
        let fields = EntryFields(entry);
        let agent = || entry.agent.as_deref().ok_or(MissingField);
        match entry.kind.as_str() {
            "decision.approved" | "decision.voided" => {
                let (charged, estimate) = (fields.nanos("chargedNanos")?, fields.nanos("estimateNanos")?);
                let period = Period {
                    day: fields.number("day")?,
                    month: fields.number("month")?,
                };
                let how = HoldOutcome::parse(fields.text("outcome")?).ok_or(MissingField)?;
                let charged = i128::from(charged);
                // The entry of the kept hold has the amount that was charged. The estimate in the entry of a correction
                // comes from the hold, which may have been edited since.
                let kept = self.charged_while_kept(&entry.id, how, (period.day, charged));
                let unread = (how == HoldOutcome::Corrected).then_some(i128::from(estimate));
                let before = kept.or(unread).unwrap_or(0);
                Ok(Some(Charge {
                    agent: agent()?,
                    made_ms: made_at_ms(&entry.id).unwrap_or(0),
                    run: fields.text("runId").ok(),
                    period,
                    nanos: charged - before,
                }))
            }
            "spend.requested" | "spend.approved" if fields.is_settled() => Ok(Some(Charge {
                agent: agent()?,
                made_ms: entry.at_ms,
                run: fields.text("runId").ok(),
                period: Period::at(entry.at_ms),
                nanos: fields.nanos("amountNanos")?.into(),
            })),
            _ => Ok(None),
        }
    }

    /// Returns the charge of a hold that was kept before, in nano-USD. Remembers `kept`, its day and charge, if this
    /// entry keeps it.
    fn charged_while_kept(&mut self, id: &str, how: HoldOutcome, kept: (u64, i128)) -> Option<i128> {
        let mut hasher = DefaultHasher::new();
        id.hash(&mut hasher);
        let id = hasher.finish();
        if how != HoldOutcome::Kept {
            return self.kept.remove(&id).map(|(_, charged)| charged);
        }
        if self.kept.len() >= KEPT_MANY {
            self.kept.retain(|_, (day, _)| *day + KEPT_DAYS >= kept.0);
        }
        self.kept.insert(id, kept).map(|(_, charged)| charged)
    }

    /// Returns the sum of all open holds.
    fn held(&self) -> i128 {
        self.agents
            .values()
            .map(|agent| i128::from(agent.snapshot.held))
            .sum()
    }

    /// Returns the counters of agents that differ from the trail.
    pub(super) fn agents_differ(&self, today: Period) -> Vec<CounterMismatch> {
        let mut all = Vec::new();
        for (name, agent) in &self.agents {
            let Snapshot {
                until,
                counters,
                held,
            } = &agent.snapshot;
            let held = i128::from(*held);
            let is_day = |day: u64| day.saturating_add(DAYS_KEPT) >= today.day;
            let is_month = |month: u64| month.saturating_add(MONTHS_KEPT) >= today.month;
            let days = differ(('d', *until), (&counters.days, &agent.days), held, is_day);
            let months = differ(('m', *until), (&counters.months, &agent.months), held, is_month);
            all.extend(
                days.into_iter()
                    .chain(months)
                    .map(|(field, detail)| (name.clone(), field, detail)),
            );
        }
        all.sort();
        all
    }

    /// Returns the runs whose spent amount differs from the trail. Which of the agent's open holds belong to the run is
    /// unknown, so each amount between none and all of them is accepted.
    pub(super) fn runs_differ(&self) -> Vec<CounterMismatch> {
        let runs = self.runs.iter();
        let runs = runs.flat_map(|(agent, runs)| runs.iter().map(move |(run, of)| (agent, run, of)));
        let wrong = runs.filter(|(.., of)| !(0..=of.held).contains(&(of.spent - of.sum)));
        let named = wrong.map(|(agent, run, of)| {
            let detail = detail(of.spent, of.sum, of.until, &format!("up to {}", of.held));
            (agent.clone(), run.clone(), detail)
        });
        let unrecorded = self.unrecorded.iter().map(|((agent, run), seq)| {
            let detail =
                format!("it has no record, but audit entry {seq} charges it, and it cannot have expired");
            (agent.clone(), run.clone(), detail)
        });
        named.chain(unrecorded).collect()
    }

    /// Returns the months whose tracked USD differs from the trail. The months of the open holds are unknown, so each
    /// amount between none and all of them is accepted. The current month, in which calls begin and end, is not
    /// compared here: its agents are, and add up to their account.
    pub(super) fn account_differs(&self, tracked: &Sums, today: Period) -> Vec<(String, String)> {
        let held = self.held();
        let mut wrong = Vec::new();
        for (month, says, sum) in both(tracked, &self.months) {
            if month != today.month && !(0..=held).contains(&(says - sum)) {
                wrong.push((
                    format!("t{month}"),
                    detail(says, sum, self.until, &format!("up to {held}")),
                ));
            }
        }
        wrong
    }
}

/// Returns the counters that differ from the trail. The periods of the open holds are unknown: no counter may be below
/// its sum, and together they must exceed their sums by exactly `held`.
fn differ(
    (letter, until): (char, u64),
    (counters, sums): (&Sums, &Sums),
    held: i128,
    is_kept: impl Fn(u64) -> bool,
) -> Vec<(String, String)> {
    let rows = || both(counters, sums).filter(|(period, ..)| is_kept(*period));
    let above: i128 = rows().map(|(_, says, sum)| says - sum).sum();
    let fits = |apart: i128| (0..=held).contains(&apart);
    let mut wrong: Vec<(u64, i128, i128)> = rows().filter(|(_, says, sum)| !fits(says - sum)).collect();
    if wrong.is_empty() && above != held {
        // Each alone could be right. The last one is reported, since open calls are charged to it.
        wrong.extend(
            rows()
                .filter(|(_, says, sum)| says != sum)
                .last()
                .or_else(|| rows().last()),
        );
    }
    let named = wrong.into_iter().map(|(period, says, sum)| {
        let detail = detail(says, sum, until, &held.to_string());
        (format!("{letter}{period}"), detail)
    });
    named.collect()
}

fn detail(says: i128, sum: i128, until: u64, held: &str) -> String {
    format!(
        "it is {says} nanos, but the audit entries up to {until} sum to {sum}, and the open holds to {held}"
    )
}

/// Returns each period of either side, with both numbers.
fn both<'a>(counters: &'a Sums, sums: &'a Sums) -> impl Iterator<Item = (u64, i128, i128)> + 'a {
    let number = |side: &Sums, period: u64| side.get(&period).copied().unwrap_or(0);
    let only = sums.keys().filter(|period| !counters.contains_key(period));
    let mut periods: Vec<u64> = counters.keys().chain(only).copied().collect();
    periods.sort_unstable();
    let rows = periods.into_iter();
    rows.map(move |period| (period, number(counters, period), number(sums, period)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use domain::period::DAY_MS;

    const TODAY: Period = Period {
        day: 20_780,
        month: 202_611,
    };
    const MEMO: &str = "acct_x bot - vk_1 p1 gpt-4o";

    fn ended(seq: u64, how: &str, cost: u64, id: &str, day: u64) -> Entry {
        let at_ms = day * DAY_MS;
        let month = Period::at(at_ms).month;
        let line = format!("{seq} {at_ms} A {how} {cost} allow_{id} H 200 {day} {month} 0 ,,,,,, {MEMO}");
        Entry::of_line(seq, line.as_bytes())
    }

    fn spend(seq: u64, nanos: u64, day: u64) -> Entry {
        let at_ms = day * DAY_MS;
        let data = format!(r#"{{"amountNanos":"{nanos}"}}"#);
        let fields = format!(r#"{{"type":"spend.requested","agentId":"bot","actor":"k","data":{data}}}"#);
        let line = format!("{seq} {at_ms} {fields} outcome=settled");
        Entry::of_line(seq, line.as_bytes())
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
        let mut charges = Charges::until(100, TODAY.day * DAY_MS);
        let snapshot = Snapshot {
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
            let line =
                format!("{seq} {at_ms} A settled {cost} allow_{seq} H 200 {day} 202611 1 ,,,,,, {memo}");
            Entry::of_line(seq, line.as_bytes())
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
            let id = Kind::Allow.mint(at_ms).unwrap();
            let memo = MEMO.replace(" - ", &format!(" {run} "));
            // It ended today.
            let line = format!(
                "{seq} {} A settled 5 {id} H 200 {day} 202611 1 ,,,,,, {memo}",
                day * DAY_MS
            );
            Entry::of_line(seq, line.as_bytes())
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
            charges.add_entry(&Entry::of_line(seq, line.as_bytes())).unwrap();
        }
        assert_eq!(charges.runs_differ().len(), UNRECORDED_MAX);
    }

    #[test]
    fn the_account_is_the_sum_and_at_most_what_is_held_beyond() {
        let day = TODAY.day;
        let charges = charges(&[spend(1, 5, day), spend(2, 7, day - 30)], &[], 20);
        let tracked = |october: i128, november: i128| Sums::from([(202_610, october), (202_611, november)]);
        for (october, november) in [(7, 5), (27, 5), (7, 0)] {
            assert_eq!(charges.account_differs(&tracked(october, november), TODAY), []);
        }
        for october in [0, 6, 28] {
            assert_eq!(charges.account_differs(&tracked(october, 5), TODAY).len(), 1);
        }
    }
}
