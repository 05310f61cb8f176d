//! The chat-completions request body as the gate reads it: one strict pass that builds no tree and borrows
//! everything (specification §4.4, decisions D31, D34, D62).
//!
//! The upstream gets the caller's exact bytes, so what is read here must be what any other JSON parser would read:
//! a body that two parsers could read differently is refused, because it could hide `n` or `stream`. That is
//! why the scanner is our own. `serde_json` skips a value without checking its UTF-8, its surrogate pairs or its
//! depth, lets the last of two equal keys win, and gives no size of a string before it is unescaped into memory.
//!
//! When several things are wrong, the answer is fixed, whatever their order in the body:
//! 1. it is not one JSON object in valid UTF-8 (the first such flaw);
//! 2. its keys are ambiguous: one appears twice, or comes close to a key that the gate reads (the first such key);
//! 3. `missing_model`; 4. `missing_messages`; 5. `stream_not_supported`;
//! 6. a value is of the wrong type or out of range, in the order `stream`, `model`, `messages`, `n`,
//!    `max_completion_tokens`, `max_tokens`, `service_tier`.
//!
//! The first two come first because they leave the meaning of the other keys undefined.

mod error;
mod fields;
mod key;
mod prompt;
mod scan;
mod text;

pub use error::BodyError;

use domain::price::CallShape;
use fields::Fields;
use scan::Scanner;
use std::borrow::Cow;

/// Deepest nesting (decision D34); the body's own braces are level 1. It bounds the recursion as well.
const DEPTH_MAX: u32 = 128;
/// Most top-level keys; OpenAI documents about 40 parameters. It bounds the search for duplicates.
const KEYS_MAX: usize = 256;
/// Longest top-level key; OpenAI's longest parameter has 22 bytes. It bounds the search for duplicates.
const KEY_BYTES_MAX: usize = 128;
/// Completion tokens allowed for when the caller sets no limit (specification, Constants).
pub const COMPLETION_TOKENS_DEFAULT: u64 = 1024;
/// Largest `max_tokens` and `max_completion_tokens` (decision D62).
pub const COMPLETION_TOKENS_MAX: u64 = 10_000_000;
/// Largest `n` (decision D34).
pub const N_MAX: u64 = 128;
/// Longest `model`, in bytes.
pub const MODEL_BYTES_MAX: usize = 256;
/// Longest `service_tier`, in bytes.
pub const SERVICE_TIER_BYTES_MAX: usize = 64;

/// What the gate needs to know of a chat-completions body; everything borrows from it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChatBody<'a> {
    /// The model, unescaped: 1 to [`MODEL_BYTES_MAX`] bytes without control characters.
    pub model: Cow<'a, str>,
    /// Requested service tier, unless absent or `null`.
    pub service_tier: Option<Cow<'a, str>>,
    /// UTF-8 bytes of everything billed as prompt text (decision D31), those of `prediction` included.
    pub prompt_bytes: u64,
    /// Elements of `messages`, and tool calls in them: the provider frames each (decision D68).
    pub framed: u64,
    /// Elements of `content` arrays, empty and unknown ones included, those of `prediction` too (decision D68).
    pub content_parts: u64,
    /// Of [`prompt_bytes`](Self::prompt_bytes): those of `prediction`, which can be billed as output (decision D68).
    pub predicted_bytes: u64,
    /// Of [`content_parts`](Self::content_parts): those of `prediction`.
    pub predicted_parts: u64,
    /// Image parts in the messages.
    pub image_parts: u64,
    /// Audio parts in the messages, earlier audio answers that they refer to included.
    pub audio_parts: u64,
    /// File parts in the messages.
    pub file_parts: u64,
    /// `max_completion_tokens`, else `max_tokens`, else [`COMPLETION_TOKENS_DEFAULT`].
    pub completion_tokens: u64,
    /// Neither of the two limits was set.
    pub unlimited: bool,
    /// Requested completions: 1 to [`N_MAX`].
    pub n: u64,
    /// Whether audio is requested: `modalities` has `audio`, or `audio` is set.
    pub audio_output: bool,
    /// Whether a web search is requested: `web_search_options` is set.
    pub web_search: bool,
}

impl ChatBody<'_> {
    /// Checks that the answer has a limit, where one is `required` (`proxy.require_token_limit`).
    ///
    /// # Errors
    /// [`BodyError::MissingTokenLimit`].
    pub const fn check_token_limit(&self, required: bool) -> Result<(), BodyError> {
        if required && self.unlimited {
            return Err(BodyError::MissingTokenLimit);
        }
        Ok(())
    }

    /// What the price of the call depends on.
    #[must_use]
    pub fn shape(&self) -> CallShape<'_> {
        CallShape {
            model: &self.model,
            service_tier: self.service_tier.as_deref(),
            prompt_bytes: self.prompt_bytes,
            framed: self.framed,
            content_parts: self.content_parts,
            predicted_bytes: self.predicted_bytes,
            predicted_parts: self.predicted_parts,
            image_parts: self.image_parts,
            audio_parts: self.audio_parts,
            file_parts: self.file_parts,
            completion_tokens: self.completion_tokens,
            unlimited: self.unlimited,
            n: self.n,
            audio_output: self.audio_output,
            web_search: self.web_search,
        }
    }
}

/// Reads a request body.
///
/// # Errors
/// [`BodyError`] says what is wrong with it, in the precedence given in the head of this file.
pub fn parse(bytes: &[u8]) -> Result<ChatBody<'_>, BodyError> {
    let text = utf8(bytes)?;
    if text.starts_with('\u{FEFF}') {
        return Err(BodyError::ByteOrderMark);
    }
    let mut scanner = Scanner::new(text);
    match scanner.peek() {
        Some(b'{') => {}
        Some(_) => return Err(BodyError::NotAnObject),
        None => return Err(BodyError::Empty),
    }
    let mut fields = Fields::default();
    let read = scanner.object(|scanner, key| fields.read(scanner, key));
    read.and_then(|()| scanner.finish()).and_then(|()| fields.judge())
}

/// Validates the body as UTF-8. On failure the standard library finds the offset; it takes ten times as long for
/// scripts other than Latin.
fn utf8(bytes: &[u8]) -> Result<&str, BodyError> {
    simdutf8::basic::from_utf8(bytes).or_else(|_| {
        std::str::from_utf8(bytes).map_err(|error| BodyError::NotUtf8 {
            at: error.valid_up_to(),
        })
    })
}

#[cfg(test)]
mod tests;
#[cfg(test)]
mod tokens;
