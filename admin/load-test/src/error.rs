//! Why a load test has no result.

/// Why there is no result.
#[derive(Debug, thiserror::Error)]
pub enum LoadTestError {
    /// It was asked for something that cannot be meant.
    #[error("{0}")]
    Usage(String),
    /// The state of things speaks against it.
    #[error("{0}")]
    Refused(String),
    /// The store does not do its part.
    #[error(transparent)]
    Store(#[from] store::StoreError),
}
