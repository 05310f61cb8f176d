//! No upstream for Pingora: the provider is called by [`crate::upstream`], with an `Approval` alone.

use pingora::ErrorType::InternalError;
use pingora::upstreams::peer::HttpPeer;
use pingora::{Error, Result};

/// Fails, so that no request passes the gate by Pingora's own forwarding.
///
/// # Errors
/// Always.
pub(super) fn none() -> Result<Box<HttpPeer>> {
    Err(Error::explain(
        InternalError,
        "the edge forwards no request by itself",
    ))
}
