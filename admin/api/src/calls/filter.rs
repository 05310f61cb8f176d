//! Which calls a list or an export shows. The index of the audit trail knows agents, types of entries and times; by the
//! other filters each entry that is read is judged.

use domain::amount::parse_amount;
use domain::call_record::{CallRecord, DENIED, KINDS, Measures};
use domain::denial::Denial;
use domain::entry::How;
use domain::id::Kind;
use domain::measured::{Endpoint, is_upstream_name};
use domain::money::Nanos;
use endpoint::{Problem, require_agent_id, require_run_id, time};
use history::trail::calls::Wanted;
use std::collections::BTreeMap;
use store::call::hold::MODEL_MAX;

/// The filters, as a query names them.
pub(super) const FILTERS: [&str; 17] = [
    "agentId",
    "runId",
    "keyId",
    "model",
    "endpoint",
    "upstream",
    "outcome",
    "reason",
    "minCostUsd",
    "minEstimatedUsd",
    "minInputTokens",
    "minCachedTokens",
    "minOutputTokens",
    "minLatencyMs",
    "minFirstByteMs",
    "from",
    "to",
];

/// Finds one of the measures of an approved call.
type Measure = fn(&Measures) -> Option<u64>;

/// The filters by what was measured, and where it is found.
const MEASURED: [(&str, Measure); 5] = [
    ("minInputTokens", |measures| measures.input_tokens),
    ("minCachedTokens", |measures| measures.cached_tokens),
    ("minOutputTokens", |measures| measures.output_tokens),
    ("minLatencyMs", |measures| measures.latency_ms),
    ("minFirstByteMs", |measures| measures.first_byte_ms),
];

/// The filters of a query.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct CallFilter {
    kinds: Vec<&'static str>,
    agent: Option<String>,
    run: Option<String>,
    key_id: Option<String>,
    model: Option<String>,
    endpoint: Option<String>,
    upstream: Option<String>,
    outcome: Option<String>,
    reason: Option<String>,
    min_cost: Option<Nanos>,
    min_estimate: Option<Nanos>,
    /// In the order of [`MEASURED`].
    least: [Option<u64>; MEASURED.len()],
    from_ms: Option<u64>,
    to_ms: Option<u64>,
}

impl CallFilter {
    /// Reads the filters of a query.
    ///
    /// # Errors
    /// 400 names a parameter that is malformed.
    pub(super) fn of_query(query: &BTreeMap<String, String>) -> Result<Self, Problem> {
        let filter = Self {
            agent: agent(query)?,
            run: run(query)?,
            key_id: key_id(query)?,
            model: model(query)?,
            endpoint: word(query, "endpoint", endpoints())?,
            upstream: upstream(query)?,
            outcome: word(query, "outcome", outcomes())?,
            reason: word(query, "reason", Denial::ALL.iter().map(|denial| denial.reason()))?,
            min_cost: min_amount(query, "minCostUsd")?,
            min_estimate: min_amount(query, "minEstimatedUsd")?,
            least: least(query)?,
            from_ms: time(query, "from")?,
            to_ms: time(query, "to")?,
            kinds: Vec::new(),
        };
        let kinds = filter.kinds();
        Ok(Self { kinds, ..filter })
    }

    /// The indexes of the trail that are read.
    pub(super) fn wanted(&self) -> Wanted<'_> {
        Wanted {
            kinds: &self.kinds,
            agent: self.agent.as_deref(),
            from_ms: self.from_ms,
            to_ms: self.to_ms,
        }
    }

    /// The index alone finds the calls.
    pub(super) fn is_of_the_index(&self) -> bool {
        let indexed = Self {
            kinds: self.kinds.clone(),
            agent: self.agent.clone(),
            from_ms: self.from_ms,
            to_ms: self.to_ms,
            ..Self::default()
        };
        *self == indexed
    }

    /// Returns whether a call that was read is shown.
    pub(super) fn fits(&self, call: &CallRecord) -> bool {
        let is = |wanted: &Option<String>, found: Option<&str>| {
            wanted.is_none() || (found.is_some() && found == wanted.as_deref())
        };
        is(&self.run, call.run.as_deref())
            && is(&self.key_id, call.key_id.as_deref())
            && is(&self.model, call.model.as_deref())
            && is(&self.endpoint, call.measures.endpoint.as_deref())
            && is(&self.upstream, call.measures.upstream.as_deref())
            && is(&self.outcome, Some(&call.outcome))
            && is(&self.reason, call.reason.as_deref())
            && self.min_cost.is_none_or(|least| call.cost >= least)
            && self.min_estimate.is_none_or(|least| call.estimate >= Some(least))
            && self.least.iter().zip(MEASURED).all(|(least, (_, measured))| {
                least.is_none_or(|least| measured(&call.measures) >= Some(least))
            })
    }

    /// The types of the entries that can fit. A kept call can be one that was voided later.
    fn kinds(&self) -> Vec<&'static str> {
        let [approved, denied, voided, window] = KINDS;
        let outcome = self.outcome.as_deref().map(|word| (word, How::parse(word)));
        match outcome {
            Some((_, Some(How::Unsent))) => vec![denied],
            Some((_, Some(How::Voided))) => vec![approved, voided],
            Some((_, Some(_))) => vec![approved],
            Some((_, None)) => vec![denied, window],
            None if self.reason.is_some() => vec![denied, window],
            None if self.min_cost.is_some() || self.least.iter().any(Option::is_some) => vec![approved],
            None => KINDS.to_vec(),
        }
    }
}

/// The words of `endpoint`.
pub(super) fn endpoints() -> impl Iterator<Item = &'static str> + Clone {
    Endpoint::ALL.iter().map(|endpoint| endpoint.as_str())
}

/// The words of `outcome`.
pub(super) fn outcomes() -> impl Iterator<Item = &'static str> + Clone {
    How::ALL.into_iter().map(How::as_str).chain([DENIED])
}

/// The agent of a query.
///
/// # Errors
/// 400 for what cannot be one.
pub(crate) fn agent(query: &BTreeMap<String, String>) -> Result<Option<String>, Problem> {
    let agent = query.get("agentId");
    if let Some(agent) = agent {
        require_agent_id("agentId", agent)?;
    }
    Ok(agent.cloned())
}

/// The run of a query.
///
/// # Errors
/// 400 for what cannot be one.
pub(crate) fn run(query: &BTreeMap<String, String>) -> Result<Option<String>, Problem> {
    let run = query.get("runId");
    if let Some(run) = run {
        require_run_id("runId", run)?;
    }
    Ok(run.cloned())
}

/// The virtual key of a query.
///
/// # Errors
/// 400 for what cannot be the id of one.
pub(crate) fn key_id(query: &BTreeMap<String, String>) -> Result<Option<String>, Problem> {
    let key = query.get("keyId");
    if key.is_some_and(|key| !Kind::VirtualKey.has_form(key)) {
        let message = "keyId must be the id of a virtual key, vk_ and 26 characters.";
        return Err(Problem::validation(message));
    }
    Ok(key.cloned())
}

/// The model of a query. Entries have no longer ones.
///
/// # Errors
/// 400 for an empty or long one.
pub(crate) fn model(query: &BTreeMap<String, String>) -> Result<Option<String>, Problem> {
    let model = query.get("model");
    if model.is_some_and(|model| !(1..=MODEL_MAX).contains(&model.len())) {
        return Err(Problem::validation(format!(
            "model must have 1 to {MODEL_MAX} bytes."
        )));
    }
    Ok(model.cloned())
}

fn upstream(query: &BTreeMap<String, String>) -> Result<Option<String>, Problem> {
    let upstream = query.get("upstream");
    if upstream.is_some_and(|name| !is_upstream_name(name)) {
        let message = "upstream must be the name of an upstream, of a-z 0-9 _ -.";
        return Err(Problem::validation(message));
    }
    Ok(upstream.cloned())
}

/// One of some words.
///
/// # Errors
/// 400 for any other.
pub(crate) fn word(
    query: &BTreeMap<String, String>,
    field: &str,
    words: impl IntoIterator<Item = &'static str> + Clone,
) -> Result<Option<String>, Problem> {
    let word = query.get(field);
    if word.is_some_and(|word| !words.clone().into_iter().any(|known| known == word)) {
        let known = words.into_iter().collect::<Vec<_>>().join(", ");
        return Err(Problem::validation(format!("{field} must be one of {known}.")));
    }
    Ok(word.cloned())
}

fn min_amount(query: &BTreeMap<String, String>, field: &str) -> Result<Option<Nanos>, Problem> {
    let amount = query.get(field).map(|text| parse_amount(text)).transpose();
    amount.map_err(|error| Problem::validation(format!("{field} {error}.")))
}

/// The least of each measure.
///
/// # Errors
/// 400 for what is no whole number from 1 on.
fn least(query: &BTreeMap<String, String>) -> Result<[Option<u64>; MEASURED.len()], Problem> {
    let mut all = [None; MEASURED.len()];
    for (least, (field, _)) in all.iter_mut().zip(MEASURED) {
        if let Some(text) = query.get(field) {
            let number = text.parse().ok().filter(|number| *number > 0);
            let message = || format!("{field} must be a whole number from 1 on.");
            *least = Some(number.ok_or_else(|| Problem::validation(message()))?);
        }
    }
    Ok(all)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn filter(pairs: &[(&str, &str)]) -> Result<CallFilter, Problem> {
        let query = pairs
            .iter()
            .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
        CallFilter::of_query(&query.collect())
    }

    #[test]
    fn only_types_that_can_fit_are_read() {
        let kinds = |pairs: &[(&str, &str)]| filter(pairs).unwrap().kinds;
        let [approved, denied, voided, window] = KINDS;
        assert_eq!(kinds(&[]), KINDS);
        assert_eq!(kinds(&[("outcome", "settled")]), [approved]);
        assert_eq!(kinds(&[("outcome", "voided")]), [approved, voided]);
        assert_eq!(kinds(&[("outcome", "unsent")]), [denied]);
        assert_eq!(kinds(&[("outcome", DENIED)]), [denied, window]);
        assert_eq!(kinds(&[("reason", "daily_limit")]), [denied, window]);
        assert_eq!(kinds(&[("minCostUsd", "0.5")]), [approved]);
        assert_eq!(kinds(&[("minLatencyMs", "1")]), [approved]);
        assert_eq!(kinds(&[("minEstimatedUsd", "0.5")]), KINDS);
    }

    #[test]
    fn each_measure_has_its_filter() {
        let measures = Measures {
            input_tokens: Some(1),
            cached_tokens: Some(2),
            output_tokens: Some(3),
            latency_ms: Some(4),
            first_byte_ms: Some(5),
            ..Measures::default()
        };
        let found = MEASURED.map(|(field, measured)| (field, measured(&measures)));
        assert_eq!(
            found,
            [
                ("minInputTokens", Some(1)),
                ("minCachedTokens", Some(2)),
                ("minOutputTokens", Some(3)),
                ("minLatencyMs", Some(4)),
                ("minFirstByteMs", Some(5)),
            ]
        );
        assert!(MEASURED.iter().all(|(field, _)| FILTERS.contains(field)));
    }

    #[test]
    fn a_malformed_parameter_is_named() {
        let long = "m".repeat(MODEL_MAX + 1);
        for (name, bad) in [
            ("agentId", "user"),
            ("agentId", ""),
            ("runId", "a b"),
            ("keyId", "vk_1"),
            ("keyId", "key_01KAH3V9J80000000000000001"),
            ("model", ""),
            ("model", &long),
            ("endpoint", "chat"),
            ("upstream", ""),
            ("upstream", "My Azure"),
            ("outcome", "open"),
            ("outcome", ""),
            ("reason", "because"),
            ("minCostUsd", "0"),
            ("minCostUsd", "cheap"),
            ("minCostUsd", "0.0000000001"),
            ("minEstimatedUsd", "dear"),
            ("minInputTokens", "0"),
            ("minCachedTokens", "-1"),
            ("minOutputTokens", "1.5"),
            ("minLatencyMs", "18446744073709551616"),
            ("minFirstByteMs", ""),
            ("from", "yesterday"),
            ("to", "2026"),
        ] {
            let problem = filter(&[(name, bad)]).unwrap_err();
            assert!(format!("{problem:?}").contains(name), "{name}={bad}: {problem:?}");
        }
        assert!(filter(&[("model", &long[1..])]).is_ok(), "at the bound");
    }
}
