//! What the edge and the admin server have in common.
//!
//! * [`domain`][]: nouns and rules without I/O (money, ids, prices, plans, Cap, denials)
//! * [`store`][]: everything that says Redis (connection, key names, scripts)
//! * [`client_address`][]: from where a request comes
//! * [`chat_body`][]: the body of a chat-completions call, as the edge decides on it and the admin server predicts
//! * [`connection_limit`][]: how many connections a listener has open, in all and for each address
//! * [`crypto`][]: secrets (key hashes, sealed provider keys)
//! * [`open_files`][]: the limit of open files
//! * [`openapi`][]: what both servers' OpenAPI documents are made of
//! * [`settings`][]: the configuration file and its environment overrides
//! * [`telemetry`][]: metrics, traces and logs

pub mod chat_body;
pub mod client_address;
pub mod clock;
pub mod connection_limit;
pub mod crypto;
pub mod domain;
pub mod entropy;
mod json_stops;
pub mod open_files;
pub mod openapi;
pub mod settings;
pub mod store;
pub mod telemetry;
