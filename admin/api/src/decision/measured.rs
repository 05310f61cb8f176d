//! Schema of a call's measurements: the object `call` of a decision and of its audit entry, built by
//! [`Measured::shown`](domain::measured::Measured::shown).

use utoipa::ToSchema;

/// Measurements of a call by the edge.
#[derive(ToSchema)]
#[schema(as = MeasuredCall, rename_all = "camelCase")]
#[expect(dead_code, reason = "it describes an object that is made elsewhere")]
pub(super) struct MeasuredView {
    /// `chat.completions`, `responses` or `embeddings`.
    #[schema(example = "chat.completions")]
    endpoint: String,
    /// Whether the caller requested a stream.
    stream: bool,
    /// The named upstream of the call; null for the default one.
    #[schema(example = "azure-eu")]
    upstream: Option<String>,
    /// Tokens as the provider reported them, including cached ones; null if it reported none.
    #[schema(example = 9)]
    input_tokens: Option<u64>,
    #[schema(example = 0)]
    cached_tokens: Option<u64>,
    #[schema(example = 12)]
    output_tokens: Option<u64>,
    /// From sending the request to the end of the answer, in ms.
    #[schema(example = 812)]
    latency_ms: Option<u64>,
    /// From sending the request to the first byte of the answer, in ms.
    #[schema(example = 340)]
    first_byte_ms: Option<u64>,
    /// How the exchange with the provider ended: `completed`, `refused` (it answered with 4xx), `failed`,
    /// `total_timeout`; of a stream also `caller_gone`, `provider_broke_off`, `idle_timeout`, `hold_exhausted`,
    /// `stopped`.
    #[schema(example = "completed")]
    end: String,
    /// Number of times the hold was raised while the answer was streamed.
    #[schema(example = 0)]
    extensions: u32,
}
