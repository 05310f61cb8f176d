//! Which calls a list or an export shows. The index of the audit trail knows agents, types of entries and times; by the
//! other filters each entry that is read is judged.

use domain::amount::parse_amount;
use domain::call_record::{CallRecord, DENIED, KINDS, Measures};
use domain::denial::Denial;
use domain::entry::How;
use domain::id::Kind;
use domain::measured::{Endpoint, UPSTREAM_NAME_MAX, is_upstream_name};
use domain::money::Nanos;
use endpoint::doc::field;
use endpoint::{Problem, require_agent_id, require_run_id, time};
use history::trail::calls::Wanted;
use openapi::Json;
use std::collections::BTreeMap;
use store::call::hold::MODEL_MAX;

/// Finds one of the measures of an approved call.
type Measure = fn(&Measures) -> Option<u64>;

/// A filter, as a query names it and the documentation describes it.
pub(super) struct Filter {
    pub(super) name: &'static str,
    pub(super) says: &'static str,
    pub(super) schema: fn() -> Json,
    /// Measure whose least value the filter gives.
    measure: Option<Measure>,
}

fn count() -> Json {
    field::count(1)
}

fn model_schema() -> Json {
    let model = field::string().with("minLength", 1_u64);
    model.with("maxLength", MODEL_MAX).eg("gpt-4o")
}

fn upstream_schema() -> Json {
    field::pattern(&format!("^[a-z0-9_-]{{1,{UPSTREAM_NAME_MAX}}}$")).eg("azure")
}

/// A table of filters: name, schema, what it is the least of, and sentence.
macro_rules! filters {
    ($($name:literal, $schema:expr, $measure:expr, $says:literal;)+) => {
        [$(Filter { name: $name, says: $says, schema: $schema, measure: $measure },)+]
    };
}

/// Every filter.
pub(super) static FILTERS: [Filter; 17] = filters! {
    "agentId", field::agent_id, None, "Those of this agent.";
    "runId", field::run_id, None, "Those of this run.";
    "keyId", || field::is("VirtualKeyId"), None, "Those of this virtual key.";
    "model", model_schema, None, "Those that asked for this model.";
    "endpoint", || field::words(endpoints()), None, "Those of this endpoint.";
    "upstream", upstream_schema, None, "Those that went to the upstream of this name.";
    "outcome", || field::words(outcomes()), None, "Those that ended so.";
    "reason", || field::is("DenialReason"), None, "Those that were denied for this reason.";
    "minCostUsd", field::amount, None, "Those that cost at least this.";
    "minEstimatedUsd", field::amount, None, "Those whose estimate is at least this.";
    "minInputTokens", count, Some(|of| of.input_tokens), "Those whose prompt had at least this many tokens.";
    "minCachedTokens", count, Some(|of| of.cached_tokens), "Those with at least this many cached tokens.";
    "minOutputTokens", count, Some(|of| of.output_tokens), "Those whose answer had at least this many tokens.";
    "minLatencyMs", count, Some(|of| of.latency_ms), "Those that took at least this many milliseconds.";
    "minFirstByteMs", count, Some(|of| of.first_byte_ms),
        "Those whose first byte took at least this many milliseconds.";
    "from", field::time, None, "Those recorded from this moment on.";
    "to", field::time, None, "Those recorded before this moment.";
};

/// The names of the filters.
pub(super) fn names() -> [&'static str; FILTERS.len()] {
    FILTERS.each_ref().map(|filter| filter.name)
}

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
    /// In the order of [`FILTERS`].
    least: [Option<u64>; FILTERS.len()],
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
            && self.least.iter().zip(&FILTERS).all(|(least, filter)| {
                let found = filter.measure.and_then(|measure| measure(&call.measures));
                least.is_none_or(|least| found >= Some(least))
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
fn endpoints() -> impl Iterator<Item = &'static str> + Clone {
    Endpoint::ALL.iter().map(|endpoint| endpoint.as_str())
}

/// The words of `outcome`.
fn outcomes() -> impl Iterator<Item = &'static str> + Clone {
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

/// What one of some words stands for.
///
/// # Errors
/// 400 for any other.
pub(crate) fn value<T>(
    query: &BTreeMap<String, String>,
    field: &str,
    words: impl IntoIterator<Item = &'static str> + Clone,
    parse: impl Fn(&str) -> Option<T>,
) -> Result<Option<T>, Problem> {
    Ok(word(query, field, words)?.and_then(|word| parse(&word)))
}

fn min_amount(query: &BTreeMap<String, String>, field: &str) -> Result<Option<Nanos>, Problem> {
    let amount = query.get(field).map(|text| parse_amount(text)).transpose();
    amount.map_err(|error| Problem::validation(format!("{field} {error}.")))
}

/// The least of each measure.
///
/// # Errors
/// 400 for what is no whole number from 1 on.
fn least(query: &BTreeMap<String, String>) -> Result<[Option<u64>; FILTERS.len()], Problem> {
    let mut all = [None; FILTERS.len()];
    for (least, filter) in all.iter_mut().zip(&FILTERS) {
        let field = filter.name;
        if let Some(text) = query.get(field).filter(|_| filter.measure.is_some()) {
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

    fn parsed(pairs: &[(&str, &str)]) -> Result<CallFilter, Problem> {
        let query = pairs
            .iter()
            .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
        CallFilter::of_query(&query.collect())
    }

    #[test]
    fn only_types_that_can_fit_are_read() {
        let kinds = |pairs: &[(&str, &str)]| parsed(pairs).unwrap().kinds;
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
        let measured = FILTERS
            .iter()
            .filter_map(|filter| Some((filter.name, filter.measure?)));
        let found = measured.map(|(name, measure)| (name, measure(&measures)));
        assert_eq!(
            found.collect::<Vec<_>>(),
            [
                ("minInputTokens", Some(1)),
                ("minCachedTokens", Some(2)),
                ("minOutputTokens", Some(3)),
                ("minLatencyMs", Some(4)),
                ("minFirstByteMs", Some(5)),
            ]
        );
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
            let problem = parsed(&[(name, bad)]).unwrap_err();
            assert!(format!("{problem:?}").contains(name), "{name}={bad}: {problem:?}");
        }
        assert!(parsed(&[("model", &long[1..])]).is_ok(), "at the bound");
    }
}
