//! What is recorded and told of it, through the real edge and the real management API.
#![cfg(test)]

#[path = "../management/world.rs"]
mod world;

mod agreement;
mod archive;
mod audit;
mod checkpoints;
mod decisions;
mod dry_run;
mod insight;
mod intents;
mod office;
mod rate_windows;
mod runs;
mod scribe;
mod sealers;
mod stage;
mod tamper;
mod verify;
