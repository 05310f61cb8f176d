//! The body of a chat-completions request.

use super::demanded::demanded;
use super::{CHOICES_MAX, MESSAGE_TOKENS, PART_TOKENS, SandboxRequest, missing, not_json, quoted, tokens};
use crate::reply::BoxedReply;
use domain::measured::Endpoint;
use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;
use std::borrow::Cow;

#[derive(Deserialize)]
struct ChatBody<'a> {
    #[serde(borrow)]
    model: Option<Cow<'a, str>>,
    #[serde(borrow)]
    messages: Option<Vec<ChatMessage<'a>>>,
    n: Option<u64>,
    max_tokens: Option<u64>,
    max_completion_tokens: Option<u64>,
    stream: Option<bool>,
    stream_options: Option<StreamOptions>,
    #[serde(borrow)]
    service_tier: Option<Cow<'a, str>>,
    #[serde(borrow)]
    user: Option<Cow<'a, str>>,
    #[serde(default)]
    tools: Value,
    #[serde(default)]
    tool_choice: Value,
    #[serde(default)]
    response_format: Value,
}

#[derive(Deserialize)]
struct StreamOptions {
    include_usage: Option<bool>,
}

#[derive(Deserialize)]
struct ChatMessage<'a> {
    #[serde(borrow)]
    content: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct ContentPart<'a> {
    #[serde(borrow)]
    text: Option<Cow<'a, str>>,
}

pub(super) fn read(bytes: &[u8]) -> Result<SandboxRequest, BoxedReply> {
    let body: ChatBody<'_> = serde_json::from_slice(bytes).map_err(|_| not_json())?;
    let model = body.model.ok_or_else(|| missing("model"))?.into_owned();
    let messages = body
        .messages
        .filter(|list| !list.is_empty())
        .ok_or_else(|| missing("messages"))?;
    let mut length = 0;
    let mut framing = 0_u64;
    let mut last = String::new();
    for message in &messages {
        let (text, parts) = message.content.map(text_of).unwrap_or_default();
        framing += MESSAGE_TOKENS + PART_TOKENS * parts;
        length += text.len();
        last = quoted(&text);
    }
    Ok(SandboxRequest {
        demanded: demanded(&body.tools, &body.tool_choice, &body.response_format),
        prompt_tokens: tokens(length).saturating_add(framing),
        quoted: last,
        choices: body.n.unwrap_or(1).clamp(1, CHOICES_MAX),
        max_tokens: body.max_completion_tokens.or(body.max_tokens),
        service_tier: body.service_tier.map(Cow::into_owned),
        user: body.user.map(Cow::into_owned),
        stream: body.stream == Some(true),
        include_usage: body.stream_options.and_then(|options| options.include_usage) == Some(true),
        ..SandboxRequest::new(Endpoint::Chat, model)
    })
}

/// Returns the text of a message's content, and the number of its parts: 0 for a string; a list has text parts and
/// others.
fn text_of(content: &RawValue) -> (String, u64) {
    if let Ok(text) = serde_json::from_str::<Cow<'_, str>>(content.get()) {
        return (text.into_owned(), 0);
    }
    let parts: Vec<ContentPart<'_>> = serde_json::from_str(content.get()).unwrap_or_default();
    let count = u64::try_from(parts.len()).unwrap_or(u64::MAX);
    (parts.into_iter().filter_map(|part| part.text).collect(), count)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_prompt_is_all_text_at_four_characters_a_token_and_the_framing() {
        let body = br#"{"model":"m","messages":[{"role":"system","content":"12345678"},
            {"role":"user","content":[{"type":"text","text":"123\n5"},{"type":"image_url","image_url":{}}]}]}"#;
        let request = read(body).unwrap();
        assert_eq!(request.prompt_tokens, 4 + 2 * 4 + 2);
        assert_eq!(request.quoted, "123\n5");
        assert!(!request.stream && !request.include_usage);
        let body = br#"{"model":"m","messages":[{}],"stream":true,"stream_options":{"include_usage":true}}"#;
        let request = read(body).unwrap();
        assert!(request.stream && request.include_usage);
    }

    #[test]
    fn refusals_of_the_provider_are_passed_on() {
        for body in [
            "{",
            "[]",
            "{}",
            r#"{"model":"m"}"#,
            r#"{"model":"m","messages":[]}"#,
        ] {
            assert!(read(body.as_bytes()).is_err(), "{body}");
        }
    }
}
