//! The rig of `make bench`: everything that runs while something is measured, kept so cheap that it is not what is
//! measured. The run itself, with its table, is the crate `gate-bench` one directory up.

pub mod closed;
pub mod cpu;
pub mod flood;
mod flood_http2;
mod multiplexed;
pub mod open;
pub mod outcome;
pub mod target;
pub mod tls;
pub mod upstream;
pub mod wire;
