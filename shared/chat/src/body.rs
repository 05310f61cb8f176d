//! A request body as the gate reads it, the same for every endpoint.

use super::error::BodyError;
use super::prompt::Prompt;
use super::stream_options::UsageSplice;
use domain::price::CallShape;
use std::borrow::Cow;

/// What the gate needs to know of a request body; everything borrows from it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RequestBody<'a> {
    /// The model, unescaped: 1 to [`MODEL_BYTES_MAX`](super::MODEL_BYTES_MAX) bytes without control characters.
    pub model: Cow<'a, str>,
    /// Requested service tier, unless absent or `null`.
    pub service_tier: Option<Cow<'a, str>>,
    /// Whether the answer is asked for as a stream of events.
    pub stream: bool,
    /// UTF-8 bytes of everything billed as prompt text (decision D31), those of `prediction` included.
    pub prompt_bytes: u64,
    /// Token ids of an embeddings input; each is one token.
    pub token_ids: u64,
    /// Messages, tool calls in them and other items: the provider frames each (decision D68).
    pub framed: u64,
    /// Elements of `content` arrays, empty and unknown ones included, those of `prediction` too (decision D68); texts of
    /// an embeddings input.
    pub content_parts: u64,
    /// Of [`prompt_bytes`](Self::prompt_bytes): those of `prediction`, which can be billed as output (decision D68).
    pub predicted_bytes: u64,
    /// Of [`content_parts`](Self::content_parts): those of `prediction`.
    pub predicted_parts: u64,
    /// Image parts.
    pub image_parts: u64,
    /// Audio parts, earlier audio answers that messages refer to included.
    pub audio_parts: u64,
    /// File parts.
    pub file_parts: u64,
    /// The limit of the answer, else [`COMPLETION_TOKENS_DEFAULT`](super::COMPLETION_TOKENS_DEFAULT); 0 where there is
    /// no answer to limit (embeddings).
    pub completion_tokens: u64,
    /// The caller set no limit.
    pub unlimited: bool,
    /// Requested completions: 1 to [`N_MAX`](super::N_MAX).
    pub n: u64,
    /// Whether audio is requested: `modalities` has `audio`, or `audio` is set.
    pub audio_output: bool,
    /// Whether a web search is requested: `web_search_options` is set.
    pub web_search: bool,
    /// The key that limits the answer, for the error where one is required.
    pub(super) limit_key: &'static str,
    /// See [`usage_splice`](Self::usage_splice).
    pub(super) splice: Option<UsageSplice>,
}

impl<'a> RequestBody<'a> {
    /// A body with this prompt that asks for no answer.
    pub(super) fn of_prompt(model: Cow<'a, str>, prompt: &Prompt) -> Self {
        Self {
            model,
            service_tier: None,
            stream: false,
            prompt_bytes: prompt.bytes as u64,
            token_ids: 0,
            framed: prompt.framed as u64,
            content_parts: prompt.parts as u64,
            predicted_bytes: 0,
            predicted_parts: 0,
            image_parts: prompt.images as u64,
            audio_parts: prompt.audios as u64,
            file_parts: prompt.files as u64,
            completion_tokens: 0,
            unlimited: false,
            n: 1,
            audio_output: false,
            web_search: false,
            limit_key: "",
            splice: None,
        }
    }

    /// Checks that the answer has a limit, where one is `required` (`proxy.require_token_limit`).
    ///
    /// # Errors
    /// [`BodyError::MissingTokenLimit`].
    pub const fn check_token_limit(&self, required: bool) -> Result<(), BodyError> {
        if required && self.unlimited {
            return Err(BodyError::MissingTokenLimit { key: self.limit_key });
        }
        Ok(())
    }

    /// Checks that no stream is asked for, unless streams are `allowed`.
    ///
    /// # Errors
    /// [`BodyError::StreamNotSupported`].
    pub const fn check_stream(&self, allowed: bool) -> Result<(), BodyError> {
        if self.stream && !allowed {
            return Err(BodyError::StreamNotSupported);
        }
        Ok(())
    }

    /// The one change that makes the provider report usage at the end of a chat-completions stream, where the caller did
    /// not ask for it. `None`: the body is sent as it is, because it asks already or is not to be streamed.
    #[must_use]
    pub const fn usage_splice(&self) -> Option<&UsageSplice> {
        self.splice.as_ref()
    }

    /// What the price of the call depends on.
    #[must_use]
    pub fn shape(&self) -> CallShape<'_> {
        CallShape {
            model: &self.model,
            service_tier: self.service_tier.as_deref(),
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
