//! The real cost of an answered call (specification §4.4 step 7, D33).

use super::picos::PicoSum;
use super::table::PriceTable;
use super::usage::Usage;
use crate::money::Nanos;

/// The data of a call that determines its real cost.
#[derive(Debug, Clone, Copy)]
pub struct ServedCall<'a> {
    /// Requested model. The answer may name another one, whose price does not count (D33).
    pub model: &'a str,
    /// `service_tier` of the request.
    pub tier_asked: Option<&'a str>,
    /// `service_tier` of the answer. It takes precedence over the requested tier. Without it the call costs the dearer
    /// of `tier_asked` and the table's `auto_tier`, since the requested tier does not prove which one is billed.
    pub tier_reported: Option<&'a str>,
    /// Tokens that the provider reported.
    pub usage: &'a Usage,
    /// True if `web_search_options` was sent. OpenAI bills one search for such a call, and for each call to a model
    /// that always searches ([`ModelPrice::searches`](super::ModelPrice)); `usage` does not report it.
    pub web_search: bool,
    /// True if the request sets a longer lifetime in the cache than the default. Then all written tokens have the price
    /// of the longer lifetime, except those that `usage` reports for the default one.
    pub long_cache: bool,
}

/// The real cost of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ActualCost {
    /// The amount, rounded up to the nano.
    pub cost: Nanos,
    /// True if it includes a web search.
    pub web_search: bool,
}

impl ServedCall<'_> {
    /// Returns the number of tokens written to the cache for longer than the default.
    const fn long_written(&self) -> u64 {
        let usage = self.usage;
        match self.long_cache {
            true => usage
                .cache_write_tokens
                .saturating_sub(usage.cache_write_30m_tokens),
            false => usage.cache_write_12h_tokens,
        }
    }
}

impl PriceTable {
    /// Computes the cost of the call; `None` above [`Nanos::MAX`].
    ///
    /// `usage` does not say whether written and cached tokens are text or audio. They count as text first, written ones
    /// before cached ones. This never charges too little: audio has no cache discount on this endpoint.
    pub fn actual_cost(&self, call: &ServedCall<'_>) -> Option<ActualCost> {
        let (price, usage) = (self.price_of(call.model), call.usage);
        let rates = match call.tier_reported {
            Some(tier) => *price.rates(Some(tier), &self.tier_names, usage.prompt_tokens),
            None => price.rates_unreported(call.tier_asked, &self.tier_names, usage.prompt_tokens),
        };
        let text = usage.prompt_tokens.saturating_sub(usage.prompt_audio_tokens);
        let written = usage.cache_write_tokens.min(text);
        let long_written = call.long_written().min(written);
        let cached = usage.cached_tokens.min(text - written);
        let spoken = usage.completion_audio_tokens.min(usage.completion_tokens);
        let web_search = price.searches(call.model, call.web_search);
        let cost = PicoSum::ZERO
            .plus(u128::from(text - cached - written), rates.input_picos)
            .plus(u128::from(cached), rates.cached_input_picos)
            .plus(u128::from(written - long_written), rates.cache_write_picos)
            .plus(u128::from(long_written), rates.cache_write_12h_picos)
            .plus(u128::from(usage.prompt_audio_tokens), rates.audio_input_picos)
            .plus(u128::from(usage.completion_tokens - spoken), rates.output_picos)
            .plus(u128::from(spoken), rates.audio_output_picos)
            .plus(u128::from(web_search), price.web_search_picos)
            .round_up()?;
        Some(ActualCost { cost, web_search })
    }
}

#[cfg(test)]
mod tests;
