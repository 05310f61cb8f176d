//! The one request to the provider: address, headers, exchange, and what is read from the answer.

pub mod encoding;
pub mod exchange;
pub mod failure;
pub mod headers;
mod idle;
mod inflate;
mod open;
pub mod redact;
pub mod stream;
pub mod target;
pub mod usage;

pub use exchange::{Answer, Streamed, Upstream};
pub use failure::Failure;
pub use stream::AnswerStream;
