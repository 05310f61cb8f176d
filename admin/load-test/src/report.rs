//! Reports of a run: its plan, and afterwards its results, as text and as JSON.

use super::check::{AgentAmounts, ChargeCheck};
use super::mix::WHOLE;
use super::plan::{LoadPlan, millis};
use super::record::{RecordedSamples, SampleEnd};
use crate::outcome::{LoadOutcome, PhaseResult};
use domain::money::Nanos;
use serde_json::{Value, json};
use std::fmt::Write as _;
use std::time::Duration;

/// Shares of calls whose latency is reported.
const SHARES: [(&str, f64); 5] = [
    ("p50", 0.5),
    ("p90", 0.9),
    ("p95", 0.95),
    ("p99", 0.99),
    ("p999", 0.999),
];
/// A larger share of late calls means that the results reflect the sender.
const LATE_TOO_OFTEN: f64 = 0.01;
/// Why there is no check if it was not requested.
const NOT_ASKED: &str = "no access to the store was given";

/// Describes the calls to be sent, and their maximum cost.
pub fn intention(plan: &LoadPlan, cost: Option<Nanos>) -> String {
    let (calls, rate) = (plan.calls(), plan.highest_rate());
    let cost = cost.map_or_else(
        || "more than can be counted".to_owned(),
        |cost| format!("{cost} USD at most, by this configuration's prices"),
    );
    let denied = plan.deny_share as f64 * 100.0 / WHOLE as f64;
    let (target, model, connections) = (&plan.target, &plan.model, plan.connections);
    format!(
        "{calls} calls of {model} to {target}, up to {rate} a second over {connections} connections, {denied} % of them to \
         be denied; what the edge approves reaches its provider and costs {cost}"
    )
}

/// Returns the report for people.
pub fn text(plan: &LoadPlan, outcome: &LoadOutcome) -> String {
    let mut text = String::new();
    // Writing to a string does not fail.
    let _ = writeln!(text, "{}", head());
    for one in &outcome.phases {
        let _ = writeln!(text, "{}", row(one));
    }
    let _ = writeln!(
        text,
        "\nLatency in ms from when each call was due. `sent p99`: from when it was sent, as a sender sees it that waits for \
         answers.\n"
    );
    for one in outcome.phases.iter().filter(|one| one.phase.measured) {
        let _ = writeln!(text, "{}: {}", one.phase.name, ends(&one.seen));
        if plan.stream.is_some() {
            let _ = writeln!(text, "  first byte after sending, ms: {}", first_byte(&one.seen));
        }
        if let Some(doubt) = doubt(&one.seen) {
            let _ = writeln!(text, "  {doubt}");
        }
    }
    if let Some(knee) = outcome.knee {
        let why = outcome
            .stopped_by
            .as_deref()
            .unwrap_or("every step was within the bounds");
        let limited = denied_at(outcome, knee);
        let _ = writeln!(text, "\nKnee: {knee} calls a second ({why}){limited}.");
    } else if let Some(why) = &outcome.stopped_by {
        let _ = writeln!(text, "\nNo step was within the bounds: {why}.");
    }
    if outcome.interrupted {
        let _ = writeln!(text, "\nStopped before its end.");
    }
    let share = outcome.error_share() * 100.0;
    let allowed = plan.max_errors * 100.0;
    let _ = writeln!(text, "\nErrors: {share:.3} % (allowed: {allowed} %).");
    let (share, allowed) = (outcome.limited_share() * 100.0, plan.max_limited * 100.0);
    let _ = writeln!(
        text,
        "Denied by a cap, a plan or a rate: {share:.3} % (allowed: {allowed} %)."
    );
    text.push_str(&verdict(&outcome.verdict));
    text.trim_end().to_owned()
}

/// Describes the denials by limits at the knee: a knee with many denials is not that of approved calls.
fn denied_at(outcome: &LoadOutcome, knee: u32) -> String {
    let mut steps = outcome.phases.iter().filter(|one| one.phase.is_step);
    let Some(step) = steps.find(|one| one.phase.rate == knee) else {
        return String::new();
    };
    match step.seen.limited() {
        0 => String::new(),
        limited => format!("; limits denied {limited} of its {} calls", step.seen.calls()),
    }
}

fn head() -> String {
    let mut line = format!(
        "{:<10} {:>8} {:>9} {:>8} {:>7}",
        "PHASE", "RATE/S", "CALLS", "ANS/S", "ERRORS"
    );
    for (name, _) in SHARES {
        let _ = write!(line, " {name:>9}");
    }
    let _ = write!(line, " {:>9} {:>9}", "max", "sent p99");
    line
}

fn row(one: &PhaseResult) -> String {
    let (phase, seen) = (&one.phase, &one.seen);
    let mut line = format!(
        "{:<10} {:>8} {:>9} {:>8.0} {:>7}",
        phase.name,
        phase.rate,
        seen.calls(),
        seen.throughput(),
        seen.errors()
    );
    for (_, share) in SHARES {
        let _ = write!(line, " {:>9}", millis(seen.quantile(share)));
    }
    let (longest, sent) = (millis(seen.longest()), millis(seen.sent_quantile(0.99)));
    let _ = write!(line, " {longest:>9} {sent:>9}");
    line
}

/// Describes the wait of streams' callers for the first byte of the body.
fn first_byte(seen: &RecordedSamples) -> String {
    let shares = SHARES
        .iter()
        .map(|(name, share)| format!("{name} {}", millis(seen.first_byte_quantile(*share))));
    shares.collect::<Vec<_>>().join(", ")
}

/// Lists the outcomes of calls, the most frequent first.
fn ends(seen: &RecordedSamples) -> String {
    let mut ends: Vec<(&SampleEnd, &u64)> = seen.ends.iter().collect();
    ends.sort_by(|one, other| other.1.cmp(one.1).then(one.0.cmp(other.0)));
    let mut parts: Vec<String> = ends
        .into_iter()
        .map(|(end, count)| format!("{count} {}", name(end)))
        .collect();
    if seen.dropped > 0 {
        parts.push(format!("{} never sent", seen.dropped));
    }
    parts.join(", ")
}

fn name(end: &SampleEnd) -> String {
    let kind = end.kind.as_str();
    match (end.status, end.reason.as_str()) {
        (0, what) => format!("{kind}: {what}"),
        (status, "") => format!("{kind}: {status}"),
        (status, reason) => format!("{kind}: {status} {reason}"),
    }
}

/// Returns a warning if the results may reflect the sender instead of the edge.
fn doubt(seen: &RecordedSamples) -> Option<String> {
    let share = seen.late as f64 / seen.calls().max(1) as f64;
    (share > LATE_TOO_OFTEN).then(|| {
        let (late, latest) = (seen.late, millis(seen.latest));
        format!(
            "{late} calls left more than 1 ms late (the latest by {latest} ms): all connections were busy, or this machine is \
             the limit; try more --connections, or more senders"
        )
    })
}

fn verdict(verdict: &ChargeCheck) -> String {
    let lines = match verdict {
        ChargeCheck::NotAsked => return format!("Overspend: NOT CHECKED: {NOT_ASKED}.\n"),
        ChargeCheck::NotChecked(why) => {
            return format!("Overspend: FAILED: it could not be checked: {why}.\n");
        }
        ChargeCheck::Checked(lines) => lines,
    };
    let mut text = String::new();
    let wrong: Vec<&AgentAmounts> = lines.iter().filter(|line| !line.wrong.is_empty()).collect();
    let total =
        |of: fn(&AgentAmounts) -> Nanos| Nanos::from_stored(lines.iter().map(|line| of(line).get()).sum());
    let (charged, seen) = (total(|line| line.charged), total(|line| line.seen));
    let unknown: u64 = lines.iter().map(|line| line.unknown).sum();
    let count = lines.len();
    let (word, rest) = match wrong.is_empty() {
        true => ("ok", "; no agent is over a cap, and no hold is left open"),
        false => ("FAILED", ""),
    };
    let _ = writeln!(
        text,
        "Overspend: {word}: {count} agents were charged {charged} USD, the answers say {seen} USD{rest}."
    );
    if unknown > 0 {
        let _ = writeln!(
            text,
            "  {unknown} calls got no answer; what they were charged is not known, so only the lower bound was compared."
        );
    }
    text.push_str(&streams(lines));
    for line in wrong {
        for wrong in &line.wrong {
            let _ = writeln!(text, "  {}: {wrong}", line.agent.id);
        }
    }
    text
}

/// Describes the charges of streams whose callers left, and of those that cost more than their initial estimate.
fn streams(lines: &[AgentAmounts]) -> String {
    let mut text = String::new();
    let left: u64 = lines.iter().map(|line| line.left).sum();
    let above: u64 = lines.iter().map(|line| line.above_estimate).sum();
    if left > 0 {
        let held = Nanos::from_stored(lines.iter().map(|line| line.left_estimated.get()).sum());
        let charged = match left_charged(lines) {
            Some(charged) => format!("they were charged {charged} USD"),
            None => "their charge is not known".to_owned(),
        };
        let _ = writeln!(
            text,
            "  {left} callers left in the middle of a stream: {charged}, of {held} USD that were held at first."
        );
    }
    if above > 0 {
        let _ = writeln!(
            text,
            "  {above} streams cost more than what was held for them at first."
        );
    }
    text
}

/// Returns the charge of the calls whose callers left, which no answer states. `None` if other calls got no answer,
/// either.
fn left_charged(lines: &[AgentAmounts]) -> Option<Nanos> {
    let left: u64 = lines
        .iter()
        .map(|line| (line.unknown == 0).then(|| line.charged.get().saturating_sub(line.seen.get())))
        .sum::<Option<u64>>()?;
    Some(Nanos::from_stored(left))
}

/// Returns the document.
pub fn json(plan: &LoadPlan, outcome: &LoadOutcome, ok: bool) -> Value {
    let phases: Vec<Value> = outcome.phases.iter().map(phase).collect();
    json!({
        "ok": ok, "target": plan.target.as_str(), "scenario": format!("{:?}", plan.scenario).to_lowercase(),
        "stream": plan.stream.is_some(),
        "interrupted": outcome.interrupted, "phases": phases, "knee": outcome.knee, "stoppedBy": outcome.stopped_by,
        "errorShare": outcome.error_share(), "maxErrors": plan.max_errors,
        "limitedShare": outcome.limited_share(), "maxLimited": plan.max_limited, "overspend": document(&outcome.verdict),
    })
}

fn phase(one: &PhaseResult) -> Value {
    let (phase, seen) = (&one.phase, &one.seen);
    let ms = |time: Duration| time.as_micros() as f64 / 1000.0;
    let latencies = |of: &dyn Fn(f64) -> Duration| -> Value {
        let shares = SHARES
            .iter()
            .map(|(name, share)| ((*name).to_owned(), json!(ms(of(*share)))));
        Value::Object(shares.collect())
    };
    let mut due = latencies(&|share| seen.quantile(share));
    due["max"] = json!(ms(seen.longest()));
    let ends: Vec<Value> = seen
        .ends
        .iter()
        .map(|(end, count)| {
            json!({ "kind": end.kind.as_str(), "status": end.status, "reason": end.reason, "count": count,
                "as": format!("{:?}", end.judged()) })
        })
        .collect();
    json!({
        "name": phase.name, "rate": phase.rate, "seconds": seen.took.as_secs_f64(), "measured": phase.measured,
        "calls": seen.calls(), "answered": seen.answered(), "unanswered": seen.unanswered(), "dropped": seen.dropped,
        "limited": seen.limited(), "errors": seen.errors(), "answersPerSecond": seen.throughput(),
        "latencyMs": due, "sentLatencyMs": latencies(&|share| seen.sent_quantile(share)),
        "firstByteMs": latencies(&|share| seen.first_byte_quantile(share)), "late": seen.late,
        "latestMs": ms(seen.latest), "bytesSent": seen.bytes_sent, "bytesReceived": seen.bytes_received, "ends": ends,
    })
}

fn document(verdict: &ChargeCheck) -> Value {
    match verdict {
        ChargeCheck::NotAsked => json!({ "checked": false, "why": NOT_ASKED }),
        ChargeCheck::NotChecked(why) => json!({ "checked": false, "ok": false, "why": why }),
        ChargeCheck::Checked(lines) => {
            let agents: Vec<Value> = lines
                .iter()
                .map(|line| {
                    json!({ "accountId": line.agent.account, "agentId": line.agent.id, "dailyCapUsd": line.cap,
                        "spentTodayUsd": line.spent, "chargedUsd": line.charged, "answeredUsd": line.seen,
                        "unknownCalls": line.unknown, "leftCalls": line.left, "leftEstimatedUsd": line.left_estimated,
                        "aboveEstimateCalls": line.above_estimate, "wrong": line.wrong })
                })
                .collect();
            json!({ "checked": true, "ok": verdict.is_good(), "agents": agents, "leftChargedUsd": left_charged(lines) })
        }
    }
}
