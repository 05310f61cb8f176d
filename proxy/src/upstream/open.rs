//! An exchange whose request was sent and whose answer is being read.

use super::connection_budget::ConnectionPermit;
use super::destination::Destination;
use super::idle::{Connected, Idle};
use http::header::{CONTENT_LENGTH, TRANSFER_ENCODING};
use pingora::protocols::http::v1::client::HttpSession;
use pingora::upstreams::peer::HttpPeer;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use tokio::task::JoinSet;

/// The task that sends the rest of a request and receives its answer.
pub(super) struct Transfer {
    /// The task ends when this is dropped.
    pub(super) _task: JoinSet<()>,
    /// Set before the answer ends, if the connection broke. The reader of the answer sees the same end in both cases.
    pub(super) has_broken: Arc<AtomicBool>,
}

/// An exchange whose request was sent, or is being sent while the answer is read. Dropping it closes its connection.
pub(super) struct OpenExchange {
    pub(super) session: HttpSession,
    /// `Some` if the provider answered before it had the whole request. Dropped before the permit is returned.
    pub(super) transfer: Option<Transfer>,
    /// The request is longer than a head with a usual body.
    pub(super) is_long: bool,
    pub(super) peer: Arc<HttpPeer>,
    pub(super) permit: ConnectionPermit,
    pub(super) idle: Arc<Idle>,
    /// For the log.
    pub(super) destination: Arc<Destination>,
}

impl OpenExchange {
    /// Returns whether a body that ended did so because its connection broke: where the body has no length of its own,
    /// that looks like its end.
    pub(super) fn broke_off(&self) -> bool {
        let has_broken = |transfer: &Transfer| transfer.has_broken.load(Ordering::Acquire);
        self.transfer.as_ref().is_some_and(has_broken)
            && self.session.resp_header().is_some_and(|head| {
                !head.headers.contains_key(CONTENT_LENGTH) && !head.headers.contains_key(TRANSFER_ENCODING)
            })
    }

    /// Returns the connection to the pool if it can be reused. Its answer must have been read to the end.
    pub(super) async fn keep(self: Box<Self>) {
        let Self {
            mut session,
            peer,
            permit,
            idle,
            transfer,
            is_long,
            destination: _,
        } = *self;
        if transfer.is_some() || (is_long && !was_read(&session)) {
            return;
        }
        session.respect_keepalive();
        if let Some(stream) = session.reuse().await {
            idle.keep(peer, Connected { stream, permit });
        }
    }
}

/// Returns whether the provider read a long request to its end, as far as this can be judged. Otherwise the next
/// request would wait behind the rest of this one.
///
/// An error may be sent before the request is read; the rest is then in the provider's buffers. A rest that is too long
/// for these is in the buffers of this machine, while the answer to a request that was read confirms all of it. Before
/// Linux 6.2 Pingora cannot read the state of these.
fn was_read(session: &HttpSession) -> bool {
    let is_success = session.resp_header().is_some_and(|head| head.status.is_success());
    let socket = session.digest().socket_digest.as_ref();
    let info = socket.and_then(|socket| socket.tcp_info());
    is_success && info.is_none_or(|info| info.tcpi_notsent_bytes == 0 && info.tcpi_unacked == 0)
}
