//! The target of the load: address, protocol and request.

use crate::wire;
use bytes::Bytes;
use std::io;
use std::net::SocketAddr;
use std::time::Duration;
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;

/// Longest wait for a connection, and for one answer.
pub(crate) const ANSWER_TIMEOUT: Duration = Duration::from_secs(10);

/// The version of HTTP.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Version {
    /// HTTP/1.1 with keep-alive.
    Http1,
    /// HTTP/2.
    Http2,
}

/// The target of the load.
pub struct Target {
    /// Its addresses; connections take turns over them.
    pub addresses: Vec<SocketAddr>,
    /// The expected statuses of an answer.
    pub expected: Vec<u16>,
    /// Version of HTTP.
    pub version: Version,
    /// Connector of a target with TLS.
    pub tls: Option<TlsConnector>,
}

impl Target {
    /// Opens a connection for request number `number`.
    ///
    /// # Errors
    /// If the address does not accept connections.
    pub async fn connect(&self, number: usize) -> io::Result<TcpStream> {
        let addresses = self.addresses.len().max(1);
        let address = self.addresses.get(number % addresses);
        let address = *address.ok_or_else(|| io::Error::other("no target"))?;
        let stream = tokio::time::timeout(ANSWER_TIMEOUT, TcpStream::connect(address)).await??;
        stream.set_nodelay(true)?;
        Ok(stream)
    }
}

/// One request, which its connection sends repeatedly.
#[derive(Debug, Clone)]
pub struct Request {
    /// Number of the request in the phase, from 0.
    pub number: usize,
    /// Head and body as HTTP/1.1.
    pub http1: Bytes,
    /// The virtual key.
    pub key: String,
    /// The run that the call belongs to.
    pub run: String,
    /// The body alone.
    pub body: Bytes,
}

impl Request {
    /// Returns request number `number` with `key`, in a run of its own.
    #[must_use]
    pub fn new(number: usize, host: &str, key: &str, body: &str) -> Self {
        let run = format!("bench-{number}");
        Self {
            number,
            http1: wire::chat_request(host, key, &run, body).into(),
            key: key.to_owned(),
            run,
            body: Bytes::copy_from_slice(body.as_bytes()),
        }
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use std::sync::Arc;

    /// Returns a target without TLS, and `count` requests to it.
    pub(crate) fn plain(address: SocketAddr, expected: &[u16], count: usize) -> (Arc<Target>, Vec<Request>) {
        let target = Target {
            addresses: vec![address],
            expected: expected.to_vec(),
            version: Version::Http1,
            tls: None,
        };
        let body = wire::chat_body(wire::REQUEST_BODY_BYTES);
        let request = |number| Request::new(number, "bench", "k", &body);
        (Arc::new(target), (0..count).map(request).collect())
    }

    #[tokio::test]
    async fn connections_take_turns_with_the_addresses_and_no_address_is_an_error() {
        let listeners = [(); 2].map(|()| std::net::TcpListener::bind("127.0.0.1:0").unwrap());
        let (target, _) = plain(listeners[0].local_addr().unwrap(), &[200], 0);
        let mut target = Arc::into_inner(target).unwrap();
        target.addresses.push(listeners[1].local_addr().unwrap());
        for (number, listener) in [(0, 0), (1, 1), (2, 0)] {
            let peer = target.connect(number).await.unwrap().peer_addr().unwrap();
            assert_eq!(peer, listeners[listener].local_addr().unwrap());
        }
        target.addresses.clear();
        assert!(target.connect(0).await.is_err());
    }
}
