//! Logs a request whose connection ended before its answer was written. Calls are already logged: Pingora runs this
//! hook after the answer, and the answer waits for the settlement.

use pingora::Error;

/// Logs only the kind of the error: Pingora's text may quote data that the caller sent.
pub(super) fn log(error: Option<&Error>) {
    if let Some(error) = error {
        tracing::debug!(error = ?error.etype(), "a request ended without its answer");
    }
}
