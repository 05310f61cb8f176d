//! Records and reports (audit trail, intents, runs, archive, statistics), through the real edge and management API.
#![cfg(test)]

#[path = "../management/fixture.rs"]
mod fixture;

mod agreement;
mod archive;
mod audit;
mod audit_writer;
mod calls;
mod checkpoints;
mod decisions;
mod dry_run;
mod file_limit;
mod full_store;
mod insight;
mod intents;
mod price_tables;
mod rate_windows;
mod recompute;
mod record_fixture;
mod runs;
mod sealers;
mod tamper;
mod trail_fixture;
mod verify;
