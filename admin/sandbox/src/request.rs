//! A chat-completions request, as far as the sandbox needs it.

use super::reply::{self, Reply};
use serde::Deserialize;
use serde_json::value::RawValue;
use std::borrow::Cow;

/// Longest request body.
pub(super) const BODY_MAX: usize = 64 << 20;
/// Characters that count as one token.
const CHARS_PER_TOKEN: usize = 4;
/// Tokens that frame a message.
const MESSAGE_TOKENS: u64 = 4;
/// Tokens that frame a content part.
const PART_TOKENS: u64 = 1;
/// Characters of the last message that an answer repeats.
const QUOTED: usize = 120;
/// Most choices, as the provider has it.
const CHOICES_MAX: u64 = 128;

#[derive(Deserialize)]
struct Body<'a> {
    #[serde(borrow)]
    model: Option<Cow<'a, str>>,
    #[serde(borrow)]
    messages: Option<Vec<Message<'a>>>,
    n: Option<u64>,
    max_tokens: Option<u64>,
    max_completion_tokens: Option<u64>,
    stream: Option<bool>,
    #[serde(borrow)]
    service_tier: Option<Cow<'a, str>>,
}

#[derive(Deserialize)]
struct Message<'a> {
    #[serde(borrow)]
    content: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct Part<'a> {
    #[serde(borrow)]
    text: Option<Cow<'a, str>>,
}

/// What an answer depends on.
#[derive(Debug)]
pub(super) struct Request {
    pub(super) model: String,
    /// The prompt's text, about four characters a token, and the framing of messages and parts.
    pub(super) prompt_tokens: u64,
    /// The beginning of the last message.
    pub(super) quoted: String,
    pub(super) choices: u64,
    /// Most tokens of one choice.
    pub(super) max_tokens: Option<u64>,
    pub(super) service_tier: Option<String>,
}

impl Request {
    /// Reads a body; what is wrong with it is answered as the provider would.
    pub(super) fn read(bytes: &[u8]) -> Result<Self, Reply> {
        let body: Body = serde_json::from_slice(bytes)
            .map_err(|_| reply::refusal(400, "We could not parse the JSON body of your request.", None))?;
        let missing = |what: &str| {
            reply::refusal(
                400,
                &format!("Missing required parameter: '{what}'."),
                Some("missing_required_parameter"),
            )
        };
        let model = body.model.ok_or_else(|| missing("model"))?.into_owned();
        let messages = body
            .messages
            .filter(|list| !list.is_empty())
            .ok_or_else(|| missing("messages"))?;
        if body.stream == Some(true) {
            return Err(reply::refusal(
                400,
                "The sandbox does not stream.",
                Some("unsupported_value"),
            ));
        }
        let mut length = 0;
        let mut framing = 0_u64;
        let mut quoted = String::new();
        for message in &messages {
            let (text, parts) = message.content.map(text_of).unwrap_or_default();
            framing += MESSAGE_TOKENS + PART_TOKENS * parts;
            length += text.len();
            quoted = text.chars().take(QUOTED).collect();
        }
        Ok(Self {
            model,
            prompt_tokens: tokens(length).saturating_add(framing),
            quoted,
            choices: body.n.unwrap_or(1).clamp(1, CHOICES_MAX),
            max_tokens: body.max_completion_tokens.or(body.max_tokens),
            service_tier: body.service_tier.map(Cow::into_owned),
        })
    }
}

/// The text of a message's content, and its parts: a string has none, a list has text parts and others.
fn text_of(content: &RawValue) -> (String, u64) {
    if let Ok(text) = serde_json::from_str::<Cow<'_, str>>(content.get()) {
        return (text.into_owned(), 0);
    }
    let parts: Vec<Part<'_>> = serde_json::from_str(content.get()).unwrap_or_default();
    let count = u64::try_from(parts.len()).unwrap_or(u64::MAX);
    (parts.into_iter().filter_map(|part| part.text).collect(), count)
}

/// Tokens of a text of `length` bytes.
pub(super) fn tokens(length: usize) -> u64 {
    u64::try_from(length.div_ceil(CHARS_PER_TOKEN)).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_prompt_is_all_text_at_four_characters_a_token_and_the_framing() {
        let body = br#"{"model":"m","messages":[{"role":"system","content":"12345678"},
            {"role":"user","content":[{"type":"text","text":"123\n5"},{"type":"image_url","image_url":{}}]}]}"#;
        let request = Request::read(body).unwrap();
        assert_eq!(request.prompt_tokens, 4 + 2 * 4 + 2);
        assert_eq!(request.quoted, "123\n5");
    }

    #[test]
    fn what_the_provider_refuses_is_refused() {
        for body in [
            "{",
            "[]",
            "{}",
            r#"{"model":"m"}"#,
            r#"{"model":"m","messages":[]}"#,
        ] {
            assert!(Request::read(body.as_bytes()).is_err(), "{body}");
        }
    }
}
