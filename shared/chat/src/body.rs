//! A request body as the gate reads it, the same for every endpoint.

use super::error::BodyError;
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
    /// The counts that determine the price; [`shape`](Self::shape) adds the names.
    pub counts: CallShape<'static>,
    /// See [`check_choice`](Self::check_choice).
    pub(super) choice: Option<&'static str>,
    /// The key that limits the answer, for the error where one is required.
    pub(super) limit_key: &'static str,
    /// See [`usage_splice`](Self::usage_splice).
    pub(super) splice: Option<UsageSplice>,
}

impl<'a> RequestBody<'a> {
    /// Checks that the answer has a limit, where one is `required` (`proxy.require_token_limit`).
    pub const fn check_token_limit(&self, required: bool) -> Result<(), BodyError> {
        if required && self.counts.unlimited {
            return Err(BodyError::MissingTokenLimit { key: self.limit_key });
        }
        Ok(())
    }

    /// Checks that the caller does not choose what is billed beside `model`, unless the provider is OpenAI, which knows
    /// no such key: `models`, `fallbacks` and `plugins`.
    pub const fn check_choice(&self, is_openai: bool) -> Result<(), BodyError> {
        match self.choice {
            Some(key) if !is_openai => Err(BodyError::BilledByChoice { key }),
            _ => Ok(()),
        }
    }

    /// Checks that no stream is asked for, unless streams are `allowed`.
    pub const fn check_stream(&self, allowed: bool) -> Result<(), BodyError> {
        if self.stream && !allowed {
            return Err(BodyError::StreamNotSupported);
        }
        Ok(())
    }

    /// The one change that makes the provider report usage at the end of a chat-completions stream, where the caller
    /// did not ask for it. `None`: the body is sent as it is, because it asks already or is not to be streamed.
    pub const fn usage_splice(&self) -> Option<&UsageSplice> {
        self.splice.as_ref()
    }

    /// What the price of the call depends on.
    pub fn shape(&self) -> CallShape<'_> {
        CallShape {
            model: &self.model,
            service_tier: self.service_tier.as_deref(),
            ..self.counts
        }
    }
}
