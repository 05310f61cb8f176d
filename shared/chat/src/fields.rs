//! The top level of a chat-completions body: the keys that the gate reads, and their meaning.

use super::body::RequestBody;
use super::cache_lifetime;
use super::common::{Common, count, has_audio};
use super::error::{BodyError, Scan};
use super::keys::near;
use super::prompt::Prompt;
use super::responses::tool;
use super::responses::unseen::Unseen;
use super::scan::{BodyValue, Scanner};
use super::stream_options::{StreamOptions, UsageSplice};
use super::text::Text;
use super::{COMPLETION_TOKENS_DEFAULT, COMPLETION_TOKENS_MAX, N_MAX};
use crate::key::quotable;
use domain::measured::Endpoint;
use domain::price::CallShape;

/// Keys whose value decides something. A key that a lenient parser could take for one of them is refused.
pub(super) const DECISIVE: &[&str] = &[
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
    "tools",
    "prediction",
    cache_lifetime::OPTIONS,
];
/// Keys that decide something only in a streamed call.
pub(super) const DECISIVE_IN_STREAMS: &[&str] = &["stream_options"];

/// Size of `prediction`.
#[derive(Debug, Clone, Copy, Default)]
struct Predicted {
    bytes: usize,
    parts: usize,
}

/// The top level, as far as it has been parsed.
#[derive(Debug)]
pub(super) struct ChatFields<'a> {
    common: Common<'a>,
    /// Offset of the first member.
    first: usize,
    stream_options: Option<StreamOptions>,
    /// The first key that resembles one of [`DECISIVE_IN_STREAMS`].
    near_in_streams: Option<BodyError>,
    n: Option<BodyValue<'a>>,
    max_completion_tokens: Option<BodyValue<'a>>,
    max_tokens: Option<BodyValue<'a>>,
    /// Elements of `messages`.
    messages: usize,
    /// Index of the first element of `messages` that is not an object.
    odd_message: Option<usize>,
    /// The tool that the provider would run.
    unseen: Option<Unseen>,
    prompt: Prompt,
    /// Size that `prediction` adds to the prompt.
    predicted: Predicted,
    audio_output: bool,
    web_search: bool,
}

impl<'a> ChatFields<'a> {
    /// Creates the state before the first member of the object that starts at `start`.
    pub(super) fn new(start: usize) -> Self {
        Self {
            common: Common::new(DECISIVE),
            first: start + 1,
            stream_options: None,
            near_in_streams: None,
            n: None,
            max_completion_tokens: None,
            max_tokens: None,
            messages: 0,
            odd_message: None,
            unseen: None,
            prompt: Prompt::default(),
            predicted: Predicted::default(),
            audio_output: false,
            web_search: false,
        }
    }

    /// Reads one member of the body.
    pub(super) fn read(&mut self, scanner: &mut Scanner<'a>, key: Text<'a>) -> Scan {
        let name = key.decode()?;
        match &*name {
            "model" => self.common.model = Some(scanner.value()?),
            "stream" => self.common.stream = Some(scanner.value()?),
            "stream_options" => self.stream_options = Some(StreamOptions::read(scanner)?),
            "n" => self.n = Some(scanner.value()?),
            "max_completion_tokens" => self.max_completion_tokens = Some(scanner.value()?),
            "max_tokens" => self.max_tokens = Some(scanner.value()?),
            "service_tier" => self.common.service_tier = Some(scanner.value()?),
            "messages" => self.read_messages(scanner)?,
            "modalities" => self.audio_output |= has_audio(scanner)?,
            "audio" => self.audio_output |= !matches!(scanner.value()?, BodyValue::Null),
            "web_search_options" => {
                // The model sees the location in this field.
                self.web_search |= scanner.peek() != Some(b'n');
                self.prompt.json(scanner)?;
            }
            cache_lifetime::OPTIONS | cache_lifetime::CONTROL => self.prompt.cache_member(scanner, key)?,
            "tools" => {
                let found = tool::all(Endpoint::Chat, &mut self.prompt, scanner)?;
                self.unseen = found.map(|found| found.within("tools"));
            }
            "functions" | "response_format" => self.prompt.json(scanner)?,
            "tool_choice" | "function_call" => self.prompt.choice(scanner)?,
            "prediction" => self.read_prediction(scanner)?,
            name if is_free(name) => scanner.skip()?,
            // A parameter added to the API after this list was written may contain text.
            _ => {
                self.common.note_choice(&name, scanner);
                self.remember_near(&name);
                self.prompt.member(scanner, key)?;
            }
        }
        self.common.keys.remember(name);
        Ok(())
    }

    /// Returns the parsed body, or the first error in the documented precedence. `streaming`: whether a stream may be
    /// requested.
    pub(super) fn judge(mut self, streaming: bool) -> Scan<RequestBody<'a>> {
        self.common.check_model()?;
        if self.messages == 0 {
            return Err(BodyError::MissingMessages);
        }
        let stream = self.common.stream()?;
        if stream && !streaming {
            return Err(BodyError::StreamNotSupported);
        }
        if let Some(unseen) = self.unseen {
            return Err(unseen.into_error());
        }
        let splice = if stream { self.judge_options()? } else { None };
        let model = self.common.model()?;
        if let Some(index) = self.odd_message {
            return Err(BodyError::MessageNotObject { index });
        }
        if let Some(key) = self.prompt.repeated {
            return Err(BodyError::DuplicateKey { key: key.to_owned() });
        }
        let n = count("n", self.n, N_MAX)?;
        let newer = count(
            "max_completion_tokens",
            self.max_completion_tokens,
            COMPLETION_TOKENS_MAX,
        )?;
        let older = count("max_tokens", self.max_tokens, COMPLETION_TOKENS_MAX)?;
        Ok(RequestBody {
            model,
            service_tier: self.common.service_tier()?,
            stream,
            shape: CallShape {
                predicted_bytes: self.predicted.bytes as u64,
                predicted_parts: self.predicted.parts as u64,
                completion_tokens: newer.or(older).unwrap_or(COMPLETION_TOKENS_DEFAULT),
                unlimited: newer.or(older).is_none(),
                n: n.unwrap_or(1),
                audio_output: self.audio_output,
                web_search: self.web_search,
                ..self.prompt.shape()
            },
            choice: self.common.choice,
            limit_key: "max_completion_tokens",
            splice,
        })
    }

    /// Returns the change that makes a streamed call report its usage.
    fn judge_options(&mut self) -> Scan<Option<UsageSplice>> {
        if let Some(error) = self.near_in_streams.take() {
            return Err(error);
        }
        let options = self.stream_options.take();
        options
            .unwrap_or_else(|| StreamOptions::absent(self.first))
            .judge()
    }

    /// Reads the value of `messages`. A value that is not an array leaves the count at 0.
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

    /// Reads the value of `prediction`, and records the size that it adds to the prompt: rejected prediction tokens are
    /// billed as output.
    fn read_prediction(&mut self, scanner: &mut Scanner<'a>) -> Scan {
        let before = self.prompt;
        self.prompt.prediction(scanner)?;
        self.predicted.bytes += self.prompt.bytes - before.bytes;
        self.predicted.parts += self.prompt.parts - before.parts;
        Ok(())
    }

    /// Records a key that would be ambiguous in a streamed call.
    fn remember_near(&mut self, name: &str) {
        if self.near_in_streams.is_none() {
            self.near_in_streams = near(name, DECISIVE_IN_STREAMS).map(|wanted| BodyError::NearKey {
                key: quotable(name),
                wanted,
            });
        }
    }
}

/// Returns whether the model does not see this parameter.
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
            | "temperature"
            | "top_logprobs"
            | "top_p"
            | "user"
            | "verbosity"
    )
}
