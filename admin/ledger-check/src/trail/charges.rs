//! Sums of the charges in the trail, by agent, day and month: calls that ended, and settled spends. A counter equals
//! such a sum plus the holds of open calls, which have no entry yet.

use super::super::book::Counters;
use super::super::counters::DAYS_KEPT;
use super::legs::{EntryFields, MissingField};
use domain::decision;
use domain::entry::{Entry, HoldOutcome};
use domain::id::{IdKind, made_at_ms};
use domain::period::Period;
use std::collections::{BTreeMap, HashMap};
use std::hash::{DefaultHasher, Hash, Hasher};
use store::call::authorize::RUN_LIFE_MS;

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
const UNNAMED: &str = IdKind::Request.prefix();
/// Maximum number of runs without a record that are reported.
const UNRECORDED_MAX: usize = 1_000;

/// Nano-USD by day or month. A sum is negative if it has a correction without the charge.
type PeriodSums = BTreeMap<u64, i128>;

/// An agent's record when the trail had `until` entries.
#[derive(Debug, Default)]
pub(super) struct AgentSnapshot {
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
    snapshot: AgentSnapshot,
    days: PeriodSums,
    months: PeriodSums,
}

/// The charges of an account and mode.
#[derive(Debug, Default)]
pub(super) struct Charges {
    agents: HashMap<String, Charged>,
    /// Runs by agent and id.
    runs: HashMap<String, HashMap<String, RunSnapshot>>,
    /// Charges of the whole account, up to `until`.
    months: PeriodSums,
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

struct EntryCharge<'a> {
    agent: &'a str,
    /// Time of the decision, in ms since 1970.
    made_ms: u64,
    run: Option<&'a str>,
    period: Period,
    nanos: i128,
}

impl Charges {
    /// Sets that the account's record was read at `now_ms`, when the trail had `until` entries. Before any entry.
    pub(super) fn set_until(&mut self, until: u64, now_ms: u64) {
        self.until = until;
        self.runs_since_ms = now_ms.saturating_sub(RUN_LIFE_MS).saturating_add(SAME_RUN_MS);
    }

    /// Adds the record of an agent.
    pub(super) fn add(&mut self, agent: String, snapshot: AgentSnapshot) {
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
            let snapshot = AgentSnapshot {
                until,
                ..AgentSnapshot::default()
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

    fn charge<'a>(&mut self, entry: &'a Entry) -> Result<Option<EntryCharge<'a>>, MissingField> {
        let fields = EntryFields(entry);
        let agent = || entry.agent.as_deref().ok_or(MissingField);
        match entry.kind.as_str() {
            decision::APPROVED | decision::VOIDED => {
                let (charged, estimate) = (fields.nanos("chargedNanos")?, fields.nanos("estimateNanos")?);
                let period = Period {
                    day: fields.number("day")?,
                    month: fields.number("month")?,
                };
                let outcome = HoldOutcome::parse(fields.text("outcome")?).ok_or(MissingField)?;
                let charged = i128::from(charged);
                // The entry of the kept hold has the amount that was charged. The estimate in the entry of a correction
                // comes from the hold, which may have been edited since.
                let kept = self.charged_while_kept(&entry.id, outcome, (period.day, charged));
                let unread = (outcome == HoldOutcome::Corrected).then_some(i128::from(estimate));
                let before = kept.or(unread).unwrap_or(0);
                Ok(Some(EntryCharge {
                    agent: agent()?,
                    made_ms: made_at_ms(&entry.id).unwrap_or(0),
                    run: fields.text("runId").ok(),
                    period,
                    nanos: charged - before,
                }))
            }
            "spend.requested" | "spend.approved" if fields.is_settled() => Ok(Some(EntryCharge {
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
    fn charged_while_kept(&mut self, id: &str, outcome: HoldOutcome, kept: (u64, i128)) -> Option<i128> {
        let mut hasher = DefaultHasher::new();
        id.hash(&mut hasher);
        let id = hasher.finish();
        if outcome != HoldOutcome::Kept {
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
            let AgentSnapshot {
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
    /// compared here: its agents are, and add up to their account. Returns field, difference and fault.
    pub(super) fn account_differs(&self, tracked: &PeriodSums, today: Period) -> Vec<(String, i128, String)> {
        let held = self.held();
        let mut wrong = Vec::new();
        for (month, says, sum) in both(tracked, &self.months) {
            if month != today.month && !(0..=held).contains(&(says - sum)) {
                wrong.push((
                    format!("t{month}"),
                    says - sum,
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
    (counters, sums): (&PeriodSums, &PeriodSums),
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
fn both<'a>(counters: &'a PeriodSums, sums: &'a PeriodSums) -> impl Iterator<Item = (u64, i128, i128)> + 'a {
    let number = |side: &PeriodSums, period: u64| side.get(&period).copied().unwrap_or(0);
    let only = sums.keys().filter(|period| !counters.contains_key(period));
    let mut periods: Vec<u64> = counters.keys().chain(only).copied().collect();
    periods.sort_unstable();
    let rows = periods.into_iter();
    rows.map(move |period| (period, number(counters, period), number(sums, period)))
}

#[cfg(test)]
mod tests;
