//! The parsed request body, the same for every endpoint.

use super::error::BodyError;
use super::stream_options::UsageSplice;
use domain::price::CallShape;
use std::borrow::Cow;

/// The contents of a request body that the gate needs, borrowed from the body.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RequestBody<'a> {
    /// The model, unescaped: 1 to [`MODEL_BYTES_MAX`](super::MODEL_BYTES_MAX) bytes without control characters.
    pub model: Cow<'a, str>,
    /// Requested service tier, unless absent or `null`.
    pub service_tier: Option<Cow<'a, str>>,
    /// True if the caller requests a stream of events.
    pub stream: bool,
    /// Counts that determine the price. [`named_shape`](Self::named_shape) adds the names.
    pub shape: CallShape<'static>,
    /// See [`check_choice`](Self::check_choice).
    pub(super) choice: Option<&'static str>,
    /// The key that limits the answer, for the error that reports a missing limit.
    pub(super) limit_key: &'static str,
    /// See [`usage_splice`](Self::usage_splice).
    pub(super) splice: Option<UsageSplice>,
}

impl<'a> RequestBody<'a> {
    /// Checks that the answer has a limit if one is `required` (`proxy.require_token_limit`).
    pub const fn check_token_limit(&self, required: bool) -> Result<(), BodyError> {
        if required && self.shape.unlimited {
            return Err(BodyError::MissingTokenLimit { key: self.limit_key });
        }
        Ok(())
    }

    /// Checks that the caller does not choose other billed models or services with `models`, `fallbacks`, `plugins` or
    /// the like. They are refused at each upstream: behind `[upstream]` may be any provider, and OpenAI refuses them
    /// itself.
    pub const fn check_choice(&self) -> Result<(), BodyError> {
        match self.choice {
            Some(key) => Err(BodyError::BilledByChoice { key }),
            None => Ok(()),
        }
    }

    /// Checks that no stream is requested, unless streams are `allowed`.
    pub const fn check_stream(&self, allowed: bool) -> Result<(), BodyError> {
        if self.stream && !allowed {
            return Err(BodyError::StreamNotSupported);
        }
        Ok(())
    }

    /// Returns the change that makes the provider report usage at the end of a chat-completions stream. `None` if the
    /// body is sent unchanged, because it already requests usage or requests no stream.
    pub const fn usage_splice(&self) -> Option<&UsageSplice> {
        self.splice.as_ref()
    }

    /// Returns the shape of the call with its names, which determines its price.
    pub fn named_shape(&self) -> CallShape<'_> {
        CallShape {
            model: &self.model,
            service_tier: self.service_tier.as_deref(),
            ..self.shape
        }
    }
}
