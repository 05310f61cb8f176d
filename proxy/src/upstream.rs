//! The one request to a provider: choice of the upstream, its address, headers, the exchange, and the parts read from
//! the answer.

pub mod client;
pub mod connection_budget;
mod destination;
pub mod encoding;
pub mod exchange;
pub mod failure;
pub mod header_lines;
pub mod headers;
pub mod identity;
mod idle;
mod inflate;
mod open;
pub mod reading_turn;
pub mod redact;
pub mod registry;
mod send;
pub mod sent_body;
pub mod sent_key;
pub mod stream;
pub mod target;
pub mod usage;
pub mod whole_answer;

pub use client::Upstream;
pub use exchange::ProviderAnswer;
pub use failure::UpstreamFailure;
pub use registry::Upstreams;
pub use sent_key::SentKey;
pub use stream::AnswerStream;
pub use whole_answer::{ReceivedAnswer, WholeAnswer};
