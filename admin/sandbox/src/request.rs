//! A request, as far as the sandbox parses it.

mod chat;
mod demanded;
mod embeddings;
mod responses;

use super::reply::{self, BoxedReply};
pub(super) use demanded::{CalledTool, Demanded, ToolKind};
use domain::measured::Endpoint;
use serde_json::{Map, Value};

/// Longest request body.
pub(super) const BODY_MAX: usize = 64 << 20;
/// Number of characters that count as one token.
const CHARS_PER_TOKEN: usize = 4;
/// Tokens that frame a message.
const MESSAGE_TOKENS: u64 = 4;
/// Tokens that frame a content part.
const PART_TOKENS: u64 = 1;
/// Characters of the last message that an answer repeats.
const QUOTED: usize = 120;
/// Maximum number of choices, as at the provider.
const CHOICES_MAX: u64 = 128;

/// The parts of a request that determine its answer.
#[derive(Debug, Clone)]
pub(super) struct SandboxRequest {
    pub(super) endpoint: Endpoint,
    pub(super) model: String,
    /// The prompt's text, about four characters a token, and the framing of messages and parts.
    pub(super) prompt_tokens: u64,
    /// The beginning of the last message.
    pub(super) quoted: String,
    pub(super) choices: u64,
    /// Maximum number of tokens of one choice.
    pub(super) max_tokens: Option<u64>,
    pub(super) service_tier: Option<String>,
    pub(super) user: Option<String>,
    pub(super) stream: bool,
    /// True if a stream ends with its usage; that of a response always does.
    pub(super) include_usage: bool,
    /// Number of requested embeddings.
    pub(super) inputs: usize,
    /// Numbers of an embedding.
    pub(super) dimensions: usize,
    /// True if an embedding is written as base64, as the provider's clients request it.
    pub(super) base64: bool,
    /// Content that replaces the usual text.
    pub(super) demanded: Option<Demanded>,
    /// Members of the request that a response repeats.
    pub(super) repeated: Map<String, Value>,
}

impl SandboxRequest {
    /// Parses a body. A fault is answered as by the provider.
    pub(super) fn read(endpoint: Endpoint, bytes: &[u8]) -> Result<Self, BoxedReply> {
        match endpoint {
            Endpoint::Chat => chat::read(bytes),
            Endpoint::Responses => responses::read(&json(bytes)?),
            Endpoint::Embeddings => embeddings::read(&json(bytes)?),
        }
    }

    /// Creates an empty request.
    fn new(endpoint: Endpoint, model: String) -> Self {
        Self {
            endpoint,
            model,
            prompt_tokens: 0,
            quoted: String::new(),
            choices: 1,
            max_tokens: None,
            service_tier: None,
            user: None,
            stream: false,
            include_usage: false,
            inputs: 0,
            dimensions: 0,
            base64: false,
            demanded: None,
            repeated: Map::new(),
        }
    }

    /// Returns the tool that the answer calls.
    pub(super) fn tool(&self) -> Option<&CalledTool> {
        self.demanded.as_ref()?.tool.as_ref()
    }

    pub(super) fn tier_served(&self) -> &str {
        match self.service_tier.as_deref() {
            None | Some("auto") => "default",
            Some(tier) => tier,
        }
    }
}

fn json(bytes: &[u8]) -> Result<Value, BoxedReply> {
    serde_json::from_slice(bytes).map_err(|_| not_json())
}

fn not_json() -> BoxedReply {
    reply::refusal(400, "We could not parse the JSON body of your request.", None)
}

fn missing(what: &str) -> BoxedReply {
    let message = format!("Missing required parameter: '{what}'.");
    reply::refusal(400, &message, Some("missing_required_parameter"))
}

/// Returns a member that is a string.
fn string(body: &Value, name: &str) -> Option<String> {
    body.get(name).and_then(Value::as_str).map(str::to_owned)
}

/// Returns the beginning of a text, for the answer.
fn quoted(text: &str) -> String {
    text.chars().take(QUOTED).collect()
}

/// Tokens of a text of `length` bytes.
pub(super) fn tokens(length: usize) -> u64 {
    u64::try_from(length.div_ceil(CHARS_PER_TOKEN)).unwrap_or(u64::MAX)
}
