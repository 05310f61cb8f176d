//! Why the server did not start.

use settings::BadSettings;
use std::net::SocketAddr;
use store::StoreError;

/// Why the server did not start.
#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    /// The configuration cannot be used.
    #[error(transparent)]
    Settings(#[from] BadSettings),
    /// The store's address is invalid.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// An address cannot be listened on.
    #[error("{key} {address}: {source}")]
    Bind {
        /// The configuration key.
        key: &'static str,
        /// Address to listen on.
        address: SocketAddr,
        /// Error of the operating system.
        source: std::io::Error,
    },
    /// The metrics or the signal handlers could not be set up.
    #[error("the server could not be set up: {0}")]
    SetUp(String),
}
