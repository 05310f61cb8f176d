//! Turns at reading answers: a provider that never pauses, whose compressed bytes become very many or none, or that
//! divides its answer into pieces of one byte, must not keep a worker thread to itself.

use tokio::task::yield_now;

/// Bytes of an answer that are read before other tasks get their turn, as [`cost_of`] counts them.
const BYTES_PER_TURN: usize = 64 << 10;
/// Bytes that a shorter piece counts as, since reading it takes as long as reading these.
const PIECE_COST_MIN: usize = 256;

/// Returns the number of bytes that reading a piece of this length counts as.
pub fn cost_of(length: usize) -> usize {
    length.max(PIECE_COST_MIN)
}

/// The current turn of one answer.
#[derive(Debug, Default)]
pub struct ReadingTurn {
    /// Bytes read since other tasks had their turn.
    bytes: usize,
}

impl ReadingTurn {
    /// Counts a piece of this length that was read, and lets other tasks have their turn when one is due.
    pub async fn count(&mut self, length: usize) {
        self.bytes += cost_of(length);
        if self.bytes >= BYTES_PER_TURN {
            self.bytes = 0;
            yield_now().await;
        }
    }
}
