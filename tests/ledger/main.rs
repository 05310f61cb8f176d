//! The scripts of calls on a real Redis, compared with an independent model.
//!
//! * [`model`]: expected state; [`snapshot`]: the store's state; [`fixture`]: both side by side
//! * [`random`] and [`directed`]: sequences of actions; after each one the whole store must equal the model
//! * [`precedence`]: all pairs of failing conditions
//! * [`race`]: concurrent callers: exactly as many approvals as the limit allows
//! * [`mutants`]: changed scripts, each of which the checks above must notice
//! * [`servers`]: the scripts on each kind of store, and on stores that are full or whose replies are lost
#![cfg(test)]

mod directed;
mod fixture;
mod model;
mod mutants;
mod precedence;
mod race;
mod random;
mod scripts;
mod servers;
mod snapshot;
