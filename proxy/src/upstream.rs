//! The one request to the provider: address, headers, exchange, and what is read from the answer.

pub mod encoding;
pub mod exchange;
pub mod headers;
mod idle;
pub mod redact;
pub mod target;
pub mod usage;

pub use exchange::{Answer, Failure, Upstream};
