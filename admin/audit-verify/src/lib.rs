//! Verification of audit trails: recomputes every hash, checks every link and number, and compares the end with a
//! checkpoint that an attacker who truncates the trail cannot change (decisions D25, D50).
//!
//! [`online()`] verifies a trail in the store and the archive, [`file`](mod@file) verifies an export without a store,
//! and [`checkpoint`] signs and reads checkpoints. Uses the readers of `history`. Contains no HTTP.

mod broken;
pub mod checkpoint;
mod end;
pub mod file;
mod json;
mod lists;
mod manifests;
mod online;
mod slots;
mod verdict;
mod verifier;

pub use broken::Broken;
pub use end::{KnownEnd, Source, young};
pub use online::online;
pub use slots::{Busy, VerificationSlot, VerificationSlots};
pub use verdict::Verdict;
pub use verifier::ChainVerifier;
