//! A few hundred calls with their outcomes: status, headers, body and log lines are compared with the recordings beside
//! this file. A change without external effects leaves the recordings as they are; in any other, the review shows its
//! effects on callers and operators.
//!
//! * [`edge`]: every approval, denial and refusal of the edge
//! * [`optional_endpoints`]: streams, responses and embeddings
//! * [`management`]: every route of the management API with the document's own example; three of them without a key,
//!   with too weak a key, with an invalid body and with an unknown query parameter; and a day's work, most of which
//!   succeeds
//! * [`recording`]: the form of a recorded call, with placeholders for values that differ from run to run
//!
//! `TOLLGATE_REWRITE_DOCS=1 cargo test --workspace --test recorded` records anew.
#![cfg(test)]

mod edge;
mod management;
mod optional_endpoints;
mod recording;
