//! A phase of load.

/// Keep-alive connections of the closed loop.
pub(crate) const CONNECTIONS: usize = 64;
/// HTTP/2 requests that share a connection.
pub(crate) const STREAMS: usize = 8;

/// Protocol of the callers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Wire {
    /// HTTP/1.1 without TLS.
    Clear,
    /// HTTP/1.1 over TLS.
    Tls,
    /// HTTP/2 over TLS, with this many requests sharing a connection.
    Http2(usize),
}

/// A kind of load.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Phase {
    /// Requests under way at once.
    pub(crate) connections: usize,
    /// Requests a second in an open loop; `None` is a closed one.
    pub(crate) rate: Option<f64>,
    /// Size of the request's body.
    pub(crate) body_bytes: usize,
    pub(crate) wire: Wire,
    /// Microseconds between two events, if the load keeps streams open.
    pub(crate) stream_every_us: Option<u64>,
    /// Measured time, in seconds.
    pub(crate) seconds: f64,
    /// Time before the measured time, in seconds.
    pub(crate) warm_up: f64,
}
