//! Recomputes the charge of a call from its record and the price table of its version alone (decision D48). The formula
//! for people is in docs/reference/decision-records.md.

use crate::call_record::CallRecord;
use crate::entry::HoldOutcome;
use crate::measured::UNSPELT;
use crate::money::Nanos;
use crate::price::{PriceTable, ServedCall, Usage};

/// Between the name of an upstream and a model, in the name by which the table has the price.
const PREFIX_END: char = '/';

/// Result of recomputing a charge.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Recomputed {
    /// The charge follows from the usage and the table, from the reported cost, or from the outcome (nothing is charged
    /// for a released call).
    Same,
    /// No usage was recorded, and the charge is the recorded estimate.
    Estimate,
    /// This amount follows from the record, and another one is charged.
    Different(Nanos),
    /// The record does not determine the charge.
    Unknown(Unknown),
}

crate::words! {
    /// Why a record does not determine the charge.
    pub enum Unknown {
        /// Without usage, more than the estimate was charged: the text of a stream cost more, or an operator or a late
        /// settlement set the charge.
        NoUsage = "no_usage",
        /// A service tier or a price prefix has a name that lines cannot contain.
        Unspelt = "unspelt",
        /// The price table of the record's version is not known.
        NoTable = "no_table",
    }
}

impl CallRecord {
    /// Recomputes the charge. `table` is the one of the record's `price_version`, if it is known.
    pub fn recompute(&self, table: Option<&PriceTable>) -> Recomputed {
        let is = |outcome: HoldOutcome| self.outcome == outcome.as_str();
        if !self.is_approved
            || is(HoldOutcome::Released)
            || is(HoldOutcome::Voided)
            || is(HoldOutcome::Unsent)
        {
            return self.compared_with(Nanos::ZERO);
        }
        let billing = &self.measures.billing;
        if let Some(reported) = billing.reported_cost {
            return self.compared_with(reported);
        }
        let Some(usage) = self.usage() else {
            return match Some(self.cost) == self.estimate {
                true => Recomputed::Estimate,
                false => Recomputed::Unknown(Unknown::NoUsage),
            };
        };
        let words = [&billing.tier_asked, &billing.tier_reported, &billing.price_prefix];
        if words.into_iter().any(|word| word.as_deref() == Some(UNSPELT)) {
            return Recomputed::Unknown(Unknown::Unspelt);
        }
        let Some(table) = table else {
            return Recomputed::Unknown(Unknown::NoTable);
        };
        let served = ServedCall {
            model: &self.priced_model(),
            tier_asked: billing.tier_asked.as_deref(),
            tier_reported: billing.tier_reported.as_deref(),
            usage: &usage,
            web_search: billing.web_search,
            long_cache: billing.long_cache,
        };
        match table.actual_cost(&served) {
            Some(actual) => self.compared_with(actual.cost),
            // Beyond any amount: the estimate stayed charged.
            None if Some(self.cost) == self.estimate => Recomputed::Estimate,
            None => Recomputed::Unknown(Unknown::NoUsage),
        }
    }

    fn compared_with(&self, computed: Nanos) -> Recomputed {
        match computed == self.cost {
            true => Recomputed::Same,
            false => Recomputed::Different(computed),
        }
    }

    /// Returns the name by which the table has the price of the model.
    fn priced_model(&self) -> String {
        let model = self.model.as_deref().unwrap_or_default();
        match (&self.measures.billing.price_prefix, &self.measures.upstream) {
            (Some(prefix), _) => format!("{prefix}{model}"),
            (None, Some(upstream)) => format!("{upstream}{PREFIX_END}{model}"),
            (None, None) => model.to_owned(),
        }
    }

    /// Returns the recorded usage, if it determined the charge.
    fn usage(&self) -> Option<Usage> {
        let Self { measures, .. } = self;
        let billing = &measures.billing;
        Some(Usage {
            prompt_tokens: measures.input_tokens?,
            completion_tokens: measures.output_tokens?,
            cached_tokens: measures.cached_tokens.unwrap_or(0),
            cache_write_tokens: billing.cache_write_tokens,
            cache_write_12h_tokens: billing.cache_write_12h_tokens,
            cache_write_30m_tokens: billing.cache_write_30m_tokens,
            prompt_audio_tokens: billing.audio_input_tokens,
            completion_audio_tokens: billing.audio_output_tokens,
            reasoning_tokens: billing.reasoning_tokens,
        })
    }
}

#[cfg(test)]
mod tests;
