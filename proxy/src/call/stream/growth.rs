//! Growth of a stream's hold. A call without a token limit holds an allowance for its answer. When the text seen
//! reaches three quarters of the hold, the hold grows by the allowance, as often as needed. Only tokens of text that
//! passes are counted: reasoning is not visible, and is charged when the provider reports it.

use crate::call::call_request::{CallRequest, StreamRequest};

/// A hold grows when `SEEN_PARTS` of [`PARTS`] parts of it were seen.
const SEEN_PARTS: u64 = 3;
const PARTS: u64 = 4;

/// The growth of one stream's hold.
#[derive(Debug)]
pub struct Growth {
    /// Tokens of the answer covered by the hold.
    held: u64,
    /// Tokens of one step, equal to those of the estimate.
    step: u64,
}

impl Growth {
    /// Creates the growth of a hold at its estimate; `None` for a call with a token limit, whose hold already covers
    /// all of it.
    pub fn from_request(request: &CallRequest, stream_request: &StreamRequest) -> Option<Self> {
        let price_name = request.price_name();
        let call = stream_request.shape(request, &price_name);
        call.unlimited.then(|| {
            let step = request.prices.held_tokens(&call);
            Self { held: step, step }
        })
    }

    /// Returns the tokens to hold for an answer with `text_bytes` bytes of text; `None` if the hold suffices.
    pub fn wanted(&self, request: &CallRequest, text_bytes: u64) -> Option<u64> {
        let seen = request.prices.answer_tokens(text_bytes);
        let suffices =
            |held: u64| u128::from(seen) * u128::from(PARTS) < u128::from(held) * u128::from(SEEN_PARTS);
        if self.step == 0 || suffices(self.held) {
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
