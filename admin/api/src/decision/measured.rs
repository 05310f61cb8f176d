//! Schemas of a call's measurements and of the details of its charge: the object `call` of a decision and of its audit
//! entry, built by [`Measured::shown`](domain::measured::Measured::shown), and `billing` in it and in a listed call.

use utoipa::ToSchema;

/// Measurements of a call by the edge.
#[derive(ToSchema)]
#[schema(as = MeasuredCall, rename_all = "camelCase")]
#[expect(dead_code, reason = "it describes an object that is made elsewhere")]
pub(super) struct MeasuredView {
    /// `chat.completions`, `responses` or `embeddings`.
    #[schema(example = "chat.completions")]
    endpoint: String,
    /// True if the caller requested a stream.
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
    /// End of the exchange with the provider: `completed`, `refused` (it answered with 4xx), `failed`, `total_timeout`;
    /// of a stream also `caller_gone`, `provider_broke_off`, `first_byte_timeout`, `idle_timeout`, `hold_exhausted`,
    /// `stopped`.
    #[schema(example = "completed")]
    end: String,
    /// Number of times the hold was raised while the answer was streamed.
    #[schema(example = 0)]
    extensions: u32,
    /// The details of the charge beside model and tokens. Absent for an ordinary call.
    #[schema(required = false)]
    billing: BillingView,
}

/// The details of a call's charge beside its model, the tokens of prompt and answer and the cached ones: only the
/// fields that are not 0, false or unknown.
#[derive(ToSchema)]
#[schema(as = BillingDetails, rename_all = "camelCase")]
#[expect(dead_code, reason = "it describes an object that is made elsewhere")]
pub(crate) struct BillingView {
    /// `service_tier` of the request, and of the answer. Neither is given if both mean the tier of a call that names
    /// none. `?` is a name of more than 32 characters, or with others than a-z, 0-9, `_`, `.` and `-`.
    #[schema(required = false, example = "flex")]
    tier_asked: String,
    #[schema(required = false, example = "flex")]
    tier_reported: String,
    /// The part of the output tokens that is reasoning.
    #[schema(required = false, minimum = 1, example = 640)]
    reasoning_tokens: u64,
    /// The part of the input tokens that was written to the provider's cache, and the parts of these that the provider
    /// reported as kept for 12 hours and for 30 minutes.
    #[schema(required = false, extensions(("x-not-in-examples" = json!(true))), minimum = 1, example = 1024)]
    cache_write_tokens: u64,
    #[schema(required = false, extensions(("x-not-in-examples" = json!(true))), minimum = 1, example = 1024)]
    cache_write_12h_tokens: u64,
    #[schema(required = false, extensions(("x-not-in-examples" = json!(true))), minimum = 1, example = 512)]
    cache_write_30m_tokens: u64,
    /// The parts of the input tokens and of the output tokens that are sound.
    #[schema(required = false, extensions(("x-not-in-examples" = json!(true))), minimum = 1, example = 50)]
    audio_input_tokens: u64,
    #[schema(required = false, extensions(("x-not-in-examples" = json!(true))), minimum = 1, example = 60)]
    audio_output_tokens: u64,
    /// A web search was charged.
    #[schema(required = false, extensions(("x-not-in-examples" = json!(true))), example = true)]
    web_search: bool,
    /// The request set a longer lifetime in the provider's cache than the default.
    #[schema(required = false, extensions(("x-not-in-examples" = json!(true))), example = true)]
    long_cache: bool,
    /// The cost that the provider reported, if it is the charge because it exceeded the computed one.
    #[schema(required = false, extensions(("x-not-in-examples" = json!(true))), minimum = 0)]
    reported_cost_usd: f64,
    #[schema(required = false, extensions(("x-not-in-examples" = json!(true))), pattern = "^[0-9]{1,20}$")]
    reported_cost_nanos: String,
    /// The upstream's `price_prefix`, if it is not the default one.
    #[schema(required = false, extensions(("x-not-in-examples" = json!(true))), example = "azure/")]
    price_prefix: String,
    /// The provider's HTTP status, if it answered with another one than 200.
    #[schema(required = false, extensions(("x-not-in-examples" = json!(true))), minimum = 100, maximum = 999, example = 429)]
    provider_status: u16,
}
