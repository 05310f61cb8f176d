//! What an owner is told at a glance, against what really happened: the overview, the account, usage, statistics.
#![cfg(test)]

#[path = "../management/world.rs"]
mod world;

#[path = "../record/stage.rs"]
mod stage;

#[path = "../record/scribe.rs"]
mod scribe;

mod account;
mod attention;
mod overview;
mod statistics;
mod usage;
