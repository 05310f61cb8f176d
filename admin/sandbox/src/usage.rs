//! The value of `usage`, with the field names of each endpoint.

use domain::measured::Endpoint;
use serde_json::value::RawValue;
use serde_json::{Value, json};

/// More tokens than any call has.
const ABSURD: u64 = 1_000_000_000_000;

/// Value of `usage`.
#[derive(Debug, Clone)]
pub(super) enum UsageValue {
    /// The prompt's and the answer's own tokens.
    Real,
    /// No usage.
    None,
    /// Numbers of prompt and completion tokens.
    Tokens(u64, u64),
    /// Implausible numbers of tokens.
    Absurd,
    /// This.
    Literal(Box<RawValue>),
}

impl UsageValue {
    /// Returns the text of the value; `None` if there is none.
    pub(super) fn text(&self, endpoint: Endpoint, prompt: u64, completion: u64) -> Option<String> {
        let tokens = |prompt, completion| Some(document(endpoint, prompt, completion).to_string());
        match self {
            Self::None => None,
            Self::Real => tokens(prompt, completion),
            Self::Tokens(prompt, completion) => tokens(*prompt, *completion),
            Self::Absurd => tokens(ABSURD, ABSURD),
            Self::Literal(literal) => Some(literal.get().to_owned()),
        }
    }
}

fn document(endpoint: Endpoint, prompt: u64, completion: u64) -> Value {
    let total = prompt.saturating_add(completion);
    match endpoint {
        Endpoint::Chat => json!({
            "prompt_tokens": prompt,
            "completion_tokens": completion,
            "total_tokens": total,
            "prompt_tokens_details": { "cached_tokens": 0, "audio_tokens": 0 },
            "completion_tokens_details": {
                "reasoning_tokens": 0, "audio_tokens": 0, "accepted_prediction_tokens": 0,
                "rejected_prediction_tokens": 0,
            },
        }),
        Endpoint::Responses => json!({
            "input_tokens": prompt,
            "input_tokens_details": { "cached_tokens": 0, "cache_write_tokens": 0 },
            "output_tokens": completion,
            "output_tokens_details": { "reasoning_tokens": 0 },
            "total_tokens": total,
        }),
        Endpoint::Embeddings => json!({ "prompt_tokens": prompt, "total_tokens": total }),
    }
}

/// Returns the text of an object with `member` inserted unchanged, even if it is not valid JSON.
pub(super) fn with_member(object: &Value, name: &str, member: &str) -> String {
    let text = object.to_string();
    let open = text.strip_suffix('}').unwrap_or(&text);
    format!("{open},\"{name}\":{member}}}")
}
