//! Coalesces `policy.violation` (decision D72): an agent's first ten violations in a minute cause one event each, at
//! once; further ones of the same agent and reason become one event at the end of the minute. A pure function of the
//! entries in order, so all dispatchers agree.

use super::{Event, EventName};
use crate::timestamp::iso_from_ms;
use serde_json::{Map, Value};
use std::collections::{BTreeMap, HashMap};

/// Violations of an agent in each minute that cause their own event.
pub const AT_ONCE_MAX: u64 = 10;
/// Length of a minute of the store's clock, in ms.
pub const MINUTE_MS: u64 = 60_000;
/// Maximum number of agents counted separately in one minute of an account and mode. All violations of further agents
/// are coalesced, by reason alone.
pub const AGENTS_MAX: u64 = 10_000;

/// Several violations in one event. The last one provides the entry and the other fields.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Coalesced {
    /// Number of violations.
    pub count: u64,
    /// Sequence number of the first one's audit entry.
    pub first_seq: u64,
    /// Time of the first one, in ms since 1970 by the store's clock.
    pub first_ms: u64,
    /// Time of the last one, in ms since 1970.
    pub last_ms: u64,
    /// True if they belong to several agents, because [`AGENTS_MAX`] was reached.
    pub of_many: bool,
}

/// Key of coalesced violations: one agent (or all agents beyond [`AGENTS_MAX`]) and one reason.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ViolationGroup {
    /// The agent; empty for several.
    pub agent: String,
    /// The reason, one word.
    pub reason: String,
}

/// The violations of a group so far.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct GroupViolations {
    /// Event of the coalesced violations.
    pub coalesced: Coalesced,
    /// Sequence number of the last one's audit entry.
    pub last_seq: u64,
}

/// The minute in which violations are counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Minute {
    /// Minutes since 1970; 0 before the first violation.
    pub number: u64,
    /// Number of agents counted in it.
    pub agents: u64,
    /// True if groups wait for the end of the minute.
    pub waits: bool,
}

/// Counts of one minute, restricted to the agents and groups of the current entries.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ViolationCounts {
    /// UTC minute of the counted violations.
    pub minute: Minute,
    /// Violations that caused their own event, by agent.
    pub agents: HashMap<String, u64>,
    /// Violations that wait for the end of the minute.
    pub groups: BTreeMap<ViolationGroup, GroupViolations>,
    /// True if the minute began with the current entries, so that the counts of the previous minute are removed.
    pub begun: bool,
    /// Agents whose counts changed.
    changed_agents: BTreeMap<String, u64>,
    changed_groups: BTreeMap<ViolationGroup, GroupViolations>,
}

impl Coalesced {
    /// Returns one word: `<count>,<first seq>,<first ms>,<last ms>,<0 | 1>`.
    pub fn text(&self) -> String {
        let of_many = u8::from(self.of_many);
        format!(
            "{},{},{},{},{of_many}",
            self.count, self.first_seq, self.first_ms, self.last_ms
        )
    }

    /// Parses [`Coalesced::text`].
    pub fn parse(text: &str) -> Option<Self> {
        let mut words = text.split(',');
        let mut number = || words.next()?.parse().ok();
        let (count, first_seq, first_ms, last_ms) = (number()?, number()?, number()?, number()?);
        let of_many = match (words.next()?, words.next()) {
            ("0", None) => false,
            ("1", None) => true,
            _ => return None,
        };
        Some(Self {
            count,
            first_seq,
            first_ms,
            last_ms,
            of_many,
        })
    }

    /// Returns the event for all violations, based on the last one.
    pub fn payload_of(&self, last: Event) -> Event {
        let Event { name, agent, data } = last;
        let mut data: Map<String, Value> = data;
        data.insert("count".to_owned(), self.count.into());
        data.insert("firstAt".to_owned(), iso_from_ms(self.first_ms).into());
        data.insert("lastAt".to_owned(), iso_from_ms(self.last_ms).into());
        data.insert("firstAuditSeq".to_owned(), self.first_seq.into());
        if self.of_many {
            data.insert("agentId".to_owned(), Value::Null);
        }
        let agent = agent.filter(|_| !self.of_many);
        Event { name, agent, data }
    }
}

impl ViolationGroup {
    /// Returns `<reason> <agent>`; neither contains a space.
    pub fn text(&self) -> String {
        format!("{} {}", self.reason, self.agent)
    }

    /// Parses [`ViolationGroup::text`].
    pub fn parse(text: &str) -> Option<Self> {
        let (reason, agent) = text.split_once(' ')?;
        Some(Self {
            agent: agent.to_owned(),
            reason: reason.to_owned(),
        })
    }

    /// Returns the agent and reason of a violation; `None` for any other event.
    pub fn from_event(event: &Event) -> Option<Self> {
        if event.name != EventName::PolicyViolation {
            return None;
        }
        let reason = event
            .data
            .get("reason")
            .and_then(Value::as_str)
            .unwrap_or_default();
        Some(Self {
            agent: event.agent.clone().unwrap_or_default(),
            reason: reason.to_owned(),
        })
    }
}

impl GroupViolations {
    /// Returns `<last seq> <coalesced>`.
    pub fn text(&self) -> String {
        format!("{} {}", self.last_seq, self.coalesced.text())
    }

    /// Parses [`GroupViolations::text`].
    pub fn parse(text: &str) -> Option<Self> {
        let (last_seq, coalesced) = text.split_once(' ')?;
        Some(Self {
            coalesced: Coalesced::parse(coalesced)?,
            last_seq: last_seq.parse().ok()?,
        })
    }
}

impl Minute {
    /// Returns whether it is over at `at_ms`, with groups that wait for its end: they come before everything that is
    /// later. It is over as well if the clock was set back: it was ahead, and would reach this minute's end much later.
    pub const fn has_ended(&self, at_ms: u64) -> bool {
        self.waits && at_ms / MINUTE_MS != self.number
    }
}

impl ViolationCounts {
    /// Creates the counts of `minute` for the agents and groups of the current entries.
    pub fn new(
        minute: Minute,
        agents: HashMap<String, u64>,
        groups: BTreeMap<ViolationGroup, GroupViolations>,
    ) -> Self {
        Self {
            minute,
            agents,
            groups,
            ..Self::default()
        }
    }

    /// Counts a violation of entry `seq` at `at_ms`. Returns whether it fires an event of its own. The previous minute
    /// must have been dispatched: see [`Minute::has_ended`]. A clock that was set back begins another minute.
    pub fn count(&mut self, group: &ViolationGroup, seq: u64, at_ms: u64) -> bool {
        self.count_within(group, (seq, at_ms), AGENTS_MAX)
    }

    fn count_within(&mut self, group: &ViolationGroup, (seq, at_ms): (u64, u64), agents_max: u64) -> bool {
        let number = at_ms / MINUTE_MS;
        if number != self.minute.number {
            *self = Self {
                minute: Minute {
                    number,
                    ..Minute::default()
                },
                begun: true,
                ..Self::default()
            };
        }
        let known = self.agents.get(&group.agent).copied();
        let is_counted = known.is_some() || self.minute.agents < agents_max;
        let fired = known.unwrap_or(0);
        if is_counted && fired < AT_ONCE_MAX {
            self.minute.agents += u64::from(known.is_none());
            self.agents.insert(group.agent.clone(), fired + 1);
            self.changed_agents.insert(group.agent.clone(), fired + 1);
            return true;
        }
        let group = ViolationGroup {
            agent: if is_counted {
                group.agent.clone()
            } else {
                String::new()
            },
            reason: group.reason.clone(),
        };
        let fresh = Coalesced {
            count: 0,
            first_seq: seq,
            first_ms: at_ms,
            last_ms: at_ms,
            of_many: !is_counted,
        };
        let before = self.groups.get(&group).map_or(fresh, |waiting| waiting.coalesced);
        let waiting = GroupViolations {
            coalesced: Coalesced {
                count: before.count + 1,
                last_ms: at_ms.max(before.last_ms),
                ..before
            },
            last_seq: seq,
        };
        self.groups.insert(group.clone(), waiting);
        self.changed_groups.insert(group, waiting);
        self.minute.waits = true;
        false
    }

    /// Returns whether anything was counted.
    pub fn is_changed(&self) -> bool {
        !self.changed_agents.is_empty() || !self.changed_groups.is_empty()
    }

    /// Returns the agents whose counts changed, with their counts in this minute.
    pub const fn changed_agents(&self) -> &BTreeMap<String, u64> {
        &self.changed_agents
    }

    /// Returns the groups that violations were added to.
    pub const fn changed_groups(&self) -> &BTreeMap<ViolationGroup, GroupViolations> {
        &self.changed_groups
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn group(agent: &str, reason: &str) -> ViolationGroup {
        ViolationGroup {
            agent: agent.to_owned(),
            reason: reason.to_owned(),
        }
    }

    #[test]
    fn ten_of_an_agent_are_reported_at_once_and_the_rest_by_reason() {
        let mut tally = ViolationCounts::default();
        let at = |seq: u64| 7 * MINUTE_MS + seq;
        let fired: Vec<u64> = (1..=25)
            .filter(|seq| {
                let reason = if seq % 2 == 0 { "daily_limit" } else { "frozen" };
                tally.count(&group("bot", reason), *seq, at(*seq))
            })
            .collect();
        assert_eq!(fired, (1..=10).collect::<Vec<_>>(), "whatever the reason");
        assert!(
            tally.count(&group("other", "frozen"), 26, at(26)),
            "each agent has its ten"
        );
        let fired: Vec<_> = tally.groups.iter().collect();
        let waiting = |count, first_seq, last_seq| GroupViolations {
            coalesced: Coalesced {
                count,
                first_seq,
                first_ms: at(first_seq),
                last_ms: at(last_seq),
                of_many: false,
            },
            last_seq,
        };
        assert_eq!(
            fired,
            [
                (&group("bot", "daily_limit"), &waiting(7, 12, 24)),
                (&group("bot", "frozen"), &waiting(8, 11, 25))
            ]
        );
        assert_eq!((tally.minute.agents, tally.minute.waits), (2, true));
        assert!(!tally.minute.has_ended(8 * MINUTE_MS - 1) && tally.minute.has_ended(8 * MINUTE_MS));
    }

    #[test]
    fn another_minute_begins_anew_also_an_earlier_one() {
        let mut tally = ViolationCounts::default();
        for seq in 1..=10 {
            assert!(tally.count(&group("bot", "frozen"), seq, 5 * MINUTE_MS));
        }
        assert!(tally.count(&group("bot", "frozen"), 11, 6 * MINUTE_MS));
        assert!(tally.begun && tally.groups.is_empty());
        assert_eq!(tally.agents["bot"], 1);
        for seq in 12..=21 {
            assert!(tally.count(&group("bot", "frozen"), seq, 5 * MINUTE_MS));
        }
        assert!(!tally.count(&group("bot", "frozen"), 22, 5 * MINUTE_MS));
        assert_eq!(tally.minute.number, 5);
        assert!(!tally.minute.has_ended(5 * MINUTE_MS) && tally.minute.has_ended(4 * MINUTE_MS));
    }

    #[test]
    fn agents_beyond_the_bound_are_reported_together() {
        let mut tally = ViolationCounts::default();
        for (agent, fires) in [("a", true), ("b", true), ("c", false), ("a", true), ("d", false)] {
            let seq = tally
                .groups
                .values()
                .map(|waiting| waiting.coalesced.count)
                .sum::<u64>()
                + 1;
            let counted = tally.count_within(&group(agent, "frozen"), (seq, 1), 2);
            assert_eq!(counted, fires, "{agent}");
        }
        let (group_of_agent, waiting) = tally.groups.first_key_value().unwrap();
        assert_eq!(
            (group_of_agent, waiting.coalesced.count),
            (&group("", "frozen"), 2)
        );
        assert!(waiting.coalesced.of_many);
        assert_eq!(tally.minute.agents, 2);
    }

    /// The count is the same if it is interrupted anywhere and continued from the stored state.
    #[test]
    fn an_interrupted_count_continues_to_the_same_result() {
        let entries: Vec<(ViolationGroup, u64)> = (1..=200)
            .map(|seq| (group(["a", "b"][usize::from(seq % 3 == 0)], "frozen"), seq))
            .collect();
        let mut whole = ViolationCounts::default();
        let fired: Vec<bool> = entries
            .iter()
            .map(|(group, seq)| whole.count(group, *seq, *seq))
            .collect();
        for cut in 0..entries.len() {
            let mut first = ViolationCounts::default();
            let mut seen: Vec<bool> = Vec::new();
            for (group, seq) in &entries[..cut] {
                seen.push(first.count(group, *seq, *seq));
            }
            let groups = first.groups.iter().map(|(group, waiting)| {
                let group = ViolationGroup::parse(&group.text()).unwrap();
                (group, GroupViolations::parse(&waiting.text()).unwrap())
            });
            let mut second = ViolationCounts::new(first.minute, first.agents.clone(), groups.collect());
            for (group, seq) in &entries[cut..] {
                seen.push(second.count(group, *seq, *seq));
            }
            assert_eq!((&seen, &second.groups), (&fired, &whole.groups), "cut at {cut}");
        }
    }

    #[test]
    fn texts_that_are_none_are_refused() {
        for bad in ["", "1,2,3,4", "1,2,3,4,2", "1,2,3,4,0,5", "x,2,3,4,0"] {
            assert_eq!(Coalesced::parse(bad), None, "{bad}");
        }
        assert_eq!(GroupViolations::parse("1,2,3,4,0"), None);
        assert_eq!(ViolationGroup::parse("frozen"), None);
    }
}
