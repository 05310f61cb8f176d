//! The contribution of an audit entry to the statistics of a UTC day: a pure function of the entry, so all sealers add
//! the same, and anyone can recompute it from an export.
//!
//! A call counts on the day of its approval, to which its cost is charged (decision D37), even if it ends after
//! midnight; everything else counts on the day of its entry.

use super::decision;
use super::denial::Denial;
use super::denial_window;
use super::entry::{Entry, HoldOutcome};
use super::intent::Reason;
use super::period::DAY_MS;
use serde_json::Value;

/// Last valid day; scripts write no later one.
const DAY_MAX: u64 = 3_000_000;

/// Approved calls and their spend. Both can be negative if a charge is corrected or given back.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Amounts {
    /// Approved calls.
    pub calls: i64,
    /// Nano-USD.
    pub nanos: i64,
}

impl Amounts {
    /// Zero.
    pub const NONE: Self = Self { calls: 0, nanos: 0 };

    const fn call(nanos: i64) -> Self {
        Self { calls: 1, nanos }
    }

    const fn spent(nanos: i64) -> Self {
        Self { calls: 0, nanos }
    }

    /// Returns the saturating sum.
    #[must_use]
    pub const fn plus(self, other: Self) -> Self {
        Self {
            calls: self.calls.saturating_add(other.calls),
            nanos: self.nanos.saturating_add(other.nanos),
        }
    }
}

/// Effect of an entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Effect<'a> {
    /// Refused calls or spends: reason and count.
    Refused(&'static str, u64),
    /// An agent was charged.
    Charged(&'a str, Amounts),
    /// A hold was kept: the estimate stays charged to its agent until it is corrected.
    Kept {
        /// Agent id.
        agent: &'a str,
        /// The id of the decision.
        id: &'a str,
        /// Charged amount.
        amounts: Amounts,
    },
    /// A call ended, possibly after its hold was kept, which changes the effect.
    Ended {
        /// Agent id.
        agent: &'a str,
        /// The id of the decision.
        id: &'a str,
        /// Addition if the hold was open.
        otherwise: Amounts,
        /// Addition if the hold was kept.
        after_kept: Amounts,
    },
}

/// Returns the day, in days since 1970, and the effect; `None` for entries without one.
pub fn effect_of(entry: &Entry) -> Option<(u64, Effect<'_>)> {
    let today = Some(entry.at_ms / DAY_MS).filter(|day| *day <= DAY_MAX)?;
    let text = |name: &str| entry.data.get(name).and_then(Value::as_str);
    match entry.kind.as_str() {
        decision::DENIED => Some((
            today,
            Effect::Refused(Denial::from_reason(text("reason")?)?.reason(), 1),
        )),
        denial_window::KIND => {
            let count = entry.data.get("count")?.as_u64()?;
            Some((
                today,
                Effect::Refused(Denial::from_reason(text("reason")?)?.reason(), count),
            ))
        }
        decision::APPROVED | decision::VOIDED => {
            let day = entry.data.get("day")?.as_u64().filter(|day| *day <= DAY_MAX)?;
            Some((day, ended(entry, HoldOutcome::parse(text("outcome")?)?)?))
        }
        "spend.requested" | "spend.approved" => match text("outcome")? {
            "settled" => {
                let charged = Amounts::spent(nanos(entry, "amountNanos")?);
                Some((today, Effect::Charged(entry.agent.as_deref()?, charged)))
            }
            "blocked" => Some((
                today,
                Effect::Refused(Reason::parse(text("reason")?)?.as_str(), 1),
            )),
            _ => None,
        },
        "spend.denied" => Some((today, Effect::Refused(Reason::ApprovalDenied.as_str(), 1))),
        _ => None,
    }
}

/// Returns the charged day of a call whose entry was written more than a day after the end of that day. Such calls have
/// a list of their own.
pub fn late_day(entry: &Entry) -> Option<u64> {
    if !matches!(entry.kind.as_str(), decision::APPROVED | decision::VOIDED) {
        return None;
    }
    let day = entry.data.get("day")?.as_u64()?;
    (entry.at_ms / DAY_MS > day.saturating_add(1)).then_some(day)
}

/// Effect of a hold's end. Earlier sealed entries say whether it was kept.
fn ended(entry: &Entry, outcome: HoldOutcome) -> Option<Effect<'_>> {
    let (agent, id) = (entry.agent.as_deref()?, entry.id.as_str());
    let charged = nanos(entry, "chargedNanos")?;
    let estimate = nanos(entry, "estimateNanos")?;
    let ended = |otherwise, after_kept| Effect::Ended {
        agent,
        id,
        otherwise,
        after_kept,
    };
    Some(match outcome {
        HoldOutcome::Settled | HoldOutcome::Released => Effect::Charged(agent, Amounts::call(charged)),
        HoldOutcome::Kept => Effect::Kept {
            agent,
            id,
            amounts: Amounts::call(charged),
        },
        HoldOutcome::Estimated => ended(Amounts::call(charged), Amounts::NONE),
        // The call's entry is a denial.
        HoldOutcome::Unsent => return None,
        HoldOutcome::Corrected => ended(Amounts::NONE, Amounts::spent(charged.saturating_sub(estimate))),
        HoldOutcome::Voided => {
            let back = Amounts {
                calls: -1,
                nanos: -estimate,
            };
            ended(Amounts::NONE, back)
        }
    })
}

fn nanos(entry: &Entry, name: &str) -> Option<i64> {
    entry
        .data
        .get(name)?
        .as_str()?
        .parse()
        .ok()
        .filter(|nanos| *nanos >= 0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::period::Period;

    /// 2026-11-21, a minute before midnight.
    const LATE_MS: u64 = 1_795_305_540_000;
    const MEMO: &str = "acct_x bot - vk_1 p1 gpt-4o";
    const ID: &str = "allow_01KAH3V9J80000000000000001";

    fn entry(at_ms: u64, rest: &str) -> Entry {
        let entry = Entry::from_line(7, format!("7 {at_ms} {rest}").as_bytes());
        assert_ne!(entry.kind, crate::entry::UNREADABLE, "{rest}");
        entry
    }

    fn ended(outcome: &str, cost: u64) -> Entry {
        let today = Period::at(LATE_MS).day;
        // Approved a minute before midnight, ended ten minutes later.
        let rest = format!("A {outcome} {cost} {ID} H 200 {today} 202611 0 ,,,,,, {MEMO}");
        entry(LATE_MS + 600_000, &rest)
    }

    #[test]
    fn a_call_counts_on_the_day_of_its_approval() {
        let today = Period::at(LATE_MS).day;
        for (outcome, cost, expected) in [
            ("settled", 120, Amounts::call(120)),
            ("released", 0, Amounts::call(0)),
        ] {
            assert_eq!(
                effect_of(&ended(outcome, cost)),
                Some((today, Effect::Charged("bot", expected)))
            );
        }
    }

    #[test]
    fn a_call_is_late_a_day_after_the_end_of_its_day() {
        let today = Period::at(LATE_MS).day;
        let of = |at_ms: u64, outcome: &str| {
            let rest = format!("A {outcome} 0 {ID} H 200 {today} 202611 0 ,,,,,, {MEMO}");
            late_day(&entry(at_ms, &rest))
        };
        let end_ms = (today + 2) * DAY_MS;
        assert_eq!(of(end_ms - 1, "settled"), None);
        for outcome in ["settled", "kept", "voided"] {
            assert_eq!(of(end_ms, outcome), Some(today), "{outcome}");
        }
        let denied = format!("D daily_limit {ID} 75 ,,,,,, {MEMO}");
        assert_eq!(late_day(&entry(end_ms, &denied)), None);
    }

    #[test]
    fn the_end_of_a_kept_hold_adds_only_the_difference() {
        let of = |outcome, cost| match effect_of(&ended(outcome, cost)).unwrap().1 {
            Effect::Kept { id, amounts, .. } => (id.to_owned(), amounts, Amounts::NONE),
            Effect::Ended {
                id,
                otherwise,
                after_kept,
                ..
            } => (id.to_owned(), otherwise, after_kept),
            other => panic!("{outcome}: {other:?}"),
        };
        let id = || ID.to_owned();
        assert_eq!(of("kept", 200), (id(), Amounts::call(200), Amounts::NONE));
        assert_eq!(of("estimated", 200), (id(), Amounts::call(200), Amounts::NONE));
        assert_eq!(of("corrected", 50), (id(), Amounts::NONE, Amounts::spent(-150)));
        let back = Amounts {
            calls: -1,
            nanos: -200,
        };
        assert_eq!(of("voided", 0), (id(), Amounts::NONE, back));
    }

    #[test]
    fn refusals_and_spends_count_on_the_day_of_their_entry() {
        let today = Period::at(LATE_MS).day;
        let spend = |kind: &str, words: &str| {
            let json = format!(
                r#"{{"type":"{kind}","agentId":"bot","actor":"key_1","data":{{"amountNanos":"5"}}}} {words}"#
            );
            entry(LATE_MS, json.trim_end())
        };
        let denied = entry(LATE_MS, &format!("D daily_limit {ID} 75 ,,,,,, {MEMO}"));
        assert_eq!(
            effect_of(&denied),
            Some((today, Effect::Refused("daily_limit", 1)))
        );
        for kind in ["spend.requested", "spend.approved"] {
            let settled = spend(kind, "outcome=settled");
            assert_eq!(
                effect_of(&settled),
                Some((today, Effect::Charged("bot", Amounts::spent(5))))
            );
            let blocked = spend(kind, "outcome=blocked reason=insufficient_balance");
            assert_eq!(
                effect_of(&blocked),
                Some((today, Effect::Refused("insufficient_balance", 1)))
            );
        }
        assert_eq!(
            effect_of(&spend("spend.requested", "outcome=pending_approval")),
            None
        );
        assert_eq!(
            effect_of(&spend("spend.denied", "")),
            Some((today, Effect::Refused("approval_denied", 1)))
        );
        assert_eq!(effect_of(&spend("agent.frozen", "")), None);
        let invented = spend("spend.requested", "outcome=blocked reason=whatever");
        assert_eq!(
            effect_of(&invented),
            None,
            "no word of a hand-made line becomes a name in the store"
        );
    }
}
