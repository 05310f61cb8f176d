//! A stream that the test sends by hand while it runs.

use parking_lot::Mutex;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::sync::{Mutex as AsyncMutex, watch};

/// Sends pieces of a streamed answer under the test's control. Clones share the feed, which serves one answer.
///
/// ```no_run
/// # use harness::{Answer, Feed, Script, Upstream};
/// # async fn example() {
/// let feed = Feed::new();
/// let answer = Answer::stream(Script::new().feed(&feed));
/// let upstream = Upstream::start(move |_request| answer.clone());
/// // … a call is under way …
/// feed.send("data: {}\n\n");
/// feed.end(); // or `feed.reset()`, `feed.break_off()`
/// feed.wait_for_peer_gone(std::time::Duration::from_secs(5)).await;
/// # }
/// ```
#[derive(Debug, Clone)]
pub struct Feed {
    sender: Arc<Mutex<Option<UnboundedSender<Piece>>>>,
    receiver: Arc<AsyncMutex<UnboundedReceiver<Piece>>>,
    gone: watch::Sender<bool>,
}

/// One action of the test.
#[derive(Debug)]
pub(super) enum Piece {
    Send(Vec<u8>),
    Reset,
    BreakOff,
}

impl Default for Feed {
    fn default() -> Self {
        Self::new()
    }
}

impl Feed {
    /// A feed that has sent nothing.
    pub fn new() -> Self {
        let (sender, receiver) = unbounded_channel();
        Self {
            sender: Arc::new(Mutex::new(Some(sender))),
            receiver: Arc::new(AsyncMutex::new(receiver)),
            gone: watch::Sender::new(false),
        }
    }

    /// Sends these bytes in one write.
    pub fn send(&self, bytes: impl Into<Vec<u8>>) {
        self.act(Piece::Send(bytes.into()));
    }

    /// Sends an event with this data.
    pub fn event(&self, data: impl std::fmt::Display) {
        self.send(format!("data: {data}\n\n"));
    }

    /// Ends the feed: the answer continues with the next step of its script, or ends if there is none.
    pub fn end(&self) {
        self.sender.lock().take();
    }

    /// Resets the connection.
    pub fn reset(&self) {
        self.act(Piece::Reset);
    }

    /// Closes the connection without the end of the transfer encoding.
    pub fn break_off(&self) {
        self.act(Piece::BreakOff);
    }

    /// Waits until the other side has closed the connection.
    ///
    /// # Panics
    /// If it has not closed it `within` that time.
    pub async fn wait_for_peer_gone(&self, within: Duration) {
        let mut gone = self.gone.subscribe();
        let gone = tokio::time::timeout(within, gone.wait_for(|gone| *gone));
        assert!(
            gone.await.is_ok(),
            "the other side is still there after {within:?}"
        );
    }

    /// The next act; `None` at the end.
    pub(super) async fn next(&self) -> Option<Piece> {
        self.receiver.lock().await.recv().await
    }

    pub(super) fn note_peer_gone(&self) {
        self.gone.send_replace(true);
    }

    fn act(&self, piece: Piece) {
        let sender = self.sender.lock();
        if let Some(sender) = &*sender {
            let _ = sender.send(piece);
        }
    }
}
