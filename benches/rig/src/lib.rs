//! The rig of `make bench`: the programs that run during a measurement, cheap enough not to distort it. The crate
//! `gate-bench`, one directory up, controls the run and prints the tables.

pub mod closed;
pub mod cpu;
pub mod flood;
mod flood_http2;
pub mod memory;
mod multiplexed;
pub mod open;
pub mod outcome;
pub mod stream_wire;
pub mod streams;
pub mod target;
pub mod tls;
pub mod upstream;
pub mod wire;
