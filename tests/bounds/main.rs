//! Bounds of lists and scripts: the commands that a store with a million records executes, counted by the server and
//! compared with a store of a thousand.
//!
//! * [`watch`]: the commands between two points in time, and the records that each reads
//! * [`fill`]: many records of a kind, written directly into the store
//! * [`lists`]: every list of every route: by offset at its bound, by cursor in the middle and at the end, by each
//!   filter
//! * [`unbounded_lists`]: every other route with a query, beside a million records of each kind
//! * [`scripts`]: the records that each script reads, of an account that lives a [`day`]
//! * [`paging`]: paging by cursor while records are added and removed; invalid cursors
#![cfg(test)]

#[path = "../management/fixture.rs"]
#[expect(dead_code, reason = "it is made for more than this")]
mod fixture;

mod cursor;
mod day;
mod fill;
mod lists;
mod paging;
mod scripts;
mod unbounded_lists;
mod watch;
