//! One tenant against the others (decisions D70 to D72): each attack at full speed, bounded by its number of requests, on a small
//! store, with the archive within reach and not, beside two well-behaved tenants whose calls, spends and log-ins never fail.
//!
//! * [`fixture`]: the servers, the attacker's account, and how an attack is driven
//! * [`neighbours`]: the well-behaved tenants
//! * [`records`]: records made through the management API: spends with large metadata, agents, escrows, keys, sessions
//! * [`calls`]: calls that are denied
//! * [`guard`]: an account within all of its budgets that fills the store all the same
#![cfg(test)]

mod calls;
mod fixture;
mod guard;
mod neighbours;
mod records;
