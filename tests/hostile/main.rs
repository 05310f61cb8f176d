//! One hostile tenant (decisions D70 to D72): each attack at full speed, bounded in requests, on a small store, with
//! and without a reachable archive, beside two well-behaved tenants whose calls, spends and sign-ins must not fail.
//! Most attacks without an archive are left to `make verify`.
//!
//! * [`fixture`]: the servers, the attacker's account, and the driver of an attack
//! * [`neighbours`]: the well-behaved tenants
//! * [`records`]: mass creation of records through the management API
//! * [`calls`]: calls that are denied
//! * [`runs`]: an account with many runs, ended and under way
//! * [`changes`]: changes that wait for a confirmation
//! * [`guard`]: an account within its budgets that still fills the store
//! * [`lists`]: parallel lists of large records
//! * [`arrivals`]: accounts that send very much to another one
#![cfg(test)]

mod arrivals;
mod calls;
mod changes;
mod fixture;
mod guard;
mod lists;
mod neighbours;
mod records;
mod runs;
