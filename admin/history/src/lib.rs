//! Audit trails and intents for readers: complete and in order, whether they are in the store or in the archive.
//!
//! [`trail`] reads audit entries and their [calls](trail::calls), [`intents`] reads payout intents, and
//! [`export`](mod@export) writes a trail as JSON Lines. Uses the store and the archive. Contains no HTTP.

pub mod export;
pub mod intents;
pub mod trail;
