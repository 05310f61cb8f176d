//! One POST to the collector, on a separate connection.

use bytes::Bytes;
use http::Request;
use http::header::{CONNECTION, CONTENT_TYPE, HOST, HeaderValue};
use http_body_util::Full;
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use rustls::pki_types::ServerName;
use rustls::{ClientConfig, RootCertStore};
use settings::collector::Collector;
use std::sync::Arc;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;

/// A collector, with its connection settings.
pub struct CollectorEndpoint {
    collector: Collector,
    tls: Option<TlsConnector>,
}

impl CollectorEndpoint {
    /// Creates the endpoint of a collector.
    ///
    /// # Errors
    /// TLS is required but cannot be set up.
    pub fn new(collector: Collector) -> Result<Self, rustls::Error> {
        let tls = collector.is_https().then(connector).transpose()?;
        Ok(Self { collector, tls })
    }

    /// Returns host and port, for the log.
    pub fn authority(&self) -> &str {
        self.collector.authority()
    }

    /// Sends a request; success is a 2xx response.
    ///
    /// # Errors
    /// A description of the failure.
    pub async fn post(&self, body: Vec<u8>) -> Result<(), &'static str> {
        let connected = TcpStream::connect((self.collector.host.as_str(), self.collector.port)).await;
        let stream = connected.map_err(|_| "it cannot be reached")?;
        match &self.tls {
            None => self.exchange(stream, body).await,
            Some(tls) => {
                let name = ServerName::try_from(self.collector.host.clone())
                    .map_err(|_| "its name is not a valid TLS server name")?;
                let stream = tls.connect(name, stream).await.map_err(|_| "TLS failed")?;
                self.exchange(stream, body).await
            }
        }
    }

    async fn exchange(
        &self,
        stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
        body: Vec<u8>,
    ) -> Result<(), &'static str> {
        let (mut sender, connection) = http1::handshake(TokioIo::new(stream))
            .await
            .map_err(|_| "it does not speak HTTP")?;
        let moving = tokio::spawn(connection);
        let answer = sender.send_request(self.request(body)).await;
        moving.abort();
        match answer {
            Ok(answer) if answer.status().is_success() => Ok(()),
            Ok(answer) if answer.status().is_client_error() => Err("it refused them (4xx)"),
            Ok(_) => Err("it answered without a 2xx status"),
            Err(_) => Err("it broke off"),
        }
    }

    fn request(&self, body: Vec<u8>) -> Request<Full<Bytes>> {
        let mut request = Request::new(Full::new(Bytes::from(body)));
        *request.method_mut() = http::Method::POST;
        let path = self.collector.uri.path().parse();
        *request.uri_mut() = path.unwrap_or_default();
        let headers = request.headers_mut();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/x-protobuf"));
        headers.insert(CONNECTION, HeaderValue::from_static("close"));
        if let Ok(host) = HeaderValue::from_str(self.authority()) {
            headers.insert(HOST, host);
        }
        headers.extend(self.collector.headers.iter().cloned());
        request
    }
}

/// Creates TLS with the operating system's trusted authorities.
fn connector() -> Result<TlsConnector, rustls::Error> {
    let mut roots = RootCertStore::empty();
    let found = rustls_native_certs::load_native_certs();
    let (_usable, _unusable) = roots.add_parsable_certificates(found.certs);
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()?
        .with_root_certificates(roots)
        .with_no_client_auth();
    Ok(TlsConnector::from(Arc::new(config)))
}
