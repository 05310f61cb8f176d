//! Why a load test has no result.

/// Why a load test has no result.
#[derive(Debug, thiserror::Error)]
pub enum LoadTestError {
    /// An option makes no sense.
    #[error("{0}")]
    Usage(String),
    /// The current state does not permit it.
    #[error("{0}")]
    Refused(String),
    /// The store failed.
    #[error(transparent)]
    Store(#[from] store::StoreError),
}
