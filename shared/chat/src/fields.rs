//! The top level of the body: which keys the gate reads, and what it makes of them.

use super::error::{BodyError, Scan};
use super::key::{folded, quotable};
use super::prompt::Prompt;
use super::scan::{Scanner, Value};
use super::text::Text;
use super::{
    COMPLETION_TOKENS_DEFAULT, COMPLETION_TOKENS_MAX, ChatBody, MODEL_BYTES_MAX, N_MAX,
    SERVICE_TIER_BYTES_MAX,
};
use super::{KEY_BYTES_MAX, KEYS_MAX};
use std::borrow::Cow;

/// Keys whose value decides something; nothing that a careless parser could take for one of them is let through.
const DECISIVE: &[&str] = &[
    "model",
    "messages",
    "stream",
    "n",
    "max_completion_tokens",
    "max_tokens",
    "service_tier",
    "modalities",
    "audio",
    "web_search_options",
];

/// What `prediction` holds.
#[derive(Debug, Clone, Copy, Default)]
struct Predicted {
    bytes: usize,
    parts: usize,
}

/// The top level, as far as parsed.
#[derive(Debug, Default)]
pub(super) struct Fields<'a> {
    /// The keys so far, unescaped.
    keys: Vec<Cow<'a, str>>,
    /// First ambiguity of the keys.
    ambiguous: Option<BodyError>,
    model: Option<Value<'a>>,
    stream: Option<Value<'a>>,
    n: Option<Value<'a>>,
    max_completion_tokens: Option<Value<'a>>,
    max_tokens: Option<Value<'a>>,
    service_tier: Option<Value<'a>>,
    /// Elements of `messages`.
    messages: usize,
    /// The first element of `messages` that is no object.
    odd_message: Option<usize>,
    prompt: Prompt,
    /// What `prediction` adds to the prompt.
    predicted: Predicted,
    audio_output: bool,
    web_search: bool,
}

impl<'a> Fields<'a> {
    /// Reads one member of the body.
    pub(super) fn read(&mut self, scanner: &mut Scanner<'a>, key: Text<'a>) -> Scan {
        let name = key.decode()?;
        match &*name {
            "model" => self.model = Some(scanner.value()?),
            "stream" => self.stream = Some(scanner.value()?),
            "n" => self.n = Some(scanner.value()?),
            "max_completion_tokens" => self.max_completion_tokens = Some(scanner.value()?),
            "max_tokens" => self.max_tokens = Some(scanner.value()?),
            "service_tier" => self.service_tier = Some(scanner.value()?),
            "messages" => self.read_messages(scanner)?,
            "modalities" => self.read_modalities(scanner)?,
            "audio" => self.audio_output |= !matches!(scanner.value()?, Value::Null),
            "web_search_options" => {
                // The location in it is shown to the model.
                self.web_search |= scanner.peek() != Some(b'n');
                self.prompt.json(scanner)?;
            }
            "tools" | "functions" | "response_format" => self.prompt.json(scanner)?,
            "tool_choice" | "function_call" => self.prompt.choice(scanner)?,
            "prediction" => self.read_prediction(scanner)?,
            name if is_free(name) => scanner.skip()?,
            // A parameter from after this list was written may carry text.
            _ => self.prompt.member(scanner, key)?,
        }
        self.remember(name);
        Ok(())
    }

    /// What the gate needs to know, or the first refusal in the documented order.
    pub(super) fn judge(self) -> Scan<ChatBody<'a>> {
        if let Some(error) = self.ambiguous {
            return Err(error);
        }
        let model = match self.model {
            Some(Value::Text(text)) if text.bytes > 0 => text,
            _ => return Err(BodyError::MissingModel),
        };
        if self.messages == 0 {
            return Err(BodyError::MissingMessages);
        }
        match self.stream {
            None | Some(Value::Null | Value::Bool(false)) => {}
            Some(Value::Bool(true)) => return Err(BodyError::StreamNotSupported),
            Some(_) => return Err(BodyError::StreamNotBoolean),
        }
        let model = text_of(model, MODEL_BYTES_MAX)?.ok_or(BodyError::BadModel)?;
        if let Some(index) = self.odd_message {
            return Err(BodyError::MessageNotObject { index });
        }
        let n = count("n", self.n, N_MAX)?;
        let newer = count(
            "max_completion_tokens",
            self.max_completion_tokens,
            COMPLETION_TOKENS_MAX,
        )?;
        let older = count("max_tokens", self.max_tokens, COMPLETION_TOKENS_MAX)?;
        let service_tier = match self.service_tier {
            None | Some(Value::Null) => None,
            Some(Value::Text(text)) => {
                Some(text_of(text, SERVICE_TIER_BYTES_MAX)?.ok_or(BodyError::BadServiceTier)?)
            }
            Some(_) => return Err(BodyError::BadServiceTier),
        };
        Ok(ChatBody {
            model,
            service_tier,
            prompt_bytes: self.prompt.bytes as u64,
            framed: self.prompt.framed as u64,
            content_parts: self.prompt.parts as u64,
            predicted_bytes: self.predicted.bytes as u64,
            predicted_parts: self.predicted.parts as u64,
            image_parts: self.prompt.images as u64,
            audio_parts: self.prompt.audios as u64,
            file_parts: self.prompt.files as u64,
            completion_tokens: newer.or(older).unwrap_or(COMPLETION_TOKENS_DEFAULT),
            unlimited: newer.or(older).is_none(),
            n: n.unwrap_or(1),
            audio_output: self.audio_output,
            web_search: self.web_search,
        })
    }

    /// Reads the value of `messages`; one that is no array leaves the count at 0.
    fn read_messages(&mut self, scanner: &mut Scanner<'a>) -> Scan {
        if scanner.peek() != Some(b'[') {
            return scanner.skip();
        }
        scanner.array(|scanner| {
            let index = self.messages;
            self.messages += 1;
            if scanner.peek() == Some(b'{') {
                return self.prompt.message(scanner);
            }
            self.odd_message.get_or_insert(index);
            scanner.skip()
        })
    }

    /// Reads the value of `prediction`, and notes what it adds to the prompt: rejected tokens of it are billed as
    /// output.
    fn read_prediction(&mut self, scanner: &mut Scanner<'a>) -> Scan {
        let before = self.prompt;
        self.prompt.prediction(scanner)?;
        self.predicted.bytes += self.prompt.bytes - before.bytes;
        self.predicted.parts += self.prompt.parts - before.parts;
        Ok(())
    }

    /// Parses `modalities`: an array of strings. A lone string is accepted as one.
    fn read_modalities(&mut self, scanner: &mut Scanner<'a>) -> Scan {
        let mut element = |scanner: &mut Scanner<'a>| {
            if let Value::Text(text) = scanner.value()? {
                self.audio_output |= text.decode()? == "audio";
            }
            Ok(())
        };
        if scanner.peek() == Some(b'[') {
            scanner.array(element)
        } else {
            element(scanner)
        }
    }

    /// Records a top-level key and its ambiguity.
    fn remember(&mut self, name: Cow<'a, str>) {
        if self.ambiguous.is_some() {
            return;
        }
        self.ambiguous = if name.len() > KEY_BYTES_MAX {
            Some(BodyError::KeyTooLong { key: quotable(&name) })
        } else if self.keys.contains(&name) {
            Some(BodyError::DuplicateKey { key: quotable(&name) })
        } else if self.keys.len() == KEYS_MAX {
            Some(BodyError::TooManyKeys)
        } else {
            near(&name).map(|wanted| BodyError::NearKey {
                key: quotable(&name),
                wanted,
            })
        };
        self.keys.push(name);
    }
}

/// Parameters that the model does not see.
fn is_free(name: &str) -> bool {
    matches!(
        name,
        "frequency_penalty"
            | "logit_bias"
            | "logprobs"
            | "metadata"
            | "parallel_tool_calls"
            | "presence_penalty"
            | "prompt_cache_key"
            | "prompt_cache_retention"
            | "reasoning_effort"
            | "safety_identifier"
            | "seed"
            | "stop"
            | "store"
            | "stream_options"
            | "temperature"
            | "top_logprobs"
            | "top_p"
            | "user"
            | "verbosity"
    )
}

/// The decisive key that `name` is not, but could be taken for: by a parser that is blind to case, or one that also
/// takes `maxTokens` or `max-tokens` for `max_tokens`, as Protocol Buffers and some Java libraries do.
fn near(name: &str) -> Option<&'static str> {
    let folded = folded(Cow::Borrowed(name));
    let alike = DECISIVE.iter().find(|key| letters(key).eq(letters(&folded)));
    alike.copied().filter(|key| *key != name)
}

/// A key without what separates its words.
fn letters(key: &str) -> impl Iterator<Item = u8> {
    key.bytes().filter(|byte| !matches!(byte, b'_' | b'-'))
}

/// The unescaped text, unless it is longer than `bytes_max` or has a control character.
fn text_of(text: Text<'_>, bytes_max: usize) -> Scan<Option<Cow<'_, str>>> {
    if text.bytes > bytes_max {
        return Ok(None);
    }
    let decoded = text.decode()?;
    Ok(if decoded.contains(char::is_control) {
        None
    } else {
        Some(decoded)
    })
}

/// Parses an integer from 1 to `max`; `null` is absent. Only digits are accepted: parsers disagree about `1.0`, `1e0`
/// and `-0`.
fn count(key: &'static str, value: Option<Value<'_>>, max: u64) -> Scan<Option<u64>> {
    let number = match value {
        None | Some(Value::Null) => return Ok(None),
        Some(Value::Number(number)) => number.parse::<u64>().ok(),
        Some(_) => None,
    };
    let in_range = number.filter(|number| (1..=max).contains(number));
    in_range.map(Some).ok_or(BodyError::BadCount { key, max })
}
