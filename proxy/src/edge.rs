//! The edge as a Pingora proxy. Hooks with code call the file of their name; Pingora's documentation says when it runs.
//!
//! A whole call runs in `request_filter`, including our own request to the provider: the decision needs the whole body,
//! and the head of the answer contains the real cost. So Pingora never forwards a request, and `upstream_peer` always
//! fails.

pub mod address_filter;
pub mod app;
pub mod arrivals;
mod chunks;
mod connection;
pub mod connections;
mod control_limited;
mod delegate;
mod detached_stream;
mod early_request_filter;
mod fail_to_proxy;
mod first_bytes;
mod frames;
pub mod head;
pub mod head_limited;
mod held_back;
mod http_options;
mod logging;
mod new_ctx;
mod preface;
mod refused_head;
mod request_filter;
mod request_scope;
pub mod route;
pub mod state;
mod unknown_keys_limited;
mod upstream_peer;
pub mod write;
pub mod write_buffer;
mod write_stream;

use async_trait::async_trait;
use new_ctx::Ctx;
use pingora::modules::http::HttpModules;
use pingora::proxy::{FailToProxy, ProxyHttp, Session};
use pingora::upstreams::peer::HttpPeer;
use pingora::{Error, Result};
use state::EdgeState;
use std::sync::{Arc, OnceLock};

/// The proxy of the edge's listener.
pub struct Edge {
    state: Arc<OnceLock<Arc<EdgeState>>>,
}

impl Edge {
    /// Creates the proxy. `state` is set before the first connection is accepted.
    pub const fn new(state: Arc<OnceLock<Arc<EdgeState>>>) -> Self {
        Self { state }
    }

    fn state(&self) -> Option<&EdgeState> {
        self.state.get().map(Arc::as_ref)
    }
}

#[async_trait]
impl ProxyHttp for Edge {
    type CTX = Ctx;

    fn new_ctx(&self) -> Ctx {
        Ctx::default()
    }

    /// Adds no modules: Pingora's default would check each answer for compression.
    fn init_downstream_modules(&self, _modules: &mut HttpModules) {}

    async fn early_request_filter(&self, session: &mut Session, ctx: &mut Ctx) -> Result<()> {
        early_request_filter::begin(self.state(), session, ctx)
    }

    async fn request_filter(&self, session: &mut Session, ctx: &mut Ctx) -> Result<bool> {
        request_filter::answer(self.state.get(), session.as_downstream_mut(), ctx).await
    }

    async fn upstream_peer(&self, _session: &mut Session, _ctx: &mut Ctx) -> Result<Box<HttpPeer>> {
        upstream_peer::none()
    }

    async fn fail_to_proxy(&self, session: &mut Session, error: &Error, _ctx: &mut Ctx) -> FailToProxy {
        fail_to_proxy::answer(self.state(), session.as_downstream_mut(), error).await
    }

    async fn logging(&self, _session: &mut Session, error: Option<&Error>, _ctx: &mut Ctx) {
        logging::log(error);
    }

    /// Suppressed: [`logging`] logs errors.
    fn suppress_error_log(&self, _session: &Session, _ctx: &Ctx, _error: &Error) -> bool {
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::{Fixture, on_own_runtime, without_timer};
    use crypto::virtual_key::WellFormed;
    use pingora::apps::HttpServerApp as _;
    use pingora::protocols::http::ServerSession;
    use pingora::proxy::HttpProxy;
    use pingora::server::configuration::ServerConf;
    use std::panic::{AssertUnwindSafe, catch_unwind};
    use store::lookup::VirtualKeyOwner;
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, DuplexStream, duplex};
    use tokio::sync::watch;

    /// Buffer of a connection in each direction, in bytes.
    const BUFFER_BYTES: usize = 64 << 10;

    fn proxy(fixture: &Fixture) -> Arc<HttpProxy<Edge>> {
        let state = OnceLock::from(Arc::new(fixture.edge_state()));
        let mut proxy = HttpProxy::new(Edge::new(Arc::new(state)), Arc::new(ServerConf::default()));
        proxy.handle_init_modules();
        Arc::new(proxy)
    }

    /// Returns a received request, and the caller's end of its connection.
    async fn request(text: &str) -> (ServerSession, DuplexStream) {
        let (mut caller, connection) = duplex(BUFFER_BYTES);
        caller.write_all(text.as_bytes()).await.unwrap();
        let mut session = ServerSession::new_http1(Box::new(connection));
        session.set_keepalive(Some(60));
        (session, caller)
    }

    fn chat(key: &str) -> String {
        format!(
            "POST /v1/chat/completions HTTP/1.1\r\nHost: e\r\nAuthorization: Bearer {key}\r\n\
             Content-Type: application/json\r\nContent-Length: 2\r\n\r\n{{}}"
        )
    }

    async fn received(caller: &mut DuplexStream) -> String {
        let mut buffer = [0; 4096];
        let read = caller.read(&mut buffer).await.unwrap();
        String::from_utf8_lossy(&buffer[..read]).into_owned()
    }

    #[tokio::test]
    async fn a_connection_is_kept_until_the_process_stops() {
        let fixture = Fixture::new().await;
        let (proxy, (_stops, shutdown)) = (proxy(&fixture), watch::channel(false));
        for (draining, kept) in [(false, true), (true, false)] {
            if draining {
                fixture.admission.drain();
            }
            let (session, mut caller) = request("GET /v1/health HTTP/1.1\r\nHost: e\r\n\r\n").await;
            let stream = proxy.process_new_http(session, &shutdown).await;
            assert_eq!(stream.is_some(), kept);
            let answer = received(&mut caller).await;
            assert!(answer.contains("\r\nx-request-id: req_"), "{answer}");
            assert!(answer.contains("\r\nx-service-overhead-ms: "), "{answer}");
            assert_eq!(fixture.admission.in_flight(), 0);
        }
        fixture.admission.close();
        let (session, mut caller) = request("GET /v1/health HTTP/1.1\r\nHost: e\r\n\r\n").await;
        assert!(proxy.process_new_http(session, &shutdown).await.is_none());
        assert_eq!(received(&mut caller).await, "", "nothing was done for it");
    }

    #[tokio::test]
    async fn pingora_has_no_upstream_to_forward_to() {
        let fixture = Fixture::new().await;
        let edge = Edge::new(Arc::new(OnceLock::from(Arc::new(fixture.edge_state()))));
        let mut session = Session::new_h1(Box::new(duplex(BUFFER_BYTES).0));
        let peer = edge.upstream_peer(&mut session, &mut edge.new_ctx()).await;
        assert!(peer.is_err());
    }

    /// Pingora moves the state of a request by value, and keeps the future of a request (without that of a call) while
    /// the connection is idle after a whole answer: 13,424 bytes with Pingora 0.9.1, nearly all of them for its own
    /// forwarding.
    #[tokio::test]
    async fn the_state_of_a_request_stays_small() {
        const OWN_BYTES_MAX: usize = 8;
        const PINGORAS_BYTES_MAX: usize = 16 << 10;
        assert!(size_of::<Ctx>() <= OWN_BYTES_MAX, "{}", size_of::<Ctx>());
        let fixture = Fixture::new().await;
        let (proxy, (_stops, shutdown)) = (proxy(&fixture), watch::channel(false));
        let (session, _caller) = request("").await;
        let request = proxy.process_new_http(session, &shutdown);
        assert!(
            size_of_val(&*request) <= PINGORAS_BYTES_MAX,
            "{}",
            size_of_val(&*request)
        );
    }

    /// The runtime that serves it has no timer, so the first deadline panics.
    #[test]
    fn a_panic_closes_its_connection_and_leaves_nothing_in_flight() {
        let (runtime, fixture) = on_own_runtime();
        let key = format!("vk_live_{}", "0a".repeat(32));
        let digest = WellFormed::parse(key.as_bytes()).unwrap().digest();
        let owner = VirtualKeyOwner::new("acct_1", "bot", "vk_1");
        let known = fixture.owners.insert(digest, owner);
        let (proxy, (_stops, shutdown)) = (proxy(&fixture), watch::channel(false));
        let timer_free = without_timer();
        let (session, mut caller) = timer_free.block_on(request(&chat(&key)));
        let serving = || timer_free.block_on(proxy.process_new_http(session, &shutdown));
        assert!(catch_unwind(AssertUnwindSafe(serving)).is_err());
        assert_eq!(fixture.admission.in_flight(), 0);
        assert_eq!(
            timer_free.block_on(received(&mut caller)),
            "",
            "closed without an answer"
        );
        runtime.block_on(async { drop((fixture, known)) });
    }
}
