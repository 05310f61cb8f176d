//! `stream_options` of a chat-completions body, and the change that requests usage from the provider.
//!
//! Streams are settled by their usage, which the provider sends only on request. If the caller does not request it, the
//! edge does: it inserts or replaces the bytes described here, and leaves all others unchanged.

use super::error::{BodyError, Scan};
use super::keys::Keys;
use super::scan::{BodyValue, Scanner};
use std::ops::Range;

/// The key that a lenient parser must not find where this one does not.
pub(super) const DECISIVE: &[&str] = &["include_usage"];

/// Bytes to put into a body, and where.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UsageSplice {
    /// The replaced bytes of the body; an empty range for an insertion.
    pub at: Range<usize>,
    /// New JSON text in place of these bytes.
    pub text: &'static str,
}

impl UsageSplice {
    /// Returns the three pieces whose concatenation is the changed body: before, the new text, after. `body` must be
    /// the one that was parsed; a shorter one yields all bytes that it has.
    pub fn pieces<'b>(&'b self, body: &'b [u8]) -> [&'b [u8]; 3] {
        let before = body.get(..self.at.start).unwrap_or(body);
        let behind = body.get(self.at.end..).unwrap_or_default();
        [before, self.text.as_bytes(), behind]
    }

    /// Returns the changed body.
    pub fn apply(&self, body: &[u8]) -> Vec<u8> {
        self.pieces(body).concat()
    }
}

#[derive(Debug)]
pub(super) struct StreamOptions {
    /// `None` if usage is requested.
    splice: Option<UsageSplice>,
    /// The error of this value. It counts only if a stream is requested.
    flaw: Option<BodyError>,
}

impl StreamOptions {
    /// Creates the options of a body without `stream_options` whose first member starts at `first`.
    pub(super) const fn absent(first: usize) -> Self {
        Self::spliced(first..first, r#""stream_options":{"include_usage":true},"#)
    }

    /// Reads the value at this position.
    pub(super) fn read(scanner: &mut Scanner<'_>) -> Scan<Self> {
        let start = scanner.at();
        if scanner.peek() == Some(b'{') {
            return Self::read_object(scanner, start + 1);
        }
        Ok(match scanner.value()? {
            BodyValue::Null => Self::spliced(start..scanner.at(), r#"{"include_usage":true}"#),
            _ => Self {
                splice: None,
                flaw: Some(BodyError::BadStreamOptions),
            },
        })
    }

    /// Returns the change that requests usage, if one is needed.
    pub(super) fn judge(self) -> Scan<Option<UsageSplice>> {
        self.flaw.map_or(Ok(self.splice), Err)
    }

    /// Reads an object whose members start at `first`.
    fn read_object(scanner: &mut Scanner<'_>, first: usize) -> Scan<Self> {
        let mut keys = Keys::new(DECISIVE);
        let mut is_empty = true;
        let mut usage = None;
        scanner.object(|scanner, key| {
            is_empty = false;
            let name = key.decode()?;
            let at = scanner.at();
            let value = scanner.value()?;
            if name == "include_usage" {
                usage = Some((value, at..scanner.at()));
            }
            keys.remember(name);
            Ok(())
        })?;
        let options = match usage {
            None if is_empty => Self::spliced(first..first, r#""include_usage":true"#),
            None => Self::spliced(first..first, r#""include_usage":true,"#),
            Some((BodyValue::Bool(true), _)) => Self {
                splice: None,
                flaw: None,
            },
            Some((BodyValue::Bool(false) | BodyValue::Null, at)) => Self::spliced(at, "true"),
            Some(_) => Self {
                splice: None,
                flaw: Some(BodyError::IncludeUsageNotBoolean),
            },
        };
        let flaw = keys.ambiguity().map(flaw_of).or(options.flaw);
        Ok(Self { flaw, ..options })
    }

    const fn spliced(at: Range<usize>, text: &'static str) -> Self {
        Self {
            splice: Some(UsageSplice { at, text }),
            flaw: None,
        }
    }
}

/// Returns the error for ambiguous keys in `stream_options`.
fn flaw_of(ambiguity: &BodyError) -> BodyError {
    match ambiguity {
        BodyError::DuplicateKey { key } => BodyError::DuplicateKey {
            key: format!("stream_options.{key}"),
        },
        BodyError::NearKey { key, wanted } => BodyError::NearKey {
            key: format!("stream_options.{key}"),
            wanted,
        },
        _ => BodyError::BadStreamOptions,
    }
}
