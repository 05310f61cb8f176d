//! The seven prices of a token: as published, with gaps, and as applied, without.

use super::picos::TokenPrice;
use serde::{Deserialize, Serialize};

/// The figures that a provider publishes for one service tier. A missing one gives no discount: see [`Rates`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Published {
    /// A prompt token.
    pub input: TokenPrice,
    /// A prompt token that was read from the provider's cache.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cached_input: Option<TokenPrice>,
    /// A prompt token that was written to the provider's cache.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cache_write: Option<TokenPrice>,
    /// A prompt token written to the cache for 12 hours, or for any time longer than the provider's default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cache_write_12h: Option<TokenPrice>,
    /// A completion token, including reasoning.
    pub output: TokenPrice,
    /// An audio token of the prompt.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub audio_input: Option<TokenPrice>,
    /// An audio token of the completion.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub audio_output: Option<TokenPrice>,
}

/// Charges per token of each kind, in pico-USD.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rates {
    /// A prompt token.
    pub input_picos: u64,
    /// A prompt token read from the cache.
    pub cached_input_picos: u64,
    /// A prompt token written to the cache.
    pub cache_write_picos: u64,
    /// A prompt token written to the cache for longer than the provider's default.
    pub cache_write_12h_picos: u64,
    /// A completion token.
    pub output_picos: u64,
    /// An audio token of the prompt.
    pub audio_input_picos: u64,
    /// An audio token of the completion.
    pub audio_output_picos: u64,
}

impl Rates {
    /// Fills the gaps of `published`: without a cache price there is no discount, without an audio price that of text
    /// applies.
    pub(super) fn new(published: &Published) -> Self {
        let input = published.input.picos();
        let output = published.output.picos();
        let or = |price: Option<TokenPrice>, default: u64| price.map_or(default, TokenPrice::picos);
        // A written token is also read in full, so a lower figure is a mistake in the list.
        let cache_write = or(published.cache_write, input).max(input);
        Self {
            input_picos: input,
            cached_input_picos: or(published.cached_input, input),
            cache_write_picos: cache_write,
            cache_write_12h_picos: or(published.cache_write_12h, cache_write).max(cache_write),
            output_picos: output,
            audio_input_picos: or(published.audio_input, input),
            audio_output_picos: or(published.audio_output, output),
        }
    }

    /// Creates the rates of a tier or of long context. Unpublished audio prices are not below those of `base`.
    pub(super) fn derived(published: &Published, base: &Self) -> Self {
        let mut rates = Self::new(published);
        if published.audio_input.is_none() {
            rates.audio_input_picos = rates.audio_input_picos.max(base.audio_input_picos);
        }
        if published.audio_output.is_none() {
            rates.audio_output_picos = rates.audio_output_picos.max(base.audio_output_picos);
        }
        rates
    }

    /// Returns the dearer of both for each kind of token.
    pub(super) fn dearer(&self, other: &Self) -> Self {
        Self {
            input_picos: self.input_picos.max(other.input_picos),
            cached_input_picos: self.cached_input_picos.max(other.cached_input_picos),
            cache_write_picos: self.cache_write_picos.max(other.cache_write_picos),
            cache_write_12h_picos: self.cache_write_12h_picos.max(other.cache_write_12h_picos),
            output_picos: self.output_picos.max(other.output_picos),
            audio_input_picos: self.audio_input_picos.max(other.audio_input_picos),
            audio_output_picos: self.audio_output_picos.max(other.audio_output_picos),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn published(json: &str) -> Published {
        serde_json::from_str(json).unwrap()
    }

    #[test]
    fn gaps_are_never_discounts() {
        let rates = Rates::new(&published(r#"{"input": "2", "output": "8"}"#));
        assert_eq!(
            (rates.cached_input_picos, rates.cache_write_picos),
            (2_000_000, 2_000_000)
        );
        assert_eq!(
            (rates.audio_input_picos, rates.audio_output_picos),
            (2_000_000, 8_000_000)
        );
        let slip = Rates::new(&published(r#"{"input": "2", "cache_write": "1", "output": "8"}"#));
        assert_eq!(slip.cache_write_picos, 2_000_000);
        let written = |more: &str| {
            Rates::new(&published(&format!(r#"{{"input": "2", "output": "8"{more}}}"#))).cache_write_12h_picos
        };
        assert_eq!(written(""), 2_000_000);
        assert_eq!(written(r#", "cache_write": "2.50""#), 2_500_000);
        assert_eq!(
            written(r#", "cache_write": "2.50", "cache_write_12h": "5""#),
            5_000_000
        );
        assert_eq!(
            written(r#", "cache_write": "2.50", "cache_write_12h": "1""#),
            2_500_000
        );
        assert_eq!(written(r#", "cache_write_12h": "5""#), 5_000_000);
    }

    #[test]
    fn a_tier_without_audio_prices_is_not_cheaper_on_audio() {
        let base = Rates::new(&published(
            r#"{"input": "2", "output": "8", "audio_input": "30", "audio_output": "60"}"#,
        ));
        let flex = Rates::derived(&published(r#"{"input": "1", "output": "4"}"#), &base);
        assert_eq!(
            (flex.audio_input_picos, flex.audio_output_picos),
            (30_000_000, 60_000_000)
        );
        assert_eq!((flex.input_picos, flex.output_picos), (1_000_000, 4_000_000));
        let own = Rates::derived(
            &published(r#"{"input": "1", "output": "4", "audio_input": "15"}"#),
            &base,
        );
        assert_eq!(
            (own.audio_input_picos, own.audio_output_picos),
            (15_000_000, 60_000_000)
        );
    }
}
