//! A stream between its head and its end.

use super::handoff::PieceReceiver;
use super::run_to_completion::RunToCompletion;

/// A stream whose head can be written.
pub struct RunningStream {
    /// Must be polled until it is done. When dropped, it continues without the caller.
    pub reader: RunToCompletion<()>,
    /// The pieces to be written.
    pub pieces: PieceReceiver,
}

impl std::fmt::Debug for RunningStream {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("RunningStream").finish_non_exhaustive()
    }
}
