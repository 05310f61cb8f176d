//! Growth of a stream's hold. A call without a token limit holds an allowance for its answer. When the text seen
//! reaches three quarters of the hold, the hold grows by the allowance, as often as needed. Only tokens of text that
//! passes are counted: reasoning is not visible, and is charged when the provider reports it.
//!
//! A call with a token limit holds all of it. Its hold grows only if the text shows that the provider ignores the
//! limit, or goes by another one of the request: otherwise a caller who names a small limit would get an answer of any
//! length.

use crate::call::call_request::CallRequest;
use domain::price::PriceTable;

/// A hold grows when `SEEN_PARTS` of [`PARTS`] parts of it were seen.
const SEEN_PARTS: u64 = 3;
const PARTS: u64 = 4;
/// The provider ignores a token limit if the text seen has this many times the tokens of the limit. Text has about
/// [four bytes a token](domain::price::PriceTable::answer_tokens), and a long answer never sixteen.
const IGNORED_FACTOR: u64 = 4;
/// And this many tokens more than the limit, since a single token can have a hundred bytes.
const IGNORED_BY: u64 = 256;
/// Fewest tokens of a step: the specification's allowance without a limit. A small limit must not make each event a
/// decision.
const STEP_MIN: u64 = 1024;

/// The growth of one stream's hold.
#[derive(Debug)]
pub struct Growth {
    /// Tokens of the answer covered by the hold.
    held: u64,
    /// Tokens of one step: those of the estimate, at least [`STEP_MIN`].
    step: u64,
    /// Tokens that have to be seen before the hold grows at all; 0 without a token limit.
    from: u64,
}

impl Growth {
    /// Creates the growth of a hold at its estimate.
    pub fn from_request(request: &CallRequest) -> Self {
        let held = request.priced(PriceTable::held_tokens);
        let ignored = held
            .saturating_mul(IGNORED_FACTOR)
            .max(held.saturating_add(IGNORED_BY));
        Self {
            held,
            step: held.max(STEP_MIN),
            from: if request.shape.unlimited { 0 } else { ignored },
        }
    }

    /// Returns the tokens to hold for an answer with `text_bytes` bytes of text; `None` if the hold suffices.
    pub fn wanted(&self, request: &CallRequest, text_bytes: u64) -> Option<u64> {
        let seen = request.prices.answer_tokens(text_bytes);
        let suffices =
            |held: u64| u128::from(seen) * u128::from(PARTS) < u128::from(held) * u128::from(SEEN_PARTS);
        if seen < self.from || suffices(self.held) {
            return None;
        }
        // The text may have grown by more than one step since the last check.
        let steps = (seen * PARTS / SEEN_PARTS).saturating_sub(self.held) / self.step + 1;
        Some(self.held.saturating_add(steps.saturating_mul(self.step)))
    }

    /// Records that the hold now covers `tokens` tokens.
    pub const fn grew(&mut self, tokens: u64) {
        self.held = tokens;
    }
}
