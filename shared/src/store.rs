//! Everything that says Redis: connection, key names, scripts and their typed twins, health.

pub mod connection;
pub mod error;
pub mod keys;
pub mod lookup;
pub mod sanity;
pub mod script;

pub use connection::Store;
pub use error::StoreError;
