//! An exchange whose request was sent and whose answer is being read.

use super::connection_budget::ConnectionPermit;
use super::idle::{Connected, Idle};
use pingora::protocols::http::v1::client::HttpSession;
use pingora::upstreams::peer::HttpPeer;
use std::sync::Arc;
use tokio::task::JoinSet;

/// The task that sends the rest of a request and receives its answer. It ends when this is dropped.
pub(super) type Transfer = JoinSet<()>;

/// An exchange whose request was sent, or is being sent while the answer is read. Dropping it closes its connection.
pub(super) struct OpenExchange {
    pub(super) session: HttpSession,
    /// `Some` if the provider answered before it had the whole request. Dropped before the permit is returned.
    pub(super) transfer: Option<Transfer>,
    pub(super) peer: Arc<HttpPeer>,
    pub(super) permit: ConnectionPermit,
    pub(super) idle: Arc<Idle>,
}

impl OpenExchange {
    /// Returns the connection to the pool if it can be reused. Its answer must have been read to the end.
    pub(super) async fn keep(self: Box<Self>) {
        let Self {
            mut session,
            peer,
            permit,
            idle,
            transfer,
        } = *self;
        if transfer.is_some() {
            return;
        }
        session.respect_keepalive();
        if let Some(stream) = session.reuse().await {
            idle.keep(peer, Connected { stream, permit });
        }
    }
}
