//! Step 3: parses and validates the whole request, and computes its estimate (specification §4.4 step 4).

use super::rejection::Rejection;
use crate::reply::refusal::{Refusal, RefusalKind};
use crate::tables::prices::Prices;
use crate::upstream::usage::UsageReader;
use crate::upstream::{Upstream, Upstreams};
use chat::{self, BodyError, BodyErrorKind, UsageSplice};
use crypto::virtual_key::WellFormed;
use domain::id::IdKind;
use domain::measured::Endpoint;
use domain::money::Nanos;
use domain::names;
use domain::price::{ActualCost, BadCost, CallShape, PriceTable, ServedCall, Usage};
use http::HeaderMap;
use http::header::{CONTENT_ENCODING, CONTENT_TYPE, HeaderName};
use settings::upstreams::StreamUsage;
use std::borrow::Cow;
use std::sync::Arc;

/// Name of the header that requests the real cost at the end of a stream.
const STREAM_COST_HEADER: HeaderName = HeaderName::from_static("x-service-stream-cost");
/// Name of the header with the caller's run id.
const RUN_ID_HEADER: HeaderName = HeaderName::from_static("x-service-run-id");

/// A valid call of one of the three endpoints, and its estimate.
#[derive(Debug)]
pub struct CallRequest {
    /// Named by the caller, or new.
    pub run: CallRun,
    /// `model`
    pub model: String,
    /// `service_tier`
    pub service_tier: Option<String>,
    /// The shape of the call, on which its price depends; without model and service tier.
    pub shape: CallShape<'static>,
    /// The upstream that serves the model.
    pub upstream: Arc<Upstream>,
    /// The prices of the estimate. The settlement uses the same ones.
    pub prices: Arc<PriceTable>,
    /// `None` if it exceeds the largest amount. Such a call is denied, by the first limit or because it cannot be
    /// charged.
    pub estimate: Option<Nanos>,
    /// The requested endpoint.
    pub endpoint: Endpoint,
    /// Options of a streamed answer; `None` if the caller does not request one.
    pub stream: Option<StreamAnswerOptions>,
}

/// Options of a streamed answer.
#[derive(Debug, Clone, Copy)]
pub struct StreamAnswerOptions {
    /// True if the usage frame of a chat-completions stream reaches the caller: the caller requested it, or the
    /// provider would also send it without the edge.
    pub usage_passes: bool,
    /// True if the caller requested the real cost, as a comment at the end.
    pub wants_cost: bool,
}

impl CallRequest {
    /// Calls `compute` with the prices and the whole shape of the call, and returns its result.
    pub fn priced<T>(&self, compute: impl FnOnce(&PriceTable, &CallShape<'_>) -> T) -> T {
        let shape = CallShape {
            model: &self.price_name(),
            service_tier: self.service_tier.as_deref(),
            tier_is_reported: self.upstream.identity().reports_tier(),
            ..self.shape
        };
        compute(&self.prices, &shape)
    }

    /// Returns the bytes of text that a streamed answer may have: as many as the upstream's `usage_tokens_max` tokens,
    /// and no more than an answer that is not streamed. Text beyond that is neither passed nor charged.
    pub fn text_bytes_max(&self) -> u64 {
        let tokens_max = self.upstream.identity().usage_tokens_max;
        let bytes_max = self.upstream.max_response_bytes() as u64;
        self.prices.text_bytes(tokens_max).min(bytes_max)
    }

    /// Computes the cost of an answer with `text_bytes` bytes of text so far, by the rules of the estimate, at the
    /// service tier that the provider has reported so far. `None` beyond the largest amount.
    pub fn cost_of_text(&self, text_bytes: u64, tier_reported: Option<&str>) -> Option<Nanos> {
        let text_bytes = text_bytes.min(self.text_bytes_max());
        self.priced(|prices, requested| {
            let seen = CallShape {
                service_tier: tier_reported.or(requested.service_tier),
                tier_is_reported: tier_reported.is_some(),
                ..*requested
            };
            prices.estimate_of_tokens(&seen, prices.answer_tokens(text_bytes))
        })
    }

    /// Computes the amount to hold for `tokens` tokens of the answer, all choices together. `None` beyond the largest
    /// amount.
    pub fn cost_of_tokens(&self, tokens: u64) -> Option<Nanos> {
        self.priced(|prices, shape| prices.estimate_of_tokens(shape, tokens))
    }

    /// Computes the real cost of the reported usage. `None` beyond the largest amount.
    pub fn actual_cost(&self, usage: &Usage, tier_reported: Option<&str>) -> Option<ActualCost> {
        self.prices.actual_cost(&ServedCall {
            model: &self.price_name(),
            tier_asked: self.service_tier.as_deref(),
            tier_reported,
            usage,
            web_search: self.shape.web_search,
            long_cache: self.shape.long_cache,
        })
    }

    /// Returns the rules by which the usage in the answer is read.
    pub fn usage_reader(&self) -> UsageReader {
        self.upstream.identity().usage_reader(self.endpoint)
    }

    /// Returns the cost that the provider reports, if the upstream's configuration uses reported costs. Logs an
    /// implausible cost.
    pub fn accepted_reported_cost(&self, reported: Result<Option<Nanos>, BadCost>) -> Option<Nanos> {
        let upstream = self.upstream.identity();
        if !upstream.reported_cost {
            return None;
        }
        reported.unwrap_or_else(|error| {
            tracing::warn!(upstream = %upstream.provider, model = %self.model, %error, "a reported cost is ignored");
            None
        })
    }

    /// Returns the requested and the reported tier. Neither if both have the meaning of a request without a tier: they
    /// change no price.
    pub fn notable_tiers<'a>(&'a self, reported: Option<&'a str>) -> [Option<&'a str>; 2] {
        let tiers = [self.service_tier.as_deref(), reported];
        match tiers.iter().all(|tier| self.prices.is_default_tier(*tier)) {
            true => [None, None],
            false => tiers,
        }
    }

    /// Returns the name under which the price table has the model.
    pub fn price_name(&self) -> Cow<'_, str> {
        self.upstream.identity().price_name(&self.model)
    }
}

/// The run that a call belongs to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CallRun {
    /// 1 to 200 characters.
    pub id: String,
    /// True if the caller named the run. A call without a run id is a run of its own, and the store keeps no record of
    /// that run.
    pub named: bool,
}

/// Parses requests.
pub struct RequestParser {
    /// Prices for the estimate.
    pub prices: Arc<Prices>,
    /// `proxy.streaming`
    pub streaming: bool,
    /// Upstreams, chosen by model.
    pub upstreams: Arc<Upstreams>,
    /// `proxy.require_token_limit`
    pub require_token_limit: bool,
}

impl RequestParser {
    /// Parses headers and body. Also returns the change of the body that makes the provider report the usage of a
    /// stream, if the provider requires such a request and the caller did not make it.
    ///
    /// # Errors
    /// The first 400 that applies; 503 when the system has no randomness for the id of a new run.
    pub fn parse(
        &self,
        endpoint: Endpoint,
        headers: &HeaderMap,
        body: &[u8],
    ) -> Result<(CallRequest, Option<UsageSplice>), Rejection> {
        check_encoding(headers)?;
        let body = chat::parse_call(endpoint, self.streaming, body).map_err(Refusal::from)?;
        let upstream = self.upstreams.choose(&body.model);
        body.check_choice()
            .and_then(|()| body.check_token_limit(self.require_token_limit))
            .map_err(Refusal::from)?;
        let run = run_of(headers)?;
        let requests_usage = upstream.identity().stream_usage == StreamUsage::Ask;
        let splice = body.usage_splice().filter(|_| requests_usage).cloned();
        let stream = body.stream.then(|| StreamAnswerOptions {
            usage_passes: splice.is_none(),
            wants_cost: headers
                .get(STREAM_COST_HEADER)
                .is_some_and(|value| value == "true"),
        });
        let mut request = CallRequest {
            upstream: Arc::clone(upstream),
            run,
            estimate: None,
            prices: self.prices.get(),
            service_tier: body.service_tier.as_deref().map(str::to_owned),
            shape: body.shape,
            model: body.model.into_owned(),
            endpoint,
            stream,
        };
        request.estimate = request.priced(PriceTable::estimate);
        Ok((request, splice))
    }
}

impl From<BodyErrorKind> for RefusalKind {
    fn from(kind: BodyErrorKind) -> Self {
        match kind {
            BodyErrorKind::InvalidJson => Self::InvalidJson,
            BodyErrorKind::MissingModel => Self::MissingModel,
            BodyErrorKind::MissingMessages => Self::MissingMessages,
            BodyErrorKind::MissingInput => Self::MissingInput,
            BodyErrorKind::StreamNotSupported => Self::StreamNotSupported,
            BodyErrorKind::MissingTokenLimit => Self::MissingTokenLimit,
            BodyErrorKind::UnsupportedField => Self::UnsupportedField,
        }
    }
}

impl From<BodyError> for Refusal {
    fn from(error: BodyError) -> Self {
        Self {
            kind: error.kind().into(),
            message: error.to_string(),
            param: error.param().map(str::to_owned),
        }
    }
}

/// Refuses encoded bodies and other media types: the provider could read them differently from this parser.
fn check_encoding(headers: &HeaderMap) -> Result<(), Refusal> {
    let refused = |message: &str| Err(Refusal::new(RefusalKind::InvalidJson, message));
    if headers.contains_key(CONTENT_ENCODING) {
        return refused("`Content-Encoding` is not supported: send the body as plain JSON.");
    }
    let mut types = headers.get_all(CONTENT_TYPE).iter();
    let (Some(content_type), None) = (types.next(), types.next()) else {
        return refused("Send exactly one `Content-Type`, with the value `application/json`.");
    };
    let mut parts = content_type
        .as_bytes()
        .split(|byte| *byte == b';')
        .map(<[u8]>::trim_ascii);
    if !parts
        .next()
        .is_some_and(|essence| essence.eq_ignore_ascii_case(b"application/json"))
    {
        return refused("`Content-Type` must be `application/json`.");
    }
    // In another character set the same bytes could have another meaning, such as a second `n`.
    if !parts.all(is_utf8_or_no_charset) {
        return refused("The `charset` of `Content-Type` must be `utf-8`.");
    }
    Ok(())
}

/// The parameter of a media type that names the character set.
const CHARSET: &[u8] = b"charset";

/// Returns whether a parameter of a media type names no character set except UTF-8.
fn is_utf8_or_no_charset(parameter: &[u8]) -> bool {
    let parameter = parameter.to_ascii_lowercase();
    match parameter.strip_prefix(CHARSET) {
        Some(value) => matches!(value, b"=utf-8" | b"=\"utf-8\"" | b"=utf8" | b"=\"utf8\""),
        // Within another parameter, it could be one of its own for a reader that divides otherwise.
        None => !parameter.windows(CHARSET.len()).any(|part| part == CHARSET),
    }
}

/// Returns the caller's run, or a new one. A virtual key is refused as run id, since run ids are stored and logged.
fn run_of(headers: &HeaderMap) -> Result<CallRun, Rejection> {
    let refused = |must: &str| -> Rejection {
        let message = format!("`X-Service-Run-Id` {must}");
        Refusal::new(RefusalKind::InvalidRunId, message).into()
    };
    let malformed = || refused("must be 1 to 200 characters of A-Z a-z 0-9 . _ : -");
    let mut values = headers.get_all(RUN_ID_HEADER).iter();
    let Some(value) = values.next() else {
        return new_run(IdKind::Request.mint(clock::now_ms()));
    };
    let sent = value.as_bytes();
    if names::is_dot_segment(sent) {
        return Err(refused(names::NO_DOT_SEGMENT));
    }
    let id = std::str::from_utf8(sent)
        .ok()
        .filter(|_| names::is_run_id(sent) && WellFormed::parse(sent).is_none());
    match (id, values.next()) {
        (Some(id), None) => Ok(CallRun {
            id: id.to_owned(),
            named: true,
        }),
        _ => Err(malformed()),
    }
}

/// Returns a run that the caller did not name. Without randomness there is no id, and the call cannot be decided (503).
fn new_run<E>(id: Result<String, E>) -> Result<CallRun, Rejection> {
    let id = id.map_err(|_| Rejection::unavailable())?;
    Ok(CallRun { id, named: false })
}

#[cfg(test)]
mod tests {
    use super::*;
    use domain::denial::Denial;

    fn refused<T: std::fmt::Debug>(result: Result<T, Rejection>) -> RefusalKind {
        match result {
            Err(Rejection::Refused(refusal)) => refusal.kind,
            other => panic!("{other:?}"),
        }
    }

    fn headers(list: &[(&'static str, &str)]) -> HeaderMap {
        list.iter()
            .map(|(name, value)| (http::HeaderName::from_static(name), value.parse().unwrap()))
            .collect()
    }

    #[test]
    fn only_plain_json_is_accepted() {
        assert!(check_encoding(&headers(&[("content-type", "application/json")])).is_ok());
        for good in [
            "Application/JSON; charset=utf-8",
            "application/json;charset=\"UTF-8\"; a=b;",
        ] {
            assert!(
                check_encoding(&headers(&[("content-type", good)])).is_ok(),
                "{good}"
            );
        }
        for bad in [
            &[][..],
            &[("content-type", "text/plain")],
            &[("content-type", "application/json+x")],
            &[("content-type", "application/json;charset=utf-7")],
            &[("content-type", "application/json; a=b\tcharset=utf-7")],
            &[("content-type", "application/json; a=b; Charset=\"utf-16\"")],
            &[("content-type", "application/json; charset =utf-7")],
            &[("content-type", "application/json; charset*=utf-7")],
            &[("content-type", "application/json"), ("content-encoding", "gzip")],
        ] {
            assert_eq!(
                check_encoding(&headers(bad)).unwrap_err().kind,
                RefusalKind::InvalidJson,
                "{bad:?}"
            );
        }
    }

    #[test]
    fn a_run_id_is_the_callers_or_a_new_one() {
        assert_eq!(
            run_of(&headers(&[("x-service-run-id", "r:1")])).unwrap(),
            CallRun {
                id: "r:1".into(),
                named: true
            }
        );
        let made = run_of(&headers(&[])).unwrap();
        assert!(made.id.starts_with("req_") && !made.named);
        let secret = format!("vk_live_{}", "0a".repeat(32));
        for bad in ["", "a b", "a/b", ".", "..", &secret] {
            let run = run_of(&headers(&[("x-service-run-id", bad)]));
            assert_eq!(refused(run), RefusalKind::InvalidRunId);
        }
    }

    /// The caller named no run, so its request is not at fault.
    #[test]
    fn a_run_without_randomness_is_unavailable() {
        let Err(Rejection::Denied(denied)) = new_run(Err(())) else {
            panic!("it must be denied");
        };
        assert_eq!(denied.denial, Denial::ServiceUnavailable);
        assert_eq!(Rejection::Denied(denied).reply().status.as_u16(), 503);
    }

    #[test]
    fn a_refused_body_has_the_code_of_its_error() {
        for kind in BodyErrorKind::ALL {
            assert_eq!(RefusalKind::from(kind).code(), kind.as_str());
        }
    }
}
