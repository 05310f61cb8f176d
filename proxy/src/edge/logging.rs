//! Logs a request whose connection ended before its answer. Calls have their line of log before: Pingora runs this hook
//! after the answer was written, and an answer waits for its settlement.

use pingora::Error;

/// Logs why the connection ended. The kind alone: Pingora's text may quote what the caller sent.
pub(super) fn log(error: Option<&Error>) {
    if let Some(error) = error {
        tracing::debug!(error = ?error.etype(), "a request ended without its answer");
    }
}
