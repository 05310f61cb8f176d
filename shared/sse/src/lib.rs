//! Server-sent events of a model's answer, as they pass through the edge. Bytes come in pieces that end anywhere; they
//! leave unchanged, except for what must not pass yet or not at all:
//!
//! * the usage frame that the edge asked for and the caller did not;
//! * an error, which may echo a key;
//! * the end of the last event, until the call is settled.
//!
//! An event therefore passes when all of it came, or in parts from [`HELD_MAX`] bytes on; half an event is of no use to
//! a caller, and one that breaks off never passes. What is no part of an answer by its form is searched for keys. Each
//! event's JSON is scanned for the usage, which settles the call, and for the length of the text, which stands in for a
//! usage that never comes.
//!
//! ```text
//! pieces ─ filter ─ event (lines, fields) ─ json (paths)
//!            └ what may pass
//! ```
//!
//! Nothing here waits, knows a price, or fails: a stream that makes no sense passes as it is.

mod event;
mod facts;
mod filter;
mod json;

pub use facts::Format;
pub use filter::{Filter, HELD_MAX, IsUsage, Redact};
