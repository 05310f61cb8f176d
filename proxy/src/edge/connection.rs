//! One connection of a caller: the HTTP library hands over each of its requests here, for HTTP/1.1 and HTTP/2 alike.

use super::head::{HEAD_BYTES_MAX, Head};
use super::{Edge, answer, wire};
use async_trait::async_trait;
use pingora_core::apps::{HttpServerApp, HttpServerOptions, ReusedHttpStream};
use pingora_core::protocols::http::ServerSession;
use pingora_core::protocols::http::v2::server::H2Options;
use pingora_core::server::ShutdownWatch;
use std::sync::Arc;
use std::time::Duration;

/// Requests that a connection of HTTP/2 may have under way.
const STREAMS_MAX: u32 = 100;
/// Requests that were reset before anybody looked at them; one more ends the connection ("rapid reset").
const RESET_UNSEEN_MAX: usize = 20;
/// Requests that the edge itself reset, for mistakes in their frames; one more ends the connection.
const RESET_BY_US_MAX: usize = 100;
/// Requests that are remembered after a reset, for what of them is still on its way.
const RESET_KEPT_MAX: usize = 20;
/// Bytes of an answer that are queued for a caller who does not read, for each request.
const SEND_BUFFER_BYTES: usize = 64 << 10;

/// The application of one connection.
pub(super) struct Connection {
    edge: Arc<Edge>,
    head: Arc<Head>,
}

impl Connection {
    pub(super) const fn new(edge: Arc<Edge>, head: Arc<Head>) -> Self {
        Self { edge, head }
    }
}

#[async_trait]
impl HttpServerApp for Connection {
    async fn process_new_http(
        self: &Arc<Self>,
        mut session: ServerSession,
        shutdown: &ShutdownWatch,
    ) -> Option<ReusedHttpStream> {
        let gate = self.edge.gate.get()?;
        if !wire::read_head(gate, &mut session, &self.head).await {
            return None;
        }
        // Right before the process ends: nothing was done for this request, so its caller may send it again.
        let in_flight = gate.enter()?;
        let reply = answer(gate, &mut session).await;
        let stopping = gate.is_draining() || *shutdown.borrow();
        let client_timeout = Duration::from_millis(gate.settings.proxy.client_timeout_ms);
        let stream = wire::write(session, reply, stopping, client_timeout).await;
        drop(in_flight);
        stream
    }

    fn server_options(&self) -> Option<&HttpServerOptions> {
        Some(&self.edge.options)
    }

    /// The library's header limit also bounds CONTINUATION: as many frames as such a list takes, and some more, then the
    /// connection ends.
    fn h2_options(&self) -> Option<H2Options> {
        let mut options = H2Options::new();
        options
            .max_header_list_size(u32::try_from(HEAD_BYTES_MAX).unwrap_or(u32::MAX))
            .max_concurrent_streams(STREAMS_MAX)
            .max_pending_accept_reset_streams(RESET_UNSEEN_MAX)
            .max_local_error_reset_streams(Some(RESET_BY_US_MAX))
            .max_concurrent_reset_streams(RESET_KEPT_MAX)
            .max_send_buffer_size(SEND_BUFFER_BYTES);
        Some(options)
    }
}
