//! Passes the pieces of a stream from its reader to its writer, one at a time: the next piece is read only when the
//! caller has received the one before. So at most one piece waits for a slow caller.

use bytes::Bytes;
use std::sync::Arc;
use tokio::sync::Semaphore;
use tokio::sync::mpsc::{Receiver, Sender, channel};

/// The reader's end of the handoff.
#[derive(Debug)]
pub struct PieceSender {
    sender: Sender<Vec<Bytes>>,
    /// Has a permit while no piece is being written.
    written: Arc<Semaphore>,
    is_ready: bool,
}

/// The writer's end of the handoff. Dropping it signals that the caller has disconnected.
#[derive(Debug)]
pub struct PieceReceiver {
    receiver: Receiver<Vec<Bytes>>,
    written: Arc<Semaphore>,
    is_writing: bool,
}

/// The caller has disconnected.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CallerDisconnected;

/// Creates both ends.
pub fn pair() -> (PieceSender, PieceReceiver) {
    let (sender, receiver) = channel(1);
    let written = Arc::new(Semaphore::new(1));
    let sender = PieceSender {
        sender,
        written: Arc::clone(&written),
        is_ready: false,
    };
    let receiver = PieceReceiver {
        receiver,
        written,
        is_writing: false,
    };
    (sender, receiver)
}

impl PieceSender {
    /// Waits until the last pieces were written.
    pub async fn ready(&mut self) -> Result<(), CallerDisconnected> {
        if !self.is_ready {
            self.written
                .acquire()
                .await
                .map_err(|_closed| CallerDisconnected)?
                .forget();
            self.is_ready = true;
        }
        Ok(())
    }

    /// Sends pieces to the writer, once it has written the last ones.
    pub async fn send(&mut self, pieces: Vec<Bytes>) -> Result<(), CallerDisconnected> {
        self.ready().await?;
        self.is_ready = false;
        self.sender
            .send(pieces)
            .await
            .map_err(|_closed| CallerDisconnected)
    }

    /// Waits until the caller disconnects.
    pub async fn caller_disconnected(&self) {
        self.sender.closed().await;
    }
}

impl PieceReceiver {
    /// Waits for the next pieces. Confirms that the previous ones were written. `None` if there are no more.
    pub async fn next(&mut self) -> Option<Vec<Bytes>> {
        if std::mem::take(&mut self.is_writing) {
            self.written.add_permits(1);
        }
        let pieces = self.receiver.recv().await;
        self.is_writing = pieces.is_some();
        pieces
    }
}

impl Drop for PieceReceiver {
    fn drop(&mut self) {
        self.written.close();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures::FutureExt as _;

    fn piece(text: &'static str) -> Vec<Bytes> {
        vec![Bytes::from_static(text.as_bytes())]
    }

    #[tokio::test]
    async fn a_piece_is_given_when_the_one_before_was_written() {
        let (mut sender, mut receiver) = pair();
        sender.send(piece("a")).await.unwrap();
        assert!(sender.ready().now_or_never().is_none());
        assert_eq!(receiver.next().await, Some(piece("a")));
        assert!(sender.ready().now_or_never().is_none(), "it is being written");
        assert!(receiver.next().now_or_never().is_none());
        assert_eq!(sender.ready().now_or_never(), Some(Ok(())));
        sender.send(piece("b")).await.unwrap();
        drop(sender);
        assert_eq!(receiver.next().await, Some(piece("b")));
        assert_eq!(receiver.next().await, None);
    }

    #[tokio::test]
    async fn a_caller_who_is_gone_is_noticed_everywhere() {
        let (mut sender, receiver) = pair();
        sender.send(piece("a")).await.unwrap();
        assert!(sender.caller_disconnected().now_or_never().is_none());
        drop(receiver);
        sender.caller_disconnected().await;
        assert_eq!(sender.ready().await, Err(CallerDisconnected));
        assert_eq!(sender.send(piece("b")).await, Err(CallerDisconnected));
    }
}
