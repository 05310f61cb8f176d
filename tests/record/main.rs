//! What is recorded and told of it, through the real edge and the real management API.
#![cfg(test)]

mod decisions;
mod dry_run;
mod runs;
