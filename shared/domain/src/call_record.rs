//! A proxied call as shown in lists and sums: a pure function of its entry in the audit trail.

use crate::decision;
use crate::denial_window;
use crate::entry::{Entry, HoldOutcome};
use crate::id::made_at_ms;
use crate::measured::Billing;
use crate::money::Nanos;
use crate::period::DAY_MS;
use serde::Deserialize;
use serde_json::{Map, Value};

/// Outcome of a denied call. Approved calls have the outcomes of [`HoldOutcome`].
pub const DENIED: &str = "denied";
/// Types of the audit entries of calls.
pub const KINDS: [&str; 4] = [
    decision::APPROVED,
    decision::DENIED,
    decision::VOIDED,
    denial_window::KIND,
];

/// A call, or the many denials of a key beyond its rate that share an entry.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CallRecord {
    /// Its place in lists: the number of its entry; of its first one where it has two.
    pub seq: u64,
    /// Number of the entry that says this.
    pub audit_seq: u64,
    /// Id of the decision.
    pub id: String,
    /// Time of the decision, in ms since 1970.
    pub decided_ms: u64,
    /// Time of its entry, in ms since 1970; for an approved call, the time of its end.
    pub recorded_ms: u64,
    /// UTC day that the call counts on, in days since 1970: the day of its approval (decision D37) or of its denial.
    pub day: u64,
    /// True for an approval, false for a denial.
    pub is_approved: bool,
    /// Agent id.
    pub agent: Option<String>,
    /// Virtual key id.
    pub key_id: Option<String>,
    /// Run id.
    pub run: Option<String>,
    /// The requested model.
    pub model: Option<String>,
    /// Version of the price table of its estimate and its charge.
    pub price_version: Option<String>,
    /// Estimate, if there was one.
    pub estimate: Option<Nanos>,
    /// Charged amount.
    pub cost: Nanos,
    /// A word of [`HoldOutcome`], or [`DENIED`].
    pub outcome: String,
    /// Why it was denied.
    pub reason: Option<String>,
    /// Number of denials that the record stands for; 1 for a call.
    pub count: u64,
    /// Measurements of the call.
    pub measures: Measures,
}

/// Measurements of an approved call. All are unknown for denied calls, for calls that nobody settled, and for calls
/// that an earlier release recorded.
#[derive(Debug, Clone, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Measures {
    /// A word of [`Endpoint`](crate::measured::Endpoint).
    pub endpoint: Option<String>,
    /// True if the answer was streamed.
    pub stream: Option<bool>,
    /// Name of the upstream; `None` also for `[upstream]`, which has no name.
    pub upstream: Option<String>,
    /// Tokens of the prompt, including cached ones.
    pub input_tokens: Option<u64>,
    /// Tokens of the prompt that the provider had cached.
    pub cached_tokens: Option<u64>,
    /// Tokens of the answer.
    pub output_tokens: Option<u64>,
    /// Time to the end of the answer, in ms.
    pub latency_ms: Option<u64>,
    /// Time to the first byte of the answer, in ms.
    pub first_byte_ms: Option<u64>,
    /// The end of the answer: a word of [`CallEnd`](crate::measured::CallEnd).
    pub end: Option<String>,
    /// Number of extensions of the hold.
    pub extensions: Option<u64>,
    /// The details of the charge. The default is an ordinary call, and one without measurements.
    #[serde(skip)]
    pub billing: Billing,
}

impl CallRecord {
    /// Reads the record from its entry; `None` if the entry is not about a call.
    pub fn from_entry(entry: &Entry) -> Option<Self> {
        if !KINDS.contains(&entry.kind.as_str()) {
            return None;
        }
        let data = &entry.data;
        let is_approved = data.get("approved") == Some(&Value::Bool(true));
        let id = entry.decision_id().to_owned();
        // The id has the time of the approval; the entry is only written when the call ends.
        let approved_ms = made_at_ms(&id).filter(|_| is_approved);
        Some(Self {
            seq: entry.seq,
            audit_seq: entry.seq,
            decided_ms: approved_ms.unwrap_or(entry.at_ms),
            recorded_ms: entry.at_ms,
            day: number(data, "day")
                .filter(|_| is_approved)
                .unwrap_or(entry.at_ms / DAY_MS),
            is_approved,
            agent: entry.agent.clone(),
            key_id: text(data, "keyId"),
            run: text(data, "runId"),
            model: text(data, "model"),
            price_version: text(data, "priceVersion"),
            estimate: nanos(data, "estimateNanos"),
            cost: nanos(data, "chargedNanos").unwrap_or_default(),
            outcome: text(data, "outcome").unwrap_or_else(|| DENIED.to_owned()),
            reason: text(data, "reason"),
            count: number(data, "count").unwrap_or(1),
            measures: data
                .get("call")
                .and_then(Value::as_object)
                .map(Measures::from_json)
                .unwrap_or_default(),
            id,
        })
    }

    /// Returns whether a later entry of the same decision can replace this one: its hold was kept, and can still be
    /// corrected.
    pub fn is_kept(&self) -> bool {
        self.outcome == HoldOutcome::Kept.as_str()
    }

    /// Returns whether an earlier entry of the same decision can say that its hold was kept.
    pub fn can_follow_kept(&self) -> bool {
        [
            HoldOutcome::Corrected,
            HoldOutcome::Estimated,
            HoldOutcome::Voided,
        ]
        .iter()
        .any(|outcome| self.outcome == outcome.as_str())
    }

    /// Calls that it counts as: none for a denial, nor for one whose charge was given back.
    pub fn calls(&self) -> u64 {
        u64::from(self.is_approved && self.outcome != HoldOutcome::Voided.as_str())
    }

    /// Returns the number of denials that the record counts as.
    pub fn denials(&self) -> u64 {
        if self.is_approved { 0 } else { self.count }
    }
}

impl Measures {
    fn from_json(call: &Map<String, Value>) -> Self {
        Self {
            billing: call
                .get("billing")
                .and_then(Value::as_object)
                .map(Billing::from_json)
                .unwrap_or_default(),
            ..Self::deserialize(call).unwrap_or_default()
        }
    }
}

fn text(fields: &Map<String, Value>, name: &str) -> Option<String> {
    fields.get(name).and_then(Value::as_str).map(str::to_owned)
}

fn number(fields: &Map<String, Value>, name: &str) -> Option<u64> {
    fields.get(name).and_then(Value::as_u64)
}

fn nanos(fields: &Map<String, Value>, name: &str) -> Option<Nanos> {
    let text = fields.get(name).and_then(Value::as_str)?;
    text.parse().ok().map(Nanos::from_stored)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    const MEMO: &str = "acct_x bot run-1 vk_1 p1 gpt-4o";
    const ID: &str = "allow_01KAH3V9J80000000000000001";
    const AT_MS: u64 = 1_795_305_540_000;

    fn record(rest: &str) -> CallRecord {
        let entry = Entry::from_line(7, format!("7 {AT_MS} {rest}").as_bytes());
        CallRecord::from_entry(&entry).unwrap()
    }

    #[test]
    fn an_approved_call_has_the_time_and_day_of_its_approval() {
        let call = record(&format!("A settled 120 {ID} H 200 20777 202611 0 ,,,,,, {MEMO}"));
        assert_eq!(
            (call.seq, call.id.as_str(), call.outcome.as_str()),
            (7, ID, "settled")
        );
        assert_eq!(call.decided_ms, made_at_ms(ID).unwrap());
        assert_eq!((call.recorded_ms, call.day), (AT_MS, 20_777));
        assert_eq!(
            (call.estimate, call.cost.get()),
            (Some(Nanos::from_stored(200)), 120)
        );
        let words = [&call.agent, &call.run, &call.key_id, &call.model].map(|word| word.as_deref().unwrap());
        assert_eq!(words, ["bot", "run-1", "vk_1", "gpt-4o"]);
        assert_eq!((call.calls(), call.denials(), call.count), (1, 0, 1));
        assert_eq!(
            call.measures,
            Measures::default(),
            "nothing is invented for an old line"
        );
    }

    #[test]
    fn measured_values_are_read_and_others_stay_unknown() {
        let line = format!("7 {AT_MS} A settled 120 {ID} H 200 20777 202611 0 ,,,,,, {MEMO}");
        let mut entry = Entry::from_line(7, line.as_bytes());
        let call = json!({"endpoint": "responses", "stream": true, "upstream": null, "inputTokens": 12, "cachedTokens": null,
            "outputTokens": 3, "latencyMs": 812, "firstByteMs": 140, "end": "completed", "extensions": 2});
        entry.data.insert("call".to_owned(), call);
        let measures = CallRecord::from_entry(&entry).unwrap().measures;
        assert_eq!(
            (measures.endpoint.as_deref(), measures.stream),
            (Some("responses"), Some(true))
        );
        assert_eq!((measures.upstream, measures.cached_tokens), (None, None));
        assert_eq!(
            (measures.input_tokens, measures.output_tokens),
            (Some(12), Some(3))
        );
        assert_eq!(
            (measures.latency_ms, measures.first_byte_ms),
            (Some(812), Some(140))
        );
        assert_eq!(
            (measures.end.as_deref(), measures.extensions),
            (Some("completed"), Some(2))
        );
    }

    #[test]
    fn denials_and_charges_that_were_given_back_are_no_calls() {
        let denied = record(&format!("D daily_limit {ID} 75 ,,,,,, {MEMO}"));
        assert_eq!((denied.calls(), denied.denials(), denied.cost.get()), (0, 1, 0));
        assert_eq!(
            (denied.outcome.as_str(), denied.reason.as_deref()),
            (DENIED, Some("daily_limit"))
        );
        assert_eq!((denied.decided_ms, denied.day), (AT_MS, AT_MS / DAY_MS));
        let of = |outcome: &str| record(&format!("A {outcome} 0 {ID} H 200 20777 202611 0 ,,,,,, {MEMO}"));
        assert_eq!((of("voided").calls(), of("voided").denials()), (0, 0));
        assert_eq!((of("unsent").calls(), of("unsent").denials()), (0, 1));
        assert!(of("kept").is_kept() && !of("corrected").is_kept());
        let follows = |outcome| of(outcome).can_follow_kept();
        assert_eq!(
            ["settled", "released", "kept", "estimated", "corrected", "voided"].map(follows),
            [false, false, false, true, true, true]
        );
        let freeze =
            format!(r#"7 {AT_MS} {{"type":"agent.frozen","agentId":"bot","actor":"k","data":{{}}}}"#);
        assert_eq!(
            CallRecord::from_entry(&Entry::from_line(7, freeze.as_bytes())),
            None
        );
    }

    #[test]
    fn the_record_of_a_rate_window_stands_for_its_denials() {
        let data = json!({"reason": "rate_limited", "keyId": "vk_1", "count": 27, "decisionId": "deny_01KAH3V9J80000000000000001"});
        let line = format!(
            r#"7 {AT_MS} {{"type":"decisions.denied","agentId":"bot","actor":"vk_1","data":{data}}}"#
        );
        let window = CallRecord::from_entry(&Entry::from_line(7, line.as_bytes())).unwrap();
        assert_eq!(window.id, "deny_01KAH3V9J80000000000000001");
        assert_eq!((window.calls(), window.denials()), (0, 27));
        assert_eq!((window.outcome.as_str(), window.model), (DENIED, None));
    }
}
