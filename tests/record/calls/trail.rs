//! A trail of calls, written as scripts write it, and the expected calls.

use crate::audit_writer::AuditWriter;
use crate::fixture::Fixture;
use domain::id::IdKind;
use domain::mode::Mode;
use domain::period::{DAY_MS, Period};
use harness::{Caller, SeedAccount};
use std::collections::{BTreeMap, HashMap};

/// Time between two lines.
pub const STEP_MS: u64 = 60_000;
/// Lines between a kept call and its correction.
const LATER: u64 = 30;

/// A call as it must be listed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Expected {
    pub id: String,
    pub outcome: &'static str,
    pub cost: u64,
    pub tokens: Option<(u64, u64)>,
    pub day: u64,
    pub decided_ms: u64,
    /// Agent, key, model, run.
    pub groups: [Option<String>; 4],
}

/// Sums of a group in an interval: calls, denials, tokens in and out, cost.
pub type Sums = BTreeMap<(u64, Option<String>), [u64; 5]>;

pub struct Written {
    pub account: SeedAccount,
    pub api: Caller,
    /// The calls, the newest first.
    pub calls: Vec<Expected>,
}

impl Written {
    /// Writes `count` calls with every outcome, until now.
    pub async fn write(fixture: &Fixture, count: u64) -> Self {
        Self::write_from(fixture, count, clock::now_ms() - count * STEP_MS).await
    }

    /// Writes `count` calls with every outcome, from `first_ms` on.
    pub async fn write_from(fixture: &Fixture, count: u64, first_ms: u64) -> Self {
        let (account, api) = fixture.account("enterprise").await;
        let end_ms = first_ms + count * STEP_MS;
        let mut lines: Vec<(u64, u64, String)> = Vec::new();
        let mut last: HashMap<String, (u64, Expected)> = HashMap::new();
        for n in 0..count {
            let at_ms = first_ms + n * STEP_MS;
            for (behind, line, expected) in call(n, at_ms) {
                if at_ms + behind > end_ms {
                    continue;
                }
                lines.push((at_ms + behind, n, line));
                match last.get_mut(&expected.id) {
                    // The call keeps the place of its first line.
                    Some((_, call)) => *call = expected,
                    None => drop(last.insert(expected.id.clone(), (at_ms + behind, expected))),
                }
            }
        }
        lines.sort();
        let lines: Vec<(u64, String)> = lines.into_iter().map(|(at_ms, _, line)| (at_ms, line)).collect();
        AuditWriter::new(&fixture.store, &account, Mode::Live)
            .write(&lines)
            .await;
        let mut calls: Vec<(u64, Expected)> = last.into_values().collect();
        calls.sort_by(|(a, one), (b, other)| b.cmp(a).then(other.id.cmp(&one.id)));
        Self {
            account,
            api,
            calls: calls.into_iter().map(|(_, call)| call).collect(),
        }
    }

    /// The expected usage, by intervals of `ms` and the group at `place` of [`Expected::groups`].
    pub fn sums(&self, ms: u64, place: usize) -> Sums {
        let mut sums = Sums::new();
        for call in &self.calls {
            let at = (call.day * DAY_MS).max(call.decided_ms - call.decided_ms % ms);
            let (calls, denied) = match call.outcome {
                "denied" => (0, 1),
                "voided" => continue,
                _ => (1, 0),
            };
            let (input, output) = call.tokens.unwrap_or_default();
            let row = sums
                .entry((at - at % ms, call.groups[place].clone()))
                .or_default();
            for (sum, more) in row.iter_mut().zip([calls, denied, input, output, call.cost]) {
                *sum += more;
            }
        }
        sums
    }
}

/// The lines of a call, each with its delay after the first in ms and the call's state from then on. Kept calls of
/// early numbers are corrected later, so that the last ones stay kept.
fn call(n: u64, at_ms: u64) -> Vec<(u64, String, Expected)> {
    let (agent, key) = (
        format!("bot-{}", n % 3),
        format!("vk_01KAH3V9J8000000000000000{}", n % 2),
    );
    let (model, run) = (
        format!("m{}", n % 4),
        (!n.is_multiple_of(5)).then(|| format!("r{}", n % 5)),
    );
    let memo = format!(
        "acct_x {agent} {} {key} p1 {model}",
        run.as_deref().unwrap_or("-")
    );
    let period = Period::at(at_ms);
    let id = IdKind::Allow.mint(at_ms).unwrap();
    let estimate = 1000 + n;
    let of = |behind: u64, outcome: &'static str, cost: u64, tokens: Option<(u64, u64)>| {
        let line = match (outcome, tokens) {
            ("denied", _) => format!("D daily_limit {id} {estimate} ,,,,,, {memo}"),
            (_, None) => format!(
                "A {outcome} {cost} {id} H {estimate} {} {} 0 ,,,,,, {memo}",
                period.day, period.month
            ),
            (_, Some((input, output))) => format!(
                "v2 A {outcome} {cost} {id} chat.completions,0,,{input},1,{output},5,,completed,0 H {estimate} {} {} 0 ,,,,,, {memo}",
                period.day, period.month
            ),
        };
        let groups = [
            Some(agent.clone()),
            Some(key.clone()),
            Some(model.clone()),
            run.clone(),
        ];
        let expected = Expected {
            id: id.clone(),
            outcome,
            cost,
            tokens,
            day: period.day,
            decided_ms: at_ms,
            groups,
        };
        (behind, line, expected)
    };
    match n % 7 {
        0 => vec![of(0, "denied", 0, None)],
        1 => vec![
            of(0, "kept", estimate, None),
            of(LATER * STEP_MS + 1, "corrected", n, Some((n, 3))),
        ],
        2 => vec![
            of(0, "kept", estimate, None),
            of(LATER * STEP_MS + 1, "voided", 0, None),
        ],
        3 => vec![of(0, "estimated", estimate, None)],
        4 => vec![of(0, "released", 0, Some((0, 0)))],
        5 => vec![of(0, "voided", 0, None)],
        _ => vec![of(0, "settled", n, Some((2 * n, n)))],
    }
}
