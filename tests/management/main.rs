//! The management API through the real `tollgate-admin serve` on a real Redis.
//!
//! * [`fixture`]: a server with its store, accounts and API keys
//! * [`matrix`]: every row of the route tables, by every kind of caller: keys, sessions, forged calls
//! * [`sweep`]: access from another account and mode, unknown paths, headers and addresses
//! * [`agents`], [`deletion`], [`policies`], [`provider_keys`], [`virtual_keys`]: each resource, bodies and errors to
//!   the letter
//! * [`limits`], [`blocked`], [`order`]: rate limits, blocked addresses, and the precedence of refusals
//! * [`budgets`]: budgets of records
//! * [`store_clock`]: a store whose clock is wrong by days
//! * [`lost_writes`]: an account that lost a change is refused until it is accepted
//! * [`request_limits`]: technical limits of test-mode keys and sessions, on every plan
//! * [`scripts`]: the scripts behind these; their checks detect every mutant
//! * [`race`]: many callers at once
//! * [`connections`]: limits on their number, their waiting and their memory
//! * [`memory`]: the release of the memory of slow and large heads and bodies
//! * [`server`]: the process: store faults, signals, limits, logs, metrics, the reaper
#![cfg(test)]

mod agents;
mod blocked;
mod budgets;
mod connections;
mod deletion;
mod fixture;
mod limits;
mod lost_writes;
mod matrix;
mod memory;
mod order;
mod policies;
mod provider_keys;
mod race;
mod request_limits;
mod scripts;
mod server;
mod store_clock;
mod sweep;
mod virtual_keys;
