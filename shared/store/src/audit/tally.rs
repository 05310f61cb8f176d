//! Additions of a batch of entries to the statistics of their days, as arguments of `seal.lua`.

use crate::audit::statistics::{AGENT_PREFIX, DAYS_KEPT, OTHERS, REASON_PREFIX};
use domain::entry::Entry;
use domain::names::is_agent_id;
use domain::period::DAY_MS;
use domain::statistics::{Amounts, Effect, effect_of};
use std::collections::{BTreeMap, HashMap};

/// Additions by day.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Tally(BTreeMap<u64, DayTally>);

/// Additions to one day.
#[derive(Debug, Default, PartialEq, Eq)]
struct DayTally {
    /// In order of appearance: the first ones are listed by name.
    agents: Vec<String>,
    reasons: BTreeMap<&'static str, u64>,
    /// Index of the agent, and unconditional additions.
    charged: BTreeMap<usize, Amounts>,
    /// Arguments of the additions that depend on kept holds.
    moves: Vec<[String; 8]>,
}

impl Tally {
    /// Sums the additions of `entries`.
    pub(crate) fn from_entries<'a>(entries: impl Iterator<Item = &'a Entry>) -> Self {
        let mut days: BTreeMap<u64, DayTally> = BTreeMap::new();
        let mut positions: HashMap<(u64, &str), usize> = HashMap::new();
        for entry in entries {
            let Some((number, effect)) = effect_of(entry) else {
                continue;
            };
            let day = days.entry(number).or_default();
            let mut position = |day: &mut DayTally, agent: &'a str| {
                *positions.entry((number, agent)).or_insert_with(|| {
                    day.agents.push(field(agent));
                    day.agents.len() - 1
                })
            };
            match effect {
                Effect::Refused(reason, count) => {
                    let sum = day.reasons.entry(reason).or_default();
                    *sum = sum.saturating_add(count);
                }
                Effect::Charged(agent, amounts) => {
                    let position = position(day, agent);
                    let sum = day.charged.entry(position).or_default();
                    *sum = sum.plus(amounts);
                }
                Effect::Kept { agent, id, amounts } => {
                    let position = position(day, agent);
                    let words = words(position, amounts, "keep", Amounts::NONE, (id, entry.at_ms));
                    day.moves.push(words);
                }
                Effect::Ended {
                    agent,
                    id,
                    otherwise,
                    after_kept,
                } => {
                    let position = position(day, agent);
                    let words = words(position, otherwise, "end", after_kept, (id, entry.at_ms));
                    day.moves.push(words);
                }
            }
        }
        Self(days)
    }

    /// Returns the days, in the order of [`Tally::words`].
    pub(crate) fn days(&self) -> impl ExactSizeIterator<Item = u64> {
        self.0.keys().copied()
    }

    /// Returns the script's arguments for each day.
    pub(crate) fn words(&self) -> Vec<String> {
        let mut all = Vec::new();
        for (number, day) in &self.0 {
            let ends = number.saturating_add(1 + DAYS_KEPT) * (DAY_MS / 1000);
            all.push(ends.to_string());
            all.push(day.agents.len().to_string());
            all.extend(day.agents.iter().cloned());
            let sums = day.sums();
            all.push(sums.len().to_string());
            all.extend(sums.into_iter().flatten());
            all.push((day.charged.len() + day.moves.len()).to_string());
            for (position, amounts) in &day.charged {
                all.extend(words(*position, *amounts, "", Amounts::NONE, ("", 0)));
            }
            all.extend(day.moves.iter().flatten().cloned());
        }
        all
    }
}

impl DayTally {
    /// Returns the unconditional additions: fields and amounts.
    fn sums(&self) -> Vec<[String; 2]> {
        let charged = self.charged.values();
        let charged = charged.fold(Amounts::NONE, |sum, amounts| sum.plus(*amounts));
        let charged = [("calls", charged.calls), ("spent", charged.nanos)];
        let charged = charged.into_iter().filter(|(_, amount)| *amount != 0);
        let charged = charged.map(|(field, amount)| [field.to_owned(), amount.to_string()]);
        let reasons = self.reasons.iter();
        let reasons = reasons.map(|(reason, count)| [format!("{REASON_PREFIX}{reason}"), count.to_string()]);
        charged.chain(reasons).collect()
    }
}

/// Returns the arguments of one `move` in `seal.lua`, which counts from 1.
fn words(
    position: usize,
    amounts: Amounts,
    what: &str,
    other: Amounts,
    (id, at_ms): (&str, u64),
) -> [String; 8] {
    [
        (position + 1).to_string(),
        amounts.calls.to_string(),
        amounts.nanos.to_string(),
        what.to_owned(),
        other.calls.to_string(),
        other.nanos.to_string(),
        id.to_owned(),
        at_ms.to_string(),
    ]
}

/// Returns an agent's field. A line made by hand may name an invalid agent.
fn field(agent: &str) -> String {
    let name = if is_agent_id(agent) { agent } else { OTHERS };
    format!("{AGENT_PREFIX}{name}")
}

#[cfg(test)]
mod tests {
    use super::*;

    const MEMO: &str = "acct_x bot - vk_1 p1 gpt-4o";

    fn entries(lines: &[&str]) -> Vec<Entry> {
        let numbered = (1_u64..).zip(lines);
        numbered
            .map(|(seq, rest)| Entry::from_line(seq, format!("{seq} 1795000000000 {rest}").as_bytes()))
            .collect()
    }

    #[test]
    fn charges_of_an_agent_are_one_move_and_what_depends_on_a_kept_hold_is_its_own() {
        let call = |outcome: &str, cost: u64, day: u64| {
            format!("A {outcome} {cost} allow_01KAH3V9J80000000000000001 H 200 {day} 202611 0 ,,,,,, {MEMO}")
        };
        let lines = [
            call("settled", 5, 20_775),
            call("settled", 7, 20_775),
            call("kept", 200, 20_774),
            call("corrected", 1, 20_774),
            format!("D frozen allow_1 5 ,,,,,, {MEMO}"),
            format!("D frozen allow_2 5 ,,,,,, {MEMO}"),
        ];
        let lines: Vec<&str> = lines.iter().map(String::as_str).collect();
        let entries = entries(&lines);
        let tally = Tally::from_entries(entries.iter());
        assert_eq!(tally.days().collect::<Vec<_>>(), [20_774, 20_775]);
        let id = "allow_01KAH3V9J80000000000000001";
        let at = "1795000000000";
        let expected = [
            ["1829520000", "1", "a:bot", "0", "2"].as_slice(),
            &["1", "1", "200", "keep", "0", "0", id, at],
            &["1", "0", "0", "end", "0", "-199", id, at],
            &[
                "1829606400",
                "1",
                "a:bot",
                "3",
                "calls",
                "2",
                "spent",
                "12",
                "n:frozen",
                "2",
                "1",
            ],
            &["1", "2", "12", "", "0", "0", "", "0"],
        ];
        assert_eq!(tally.words(), expected.concat());
    }

    #[test]
    fn an_invalid_agent_counts_among_the_others() {
        let spend = r#"{"type":"spend.requested","agentId":"a/b","actor":"k","data":{"amountNanos":"5"}} outcome=settled"#;
        let entries = entries(&[spend]);
        assert_eq!(Tally::from_entries(entries.iter()).words()[2], "a:*");
    }
}
