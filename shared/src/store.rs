//! Everything that says Redis: connection, key names, scripts and their typed twins, health.

pub mod account;
pub mod agent;
pub mod api_key;
pub mod audit;
pub mod chain;
pub mod connection;
pub mod decisions;
pub mod delivery;
pub mod deposit;
pub mod error;
pub mod escrow;
pub mod intent;
pub mod intent_links;
pub mod keys;
pub mod lookup;
pub mod once;
mod open_escrows;
pub mod open_holds;
pub mod page;
pub mod paused_runs;
pub mod policy;
pub mod read;
pub mod run;
pub mod sanity;
pub mod script;
pub mod sealed;
mod search;
pub mod server_clock;
pub mod transaction;
pub mod transit;
pub mod user;
pub mod virtual_key;
pub mod wallet;
pub mod webhook;

pub use connection::Store;
pub use error::StoreError;
