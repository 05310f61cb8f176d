//! Parser of request bodies: one strict pass that builds no tree and borrows everything (specification §4.4, decisions
//! D31, D34, D62). Chat completions are parsed here, other endpoints in [`responses`] and [`embeddings`], with the same
//! scanner and the same rules.
//!
//! The upstream receives the caller's exact bytes, so this parser must read the same as any other JSON parser. A body
//! that two parsers could read differently is refused, because it could hide `n` or `stream`. That is why the scanner
//! is our own: `serde_json` skips a value without checking its UTF-8, its surrogate pairs or its depth, accepts the
//! last of two equal keys, and reports the size of a string only after unescaping it into memory.
//!
//! If several things are wrong, this precedence decides which error is returned, whatever the order in the body:
//! 1. it is not one JSON object in valid UTF-8 (the first such flaw);
//! 2. its keys are ambiguous: one appears twice, or resembles a key that the gate reads (the first such key);
//! 3. `missing_model`; 4. `missing_messages`; 5. `stream_not_supported`;
//! 6. `unsupported_field`: a tool that the provider would run;
//! 7. a value is of the wrong type or out of range, in the order `stream`, `stream_options` (in a streamed call),
//!    `model`, `messages`, `n`, `max_completion_tokens`, `max_tokens`, `service_tier`.
//!
//! The first two take precedence because they make the meaning of the other keys undefined.

mod body;
mod cache_lifetime;
mod common;
pub mod embeddings;
mod error;
mod fields;
mod key;
mod keys;
mod prompt;
pub mod responses;
mod scan;
mod stream_options;
mod text;

pub use body::RequestBody;
pub use error::{BodyError, BodyErrorKind};
pub use stream_options::UsageSplice;

use domain::measured::Endpoint;
use fields::ChatFields;
use scan::Scanner;

/// Deepest nesting (decision D34); the body's own braces are level 1. Also limits the recursion.
const DEPTH_MAX: u32 = 128;
/// Maximum number of top-level keys; OpenAI documents about 40 parameters. Also limits the search for duplicates.
const KEYS_MAX: usize = 256;
/// Longest top-level key; OpenAI's longest parameter has 22 bytes. Also limits the search for duplicates.
const KEY_BYTES_MAX: usize = 128;
/// Assumed completion tokens if the caller sets no limit (specification, Constants).
pub(crate) const COMPLETION_TOKENS_DEFAULT: u64 = 1024;
/// Largest `max_tokens` and `max_completion_tokens` (decision D62).
pub const COMPLETION_TOKENS_MAX: u64 = 10_000_000;
/// Largest `n` (decision D34).
pub const N_MAX: u64 = 128;
/// Maximum number of inputs of an embeddings call, as in OpenAI's API.
pub const INPUTS_MAX: usize = 2_048;
/// Longest `model`, in bytes.
pub const MODEL_BYTES_MAX: usize = 256;
/// Longest `service_tier`, in bytes.
pub const SERVICE_TIER_BYTES_MAX: usize = 64;

/// Parses the body of a call of any endpoint. `streaming`: whether a stream may be requested; [`RequestBody::stream`]
/// says whether it is, and [`RequestBody::usage_splice`] returns the change that it then needs.
///
/// # Errors
/// [`BodyError`], by the precedence of the endpoint.
pub fn parse_call(endpoint: Endpoint, streaming: bool, bytes: &[u8]) -> Result<RequestBody<'_>, BodyError> {
    let body = match endpoint {
        Endpoint::Chat => parse_chat(bytes, streaming),
        Endpoint::Responses => responses::parse(bytes),
        Endpoint::Embeddings => embeddings::parse(bytes),
    }?;
    body.check_stream(streaming)?;
    Ok(body)
}

fn parse_chat(bytes: &[u8], streaming: bool) -> Result<RequestBody<'_>, BodyError> {
    let mut scanner = top(bytes)?;
    let mut fields = ChatFields::new(scanner.at());
    let read = scanner.object(|scanner, key| fields.read(scanner, key));
    read.and_then(|()| scanner.finish())
        .and_then(|()| fields.judge(streaming))
}

/// Returns a scanner at the opening brace of the body.
fn top(bytes: &[u8]) -> error::Scan<Scanner<'_>> {
    let text = utf8(bytes)?;
    if text.starts_with('\u{FEFF}') {
        return Err(BodyError::ByteOrderMark);
    }
    let scanner = Scanner::new(text);
    match scanner.peek() {
        Some(b'{') => Ok(scanner),
        Some(_) => Err(BodyError::NotAnObject),
        None => Err(BodyError::Empty),
    }
}

/// Validates the body as UTF-8. Only on failure does the standard library find the offset: it takes ten times as long
/// for scripts other than Latin.
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
