//! Change while calls are under way: hand-overs, orderly ends, two versions on one store, new tables. Real binaries under
//! steady load, on connections that are kept; no call may fail, and the ledger must be exact afterwards.
#![cfg(test)]

mod admin;
mod bench;
mod drain;
mod handover;
mod handover_fails;
mod load;
mod reload;
mod site;
mod versions;
