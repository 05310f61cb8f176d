//! An exchange whose request was sent and whose answer is being read.

use super::connection_budget::ConnectionPermit;
use super::idle::{Connected, Idle};
use bytes::Bytes;
use pingora::protocols::http::v1::client::HttpSession;
use pingora::upstreams::peer::HttpPeer;
use std::convert::Infallible;
use std::future::poll_fn;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::Poll;

/// Sends the rest of a request and receives its answer. Never ends.
pub(super) type Transfer = Pin<Box<dyn Future<Output = Infallible> + Send>>;

/// An exchange whose request was sent, or is being sent while the answer is read. Dropped, it closes its connection.
pub(super) struct OpenExchange {
    pub(super) session: HttpSession,
    pub(super) peer: Arc<HttpPeer>,
    pub(super) permit: ConnectionPermit,
    pub(super) idle: Arc<Idle>,
    /// `Some` if the provider answered before it had the whole request. Advances while the answer is read.
    pub(super) transfer: Option<Transfer>,
}

impl OpenExchange {
    /// Reads the next head: the final one, or an interim one.
    pub(super) async fn read_head(&mut self) -> pingora::Result<()> {
        beside(&mut self.transfer, pin!(self.session.read_response()))
            .await
            .map(drop)
    }

    /// Reads the next piece of the body; `None` at its end.
    pub(super) async fn read_body_bytes(&mut self) -> pingora::Result<Option<Bytes>> {
        beside(&mut self.transfer, pin!(self.session.read_body_bytes())).await
    }

    /// Keeps the connection, whose answer was read to its end, if it may be used again.
    pub(super) async fn keep(self) {
        let Self {
            mut session,
            peer,
            permit,
            idle,
            transfer,
        } = self;
        if transfer.is_some() {
            return;
        }
        session.respect_keepalive();
        if let Some(stream) = session.reuse().await {
            idle.keep(peer, Connected { stream, permit });
        }
    }
}

/// Reads, and advances `transfer` meanwhile.
async fn beside<T>(transfer: &mut Option<Transfer>, mut reading: Pin<&mut impl Future<Output = T>>) -> T {
    poll_fn(|context| {
        if let Poll::Ready(read) = reading.as_mut().poll(context) {
            return Poll::Ready(read);
        }
        if let Some(transfer) = transfer {
            let Poll::Pending = transfer.as_mut().poll(context);
        }
        Poll::Pending
    })
    .await
}
