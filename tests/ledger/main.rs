//! The ledger's scripts on a real Redis, against a model that is written without them.
//!
//! * [`model`]: what should happen; [`snapshot`]: what the store holds; [`world`]: both side by side
//! * [`random`] and [`directed`]: sequences of actions; after each one the whole store must be as the model says
//! * [`precedence`]: all combinations of failing conditions
//! * [`race`]: many callers at once, exactly as many approvals as the limit allows
//! * [`mutants`]: changed scripts, each of which the checks above must notice
//! * [`servers`]: the same scripts on stores that are full, frozen, restarted, wiped, read-only, clustered
#![cfg(test)]

mod directed;
mod lua;
mod model;
mod mutants;
mod precedence;
mod race;
mod random;
mod scripts;
mod servers;
mod snapshot;
mod world;
