//! `stream_options` of a chat-completions body, and the change that asks the provider for usage.
//!
//! Usage is what a stream is settled by. A caller who did not ask for it gets none, so the edge asks in the caller's
//! place: it inserts or replaces the bytes given here, and all others stay the caller's.

use super::error::{BodyError, Scan};
use super::keys::Keys;
use super::scan::{Scanner, Value};
use std::ops::Range;

/// The key that a careless parser must not see where this one does not.
pub(super) const DECISIVE: &[&str] = &["include_usage"];

/// Bytes to put into a body, and where.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UsageSplice {
    /// The bytes of the body that are replaced; empty where the text is inserted.
    pub at: Range<usize>,
    /// What stands there instead.
    pub text: &'static str,
}

impl UsageSplice {
    /// Returns the three pieces whose concatenation is the changed body: before, the new text, behind. `body` must be
    /// the one that was parsed; of a shorter one nothing is left out but what it does not have.
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

/// The value of `stream_options`.
#[derive(Debug)]
pub(super) struct StreamOptions {
    /// `None` where usage is asked for.
    splice: Option<UsageSplice>,
    /// What is wrong with it. It is no error where no stream is asked for.
    flaw: Option<BodyError>,
}

impl StreamOptions {
    /// Absent from a body whose first member starts at `first`.
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
            Value::Null => Self::spliced(start..scanner.at(), r#"{"include_usage":true}"#),
            _ => Self {
                splice: None,
                flaw: Some(BodyError::BadStreamOptions),
            },
        })
    }

    /// The change that asks for usage, if one is needed.
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
            Some((Value::Bool(true), _)) => Self {
                splice: None,
                flaw: None,
            },
            Some((Value::Bool(false) | Value::Null, at)) => Self::spliced(at, "true"),
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

/// The error for ambiguous keys inside of `stream_options`.
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
