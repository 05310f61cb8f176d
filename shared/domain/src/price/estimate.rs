//! The estimate that is charged before a call (specification §4.4 step 4, D31): a pure function of the request's
//! shape and the table.

use super::model::ModelPrice;
use super::picos::PicoSum;
use super::table::PriceTable;
use crate::money::Nanos;

/// The data of a request that determines its estimate.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CallShape<'a> {
    /// `model`, as sent.
    pub model: &'a str,
    /// `service_tier`, if sent.
    pub service_tier: Option<&'a str>,
    /// True if the upstream reports the tier that served a call. The requested tier then prices the estimate (D32);
    /// otherwise the dearer of it and of the table's `auto_tier` does, as for a settlement without a report.
    pub tier_is_reported: bool,
    /// UTF-8 bytes of everything billed as prompt text, including `prediction`.
    pub prompt_bytes: u64,
    /// Token ids of an embeddings input; each is one token.
    pub token_ids: u64,
    /// Messages, their tool calls, and other items. The provider frames each (decision D68), which takes the table's
    /// `message_tokens`.
    pub framed: u64,
    /// Elements of `content` arrays, including empty and unknown ones and those of `prediction` (decision D68), or
    /// texts of an embeddings input. Each takes the table's `part_tokens`.
    pub content_parts: u64,
    /// Bytes of `prediction`, part of `prompt_bytes`, which can be billed as output (decision D68).
    pub predicted_bytes: u64,
    /// Content parts of `prediction`, part of `content_parts`.
    pub predicted_parts: u64,
    /// Images in the prompt, whatever their size.
    pub image_parts: u64,
    /// Audio parts, including earlier audio answers that messages refer to.
    pub audio_parts: u64,
    /// Files in the prompt, whatever their length.
    pub file_parts: u64,
    /// Reasoning items with only an id in the body, whose tokens the provider keeps. Each takes the table's
    /// `reasoning_tokens`, in addition to its bytes in the body.
    pub reasoning_items: u64,
    /// The completion allowance for each choice; 0 if there is no answer to limit (embeddings).
    pub completion_tokens: u64,
    /// True if the caller set no limit. The completion allowance is then the specification's, or the model's if larger.
    pub unlimited: bool,
    /// Requested choices.
    pub n: u64,
    /// True if the answer may be audio: `modalities` has `audio`, or `audio` is set.
    pub audio_output: bool,
    /// True if `web_search_options` was sent.
    pub web_search: bool,
    /// True if the request sets a longer lifetime in the provider's cache than its default. The prompt is then held at
    /// the price of that lifetime if it is dearer.
    pub long_cache: bool,
}

impl CallShape<'_> {
    /// An empty call without names that requests one answer.
    pub const EMPTY: CallShape<'static> = CallShape {
        model: "",
        service_tier: None,
        tier_is_reported: false,
        prompt_bytes: 0,
        token_ids: 0,
        framed: 0,
        content_parts: 0,
        predicted_bytes: 0,
        predicted_parts: 0,
        image_parts: 0,
        audio_parts: 0,
        file_parts: 0,
        reasoning_items: 0,
        completion_tokens: 0,
        unlimited: false,
        n: 1,
        audio_output: false,
        web_search: false,
        long_cache: false,
    };

    /// Returns the tokens to allow for each choice, at this price of the model.
    pub(super) fn allowance(&self, price: &ModelPrice) -> u64 {
        match self.unlimited {
            true => self.completion_tokens.max(price.completion_tokens),
            false => self.completion_tokens,
        }
    }
}

impl PriceTable {
    /// Computes the expected cost of the call, rounded up to the nano; `None` above [`Nanos::MAX`].
    ///
    /// At an upstream that reports the tier of its answers, the requested tier determines the price. A call with `auto`
    /// or without a tier is served as the provider's project is configured. The request does not contain that, so the
    /// table's `auto_tier` is assumed.
    pub fn estimate(&self, call: &CallShape<'_>) -> Option<Nanos> {
        let price = self.price_of(call.model);
        let parts = |count: u64, tokens: u64| u128::from(count) * u128::from(tokens);
        let audio_tokens = parts(call.audio_parts, self.allowances.audio_tokens);
        let text_tokens = |bytes: u64, content_parts: u64| {
            u128::from(bytes.div_ceil(self.allowances.bytes_per_token))
                .checked_add(parts(content_parts, self.allowances.part_tokens))
        };
        let other_tokens = text_tokens(call.prompt_bytes, call.content_parts)?
            .checked_add(u128::from(call.token_ids))?
            .checked_add(parts(call.framed, self.allowances.message_tokens))?
            .checked_add(parts(call.image_parts, price.image_tokens))?
            .checked_add(parts(call.file_parts, self.allowances.file_tokens))?
            .checked_add(parts(call.reasoning_items, self.allowances.reasoning_tokens))?;
        let prompt_tokens = other_tokens.checked_add(audio_tokens)?;
        let prompt_tokens = u64::try_from(prompt_tokens).unwrap_or(u64::MAX);
        let rates = match call.tier_is_reported {
            true => *price.rates(call.service_tier, &self.tier_names, prompt_tokens),
            false => price.rates_unreported(call.service_tier, &self.tier_names, prompt_tokens),
        };
        let input_picos = match call.long_cache {
            true => rates.input_picos.max(rates.cache_write_12h_picos),
            false => rates.input_picos,
        };
        let output_picos = match call.audio_output {
            true => rates.output_picos.max(rates.audio_output_picos),
            false => rates.output_picos,
        };
        let completion_tokens = call.allowance(price);
        let searches = u128::from(price.searches(call.model, call.web_search));
        PicoSum::ZERO
            .plus(other_tokens, input_picos)
            // The part of a prediction that the answer does not use is billed as output.
            .plus(
                text_tokens(call.predicted_bytes, call.predicted_parts)?,
                output_picos.saturating_sub(input_picos),
            )
            .plus(audio_tokens, input_picos.max(rates.audio_input_picos))
            .plus(u128::from(completion_tokens) * u128::from(call.n), output_picos)
            .plus(searches, price.web_search_picos)
            .round_up()
    }
}

#[cfg(test)]
mod properties;
#[cfg(test)]
pub(super) mod tests;
