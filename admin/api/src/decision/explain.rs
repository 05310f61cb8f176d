//! A decision with its explanation: the fields of the entry, and sentences about them.

use super::recorded::RecordedEntry;
use domain::check::{Check, CheckName, CheckedAmount, Reset, Unit, usd};
use domain::denial::{Denial, RATE_RETRY_AFTER_S};
use domain::denial_window::{self, OWN_RECORDS};
use domain::entry::{Entry, HoldOutcome};
use domain::id::made_at_ms;
use domain::money::Nanos;
use domain::period::DAY_MS;
use domain::timestamp::{iso_from_ms, ms_from_iso, spoken_from_ms};
use endpoint::doc::is;
use serde::Serialize;
use serde_json::{Map, Value};
use store::call::hold::Hold;
use utoipa::ToSchema;

/// Outcome of a call in flight.
const OPEN: &str = "open";

/// A decision (decision D56).
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = Decision)]
pub struct Explained {
    #[schema(value_type = is::DecisionId)]
    id: String,
    #[schema(value_type = bool)]
    approved: Value,
    /// Reason of the denial; null if the call was approved.
    #[schema(value_type = Option<is::DenialReason>)]
    reason: Value,
    #[schema(value_type = is::Outcome)]
    outcome: String,
    /// Number of calls that this record stands for. More than one for calls beyond a virtual key's rate, of which only
    /// the first ten of a minute have their own record.
    #[schema(example = 1)]
    count: u64,
    /// The end of the minute of those calls; null for a record of one call.
    #[schema(value_type = Option<is::Time>)]
    window_ends_at: Option<String>,
    /// The decision in a sentence, with its numbers.
    #[schema(example = "Approved. It was estimated at 0.00042 USD and cost 0.00031 USD.")]
    message: String,
    #[schema(value_type = Option<is::AgentId>)]
    agent_id: Option<String>,
    #[schema(value_type = Option<String>, example = "vk_01KAJ4M7Q8R5T6V9W0X1Y2Z3A4")]
    key_id: Value,
    #[schema(value_type = Option<String>, example = "gpt-4o-mini")]
    model: Value,
    #[schema(value_type = Option<is::RunId>)]
    run_id: Value,
    /// The checks that were made.
    #[schema(value_type = Vec<super::super::checks::CheckView>)]
    checks: Vec<Value>,
    #[schema(value_type = Option<is::Usd>)]
    estimate_usd: Value,
    #[schema(value_type = Option<is::NanoUsd>)]
    estimate_nanos: Value,
    /// The current charge.
    #[schema(value_type = Option<is::Usd>)]
    charged_usd: Value,
    #[schema(value_type = Option<is::NanoUsd>)]
    charged_nanos: Value,
    /// The real cost, if known.
    #[schema(value_type = Option<is::Usd>)]
    actual_usd: Value,
    #[schema(value_type = Option<is::NanoUsd>)]
    actual_nanos: Value,
    #[schema(value_type = Option<String>, example = "3f1c9a0b")]
    price_version: Value,
    /// Measurements of the call; null while it is in flight, if nothing was forwarded, and for calls that an earlier
    /// version ended.
    #[schema(value_type = Option<super::measured::MeasuredView>)]
    call: Value,
    #[schema(value_type = is::Time)]
    at: String,
    #[schema(value_type = Option<is::Time>)]
    ended_at: Option<String>,
    #[schema(value_type = Option<is::Time>)]
    resets_at: Option<String>,
    /// Number in the audit trail; null while the call is in flight.
    #[schema(example = 118)]
    audit_seq: Option<u64>,
    history: Vec<DecisionStep>,
}

/// One of the entries of a call. A call has two if it was kept and corrected.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = DecisionStep)]
struct DecisionStep {
    #[schema(value_type = is::Outcome)]
    outcome: Value,
    #[schema(value_type = Option<is::Usd>)]
    charged_usd: Value,
    #[schema(value_type = Option<is::NanoUsd>)]
    charged_nanos: Value,
    #[schema(value_type = is::Time)]
    at: String,
    #[schema(example = 118)]
    audit_seq: u64,
    #[schema(value_type = is::Sha256)]
    hash: String,
}

impl Explained {
    /// Returns the number of its entry in the audit trail; `None` while the call is in flight.
    pub const fn audit_seq(&self) -> Option<u64> {
        self.audit_seq
    }

    /// Explains the last of `entries`, with the others as its history. `None` if there are none.
    pub(super) fn from_entries(entries: &[RecordedEntry], is_open: bool) -> Option<Self> {
        let entry = &entries.last()?.entry;
        let data = &entry.data;
        let get = |name: &str| data.get(name).cloned().unwrap_or_default();
        let approved = get("approved") == Value::Bool(true);
        // The id has the time of the approval; the entry is only written when the call ends.
        let decided_ms = if approved { made_at_ms(&entry.id) } else { None };
        let decided_ms = decided_ms.unwrap_or(entry.at_ms);
        let counted_ms = counted_at_ms(data, decided_ms);
        let outcome = if is_open && approved {
            OPEN.to_owned()
        } else {
            word(data, "outcome").to_owned()
        };
        let ended_ms = (approved && !is_open).then_some(entry.at_ms);
        let window_ends_at =
            (entry.kind == denial_window::KIND).then(|| word(data, "windowEndsAt").to_owned());
        let count = data.get("count").and_then(Value::as_u64).unwrap_or(1);
        let resets_ms = match &window_ends_at {
            Some(end) => ms_from_iso(end),
            None => CheckName::parse(word(data, "reason")).and_then(|name| resets_at_ms(name, counted_ms)),
        };
        let message = match (&window_ends_at, Denial::from_reason(word(data, "reason"))) {
            (Some(end), Some(denial)) => of_window(denial, count, end),
            (None, Some(denial)) if HoldOutcome::parse(&outcome).is_none() => denied(denial, data, resets_ms),
            _ => outcome_sentence(&outcome, data),
        };
        Some(Self {
            message,
            outcome,
            count,
            window_ends_at,
            id: entry.decision_id().to_owned(),
            approved: get("approved"),
            reason: get("reason"),
            agent_id: entry.agent.clone(),
            key_id: get("keyId"),
            model: get("model"),
            run_id: get("runId"),
            checks: checks(data, counted_ms),
            estimate_usd: get("estimateUsd"),
            estimate_nanos: get("estimateNanos"),
            charged_usd: get("chargedUsd"),
            charged_nanos: get("chargedNanos"),
            actual_usd: get("actualUsd"),
            actual_nanos: get("actualNanos"),
            price_version: get("priceVersion"),
            call: get("call"),
            at: iso_from_ms(decided_ms),
            ended_at: ended_ms.map(iso_from_ms),
            resets_at: resets_ms.map(iso_from_ms),
            audit_seq: (!is_open).then_some(entry.seq),
            history: match is_open {
                true => Vec::new(),
                false => entries.iter().map(DecisionStep::from_recorded).collect(),
            },
        })
    }
}

impl DecisionStep {
    fn from_recorded(recorded: &RecordedEntry) -> Self {
        let get = |name: &str| recorded.entry.data.get(name).cloned().unwrap_or_default();
        Self {
            outcome: get("outcome"),
            charged_usd: get("chargedUsd"),
            charged_nanos: get("chargedNanos"),
            at: iso_from_ms(recorded.entry.at_ms),
            audit_seq: recorded.entry.seq,
            hash: recorded.hash.clone(),
        }
    }
}

/// Returns the entry that the call of a hold would have if its cost equalled its estimate. `None` for another account's
/// call.
pub(super) fn entry_of_hold(id: &str, account: &str, text: &str) -> Result<Option<Entry>, ()> {
    let hold = Hold::parse(id, text).ok_or(())?;
    if hold.name.account != account {
        return Ok(None);
    }
    let (outcome, estimate) = (HoldOutcome::Estimated.as_str(), hold.estimate.get());
    let line = format!("0 0 A {outcome} {estimate} {id} {text}");
    let entry = Entry::from_line(0, line.as_bytes());
    if entry.id == id { Ok(Some(entry)) } else { Err(()) }
}

/// A moment in the day and month in which the decision was counted. Of an approval the store's clock said which, and
/// the time of its id is by the edge's.
fn counted_at_ms(data: &Map<String, Value>, decided_ms: u64) -> u64 {
    let day_ms = data
        .get("day")
        .and_then(Value::as_u64)
        .and_then(|day| day.checked_mul(DAY_MS));
    match day_ms {
        Some(day_ms) if data.get("approved") == Some(&Value::Bool(true)) => {
            decided_ms.clamp(day_ms, day_ms.saturating_add(DAY_MS - 1))
        }
        _ => decided_ms,
    }
}

/// When the check starts to count anew; a key's minute ends within the wait that is answered with it.
fn resets_at_ms(name: CheckName, at_ms: u64) -> Option<u64> {
    match name.reset() {
        Reset::Minute => Some(at_ms + u64::from(RATE_RETRY_AFTER_S) * 1000),
        reset => reset.after(at_ms),
    }
}

/// Returns the checks that were made, each with the time at which its counter restarts.
fn checks(data: &Map<String, Value>, at_ms: u64) -> Vec<Value> {
    let mut checks = data
        .get("checks")
        .and_then(Value::as_array)
        .cloned()
        .unwrap_or_default();
    for check in checks.iter_mut().filter_map(Value::as_object_mut) {
        let name = CheckName::parse(word(check, "check"));
        let resets = name.and_then(|name| resets_at_ms(name, at_ms)).map(iso_from_ms);
        check.insert("resetsAt".to_owned(), resets.into());
    }
    checks
}

/// Explains why the calls of a rate window's record were denied.
fn of_window(denial: Denial, count: u64, end: &str) -> String {
    let end = ms_from_iso(end).map_or_else(|| end.to_owned(), spoken_from_ms);
    let calls = if count == 1 { "call was" } else { "calls were" };
    format!(
        "{count} more {calls} denied in the minute of this virtual key that ends at {end}, behind the first {OWN_RECORDS}, which \
         have a record each. {}",
        denial.message()
    )
}

/// Explains why it was denied, with the numbers of the check that decided, if it has any.
fn denied(denial: Denial, data: &Map<String, Value>, resets_ms: Option<u64>) -> String {
    let estimate = nanos(data, "estimateNanos").map(Nanos::from_stored);
    let amount = estimate.map_or(CheckedAmount::Beyond, CheckedAmount::Call);
    let deciding = CheckName::parse(denial.reason()).and_then(|name| find(name, data));
    match (deciding, denial) {
        (Some(check), _) => check.sentence(amount, resets_ms),
        // The store made this decision, so it was reachable.
        (None, Denial::ServiceUnavailable) => amount.cannot_be_charged().to_owned(),
        (None, _) => denial.message().to_owned(),
    }
}

/// Returns the recorded check `name`.
fn find(name: CheckName, data: &Map<String, Value>) -> Option<Check> {
    let checks = data.get("checks")?.as_array()?;
    let mut checks = checks.iter().filter_map(Value::as_object);
    let check = checks.find(|check| word(check, "check") == name.as_str())?;
    let number = |field: &str| match name.unit() {
        Unit::Usd => nanos(check, &format!("{field}Nanos")),
        Unit::Count | Unit::State => check.get(field)?.as_u64(),
    };
    Some(Check {
        name,
        limit: number("limit"),
        spent: number("spent"),
        held: number("held"),
        passes: false,
    })
}

/// Returns the sentence on the outcome of an approved call.
fn outcome_sentence(outcome: &str, data: &Map<String, Value>) -> String {
    let amount = |name: &str| usd(nanos(data, name).unwrap_or_default());
    let (estimate, charged) = (amount("estimateNanos"), amount("chargedNanos"));
    match HoldOutcome::parse(outcome) {
        None => format!("Approved and under way: its estimate of {estimate} is charged until it ends."),
        Some(HoldOutcome::Settled) => format!("Approved. It was estimated at {estimate} and cost {charged}."),
        Some(HoldOutcome::Released) => {
            "Approved. The provider refused it, or an operator released it, so nothing is charged.".to_owned()
        }
        Some(HoldOutcome::Estimated) => {
            format!("Approved. What it cost is not known, so its estimate of {estimate} stays charged.")
        }
        Some(HoldOutcome::Kept) => format!(
            "Approved. Nobody settled it in time, so its estimate of {estimate} stays charged unless it is corrected."
        ),
        Some(HoldOutcome::Corrected) => {
            format!(
                "Approved. Nobody settled it in time; its estimate of {estimate} was corrected to {charged} later."
            )
        }
        Some(HoldOutcome::Unsent) => {
            "Denied with service_unavailable: Cap approved it, and the edge could not send it: the stored provider key \
             cannot be used, or there was no connection for it. Nothing was forwarded, and the charge was given back."
                .to_owned()
        }
        Some(HoldOutcome::Voided) => {
            "Approved, but the approval did not reach the edge in time, so the call was denied with \
             service_unavailable. Nothing was forwarded, and the charge was given back."
                .to_owned()
        }
    }
}

fn word<'a>(fields: &'a Map<String, Value>, name: &str) -> &'a str {
    fields.get(name).and_then(Value::as_str).unwrap_or_default()
}

fn nanos(fields: &Map<String, Value>, name: &str) -> Option<u64> {
    word(fields, name).parse().ok()
}

#[cfg(test)]
mod tests;
