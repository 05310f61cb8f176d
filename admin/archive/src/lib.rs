//! The archive of old audit entries and intents: a directory or bucket, the segments in it, and reading them.
//!
//! [`Archive`] is the handle that requests and workers share, [`location`] the directory or bucket, [`segment`] and
//! [`intents`] the formats, [`write`](mod@write) moves entries, `manifests` proves manifests and makes them again, and
//! `price_tables` keeps the tables by which charges are recomputed.
//! Readers trust the store's descriptions of segments, not the archive: a segment or manifest that is not the one that
//! was archived is an error.
//!
//! Uses the store and object storage. Contains no HTTP of the management API.

mod handle;
mod identity;
pub mod intents;
pub mod location;
mod manifests;
mod price_tables;
pub mod segment;
pub mod write;

pub use handle::Archive;
