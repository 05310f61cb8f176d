//! Sums of calls by interval and group.

use domain::call_record::CallRecord;
use domain::id::IdKind;
use domain::money::Nanos;
use domain::timestamp::iso_from_ms;
use endpoint::doc::is;
use serde::Serialize;
use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use store::names::Names;
use utoipa::ToSchema;

domain::words! {
    /// Dimension by which rows are grouped.
    pub(crate) enum Group {
        Model = "model",
        Agent = "agent",
        Key = "key",
        Run = "run",
    }
}

/// Usage of a group.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = UsageAmounts)]
pub(crate) struct UsageAmounts {
    /// Approved calls.
    #[schema(example = 12)]
    pub(super) calls: u64,
    /// Denied calls.
    #[schema(example = 1)]
    pub(super) denied: u64,
    /// Including cached ones.
    #[schema(example = 14400)]
    pub(super) input_tokens: u64,
    #[schema(example = 0)]
    pub(super) cached_tokens: u64,
    #[schema(example = 1020)]
    pub(super) output_tokens: u64,
    /// Number of approved calls whose tokens are unknown and therefore not in the sums.
    #[schema(example = 0)]
    pub(super) unmeasured: u64,
    /// The charges; the estimate if the cost of a call is unknown.
    pub(super) cost_usd: Nanos,
}

/// All rows together.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = UsageTotals)]
pub(crate) struct UsageTotals {
    #[serde(flatten)]
    amounts: UsageAmounts,
    #[schema(value_type = is::NanoUsd)]
    cost_nanos: String,
}

/// Usage of a group in an interval.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = UsageRow)]
pub(crate) struct UsageRow<'a> {
    /// Start of the interval.
    #[schema(value_type = is::Time)]
    pub(super) at: String,
    /// A model, or the id of an agent, virtual key or run; null for calls without a run, and for denials before the
    /// model was known.
    #[schema(example = "gpt-4o")]
    pub(super) group: Option<&'a str>,
    /// The name of the agent or virtual key.
    #[schema(example = "Research bot")]
    pub(super) name: Option<&'a str>,
    #[serde(flatten)]
    pub(super) amounts: UsageAmounts,
    #[schema(value_type = is::NanoUsd)]
    cost_nanos: String,
}

/// The start of an interval, and a group.
type IntervalGroup = (u64, Option<String>);

/// Sums by start of the interval and group.
#[derive(Debug)]
pub(super) struct UsageSums {
    group: Group,
    rows: BTreeMap<IntervalGroup, UsageAmounts>,
    bytes: usize,
}

/// The memory of a row without the text of its group, in bytes.
const ROW_BYTES: usize = 128;

impl Group {
    /// The group of a call; `None` if it has none. A generated run id is none: its run has only this call.
    fn key_of(self, call: &CallRecord) -> Option<String> {
        match self {
            Self::Model => call.model.clone(),
            Self::Agent => call.agent.clone(),
            Self::Key => call.key_id.clone(),
            Self::Run => call.run.clone().filter(|run| !IdKind::Request.has_form(run)),
        }
    }
}

impl UsageAmounts {
    fn from_call(call: &CallRecord) -> Self {
        let (calls, measures) = (call.calls(), &call.measures);
        let is_measured = measures.input_tokens.is_some() || measures.output_tokens.is_some();
        Self {
            calls,
            denied: call.denials(),
            input_tokens: measures.input_tokens.unwrap_or(0),
            cached_tokens: measures.cached_tokens.unwrap_or(0),
            output_tokens: measures.output_tokens.unwrap_or(0),
            unmeasured: if is_measured { 0 } else { calls },
            cost_usd: call.cost,
        }
    }

    fn plus(self, other: Self) -> Self {
        Self {
            calls: self.calls.saturating_add(other.calls),
            denied: self.denied.saturating_add(other.denied),
            input_tokens: self.input_tokens.saturating_add(other.input_tokens),
            cached_tokens: self.cached_tokens.saturating_add(other.cached_tokens),
            output_tokens: self.output_tokens.saturating_add(other.output_tokens),
            unmeasured: self.unmeasured.saturating_add(other.unmeasured),
            cost_usd: self.cost_usd.saturating_add(other.cost_usd),
        }
    }
}

impl UsageSums {
    pub(super) const fn new(group: Group) -> Self {
        Self {
            group,
            rows: BTreeMap::new(),
            bytes: 0,
        }
    }

    /// Adds a call to the interval that begins at `at_ms`. What counts as nothing makes no row.
    pub(super) fn add(&mut self, at_ms: u64, call: &CallRecord) {
        let amounts = UsageAmounts::from_call(call);
        if amounts == UsageAmounts::default() {
            return;
        }
        let row = match self.rows.entry((at_ms, self.group.key_of(call))) {
            Entry::Occupied(row) => row.into_mut(),
            Entry::Vacant(row) => {
                self.bytes += ROW_BYTES + row.key().1.as_ref().map_or(0, String::len);
                row.insert(UsageAmounts::default())
            }
        };
        *row = row.plus(amounts);
    }

    /// Returns the number of rows.
    pub(super) fn len(&self) -> usize {
        self.rows.len()
    }

    /// Returns the memory of the rows, in bytes.
    pub(super) const fn bytes(&self) -> usize {
        self.bytes
    }

    /// Returns the groups.
    pub(super) fn groups(&self) -> impl Iterator<Item = &str> {
        self.rows.keys().filter_map(|(_, group)| group.as_deref())
    }

    pub(super) fn totals(&self) -> UsageTotals {
        let amounts = self
            .rows
            .values()
            .fold(UsageAmounts::default(), |sum, row| sum.plus(*row));
        UsageTotals {
            amounts,
            cost_nanos: amounts.cost_usd.get().to_string(),
        }
    }

    /// Returns the rows, the earliest interval first, and within it the highest cost first.
    pub(super) fn rows<'a>(&'a self, names: &'a Names) -> Vec<UsageRow<'a>> {
        let mut rows: Vec<_> = self.rows.iter().collect();
        rows.sort_by_key(|((at_ms, _), amounts)| (*at_ms, Reverse(amounts.cost_usd)));
        let rows = rows.into_iter();
        rows.map(|((at_ms, group), amounts)| UsageRow::new(*at_ms, group.as_deref(), *amounts, names))
            .collect()
    }

    /// Returns the sums in the order of [`Self::rows`].
    pub(super) fn sorted(self) -> Vec<(IntervalGroup, UsageAmounts)> {
        let mut sums: Vec<_> = self.rows.into_iter().collect();
        sums.sort_by_key(|((at_ms, _), amounts)| (*at_ms, Reverse(amounts.cost_usd)));
        sums
    }
}

impl<'a> UsageRow<'a> {
    pub(super) fn new(at_ms: u64, group: Option<&'a str>, amounts: UsageAmounts, names: &'a Names) -> Self {
        Self {
            at: iso_from_ms(at_ms),
            group,
            name: group.and_then(|group| names.get(group)).map(String::as_str),
            amounts,
            cost_nanos: amounts.cost_usd.get().to_string(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use domain::entry::Entry;

    fn call(rest: &str, memo: &str) -> CallRecord {
        let line = format!("7 1795305540000 {rest} ,,,,,, acct_x bot - {memo}");
        CallRecord::from_entry(&Entry::from_line(7, line.as_bytes())).unwrap()
    }

    #[test]
    fn calls_are_added_up_by_interval_and_group() {
        let id = "allow_01KAH3V9J80000000000000001";
        let approved = |outcome: &str, cost: u64, word: &str, memo: &str| {
            call(
                &format!("v2 A {outcome} {cost} {id}{word} H 200 20777 202611 0"),
                memo,
            )
        };
        let measured = " chat.completions,0,,100,40,7,9,,completed,0";
        let mut sums = UsageSums::new(Group::Model);
        sums.add(1000, &approved("settled", 1, measured, "vk_1 p1 gpt-4o"));
        sums.add(1000, &approved("settled", 2, measured, "vk_2 p1 gpt-4o"));
        sums.add(1000, &approved("estimated", 200, "", "vk_1 p1 o3"));
        sums.add(2000, &approved("voided", 0, "", "vk_1 p1 o3"));
        sums.add(2000, &call(&format!("D daily_limit {id} 5"), "vk_1 p1 gpt-4o"));
        assert_eq!(
            sums.bytes(),
            3 * ROW_BYTES + "o3gpt-4ogpt-4o".len(),
            "once for each row"
        );
        let names = Names::new();
        let rows = sums.rows(&names);
        let shown: Vec<_> = rows
            .iter()
            .map(|row| {
                (
                    row.at.as_str(),
                    row.group,
                    row.amounts.calls,
                    row.amounts.denied,
                    row.cost_nanos.as_str(),
                )
            })
            .collect();
        let (first, second) = ("1970-01-01T00:00:01.000Z", "1970-01-01T00:00:02.000Z");
        assert_eq!(
            shown,
            [
                (first, Some("o3"), 1, 0, "200"),
                (first, Some("gpt-4o"), 2, 0, "3"),
                (second, Some("gpt-4o"), 0, 1, "0"),
            ]
        );
        let totals = sums.totals().amounts;
        assert_eq!(
            (totals.input_tokens, totals.cached_tokens, totals.output_tokens),
            (200, 80, 14)
        );
        assert_eq!((totals.unmeasured, totals.calls, totals.denied), (1, 3, 1));
        assert_eq!(totals.cost_usd.get(), 203);
    }
}
