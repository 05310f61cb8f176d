//! Gives Pingora no upstream: only [`crate::upstream`] sends requests to the provider, and only with an `Approval`.

use pingora::ErrorType::InternalError;
use pingora::upstreams::peer::HttpPeer;
use pingora::{Error, Result};

/// Fails, so that Pingora's own forwarding never sends a request without a decision.
///
/// # Errors
/// Always.
pub(super) fn none() -> Result<Box<HttpPeer>> {
    Err(Error::explain(
        InternalError,
        "the edge forwards no request by itself",
    ))
}
