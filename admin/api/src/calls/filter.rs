//! Filter of the calls in a list or an export. The index of the audit trail selects by agent, type of entry and time;
//! all other filters are applied to each entry that is read. The days that calls are charged to select a wider span of
//! times, whose entries are filtered.

use crate::call_trail::LATE_MS;
use domain::amount::{AmountError, parse_amount};
use domain::call_record::{CallRecord, DENIED, KINDS, Measures};
use domain::denial::Denial;
use domain::entry::HoldOutcome;
use domain::id::IdKind;
use domain::measured::{Endpoint, UPSTREAM_NAME_MAX, is_upstream_name};
use domain::money::Nanos;
use domain::period::DAY_MS;
use domain::timestamp::day_from_date;
use endpoint::doc::field;
use endpoint::{Problem, QueryParams, TimeRange, require_order, whole_number};
use history::trail::calls::{CallSelection, LateCalls};
use openapi::Json;
use store::call::hold::MODEL_MAX;

/// Most days before `chargedTo` of which calls are found that ended more than a day later.
const LATE_DAYS_MAX: u64 = 400;

/// Finds one of the measures of an approved call.
type ReadMeasure = fn(&Measures) -> Option<u64>;

/// A filter with its name in queries and its documentation.
pub(super) struct QueryFilter {
    pub(super) name: &'static str,
    pub(super) description: &'static str,
    pub(super) schema: fn() -> Json,
    /// Measure whose minimum the filter sets.
    measure: Option<ReadMeasure>,
}

fn count() -> Json {
    field::count(1)
}

fn model_schema() -> Json {
    let model = field::string().with("minLength", 1_u64);
    model.with("maxLength", MODEL_MAX).example("gpt-4o")
}

fn upstream_schema() -> Json {
    field::pattern(&format!("^[a-z0-9_-]{{1,{UPSTREAM_NAME_MAX}}}$")).example("azure")
}

/// Declares a table of filters: name, schema, the measure of a minimum, and description.
macro_rules! filters {
    ($($name:literal, $schema:expr, $measure:expr, $description:literal;)+) => {
        [$(QueryFilter { name: $name, description: $description, schema: $schema, measure: $measure },)+]
    };
}

pub(super) static FILTERS: [QueryFilter; 19] = filters! {
    "agentId", field::agent_id, None, "Those of this agent.";
    "runId", field::run_id, None, "Those of this run.";
    "keyId", || field::is("VirtualKeyId"), None, "Those of this virtual key.";
    "model", model_schema, None, "Calls that requested this model.";
    "endpoint", || field::words(endpoints()), None, "Those of this endpoint.";
    "upstream", upstream_schema, None, "Calls that were sent to the upstream of this name.";
    "outcome", || field::words(outcomes()), None, "Calls with this outcome.";
    "reason", || field::is("DenialReason"), None, "Calls denied for this reason.";
    "minCostUsd", field::amount, None, "Calls that cost at least this.";
    "minEstimatedUsd", field::amount, None, "Those whose estimate is at least this.";
    "minInputTokens", count, Some(|of| of.input_tokens), "Those whose prompt had at least this many tokens.";
    "minCachedTokens", count, Some(|of| of.cached_tokens), "Those with at least this many cached tokens.";
    "minOutputTokens", count, Some(|of| of.output_tokens), "Those whose answer had at least this many tokens.";
    "minLatencyMs", count, Some(|of| of.latency_ms), "Calls that took at least this many milliseconds.";
    "minFirstByteMs", count, Some(|of| of.first_byte_ms),
        "Those whose first byte took at least this many milliseconds.";
    "from", field::time, None, "Those first recorded from this moment on.";
    "to", field::time, None, "Those first recorded before this moment.";
    "chargedFrom", || field::is("Day"), None, "Approved ones that are charged to this UTC day or a later one.";
    "chargedTo", || field::is("Day"), None,
        "Approved ones that are charged to a UTC day before this one. Those that ended more than a day later are found of the last 400 days.";
};

pub(super) fn names() -> [&'static str; FILTERS.len()] {
    FILTERS.each_ref().map(|filter| filter.name)
}

/// The filters of a query.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct CallFilter {
    kinds: Vec<&'static str>,
    pub(crate) agent: Option<String>,
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
    /// Days since 1970.
    charged_from: Option<u64>,
    /// The day after the last one.
    charged_to: Option<u64>,
}

impl CallFilter {
    /// Parses the filters of a query.
    ///
    /// # Errors
    /// 400 with the name of a malformed parameter.
    pub(super) fn from_query(query: &QueryParams) -> Result<Self, Problem> {
        let names = Self::confirmed(query)?;
        let TimeRange { from_ms, to_ms } = TimeRange::from_query(query)?;
        let charged = [day(query, "chargedFrom")?, day(query, "chargedTo")?];
        require_order(["chargedFrom", "chargedTo"], charged)?;
        let [charged_from, charged_to] = charged;
        let reasons = Denial::ALL.iter().map(|denial| denial.reason());
        let filter = Self {
            endpoint: query.word("endpoint", endpoints())?.map(str::to_owned),
            upstream: upstream(query)?,
            outcome: query.word("outcome", outcomes())?.map(str::to_owned),
            reason: query.word("reason", reasons)?.map(str::to_owned),
            min_cost: min_amount(query, "minCostUsd")?,
            min_estimate: min_amount(query, "minEstimatedUsd")?,
            least: least(query)?,
            from_ms,
            to_ms,
            charged_from,
            charged_to,
            ..names
        };
        let kinds = filter.kinds();
        Ok(Self { kinds, ..filter })
    }

    /// Parses the filters by agent, run, virtual key and model.
    ///
    /// # Errors
    /// 400 with the name of a malformed parameter.
    pub(crate) fn confirmed(query: &QueryParams) -> Result<Self, Problem> {
        Ok(Self {
            agent: query.agent_id("agentId")?.map(str::to_owned),
            run: query.run_id("runId")?.map(str::to_owned),
            key_id: key_id(query)?,
            model: model(query)?,
            ..Self::default()
        })
    }

    /// The indexes of the trail that are read. What was recorded later can have a time that is lower by `spread_ms`.
    pub(super) fn selection(&self, spread_ms: u64) -> CallSelection<'_> {
        let of = |day: Option<u64>| day.map(|day| day.saturating_mul(DAY_MS));
        let charged_ms = of(self.charged_from).map(|from_ms| from_ms.saturating_sub(spread_ms));
        let ended_ms =
            of(self.charged_to).map(|to_ms| to_ms.saturating_add(LATE_MS).saturating_add(spread_ms));
        let least = |one: Option<u64>, other: Option<u64>| one.into_iter().chain(other).min();
        let to_ms = least(self.to_ms, ended_ms);
        let end = self.charged_to.filter(|_| to_ms == ended_ms);
        let late = end.map(|end| {
            let first = self.charged_from.unwrap_or(0);
            LateCalls {
                days: (first.max(end.saturating_sub(LATE_DAYS_MAX)), end),
                to_ms: self.to_ms,
            }
        });
        CallSelection {
            kinds: &self.kinds,
            agent: self.agent.as_deref(),
            from_ms: self.from_ms.max(charged_ms),
            to_ms,
            late,
        }
    }

    /// Returns whether the index alone finds the calls.
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
    pub(crate) fn fits(&self, call: &CallRecord) -> bool {
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
            && self.charges(call)
            && self.min_cost.is_none_or(|least| call.cost >= least)
            && self.min_estimate.is_none_or(|least| call.estimate >= Some(least))
            && self.least.iter().zip(&FILTERS).all(|(least, filter)| {
                let found = filter.measure.and_then(|measure| measure(&call.measures));
                least.is_none_or(|least| found >= Some(least))
            })
    }

    /// Returns whether the call is charged to the days of the filter; a denial is charged to none.
    fn charges(&self, call: &CallRecord) -> bool {
        if self.charged_from.is_none() && self.charged_to.is_none() {
            return true;
        }
        call.is_approved
            && self.charged_from.is_none_or(|first| call.day >= first)
            && self.charged_to.is_none_or(|end| call.day < end)
    }

    /// The types of the entries that can fit. A kept call can be one that was voided later.
    fn kinds(&self) -> Vec<&'static str> {
        let [approved, denied, voided, window] = KINDS;
        let outcome = self
            .outcome
            .as_deref()
            .map(|word| (word, HoldOutcome::parse(word)));
        match outcome {
            Some((_, Some(HoldOutcome::Unsent))) => vec![denied],
            Some((_, Some(HoldOutcome::Voided))) => vec![approved, voided],
            Some((_, Some(_))) => vec![approved],
            Some((_, None)) => vec![denied, window],
            None if self.reason.is_some() => vec![denied, window],
            None if self.min_cost.is_some() || self.least.iter().any(Option::is_some) => vec![approved],
            None if self.charged_from.is_some() || self.charged_to.is_some() => vec![approved, voided],
            None => KINDS.to_vec(),
        }
    }
}

fn endpoints() -> impl Iterator<Item = &'static str> + Clone {
    Endpoint::ALL.iter().map(|endpoint| endpoint.as_str())
}

fn outcomes() -> impl Iterator<Item = &'static str> + Clone {
    HoldOutcome::ALL
        .into_iter()
        .map(HoldOutcome::as_str)
        .chain([DENIED])
}

/// Parses the virtual key of a query.
///
/// # Errors
/// 400 for an invalid id.
fn key_id(query: &QueryParams) -> Result<Option<String>, Problem> {
    let key = query.get("keyId");
    if key.is_some_and(|key| !IdKind::VirtualKey.has_form(key)) {
        let message = "keyId must be the id of a virtual key, vk_ and 26 characters.";
        return Err(Problem::validation(message));
    }
    Ok(key.map(str::to_owned))
}

/// Parses the model of a query. Longer names do not occur in entries.
///
/// # Errors
/// 400 for an empty or long name.
fn model(query: &QueryParams) -> Result<Option<String>, Problem> {
    let model = query.get("model");
    if model.is_some_and(|model| !(1..=MODEL_MAX).contains(&model.len())) {
        return Err(Problem::validation(format!(
            "model must have 1 to {MODEL_MAX} bytes."
        )));
    }
    Ok(model.map(str::to_owned))
}

fn upstream(query: &QueryParams) -> Result<Option<String>, Problem> {
    let upstream = query.get("upstream");
    if upstream.is_some_and(|name| !is_upstream_name(name)) {
        let message = "upstream must be the name of an upstream, of a-z 0-9 _ -.";
        return Err(Problem::validation(message));
    }
    Ok(upstream.map(str::to_owned))
}

/// A UTC day, in days since 1970.
fn day(query: &QueryParams, field: &str) -> Result<Option<u64>, Problem> {
    let Some(text) = query.get(field) else {
        return Ok(None);
    };
    let message = || format!("{field} must be a UTC day, such as 2026-11-27.");
    let day = day_from_date(text).ok_or_else(|| Problem::validation(message()))?;
    Ok(Some(day))
}

fn min_amount(query: &QueryParams, field: &str) -> Result<Option<Nanos>, Problem> {
    // In a query, quotes are no JSON.
    let parse = |text: &str| match text.starts_with('"') {
        true => Err(AmountError::NotANumber),
        false => parse_amount(text),
    };
    let amount = query.get(field).map(parse).transpose();
    amount.map_err(|error| Problem::validation(format!("{field} {error}.")))
}

/// Parses the minimum of each measure.
///
/// # Errors
/// 400 for anything but a positive integer.
fn least(query: &QueryParams) -> Result<[Option<u64>; FILTERS.len()], Problem> {
    let mut all = [None; FILTERS.len()];
    for (least, filter) in all.iter_mut().zip(&FILTERS) {
        let field = filter.name;
        if let Some(text) = query.get(field).filter(|_| filter.measure.is_some()) {
            let number = whole_number(text).filter(|number| *number > 0);
            let message = || format!("{field} must be a whole number from 1 on.");
            *least = Some(number.ok_or_else(|| Problem::validation(message()))?);
        }
    }
    Ok(all)
}

#[cfg(test)]
mod tests;
