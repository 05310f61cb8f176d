//! A few hundred calls, with what came back of each: status, headers, body and log line, held against the recordings
//! beside this file. A change that should not be seen from outside leaves them as they are; one that should shows in
//! the review what callers and operators will see.
//!
//! * [`edge`]: every approval, denial and refusal of the edge
//! * [`management`]: every route of the management API: without a key, with too weak a key, with a body that is none,
//!   with a query that it does not know, and with the document's own example, in an order in which most of them succeed
//! * [`recording`]: how a call is written down, with names in the place of what differs from run to run
//!
//! `TOLLGATE_REWRITE_DOCS=1 cargo test --workspace --test recorded` records anew.
#![cfg(test)]

mod edge;
mod management;
mod recording;
