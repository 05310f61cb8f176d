//! Audit trails and intents as readers see them: complete and in order, wherever the store or the archive keeps them.
//!
//! [`trail`] reads audit entries and the [calls](trail::calls) that they are about, [`intents`] payout intents;
//! [`export`](mod@export) writes a trail as JSON Lines. Uses the store and the archive. Knows no HTTP.

pub mod export;
pub mod intents;
pub mod trail;
