//! The body of `POST /v1/responses`, by the rules of the chat-completions body and with what this endpoint adds: parts
//! of a call that the edge cannot see.
//!
//! A call is held for what its body shows, and an allowance for each reasoning item that the provider keeps. Other
//! state that the provider keeps (`previous_response_id`, `conversation`, `prompt`, `item_reference`, files and images
//! by id or by URL), tools that the provider runs, and answers that come past the edge (`background`) cost money that
//! is not in the body. So each is refused with `unsupported_field`, and what is accepted is listed, not what is
//! refused: [`item`] and [`tool`] say which items and tools.
//!
//! `store` passes unchanged, also when it is absent and the provider therefore stores the answer. That costs nothing by
//! itself, and whatever could bring the stored answer back into a later call is refused or held there.
//!
//! When several things are wrong, the answer is fixed:
//! 1. and 2. as for chat completions; 3. `missing_model`; 4. `missing_input`;
//! 5. `unsupported_field`, in the order of [`Origin`], and in the first element at fault;
//! 6. a value is of the wrong type or out of range, in the order `stream`, `model`, `instructions`, `input`,
//!    `background`, `max_output_tokens`, `service_tier`.

mod item;
mod part;
mod tool;
mod unseen;

use crate::body::RequestBody;
use crate::cache_lifetime;
use crate::common::{Common, boolean, count, has_audio};
use crate::error::{BodyError, Scan};
use crate::prompt::Prompt;
use crate::scan::{Scanner, Value};
use crate::text::Text;
use crate::{COMPLETION_TOKENS_DEFAULT, COMPLETION_TOKENS_MAX, top};
use domain::price::CallShape;
use unseen::{LATER, STORED, UNBOUNDED, Unseen};

/// Keys whose value decides something; nothing that a careless parser could take for one of them is let through.
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
/// Words of `text.verbosity`.
const VERBOSITIES: &[&str] = &["low", "medium", "high"];
/// Words of the members of `reasoning`.
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

/// The top-level key that something unseen stands in, in the order of the refusals.
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

/// Reads a request body of `POST /v1/responses`. [`RequestBody::stream`] says whether a stream is asked for, and
/// [`RequestBody::check_stream`] refuses one.
///
/// # Errors
/// [`BodyError`] says what is wrong with it, in the precedence given in the head of this file.
pub fn parse(bytes: &[u8]) -> Result<RequestBody<'_>, BodyError> {
    let mut scanner = top(bytes)?;
    let mut fields = Fields::new();
    let read = scanner.object(|scanner, key| fields.read(scanner, key));
    read.and_then(|()| scanner.finish()).and_then(|()| fields.judge())
}

/// The top level, as far as parsed.
#[derive(Debug)]
struct Fields<'a> {
    common: Common<'a>,
    max_output_tokens: Option<Value<'a>>,
    background: Option<Value<'a>>,
    /// `instructions` is neither a string nor `null`.
    odd_instructions: bool,
    /// `input` has something in it.
    has_input: bool,
    /// The first element of `input` that is no object.
    odd_item: Option<usize>,
    /// What the edge cannot see, of the first origin that has something.
    unseen: Option<(Origin, Unseen)>,
    prompt: Prompt,
    audio_output: bool,
}

impl<'a> Fields<'a> {
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
                let found = tool::all(&mut self.prompt, scanner)?;
                self.note(Origin::Tools, found.map(|found| found.within("tools")));
            }
            "tool_choice" => self.prompt.choice(scanner)?,
            cache_lifetime::OPTIONS => self.prompt.long_cache |= cache_lifetime::is_long(scanner)?,
            "text" => self.read_text(scanner)?,
            "reasoning" => self.read_reasoning(scanner)?,
            "previous_response_id" => self.refuse(scanner, Origin::PreviousResponse, &name, STORED)?,
            "conversation" => self.refuse(scanner, Origin::Conversation, &name, STORED)?,
            "prompt" => self.refuse(scanner, Origin::Prompt, &name, STORED)?,
            "context_management" => self.refuse(scanner, Origin::ContextManagement, &name, UNBOUNDED)?,
            "modalities" => self.audio_output |= has_audio(scanner)?,
            "audio" => self.audio_output |= !matches!(scanner.value()?, Value::Null),
            name if is_free(name) => scanner.skip()?,
            // A parameter from after this list was written may carry text.
            _ => {
                self.common.note_choice(&name, scanner);
                self.prompt.member(scanner, key)?;
            }
        }
        self.common.keys.remember(name);
        Ok(())
    }

    /// What the gate needs to know, or the first refusal in the documented order.
    fn judge(mut self) -> Scan<RequestBody<'a>> {
        self.common.check_model()?;
        if !self.has_input {
            return Err(BodyError::MissingInput);
        }
        if matches!(self.background, Some(Value::Bool(true))) {
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
            counts: CallShape {
                completion_tokens: limit.unwrap_or(COMPLETION_TOKENS_DEFAULT),
                unlimited: limit.is_none(),
                audio_output: self.audio_output,
                ..self.prompt.counts()
            },
            choice: self.common.choice,
            limit_key: "max_output_tokens",
            splice: None,
        })
    }

    /// Reads the value of `instructions`, which is a message of its own.
    fn read_instructions(&mut self, scanner: &mut Scanner<'a>) -> Scan {
        match scanner.value()? {
            Value::Null => {}
            Value::Text(text) => {
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
            if let Value::Text(text) = scanner.value()? {
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

    /// Reads the value of `text`: the schema of the answer counts, its verbosity does not.
    fn read_text(&mut self, scanner: &mut Scanner<'a>) -> Scan {
        self.prompt
            .fields(scanner, |prompt, scanner, key, name| match name {
                "format" => prompt.json(scanner),
                "verbosity" => prompt.word(scanner, VERBOSITIES),
                _ => prompt.member(scanner, key),
            })
    }

    /// Reads the value of `reasoning`; its known words are free.
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
        if !matches!(scanner.value()?, Value::Null) {
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

/// Parameters that the model does not see.
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
