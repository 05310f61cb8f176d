//! Changes under load: hand-overs, graceful shutdown, two versions on one store, reloaded tables. Real binaries with
//! kept connections; no call may fail, and the ledger must be exact afterwards.
#![cfg(test)]

mod admin;
mod bench;
mod drain;
mod fixture;
mod handover;
mod handover_fails;
mod load;
mod reload;
mod streams;
mod versions;
