//! The body of a request for a response.

use super::demanded::demanded;
use super::{MESSAGE_TOKENS, PART_TOKENS, SandboxRequest, missing, quoted, string, tokens};
use crate::reply::BoxedReply;
use domain::measured::Endpoint;
use serde_json::{Map, Value};

/// Members of a request that its response repeats.
const REPEATED: [&str; 13] = [
    "instructions",
    "metadata",
    "parallel_tool_calls",
    "prompt_cache_key",
    "reasoning",
    "store",
    "temperature",
    "text",
    "tool_choice",
    "tools",
    "top_p",
    "truncation",
    "user",
];
/// Members of an item that are part of the prompt.
const TEXTS: [&str; 6] = [
    "content",
    "output",
    "summary",
    "arguments",
    "input",
    "encrypted_content",
];

pub(super) fn read(body: &Value) -> Result<SandboxRequest, BoxedReply> {
    let model = string(body, "model").ok_or_else(|| missing("model"))?;
    let mut prompt = PromptText::default();
    if let Some(instructions) = body.get("instructions").and_then(Value::as_str) {
        prompt.message(instructions);
    }
    match body.get("input") {
        Some(Value::String(text)) if !text.is_empty() => prompt.message(text),
        Some(Value::Array(items)) if !items.is_empty() => items.iter().for_each(|item| prompt.item(item)),
        _ => return Err(missing("input")),
    }
    let number = |name: &str| body.get(name).and_then(Value::as_u64);
    Ok(SandboxRequest {
        demanded: demanded(&body["tools"], &body["tool_choice"], &body["text"]["format"]),
        repeated: repeated(body),
        user: string(body, "user"),
        prompt_tokens: tokens(prompt.bytes).saturating_add(prompt.framing),
        quoted: quoted(&prompt.last),
        max_tokens: number("max_output_tokens"),
        service_tier: string(body, "service_tier"),
        stream: body.get("stream") == Some(&Value::Bool(true)),
        include_usage: true,
        ..SandboxRequest::new(Endpoint::Responses, model)
    })
}

/// Returns the members that the response repeats, as they are set.
fn repeated(body: &Value) -> Map<String, Value> {
    let set = REPEATED.iter().filter_map(|name| Some((*name, body.get(*name)?)));
    set.filter(|(_, value)| !value.is_null())
        .map(|(name, value)| (name.to_owned(), value.clone()))
        .collect()
}

/// The text that the model would read.
#[derive(Default)]
struct PromptText {
    bytes: usize,
    framing: u64,
    last: String,
}

impl PromptText {
    fn message(&mut self, text: &str) {
        self.framing += MESSAGE_TOKENS;
        self.bytes += text.len();
        text.clone_into(&mut self.last);
    }

    fn item(&mut self, item: &Value) {
        let (mut text, mut parts) = (String::new(), 0);
        for member in TEXTS.iter().filter_map(|name| item.get(*name)) {
            match member {
                Value::String(whole) => text.push_str(whole),
                Value::Array(list) => {
                    parts += list.len();
                    let texts = list
                        .iter()
                        .filter_map(|part| part.get("text").and_then(Value::as_str));
                    texts.for_each(|part| text.push_str(part));
                }
                _ => {}
            }
        }
        self.message(&text);
        self.framing += PART_TOKENS * u64::try_from(parts).unwrap_or(u64::MAX);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn the_prompt_is_instructions_and_items_with_their_framing() {
        let body = json!({ "model": "m", "instructions": "12345678", "stream": true, "max_output_tokens": 5,
            "input": [{ "role": "user", "content": [{ "type": "input_text", "text": "1234" }] },
                { "type": "function_call_output", "output": "5678" }] });
        let request = read(&body).unwrap();
        assert_eq!(request.prompt_tokens, 4 + 3 * 4 + 1);
        assert_eq!(
            (request.quoted.as_str(), request.max_tokens, request.stream),
            ("5678", Some(5), true)
        );
        assert_eq!(
            read(&json!({ "model": "m", "input": "hi" }))
                .unwrap()
                .prompt_tokens,
            1 + 4
        );
        for bad in [
            json!([]),
            json!({}),
            json!({ "model": "m" }),
            json!({ "model": "m", "input": [] }),
        ] {
            assert!(read(&bad).is_err(), "{bad}");
        }
    }
}
