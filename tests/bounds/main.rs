//! What lists and scripts ask of a store with a million records: counted command by command as the server sees them, and held
//! against the same with a thousand.
//!
//! * [`watch`]: what the server was asked between two moments, and how many records each command reads
//! * [`fill`]: many records of a kind, put into the store directly
//! * [`lists`]: every list of every route: by offset at its bound, by cursor in the middle and at the end, by each filter
//! * [`scripts`]: what each script reads
//! * [`paging`]: going through lists by cursor while records come and go; cursors that lead nowhere
#![cfg(test)]

#[path = "../management/world.rs"]
#[expect(dead_code, reason = "it is made for more than this")]
mod world;

mod cursor;
mod fill;
mod lists;
mod paging;
mod scripts;
mod watch;
