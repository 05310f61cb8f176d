//! Complete answers in the provider's shape. The same request always has the same text and usage.

use super::request::{CalledTool, Demanded, SandboxRequest, ToolKind, tokens};
use super::usage::{UsageValue, with_member};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use clock::now_ms;
use domain::measured::Endpoint;
use serde_json::{Value, json};

/// Period after which the numbers of an embedding repeat: they depend only on the length of the text.
const PERIOD: usize = 7;

/// Returns the body of a whole answer.
pub(super) fn json(request: &SandboxRequest, number: u64, usage: &UsageValue) -> String {
    let (text, is_cut) = text(request);
    let body = match request.endpoint {
        Endpoint::Chat => chat(request, number, &text, is_cut),
        Endpoint::Responses => response(request, number, &text, ResponseStatus::from_cut(is_cut)),
        Endpoint::Embeddings => embeddings(request),
    };
    match self::usage(request, usage) {
        None => body.to_string(),
        Some(usage) => with_member(&body, "usage", &usage),
    }
}

/// Returns the usage of a complete answer, as text.
pub(super) fn usage(request: &SandboxRequest, usage: &UsageValue) -> Option<String> {
    let completion = match request.endpoint {
        Endpoint::Embeddings => 0,
        _ => tokens(text(request).0.len()).saturating_mul(request.choices),
    };
    usage.text(request.endpoint, request.prompt_tokens, completion)
}

fn chat(request: &SandboxRequest, number: u64, text: &str, is_cut: bool) -> Value {
    let choices: Vec<Value> = (0..request.choices)
        .map(|index| {
            let mut message =
                json!({ "role": "assistant", "content": text, "refusal": null, "annotations": [] });
            if let Some(tool) = request.tool() {
                message["content"] = Value::Null;
                message["tool_calls"] = json!([tool_call(number, index, tool, text)]);
            }
            json!({
                "index": index,
                "message": message,
                "logprobs": null,
                "finish_reason": finish_reason(request, is_cut),
            })
        })
        .collect();
    json!({
        "id": chat_id(number),
        "object": "chat.completion",
        "created": now_ms() / 1000,
        "model": request.model,
        "choices": choices,
        "service_tier": request.tier_served(),
        "system_fingerprint": "fp_sandbox",
    })
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ResponseStatus {
    InProgress,
    Completed,
    Incomplete,
    Failed,
}

impl ResponseStatus {
    pub(super) const fn from_cut(is_cut: bool) -> Self {
        if is_cut { Self::Incomplete } else { Self::Completed }
    }

    pub(super) const fn word(self) -> &'static str {
        match self {
            Self::InProgress => "in_progress",
            Self::Completed => "completed",
            Self::Incomplete => "incomplete",
            Self::Failed => "failed",
        }
    }
}

/// Builds a response object without its usage.
pub(super) fn response(request: &SandboxRequest, number: u64, text: &str, status: ResponseStatus) -> Value {
    let output = match status {
        ResponseStatus::InProgress | ResponseStatus::Failed => json!([]),
        ResponseStatus::Completed | ResponseStatus::Incomplete => {
            json!([item(request, number, text, status)])
        }
    };
    let error = (status == ResponseStatus::Failed)
        .then(|| json!({ "code": "server_error", "message": "The sandbox was asked to fail." }));
    let mut body = json!({
        "id": format!("resp_sandbox{number:016x}"),
        "object": "response",
        "created_at": now_ms() / 1000,
        "status": status.word(),
        "error": error,
        "incomplete_details": (status == ResponseStatus::Incomplete).then(|| json!({ "reason": "max_output_tokens" })),
        "instructions": null,
        "max_output_tokens": request.max_tokens,
        "model": request.model,
        "output": output,
        "parallel_tool_calls": true,
        "previous_response_id": null,
        "reasoning": { "effort": null, "summary": null },
        "service_tier": request.tier_served(),
        "store": false,
        "temperature": 1.0,
        "text": { "format": { "type": "text" } },
        "tool_choice": "auto",
        "tools": [],
        "top_p": 1.0,
        "truncation": "disabled",
        "metadata": {},
    });
    for (name, value) in &request.repeated {
        repeat(&mut body[name], value);
    }
    body
}

/// Sets a member as the request set it. Of an object, members that the request did not set keep their default.
fn repeat(member: &mut Value, set: &Value) {
    match (member, set) {
        (Value::Object(defaults), Value::Object(set)) => defaults.extend(set.clone()),
        (member, set) => *member = set.clone(),
    }
}

/// Builds the only output item of a response: a message, or the call of a tool.
pub(super) fn item(request: &SandboxRequest, number: u64, text: &str, status: ResponseStatus) -> Value {
    let Some(tool) = request.tool() else {
        return message(number, text, status);
    };
    let (kind, input) = match tool.kind {
        ToolKind::Function => ("function_call", "arguments"),
        ToolKind::Custom => ("custom_tool_call", "input"),
    };
    json!({
        "id": item_id(request, number), "type": kind, "status": status.word(), "call_id": call_id(number, 0),
        "name": tool.name, input: text,
    })
}

fn message(number: u64, text: &str, status: ResponseStatus) -> Value {
    let content = match status {
        ResponseStatus::InProgress => json!([]),
        _ => json!([text_part(text)]),
    };
    json!({
        "id": format!("msg_sandbox{number:016x}"), "type": "message", "status": status.word(), "role": "assistant",
        "content": content,
    })
}

pub(super) fn text_part(text: &str) -> Value {
    json!({ "type": "output_text", "text": text, "annotations": [], "logprobs": [] })
}

/// Returns the id of the only output item of a response.
pub(super) fn item_id(request: &SandboxRequest, number: u64) -> String {
    let prefix = match request.tool().map(|tool| tool.kind) {
        None => "msg",
        Some(ToolKind::Function) => "fc",
        Some(ToolKind::Custom) => "ctc",
    };
    format!("{prefix}_sandbox{number:016x}")
}

fn call_id(number: u64, index: u64) -> String {
    format!("call_sandbox{number:016x}{index:02x}")
}

pub(super) fn chat_id(number: u64) -> String {
    format!("chatcmpl-sandbox{number:016x}")
}

pub(super) fn finish_reason(request: &SandboxRequest, is_cut: bool) -> &'static str {
    match (is_cut, request.tool()) {
        (true, _) => "length",
        (false, Some(_)) => "tool_calls",
        (false, None) => "stop",
    }
}

/// Builds the call of a tool in the answer's choice of this index.
pub(super) fn tool_call(number: u64, index: u64, tool: &CalledTool, input: &str) -> Value {
    let (id, name) = (call_id(number, index), &tool.name);
    match tool.kind {
        ToolKind::Function => {
            json!({ "id": id, "type": "function", "function": { "name": name, "arguments": input } })
        }
        ToolKind::Custom => json!({ "id": id, "type": "custom", "custom": { "name": name, "input": input } }),
    }
}

fn embeddings(request: &SandboxRequest) -> Value {
    let numbers: Vec<f32> = (0..request.dimensions)
        .map(|at| f32::from(u8::try_from(at % PERIOD).unwrap_or(0)) / 8.0)
        .collect();
    let embedding = if request.base64 {
        let bytes: Vec<u8> = numbers.iter().flat_map(|number| number.to_le_bytes()).collect();
        // With padding, in which the provider's clients request embeddings.
        Value::from(STANDARD.encode(&bytes))
    } else {
        Value::from(numbers)
    };
    let data: Vec<Value> = (0..request.inputs)
        .map(|index| json!({ "object": "embedding", "index": index, "embedding": embedding }))
        .collect();
    json!({ "object": "list", "data": data, "model": request.model })
}

/// Returns the text of every choice, and whether the request's limit cuts it.
pub(super) fn text(request: &SandboxRequest) -> (String, bool) {
    let text = match &request.demanded {
        Some(Demanded { text, .. }) => text.clone(),
        None => format!("This is the Tollgate sandbox. You said: {}", request.quoted),
    };
    let Some(most) = request.max_tokens.filter(|most| *most < tokens(text.len())) else {
        return (text, false);
    };
    let mut end = usize::try_from(most.saturating_mul(4))
        .unwrap_or(usize::MAX)
        .min(text.len());
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    (text[..end].to_owned(), true)
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    pub(crate) fn request(endpoint: Endpoint, max_tokens: Option<u64>) -> SandboxRequest {
        let body = json!({ "model": "gpt-4o-mini", "messages": [{ "content": "hällo" }], "input": "hällo", "n": 2,
            "max_tokens": max_tokens, "max_output_tokens": max_tokens, "service_tier": "flex", "dimensions": 3 });
        SandboxRequest::read(endpoint, body.to_string().as_bytes()).unwrap()
    }

    fn read(request: &SandboxRequest, usage: &UsageValue) -> Value {
        serde_json::from_str(&json(request, 1, usage)).unwrap()
    }

    #[test]
    fn embeddings_have_numbers_or_base64() {
        let mut request = request(Endpoint::Embeddings, None);
        let plain = read(&request, &UsageValue::Real);
        assert_eq!(plain["data"][0]["embedding"], json!([0.0, 0.125, 0.25]));
        assert_eq!(plain["usage"], json!({ "prompt_tokens": 2, "total_tokens": 2 }));
        request.base64 = true;
        assert_eq!(
            read(&request, &UsageValue::Real)["data"][0]["embedding"],
            "AAAAAAAAAD4AAIA+"
        );
    }
}
