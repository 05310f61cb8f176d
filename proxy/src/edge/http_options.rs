//! Options of Pingora's HTTP server, among them the limits on the HTTP/2 connections of callers.

use super::write::KEEP_ALIVE;
use pingora::apps::HttpServerOptions;
use pingora::protocols::http::v2::server::H2Options;

/// Concurrent requests of an HTTP/2 connection. Of those whose keys are not known yet, fewer are read at once.
const STREAMS_MAX: u32 = 100;
/// Longest head of a request over HTTP/2, with 32 bytes more for each header. The headers of a head take up to six
/// times that in memory, since they are sent compressed and each takes a place of its own.
const H2_HEAD_BYTES_MAX: u32 = 16 << 10;
/// Maximum of requests that were reset before they were accepted; one more closes the connection ("rapid reset").
const RESET_UNSEEN_MAX: usize = 20;
/// Maximum of requests that the edge reset because of malformed frames; one more closes the connection.
const RESET_BY_US_MAX: usize = 100;
/// Reset requests whose late frames are ignored.
const RESET_KEPT_MAX: usize = 20;
/// Bytes of an answer queued for each request of a caller who does not read.
const SEND_BUFFER_BYTES: usize = 64 << 10;

/// Returns the options of the proxy: HTTP/2 also without TLS, and all methods answered by the edge's routes.
pub(super) fn proxy() -> HttpServerOptions {
    let mut options = HttpServerOptions::default();
    options.h2c = true;
    options.h2_idle_timeout = Some(KEEP_ALIVE);
    // The proxy never forwards a request by itself, so a CONNECT is answered like any other method.
    options.allow_connect_method_proxying = true;
    options
}

/// Returns the limits on an HTTP/2 connection. The header limit also bounds CONTINUATION frames: the library closes the
/// connection somewhat above the size of such a list.
pub(super) fn h2() -> H2Options {
    let mut options = H2Options::new();
    options
        .max_header_list_size(H2_HEAD_BYTES_MAX)
        .max_concurrent_streams(STREAMS_MAX)
        .max_pending_accept_reset_streams(RESET_UNSEEN_MAX)
        .max_local_error_reset_streams(Some(RESET_BY_US_MAX))
        .max_concurrent_reset_streams(RESET_KEPT_MAX)
        .max_send_buffer_size(SEND_BUFFER_BYTES);
    options
}
