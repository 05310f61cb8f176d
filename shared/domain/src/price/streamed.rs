//! The cost of a streamed answer whose usage the provider does not report.

use super::estimate::CallShape;
use super::table::PriceTable;
use crate::money::Nanos;

impl PriceTable {
    /// Returns the tokens of an answer with `text_bytes` bytes of text, by the rule of the estimate (decision D31).
    pub const fn answer_tokens(&self, text_bytes: u64) -> u64 {
        text_bytes.div_ceil(self.allowances.bytes_per_token)
    }

    /// Returns the bytes of text that count as `tokens` tokens.
    pub const fn text_bytes(&self, tokens: u64) -> u64 {
        tokens.saturating_mul(self.allowances.bytes_per_token)
    }

    /// Returns the tokens of the answer that the estimate covers, all choices together.
    pub fn held_tokens(&self, call: &CallShape<'_>) -> u64 {
        call.allowance(self.price_of(call.model)).saturating_mul(call.n)
    }

    /// Computes the cost by the rules of the estimate for an answer with `tokens` tokens, all choices together. `None`
    /// above [`Nanos::MAX`].
    pub fn estimate_of_tokens(&self, call: &CallShape<'_>, tokens: u64) -> Option<Nanos> {
        self.estimate(&CallShape {
            completion_tokens: tokens,
            unlimited: false,
            n: 1,
            ..*call
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::price::DEFAULT_PRICES;

    /// A growing hold starts at the estimate.
    #[test]
    fn the_initial_hold_is_the_estimate() {
        let table = PriceTable::from_toml(DEFAULT_PRICES).unwrap();
        for (model, unlimited, n) in [
            ("gpt-4o", true, 1),
            ("gpt-4o", false, 3),
            ("o1-pro", true, 2),
            ("x", true, 1),
        ] {
            let call = CallShape {
                model,
                prompt_bytes: 4_001,
                framed: 1,
                completion_tokens: 1_024,
                unlimited,
                n,
                ..CallShape::EMPTY
            };
            let held = table.held_tokens(&call);
            assert_eq!(
                table.estimate_of_tokens(&call, held),
                table.estimate(&call),
                "{model}"
            );
            assert!(
                table.estimate_of_tokens(&call, held - 1) < table.estimate(&call),
                "{model}"
            );
            assert!(
                table.estimate_of_tokens(&call, held + 1) > table.estimate(&call),
                "{model}"
            );
        }
        assert_eq!([0, 1, 4, 5].map(|bytes| table.answer_tokens(bytes)), [0, 1, 1, 2]);
    }
}
