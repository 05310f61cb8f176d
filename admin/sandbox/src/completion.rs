//! A chat completion in the provider's shape. The same request always has the same text and usage.

use super::request::{Request, tokens};
use clock::now_ms;
use serde_json::value::RawValue;
use serde_json::{Value, json};

/// What `usage` says.
#[derive(Debug)]
pub(super) enum Usage {
    /// The prompt's and the answer's own tokens.
    Real,
    /// Nothing: there is none.
    None,
    /// So many prompt and completion tokens.
    Tokens(u64, u64),
    /// This.
    Literal(Box<RawValue>),
}

/// The body of a completion.
pub(super) fn json(request: &Request, number: u64, usage: &Usage) -> String {
    let (text, finish_reason) = text(request);
    let completion_tokens = tokens(text.len()).saturating_mul(request.choices);
    let choices: Vec<Value> = (0..request.choices)
        .map(|index| {
            json!({
                "index": index,
                "message": { "role": "assistant", "content": text, "refusal": null, "annotations": [] },
                "logprobs": null,
                "finish_reason": finish_reason,
            })
        })
        .collect();
    let tier = match request.service_tier.as_deref() {
        None | Some("auto") => "default",
        Some(tier) => tier,
    };
    let mut body = json!({
        "id": format!("chatcmpl-sandbox{number:016x}"),
        "object": "chat.completion",
        "created": now_ms() / 1000,
        "model": request.model,
        "choices": choices,
        "service_tier": tier,
        "system_fingerprint": "fp_sandbox",
    });
    match usage {
        Usage::None => {}
        Usage::Real => body["usage"] = usage_of(request.prompt_tokens, completion_tokens),
        Usage::Tokens(prompt, completion) => body["usage"] = usage_of(*prompt, *completion),
        Usage::Literal(literal) => return with_literal_usage(&body, literal),
    }
    body.to_string()
}

/// The text of every choice, and why it ends there.
fn text(request: &Request) -> (String, &'static str) {
    let text = format!("This is the Tollgate sandbox. You said: {}", request.quoted);
    let Some(most) = request.max_tokens.filter(|most| *most < tokens(text.len())) else {
        return (text, "stop");
    };
    let mut end = usize::try_from(most.saturating_mul(4))
        .unwrap_or(usize::MAX)
        .min(text.len());
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    (text[..end].to_owned(), "length")
}

fn usage_of(prompt: u64, completion: u64) -> Value {
    json!({
        "prompt_tokens": prompt,
        "completion_tokens": completion,
        "total_tokens": prompt.saturating_add(completion),
        "prompt_tokens_details": { "cached_tokens": 0, "audio_tokens": 0 },
        "completion_tokens_details": {
            "reasoning_tokens": 0, "audio_tokens": 0, "accepted_prediction_tokens": 0,
            "rejected_prediction_tokens": 0,
        },
    })
}

/// The body with `usage` as it was given, also when it is no object at all.
fn with_literal_usage(body: &Value, usage: &RawValue) -> String {
    let text = body.to_string();
    let open = text.strip_suffix('}').unwrap_or(&text);
    format!("{open},\"usage\":{}}}", usage.get())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(max_tokens: Option<u64>) -> Request {
        Request {
            model: "gpt-4o-mini".to_owned(),
            prompt_tokens: 3,
            quoted: "hällo".to_owned(),
            choices: 2,
            max_tokens,
            service_tier: Some("flex".to_owned()),
        }
    }

    #[test]
    fn completion_tokens_are_bounded_by_the_request_and_times_n() {
        for most in [1, 5, 11] {
            let body: Value = serde_json::from_str(&json(&request(Some(most)), 1, &Usage::Real)).unwrap();
            assert_eq!(body["usage"]["completion_tokens"], 2 * most);
            assert_eq!(body["choices"][1]["finish_reason"], "length");
        }
        let body: Value = serde_json::from_str(&json(&request(None), 1, &Usage::Real)).unwrap();
        assert_eq!(body["choices"][0]["finish_reason"], "stop");
        assert_eq!(
            body["usage"]["total_tokens"],
            3 + body["usage"]["completion_tokens"].as_u64().unwrap()
        );
        assert_eq!(body["service_tier"], "flex");
    }

    #[test]
    fn usage_is_what_was_asked_for() {
        let read = |usage| serde_json::from_str::<Value>(&json(&request(None), 1, &usage)).unwrap();
        assert!(read(Usage::None).get("usage").is_none());
        assert_eq!(read(Usage::Tokens(7, 9))["usage"]["total_tokens"], 16);
        for literal in ["{}", "null", "[1]", "{\"prompt_tokens\":-1}", "\"x\""] {
            let raw = RawValue::from_string(literal.to_owned()).unwrap();
            assert_eq!(read(Usage::Literal(raw))["usage"].to_string(), literal);
        }
    }
}
