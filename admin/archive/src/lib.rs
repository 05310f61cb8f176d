//! What left the store: where it lies, what it looks like there, and how it is read again.
//!
//! Readers trust the store's descriptions of segments, not the archive: a segment or manifest that is not the one that was
//! archived is an error.

mod handle;
pub mod intents;
pub mod place;
pub mod segment;
pub mod write;

pub use handle::Archive;
