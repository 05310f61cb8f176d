//! Money under pressure: everything that could create, lose or double a cent, tried on the real thing.
//!
//! * [`fixture`]: two accounts with their agents and money
//! * [`torture`]: 64 callers while servers and store are killed on a seeded schedule
//! * [`race`]: release against dispute, 1,000 rounds of 16 racers
//! * [`versions`]: an account of which less is there than was acknowledged
//! * [`lost_replies`]: the same key again after an answer that never came, on every route
//!
//! And the scripts alone, against a model that is written without them:
//! * [`model`]: what should happen; [`act`]: what can; [`snapshot`], [`names`] and [`layout`]: what the store holds; [`world`]: both side by side
//! * [`random`] and [`directed`]: sequences of actions; after each one the whole store must be as the model says
//! * [`mutants`]: changed scripts, each of which the checks above must notice
#![cfg(test)]
// The future of a whole table of acts, each through the layers of the store, is deeper than the compiler's default.
#![recursion_limit = "256"]

mod act;
mod directed;
mod fixture;
mod layout;
mod lost_replies;
#[path = "../ledger/lua.rs"]
mod lua;
mod model;
mod mutants;
mod names;
mod race;
mod random;
mod snapshot;
mod torture;
mod versions;
mod world;
