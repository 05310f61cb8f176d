//! When the hold of a stream has to grow, and to what. A call without a limit holds an allowance for its answer; when
//! three quarters of what is held were seen, the hold grows by the allowance, as often as needed. Tokens are those of
//! the text that passes: reasoning is not seen, so it is in no step, and is charged when the provider reports it.

use crate::call::call_request::{CallRequest, StreamRequest};

/// A hold grows when this share of it was seen: so many parts of [`PARTS`].
const SEEN_PARTS: u64 = 3;
const PARTS: u64 = 4;

/// The growth of one stream's hold.
#[derive(Debug)]
pub struct Growth {
    /// Tokens of the answer that are held.
    held: u64,
    /// Tokens of one step: those of the estimate.
    step: u64,
}

impl Growth {
    /// The growth of a hold that stands at the estimate; `None` for a call with a limit, which holds all of it.
    pub fn of(request: &CallRequest, asked: &StreamRequest) -> Option<Self> {
        let price_name = request.price_name();
        let call = asked.shape(request, &price_name);
        call.unlimited.then(|| {
            let step = request.prices.held_tokens(&call);
            Self { held: step, step }
        })
    }

    /// The tokens to hold when the answer has so many bytes of text; `None` if what is held suffices.
    pub fn wanted(&self, request: &CallRequest, text_bytes: u64) -> Option<u64> {
        let seen = request.prices.answer_tokens(text_bytes);
        let suffices =
            |held: u64| u128::from(seen) * u128::from(PARTS) < u128::from(held) * u128::from(SEEN_PARTS);
        if self.step == 0 || suffices(self.held) {
            return None;
        }
        // The text may have grown by more than a step at once.
        let steps = (seen * PARTS / SEEN_PARTS).saturating_sub(self.held) / self.step + 1;
        Some(self.held.saturating_add(steps.saturating_mul(self.step)))
    }

    /// Notes that so many tokens are held.
    pub const fn grew(&mut self, tokens: u64) {
        self.held = tokens;
    }
}
