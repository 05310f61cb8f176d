//! The management API through the real `tollgate-admin serve` on a real Redis.
//!
//! * [`world`]: a server with its store, accounts and API keys
//! * [`matrix`]: every row of the route tables, by everybody: keys, sessions, forged calls
//! * [`sweep`]: from another account and mode, paths that do not exist, headers and addresses
//! * [`agents`], [`deletion`], [`policies`], [`provider_keys`], [`virtual_keys`]: each resource, bodies and errors to the letter
//! * [`limits`], [`blocked`], [`order`]: how many requests a key may make, from where, and which refusal comes first
//! * [`budgets`]: how many records an account can make the store keep
//! * [`lost_writes`]: an account that lost a change is held until it is accepted
//! * [`technical`]: how many requests test-mode keys and sessions may make, on every plan
//! * [`scripts`]: each small change of the scripts behind these is noticed
//! * [`race`]: many callers at once
//! * [`connections`]: how many there may be, and what a client may make a connection wait for or hold
//! * [`server`]: the process: store faults, signals, limits, logs, metrics, the reaper
#![cfg(test)]

mod agents;
mod blocked;
mod budgets;
mod connections;
mod deletion;
mod limits;
mod lost_writes;
#[path = "../ledger/lua.rs"]
mod lua;
mod matrix;
mod noticed;
mod order;
mod policies;
mod provider_keys;
mod race;
mod scripts;
mod server;
mod sweep;
mod technical;
mod virtual_keys;
mod world;
