//! The body of `POST /v1/embeddings`, by the rules of the chat-completions body. There is no answer to hold for, only
//! the input: texts count their bytes and each is one part, token ids count one token each.
//!
//! When several things are wrong, the answer is fixed:
//! 1. and 2. as for chat completions; 3. `missing_model`; 4. `missing_input`; 5. `stream_not_supported`;
//! 6. a value is of the wrong type or out of range, in the order `stream`, `model`, `input`, `service_tier`.

use crate::body::RequestBody;
use crate::common::Common;
use crate::error::{BodyError, Scan};
use crate::prompt::Prompt;
use crate::scan::{Scanner, Value};
use crate::text::Text;
use crate::{INPUTS_MAX, top};
use domain::price::CallShape;

/// Keys whose value decides something; nothing that a careless parser could take for one of them is let through.
pub(super) const DECISIVE: &[&str] = &["model", "input", "stream", "service_tier"];

/// Reads a request body of `POST /v1/embeddings`.
///
/// # Errors
/// [`BodyError`] says what is wrong with it, in the precedence given in the head of this file.
pub fn parse(bytes: &[u8]) -> Result<RequestBody<'_>, BodyError> {
    let mut scanner = top(bytes)?;
    let mut fields = Fields {
        common: Common::new(DECISIVE),
        input: Input::default(),
        prompt: Prompt::default(),
    };
    let read = scanner.object(|scanner, key| fields.read(scanner, key));
    read.and_then(|()| scanner.finish()).and_then(|()| fields.judge())
}

/// The top level, as far as parsed.
#[derive(Debug)]
struct Fields<'a> {
    common: Common<'a>,
    input: Input,
    prompt: Prompt,
}

/// What the elements of `input` are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Text,
    Token,
    Tokens,
}

/// The value of `input`.
#[derive(Debug, Default)]
struct Input {
    /// Elements of the array; 1 for a text alone.
    elements: usize,
    /// What the first element is.
    kind: Option<Kind>,
    /// The first element that is another one, or none at all.
    odd: Option<usize>,
    token_ids: u64,
}

impl<'a> Fields<'a> {
    /// Reads one member of the body.
    fn read(&mut self, scanner: &mut Scanner<'a>, key: Text<'a>) -> Scan {
        let name = key.decode()?;
        match &*name {
            "model" => self.common.model = Some(scanner.value()?),
            "stream" => self.common.stream = Some(scanner.value()?),
            "service_tier" => self.common.service_tier = Some(scanner.value()?),
            "input" => self.input.read(scanner, &mut self.prompt)?,
            "dimensions" | "encoding_format" | "user" => scanner.skip()?,
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
            counts: CallShape {
                token_ids: self.input.token_ids,
                ..self.prompt.counts()
            },
            choice: self.common.choice,
            limit_key: "",
            splice: None,
        })
    }
}

impl Input {
    /// Reads the value at this position; one that is neither a text nor an array leaves the count at 0.
    fn read(&mut self, scanner: &mut Scanner<'_>, prompt: &mut Prompt) -> Scan {
        if scanner.peek() == Some(b'[') {
            return scanner.array(|scanner| self.element(scanner, prompt));
        }
        if let Value::Text(text) = scanner.value()? {
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
            Some(b'[') => self.tokens(scanner)?.then_some(Kind::Tokens),
            _ => match scanner.value()? {
                Value::Text(text) => {
                    prompt.parts += 1;
                    prompt.bytes += text.bytes;
                    Some(Kind::Text)
                }
                value => self.token(value).then_some(Kind::Token),
            },
        };
        let first = *self.kind.get_or_insert(kind.unwrap_or(Kind::Text));
        if kind != Some(first) {
            self.odd.get_or_insert(index);
        }
        Ok(())
    }

    /// Reads an array of token ids; false if something else is in it.
    fn tokens(&mut self, scanner: &mut Scanner<'_>) -> Scan<bool> {
        let mut all = true;
        scanner.array(|scanner| {
            let value = scanner.value()?;
            all &= self.token(value);
            Ok(())
        })?;
        Ok(all)
    }

    /// Counts a token id; false if it is none. Only digits are accepted: parsers disagree about `1.0` and `1e0`.
    fn token(&mut self, value: Value<'_>) -> bool {
        let is_token = matches!(value, Value::Number(number) if number.parse::<u32>().is_ok());
        self.token_ids += u64::from(is_token);
        is_token
    }

    /// Refuses elements that differ, and too many of them. A flat array of token ids is one input, whatever its length.
    fn check(&self) -> Scan {
        if let Some(index) = self.odd {
            return Err(BodyError::BadInput { index });
        }
        if self.kind != Some(Kind::Token) && self.elements > INPUTS_MAX {
            return Err(BodyError::TooManyInputs);
        }
        Ok(())
    }
}
