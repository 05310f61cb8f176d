//! What a streamed answer costs whose usage the provider does not report.

use super::estimate::CallShape;
use super::table::PriceTable;
use crate::money::Nanos;

impl CallShape<'_> {
    /// The same without model and tier, for a longer life.
    #[must_use]
    pub const fn without_names(&self) -> CallShape<'static> {
        CallShape {
            model: "",
            service_tier: None,
            prompt_bytes: self.prompt_bytes,
            token_ids: self.token_ids,
            framed: self.framed,
            content_parts: self.content_parts,
            predicted_bytes: self.predicted_bytes,
            predicted_parts: self.predicted_parts,
            image_parts: self.image_parts,
            audio_parts: self.audio_parts,
            file_parts: self.file_parts,
            completion_tokens: self.completion_tokens,
            unlimited: self.unlimited,
            n: self.n,
            audio_output: self.audio_output,
            web_search: self.web_search,
        }
    }
}

impl PriceTable {
    /// What the call costs by the estimate's rules if its answer has so many bytes of text, all choices together. `None`
    /// beyond [`Nanos::MAX`].
    #[must_use]
    pub fn estimate_of_answer(&self, call: &CallShape<'_>, text_bytes: u64) -> Option<Nanos> {
        self.estimate(&CallShape {
            completion_tokens: text_bytes.div_ceil(self.allowances.bytes_per_token),
            unlimited: false,
            n: 1,
            ..*call
        })
    }
}
