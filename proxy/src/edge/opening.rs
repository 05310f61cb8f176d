//! The first bytes of a connection, under a deadline. Pingora waits for them without one, to see whether they are the
//! preface of HTTP/2; callers that connect and stay silent would hold their connections for ever.

use super::Edge;
use async_trait::async_trait;
use pingora_core::apps::ServerApp;
use pingora_core::protocols::Stream;
use pingora_core::server::ShutdownWatch;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::timeout;

/// How much Pingora waits for: the length of the preface. No request with a `Host` header is shorter.
const PREFACE_BYTES: usize = 24;

/// The edge behind a deadline for the first bytes.
#[derive(Debug)]
pub struct Opening {
    edge: Arc<Edge>,
    within: Duration,
}

impl Opening {
    /// The edge, with this long for the first bytes.
    #[must_use]
    pub fn new(edge: Edge, within: Duration) -> Self {
        let edge = Arc::new(edge);
        Self { edge, within }
    }
}

#[async_trait]
impl ServerApp for Opening {
    async fn process_new(
        self: &Arc<Self>,
        mut connection: Stream,
        shutdown: &ShutdownWatch,
    ) -> Option<Stream> {
        let mut first = [0; PREFACE_BYTES];
        // A TLS connection cannot be peeked at and says so at once; its handshake has a deadline of Pingora's.
        timeout(self.within, connection.try_peek(&mut first))
            .await
            .ok()?
            .ok()?;
        self.edge.process_new(connection, shutdown).await
    }
}
