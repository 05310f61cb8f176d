//! Money under faults and concurrency: everything that could create, lose or double an amount, on real servers.
//!
//! * [`fixture`]: two accounts with their agents and money
//! * [`torture`]: 64 callers while servers and store are killed on a seeded schedule
//! * [`race`]: release against dispute, 1,000 rounds of 16 racers
//! * [`versions`]: an account with an older version than acknowledged
//! * [`lost_replies`]: a lost reply and a retry with the same key, on every route
//!
//! And the scripts alone, compared with an independent model:
//! * [`model`]: expected state; [`act`]: possible actions; [`snapshot`], [`names`] and [`layout`]: the store's state;
//!   [`fixture`]: both side by side
//! * [`random`] and [`directed`]: sequences of actions; after each one the whole store must equal the model
//! * [`mutants`]: changed scripts, each of which the checks above must notice
#![cfg(test)]
// The futures of a whole table of acts, through all layers of the store, nest deeper than the compiler's default.
#![recursion_limit = "256"]

mod act;
mod directed;
mod fixture;
mod layout;
mod lost_replies;
mod model;
mod model_fixture;
mod mutants;
mod names;
mod race;
mod random;
mod snapshot;
mod torture;
mod versions;
