//! The management API through the real `tollgate-admin serve` on a real Redis.
//!
//! * [`world`]: a server with its store, accounts and API keys
//! * [`matrix`]: every row of the route tables, by everybody: keys, sessions, forged calls
//! * [`sweep`]: from another account and mode, paths that do not exist, headers and addresses
//! * [`agents`], [`policies`], [`provider_keys`], [`virtual_keys`]: each resource, bodies and errors to the letter
//! * [`race`]: many callers at once
//! * [`server`]: the process: store faults, signals, limits, logs, metrics, the reaper
#![cfg(test)]

mod agents;
mod matrix;
mod policies;
mod provider_keys;
mod race;
mod server;
mod sweep;
mod virtual_keys;
mod world;
