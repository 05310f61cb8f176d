//! The management API through the real `tollgate-admin serve` on a real Redis.
//!
//! * [`world`]: a server with its store, accounts and API keys
//! * [`sweep`]: every row of the route table without a key, with the wrong key, from another account and mode
//! * [`agents`], [`policies`], [`provider_keys`], [`virtual_keys`]: each resource, bodies and errors to the letter
//! * [`limits`], [`blocked`], [`order`]: how many requests a key may make, from where, and which refusal comes first
//! * [`scripts`]: each small change of the scripts behind these is noticed
//! * [`race`]: many callers at once
//! * [`server`]: the process: store faults, signals, limits, logs, metrics, the reaper
#![cfg(test)]

mod agents;
mod blocked;
mod limits;
#[path = "../ledger/lua.rs"]
mod lua;
mod order;
mod policies;
mod provider_keys;
mod race;
mod scripts;
mod server;
mod sweep;
mod virtual_keys;
mod world;
