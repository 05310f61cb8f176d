//! The store: everything that depends on Redis.
//!
//! Each resource is one module, with its records, its scripts and their typed twins: [`account`], [`agent`],
//! [`api_key`], [`escrow`], [`wallet`] and so on. [`call`] is the life of a proxied call; [`audit`] is the log that
//! every script appends to. Lower layers are the [`connection`], the [key names](keys), the [scripts](script), and the
//! checks whether the store can be trusted ([`versions`], [`sanity`], [`durability`]).

pub mod account;
pub mod agent;
pub mod api_key;
mod atomic_read;
pub mod audit;
pub mod authority;
pub mod blocked;
pub mod call;
mod certificate;
pub mod clock_difference;
pub mod command_rights;
pub mod connection;
pub mod credential_attempts;
pub mod deposit;
pub mod durability;
pub mod error;
pub mod error_counters;
pub mod escrow;
pub mod filtered_page;
pub mod idempotency;
mod info;
pub mod intent;
pub mod invitation;
pub mod keys;
pub mod lookup;
pub mod lost_connections;
pub mod malformed;
pub mod names;
pub mod number;
pub mod page;
pub mod policy;
pub mod prices;
pub mod provider_key;
pub mod read;
pub mod record_fields;
pub mod request_limits;
pub mod run;
pub mod sanity;
pub mod script;
mod search;
pub mod server_clock;
pub mod server_info;
mod server_report;
pub mod session;
#[cfg(test)]
mod sources;
pub mod spend;
pub mod threshold;
mod time_span;
pub mod transaction;
pub mod transfer;
pub mod transit;
pub mod user;
pub mod versions;
pub mod virtual_key;
pub mod wallet;
pub mod webhook;
pub mod write_refusal;

pub use connection::Store;
pub use error::StoreError;
