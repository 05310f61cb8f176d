//! Every answer that is neither an approval nor a denial, declared once: malformed requests, and failures after an
//! approval (specification "Other proxy responses", decisions D34, D39, D62 to D64).

mod schema;

use super::{EdgeReply, names};
use schema::{RefusalCode, RefusalType};
use serde::Serialize;
use utoipa::ToSchema;

macro_rules! refusals {
    ($($(#[doc = $doc:literal])+ $name:ident = $code:literal, $status:literal, $kind:literal;)+) => {
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub enum RefusalKind { $($(#[doc = $doc])+ $name,)+ }

        impl RefusalKind {
            pub const ALL: &[Self] = &[$(Self::$name,)+];

            /// Returns when this refusal is sent; text of the OpenAPI document.
            #[cfg(test)]
            pub fn meaning(self) -> &'static str { match self { $(Self::$name => concat!($($doc),+).trim(),)+ } }

            /// Returns `error.code`.
            pub const fn code(self) -> &'static str { match self { $(Self::$name => $code,)+ } }

            /// Returns the HTTP status.
            pub const fn status(self) -> u16 { match self { $(Self::$name => $status,)+ } }

            /// Returns `error.type`, one of OpenAI's values.
            pub const fn kind(self) -> &'static str { match self { $(Self::$name => $kind,)+ } }
        }
    };
}

refusals! {
    /// The request is malformed HTTP, and no other code describes the fault.
    BadRequest = "bad_request", 400, "invalid_request_error";
    /// Request line and headers are longer than 64 KiB.
    HeadTooLong = "request_header_fields_too_large", 431, "invalid_request_error";
    /// No such path, or one that the operator has not switched on.
    NotFound = "not_found", 404, "invalid_request_error";
    /// `GET /v1/models/{model}` of a model without a price.
    ModelNotFound = "model_not_found", 404, "invalid_request_error";
    /// The path exists with other methods only.
    MethodNotAllowed = "method_not_allowed", 405, "invalid_request_error";
    /// A WebSocket was requested, which the edge does not support.
    UpgradeRequired = "upgrade_required", 426, "invalid_request_error";
    /// The client's address is blocked (decision D11).
    IpBlocked = "IP_BLOCKED", 403, "request_forbidden";
    /// Missing, wrong or revoked virtual key.
    InvalidApiKey = "invalid_api_key", 401, "invalid_request_error";
    /// The body is longer than allowed.
    PayloadTooLarge = "payload_too_large", 413, "invalid_request_error";
    /// The caller took too long to send its request.
    RequestTimeout = "request_timeout", 408, "invalid_request_error";
    /// The body is not a JSON object, or parsers could read it in different ways.
    InvalidJson = "invalid_json", 400, "invalid_request_error";
    /// No `model`.
    MissingModel = "missing_model", 400, "invalid_request_error";
    /// No `messages`.
    MissingMessages = "missing_messages", 400, "invalid_request_error";
    /// No `input` (responses and embeddings).
    MissingInput = "missing_input", 400, "invalid_request_error";
    /// `stream: true` where streams are not available: they are off, excluded from the account's plan, or not part of
    /// the API.
    StreamNotSupported = "stream_not_supported", 400, "invalid_request_error";
    /// Neither `max_completion_tokens` nor `max_tokens` (responses: no `max_output_tokens`), where the operator
    /// requires one (`proxy.require_token_limit`).
    MissingTokenLimit = "missing_token_limit", 400, "invalid_request_error";
    /// A field of `POST /v1/responses` that uses or starts something the edge cannot see: state (except reasoning) and
    /// files kept by the provider, tools run by the provider, or background work. Also `models`,
    /// `fallbacks`, `plugins` and the like, with which callers of some providers could have other models or services
    /// billed.
    UnsupportedField = "unsupported_field", 400, "invalid_request_error";
    /// The run id header is malformed.
    InvalidRunId = "invalid_run_id", 400, "invalid_request_error";
    /// Approved, but the provider could not be reached or broke off; the estimate stays charged.
    UpstreamUnreachable = "upstream_unreachable", 502, "upstream_error";
    /// Approved, but the provider gave no complete answer in time; the estimate stays charged.
    UpstreamTimeout = "upstream_timeout", 504, "upstream_error";
}

impl RefusalKind {
    /// Kinds that occur in no operation of the OpenAPI document.
    pub const OF_NO_ROUTE: [Self; 2] = [Self::MethodNotAllowed, Self::UpgradeRequired];
}

/// An answer of Tollgate that is no decision.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refusal {
    pub kind: RefusalKind,
    /// For people; names the field or key.
    pub message: String,
    /// The field, as in OpenAI's `error.param`.
    pub param: Option<String>,
}

/// An error of the request, or one after the approval, in the form of OpenAI's errors.
#[derive(Serialize, ToSchema)]
#[schema(as = Refusal)]
pub(crate) struct RefusalBody<'a> {
    error: RefusalError<'a>,
}

#[derive(Serialize, ToSchema)]
#[schema(as = RefusalError)]
struct RefusalError<'a> {
    /// For people; it names the field.
    #[schema(example = "model is required.")]
    message: &'a str,
    #[schema(value_type = RefusalType)]
    r#type: &'a str,
    /// The field, where it is about one.
    #[schema(example = "model")]
    param: Option<&'a str>,
    #[schema(value_type = RefusalCode)]
    code: &'a str,
}

impl Refusal {
    /// Creates a refusal that concerns no particular field.
    pub fn new(kind: RefusalKind, message: impl Into<String>) -> Self {
        Self {
            kind,
            message: message.into(),
            param: None,
        }
    }

    /// Builds the answer.
    pub fn reply(&self) -> EdgeReply {
        let Self { kind, message, param } = self;
        let error = RefusalError {
            message,
            r#type: kind.kind(),
            param: param.as_deref(),
            code: kind.code(),
        };
        let mut reply = EdgeReply::json(kind.status(), &RefusalBody { error });
        if matches!(
            kind,
            RefusalKind::UpstreamUnreachable | RefusalKind::UpstreamTimeout | RefusalKind::IpBlocked
        ) {
            reply.set(names::SHOULD_RETRY, "false");
        }
        reply
    }
}
