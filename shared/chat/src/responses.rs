//! The body of `POST /v1/responses`, by the rules of the chat-completions body, with additional rules for fields whose
//! cost the edge cannot determine.
//!
//! A call is held for the contents of its body, plus an allowance for each reasoning item that the provider keeps.
//! Other costs are not in the body: other state that the provider keeps (`previous_response_id`, `conversation`,
//! `prompt`, `item_reference`, files and images by id or by URL), tools that the provider runs, and answers that bypass
//! the edge (`background`). Each of these is refused with `unsupported_field`. The lists name accepted fields, not
//! refused ones: [`item`] and [`tool`] list the accepted items and tools.
//!
//! `store` passes unchanged, even if it is absent and the provider therefore stores the answer. Storing costs nothing,
//! and anything that could bring the stored answer into a later call is refused or held in that call.
//!
//! If several things are wrong, this precedence decides which error is returned:
//! 1. and 2. as for chat completions; 3. `missing_model`; 4. `missing_input`;
//! 5. `unsupported_field`, in the order of [`Origin`], for the first element at fault;
//! 6. a value is of the wrong type or out of range, in the order `stream`, `model`, `instructions`, `input`,
//!    `background`, `max_output_tokens`, `service_tier`.

mod item;
mod part;
pub(crate) mod tool;
pub(crate) mod unseen;

use crate::body::RequestBody;
use crate::cache_lifetime;
use crate::common::{Common, boolean, count, has_audio};
use crate::error::{BodyError, Scan};
use crate::prompt::Prompt;
use crate::scan::{BodyValue, Scanner};
use crate::text::Text;
use crate::{COMPLETION_TOKENS_DEFAULT, COMPLETION_TOKENS_MAX, top};
use domain::measured::Endpoint;
use domain::price::CallShape;
use unseen::{LATER, STORED_CALLS, STORED_PROMPT, UNBOUNDED, Unseen};

/// Keys whose value decides something. A key that a lenient parser could take for one of them is refused.
pub(super) const DECISIVE: &[&str] = &[
    "model",
    "input",
    "instructions",
    "stream",
    "max_output_tokens",
    "service_tier",
    "tools",
    "background",
    "previous_response_id",
    "conversation",
    "prompt",
    "context_management",
    "modalities",
    "audio",
    cache_lifetime::OPTIONS,
];
/// Known values of `text.verbosity`.
const VERBOSITIES: &[&str] = &["low", "medium", "high"];
/// Known values of the members of `reasoning`.
const REASONING: &[&str] = &[
    "none",
    "minimal",
    "low",
    "medium",
    "high",
    "xhigh",
    "max",
    "auto",
    "concise",
    "detailed",
    "current_turn",
    "all_turns",
    "standard",
    "pro",
];

/// The top-level key that contains an unsupported field, in the order of precedence.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Origin {
    Background,
    PreviousResponse,
    Conversation,
    Prompt,
    ContextManagement,
    Tools,
    Input,
}

/// Parses a request body of `POST /v1/responses`. [`RequestBody::stream`] says whether a stream is requested, and
/// [`RequestBody::check_stream`] refuses it.
///
/// # Errors
/// [`BodyError`], by the precedence in the head of this file.
pub fn parse(bytes: &[u8]) -> Result<RequestBody<'_>, BodyError> {
    let mut scanner = top(bytes)?;
    let mut fields = ResponsesFields::new();
    let read = scanner.object(|scanner, key| fields.read(scanner, key));
    read.and_then(|()| scanner.finish()).and_then(|()| fields.judge())
}

/// The top level, as far as it has been parsed.
#[derive(Debug)]
struct ResponsesFields<'a> {
    common: Common<'a>,
    max_output_tokens: Option<BodyValue<'a>>,
    background: Option<BodyValue<'a>>,
    /// True if `instructions` is neither a string nor `null`.
    odd_instructions: bool,
    has_input: bool,
    /// Index of the first element of `input` that is not an object.
    odd_item: Option<usize>,
    /// The unsupported field of the first origin that has one.
    unseen: Option<(Origin, Unseen)>,
    prompt: Prompt,
    audio_output: bool,
}

impl<'a> ResponsesFields<'a> {
    fn new() -> Self {
        Self {
            common: Common::new(DECISIVE),
            max_output_tokens: None,
            background: None,
            odd_instructions: false,
            has_input: false,
            odd_item: None,
            unseen: None,
            prompt: Prompt::default(),
            audio_output: false,
        }
    }

    /// Reads one member of the body.
    fn read(&mut self, scanner: &mut Scanner<'a>, key: Text<'a>) -> Scan {
        let name = key.decode()?;
        match &*name {
            "model" => self.common.model = Some(scanner.value()?),
            "stream" => self.common.stream = Some(scanner.value()?),
            "service_tier" => self.common.service_tier = Some(scanner.value()?),
            "max_output_tokens" => self.max_output_tokens = Some(scanner.value()?),
            "background" => self.background = Some(scanner.value()?),
            "instructions" => self.read_instructions(scanner)?,
            "input" => self.read_input(scanner)?,
            "tools" => {
                let found = tool::all(Endpoint::Responses, &mut self.prompt, scanner)?;
                self.note(Origin::Tools, found.map(|found| found.within("tools")));
            }
            "tool_choice" => self.prompt.choice(scanner)?,
            cache_lifetime::OPTIONS => self.prompt.long_cache |= cache_lifetime::is_long(scanner, &name)?,
            cache_lifetime::CONTROL => self.prompt.cache_member(scanner, key)?,
            "text" => self.read_text(scanner)?,
            "reasoning" => self.read_reasoning(scanner)?,
            "previous_response_id" => self.refuse(scanner, Origin::PreviousResponse, &name, STORED_CALLS)?,
            "conversation" => self.refuse(scanner, Origin::Conversation, &name, STORED_CALLS)?,
            "prompt" => self.refuse(scanner, Origin::Prompt, &name, STORED_PROMPT)?,
            "context_management" => self.refuse(scanner, Origin::ContextManagement, &name, UNBOUNDED)?,
            "modalities" => self.audio_output |= has_audio(scanner)?,
            "audio" => self.audio_output |= !matches!(scanner.value()?, BodyValue::Null),
            name if is_free(name) => scanner.skip()?,
            // A parameter added to the API after this list was written may contain text.
            _ => {
                self.common.note_choice(&name, scanner);
                self.prompt.member(scanner, key)?;
            }
        }
        self.common.keys.remember(name);
        Ok(())
    }

    /// Returns the parsed body, or the first error in the documented precedence.
    fn judge(mut self) -> Scan<RequestBody<'a>> {
        self.common.check_model()?;
        if !self.has_input {
            return Err(BodyError::MissingInput);
        }
        if matches!(self.background, Some(BodyValue::Bool(true))) {
            self.note(Origin::Background, Some(Unseen::at("background", LATER)));
        }
        if let Some((_, unseen)) = self.unseen {
            return Err(unseen.into_error());
        }
        let stream = self.common.stream()?;
        let model = self.common.model()?;
        if self.odd_instructions {
            return Err(wrong("instructions", "a string"));
        }
        if let Some(index) = self.odd_item {
            return Err(BodyError::ItemNotObject { index });
        }
        boolean(self.background, wrong("background", "a boolean"))?;
        let limit = count("max_output_tokens", self.max_output_tokens, COMPLETION_TOKENS_MAX)?;
        Ok(RequestBody {
            model,
            service_tier: self.common.service_tier()?,
            stream,
            shape: CallShape {
                completion_tokens: limit.unwrap_or(COMPLETION_TOKENS_DEFAULT),
                unlimited: limit.is_none(),
                audio_output: self.audio_output,
                ..self.prompt.shape()
            },
            choice: self.common.choice,
            limit_key: "max_output_tokens",
            splice: None,
        })
    }

    /// Reads the value of `instructions`, which counts as a message.
    fn read_instructions(&mut self, scanner: &mut Scanner<'a>) -> Scan {
        match scanner.value()? {
            BodyValue::Null => {}
            BodyValue::Text(text) => {
                self.prompt.framed += 1;
                self.prompt.bytes += text.bytes;
            }
            _ => self.odd_instructions = true,
        }
        Ok(())
    }

    /// Reads the value of `input`: a string, which is one message, or an array of items.
    fn read_input(&mut self, scanner: &mut Scanner<'a>) -> Scan {
        if scanner.peek() != Some(b'[') {
            if let BodyValue::Text(text) = scanner.value()? {
                self.has_input = text.bytes > 0;
                self.prompt.framed += 1;
                self.prompt.bytes += text.bytes;
            }
            return Ok(());
        }
        let mut index = 0;
        scanner.array(|scanner| {
            self.has_input = true;
            if scanner.peek() == Some(b'{') {
                let found = item::read(&mut self.prompt, scanner)?;
                let found = found.map(|found| found.within(&format!("input[{index}]")));
                self.note(Origin::Input, found);
            } else {
                self.odd_item.get_or_insert(index);
                scanner.skip()?;
            }
            index += 1;
            Ok(())
        })
    }

    /// Reads the value of `text`: the schema of the answer counts, the verbosity does not.
    fn read_text(&mut self, scanner: &mut Scanner<'a>) -> Scan {
        self.prompt
            .fields(scanner, |prompt, scanner, key, name| match name {
                "format" => prompt.json(scanner),
                "verbosity" => prompt.word(scanner, VERBOSITIES),
                _ => prompt.member(scanner, key),
            })
    }

    /// Reads the value of `reasoning`, whose known values are free.
    fn read_reasoning(&mut self, scanner: &mut Scanner<'a>) -> Scan {
        self.prompt
            .fields(scanner, |prompt, scanner, key, name| match name {
                "effort" | "summary" | "generate_summary" | "context" | "mode" => {
                    prompt.word(scanner, REASONING)
                }
                _ => prompt.member(scanner, key),
            })
    }

    /// Reads a value that is refused unless it is `null`.
    fn refuse(&mut self, scanner: &mut Scanner<'a>, origin: Origin, name: &str, why: &'static str) -> Scan {
        if !matches!(scanner.value()?, BodyValue::Null) {
            self.note(origin, Some(Unseen::at(name, why)));
        }
        Ok(())
    }

    /// Keeps the first finding of the first origin.
    fn note(&mut self, origin: Origin, found: Option<Unseen>) {
        let is_earlier = self.unseen.as_ref().is_none_or(|(kept, _)| origin < *kept);
        if let Some(found) = found.filter(|_| is_earlier) {
            self.unseen = Some((origin, found));
        }
    }
}

const fn wrong(key: &'static str, wanted: &'static str) -> BodyError {
    BodyError::WrongType { key, wanted }
}

/// Returns whether the model does not see this parameter.
fn is_free(name: &str) -> bool {
    matches!(
        name,
        "include"
            | "max_tool_calls"
            | "metadata"
            | "parallel_tool_calls"
            | "prompt_cache_key"
            | "prompt_cache_retention"
            | "safety_identifier"
            | "store"
            | "stream_options"
            | "temperature"
            | "top_logprobs"
            | "top_p"
            | "truncation"
            | "user"
    )
}
