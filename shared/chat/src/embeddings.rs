//! The body of `POST /v1/embeddings`, by the rules of the chat-completions body. Only the input has a cost, not the
//! answer: each text counts its bytes and one part, and token ids count one token each.
//!
//! If several things are wrong, this precedence decides which error is returned:
//! 1. and 2. as for chat completions; 3. `missing_model`; 4. `missing_input`; 5. `stream_not_supported`;
//! 6. a value is of the wrong type or out of range, in the order `stream`, `model`, `input`, `service_tier`.

use crate::body::RequestBody;
use crate::common::Common;
use crate::error::{BodyError, Scan};
use crate::prompt::Prompt;
use crate::scan::{BodyValue, Scanner};
use crate::text::Text;
use crate::{INPUTS_MAX, top};
use domain::price::CallShape;

/// Keys whose value decides something. A key that a lenient parser could take for one of them is refused.
pub(super) const DECISIVE: &[&str] = &["model", "input", "stream", "service_tier"];

/// Reads a request body of `POST /v1/embeddings`.
///
/// # Errors
/// [`BodyError`], by the precedence in the head of this file.
pub fn parse(bytes: &[u8]) -> Result<RequestBody<'_>, BodyError> {
    let mut scanner = top(bytes)?;
    let mut fields = EmbeddingsFields {
        common: Common::new(DECISIVE),
        input: Input::default(),
        prompt: Prompt::default(),
    };
    let read = scanner.object(|scanner, key| fields.read(scanner, key));
    read.and_then(|()| scanner.finish()).and_then(|()| fields.judge())
}

/// The top level, as far as it has been parsed.
#[derive(Debug)]
struct EmbeddingsFields<'a> {
    common: Common<'a>,
    input: Input,
    prompt: Prompt,
}

/// Type of the elements of `input`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum InputKind {
    Text,
    Token,
    Tokens,
}

#[derive(Debug, Default)]
struct Input {
    /// Number of elements of the array; 1 for a single text.
    elements: usize,
    /// Type of the first element.
    kind: Option<InputKind>,
    /// Index of the first element with another type or an invalid one.
    odd: Option<usize>,
    token_ids: u64,
}

impl<'a> EmbeddingsFields<'a> {
    /// Reads one member of the body.
    fn read(&mut self, scanner: &mut Scanner<'a>, key: Text<'a>) -> Scan {
        let name = key.decode()?;
        match &*name {
            "model" => self.common.model = Some(scanner.value()?),
            "stream" => self.common.stream = Some(scanner.value()?),
            "service_tier" => self.common.service_tier = Some(scanner.value()?),
            "input" => self.input.read(scanner, &mut self.prompt)?,
            "dimensions" | "encoding_format" | "user" => scanner.skip()?,
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
    fn judge(self) -> Scan<RequestBody<'a>> {
        self.common.check_model()?;
        if self.input.elements == 0 {
            return Err(BodyError::MissingInput);
        }
        if self.common.stream()? {
            return Err(BodyError::StreamNotSupported);
        }
        let model = self.common.model()?;
        self.input.check()?;
        Ok(RequestBody {
            model,
            service_tier: self.common.service_tier()?,
            stream: false,
            shape: CallShape {
                token_ids: self.input.token_ids,
                ..self.prompt.shape()
            },
            choice: self.common.choice,
            limit_key: "",
            splice: None,
        })
    }
}

impl Input {
    /// Reads the value at this position. A value that is neither a text nor an array leaves the count at 0.
    fn read(&mut self, scanner: &mut Scanner<'_>, prompt: &mut Prompt) -> Scan {
        if scanner.peek() == Some(b'[') {
            return scanner.array(|scanner| self.element(scanner, prompt));
        }
        if let BodyValue::Text(text) = scanner.value()? {
            self.elements = usize::from(text.bytes > 0);
            prompt.parts += 1;
            prompt.bytes += text.bytes;
        }
        Ok(())
    }

    /// Reads one element of the array.
    fn element(&mut self, scanner: &mut Scanner<'_>, prompt: &mut Prompt) -> Scan {
        let index = self.elements;
        self.elements += 1;
        let kind = match scanner.peek() {
            Some(b'[') => self.tokens(scanner)?.then_some(InputKind::Tokens),
            _ => match scanner.value()? {
                BodyValue::Text(text) => {
                    prompt.parts += 1;
                    prompt.bytes += text.bytes;
                    Some(InputKind::Text)
                }
                value => self.token(value).then_some(InputKind::Token),
            },
        };
        let first = *self.kind.get_or_insert(kind.unwrap_or(InputKind::Text));
        if kind != Some(first) {
            self.odd.get_or_insert(index);
        }
        Ok(())
    }

    /// Reads an array of token ids; false if it contains anything else, or nothing.
    fn tokens(&mut self, scanner: &mut Scanner<'_>) -> Scan<bool> {
        let (before, mut all) = (self.token_ids, true);
        scanner.array(|scanner| {
            let value = scanner.value()?;
            all &= self.token(value);
            Ok(())
        })?;
        Ok(all && self.token_ids > before)
    }

    /// Counts a token id; false if the value is not one. Only digits are accepted: parsers disagree about `1.0` and
    /// `1e0`.
    fn token(&mut self, value: BodyValue<'_>) -> bool {
        let is_token = matches!(value, BodyValue::Number(number) if number.parse::<u32>().is_ok());
        self.token_ids += u64::from(is_token);
        is_token
    }

    /// Refuses elements of different types, and too many elements. A flat array of token ids is one input of any
    /// length.
    fn check(&self) -> Scan {
        if let Some(index) = self.odd {
            return Err(BodyError::BadInput { index });
        }
        if self.kind != Some(InputKind::Token) && self.elements > INPUTS_MAX {
            return Err(BodyError::TooManyInputs);
        }
        Ok(())
    }
}
