//! Server-sent events of a model's answer on their way through the edge. Bytes arrive in pieces with arbitrary
//! boundaries. They leave unchanged, except for those that must be held back or removed:
//!
//! * a usage frame that the edge requested and the caller did not;
//! * an error, which may echo a key;
//! * the end of the last event, until the call is settled.
//!
//! An event therefore passes once it is complete, or in parts from [`HELD_MAX`] bytes on. Half an event is useless to a
//! caller, so an incomplete one never passes. Events that do not look like part of an answer are searched for keys.
//! Each event's JSON is scanned for the usage, which settles the call, and for the length of the text, which is used if
//! no usage arrives.
//!
//! ```text
//! pieces ─ filter ─ event (lines, fields) ─ json (paths)
//!             └ bytes that may pass
//! ```
//!
//! This crate never waits, knows no prices and cannot fail: a malformed stream passes unchanged.

mod event;
mod facts;
mod filter;
mod json;

pub use facts::{Format, USAGE_BYTES_MAX};
pub use filter::{FoundUsage, HELD_MAX, ReadUsage, Redact, StreamFilter};
