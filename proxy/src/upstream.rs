//! The one request to a provider: which upstream, its address, headers, exchange, and what is read from the answer.

pub mod connection_budget;
pub mod encoding;
pub mod exchange;
pub mod headers;
pub mod identity;
mod idle;
pub mod named;
pub mod redact;
pub mod sent_key;
pub mod target;
pub mod usage;

pub use exchange::{Answer, Failure, Upstream};
pub use named::Upstreams;
