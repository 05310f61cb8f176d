//! One POST to the collector, on a connection of its own.

use crate::settings::TelemetrySettings;
use bytes::Bytes;
use http::header::{CONNECTION, CONTENT_TYPE, HOST, HeaderName, HeaderValue};
use http::{Request, Uri};
use http_body_util::Full;
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use rustls::pki_types::ServerName;
use rustls::{ClientConfig, RootCertStore};
use secrecy::ExposeSecret;
use std::sync::Arc;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;

/// Where a collector takes traces, behind its base address.
const PATH: &str = "/v1/traces";

/// A collector.
#[derive(Clone)]
pub struct Endpoint {
    uri: Uri,
    host: String,
    port: u16,
    tls: Option<TlsConnector>,
    headers: Vec<(HeaderName, HeaderValue)>,
}

impl std::fmt::Debug for Endpoint {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Endpoint")
            .field("authority", &self.authority())
            .finish_non_exhaustive()
    }
}

impl Endpoint {
    /// The configured collector, or `None` when none is.
    ///
    /// # Errors
    /// One line that names the key; never what a header says.
    pub fn of(settings: &TelemetrySettings) -> Result<Option<Self>, String> {
        let base = settings.otlp_endpoint.trim_end_matches('/');
        if base.is_empty() {
            return Ok(None);
        }
        let bad = || {
            "`telemetry.otlp_endpoint` must be http:// or https:// with a host, such as http://127.0.0.1:4318"
                .to_owned()
        };
        let uri: Uri = format!("{base}{PATH}").parse().map_err(|_| bad())?;
        let (scheme, authority) = uri.scheme_str().zip(uri.authority()).ok_or_else(bad)?;
        let plain_port = match scheme {
            "http" => 80,
            "https" => 443,
            _ => return Err(bad()),
        };
        if authority.as_str().contains('@') || uri.query().is_some() {
            return Err(bad());
        }
        let host = authority.host().trim_matches(['[', ']']).to_owned();
        let port = authority.port_u16().unwrap_or(plain_port);
        let tls = (scheme == "https").then(connector).transpose()?;
        Ok(Some(Self {
            headers: headers(settings.otlp_headers.expose_secret())?,
            uri,
            host,
            port,
            tls,
        }))
    }

    /// Host and port, for the log.
    #[must_use]
    pub fn authority(&self) -> &str {
        self.uri.authority().map_or("", |authority| authority.as_str())
    }

    /// Sends a request; the collector took it when it answers 2xx.
    ///
    /// # Errors
    /// What went wrong, in words of ours.
    pub async fn post(&self, body: Vec<u8>) -> Result<(), &'static str> {
        let connected = TcpStream::connect((self.host.as_str(), self.port)).await;
        let stream = connected.map_err(|_| "it cannot be reached")?;
        match &self.tls {
            None => self.exchange(stream, body).await,
            Some(tls) => {
                let name = ServerName::try_from(self.host.clone()).map_err(|_| "its name is none for TLS")?;
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
            Ok(_) => Err("it did not take them (no 2xx)"),
            Err(_) => Err("it broke off"),
        }
    }

    fn request(&self, body: Vec<u8>) -> Request<Full<Bytes>> {
        let mut request = Request::new(Full::new(Bytes::from(body)));
        *request.method_mut() = http::Method::POST;
        let path = self.uri.path().parse();
        *request.uri_mut() = path.unwrap_or_else(|_| Uri::from_static(PATH));
        let headers = request.headers_mut();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/x-protobuf"));
        headers.insert(CONNECTION, HeaderValue::from_static("close"));
        if let Ok(host) = HeaderValue::from_str(self.authority()) {
            headers.insert(HOST, host);
        }
        headers.extend(self.headers.iter().cloned());
        request
    }
}

/// `name=value,name=value`
fn headers(text: &str) -> Result<Vec<(HeaderName, HeaderValue)>, String> {
    let bad =
        || "`telemetry.otlp_headers` must be name=value, several of them with commas between".to_owned();
    let pairs = text.split(',').map(str::trim).filter(|pair| !pair.is_empty());
    pairs
        .map(|pair| {
            let (name, value) = pair.split_once('=').ok_or_else(bad)?;
            let name = name.trim().parse().map_err(|_| bad())?;
            let mut value = HeaderValue::from_str(value.trim()).map_err(|_| bad())?;
            value.set_sensitive(true);
            Ok((name, value))
        })
        .collect()
}

/// TLS that trusts the authorities of the operating system.
fn connector() -> Result<TlsConnector, String> {
    let mut roots = RootCertStore::empty();
    let found = rustls_native_certs::load_native_certs();
    let (_usable, _unusable) = roots.add_parsable_certificates(found.certs);
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|error| format!("`telemetry.otlp_endpoint`: {error}"))?
        .with_root_certificates(roots)
        .with_no_client_auth();
    Ok(TlsConnector::from(Arc::new(config)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn endpoint(url: &str, headers: &str) -> Result<Option<Endpoint>, String> {
        Endpoint::of(&TelemetrySettings {
            otlp_endpoint: url.to_owned(),
            otlp_headers: headers.to_owned().into(),
            sample_ratio: 1.0,
        })
    }

    #[test]
    fn a_base_address_becomes_the_address_of_traces() {
        assert!(endpoint("", "").unwrap().is_none());
        for (url, host, port, path) in [
            ("http://127.0.0.1:4318", "127.0.0.1", 4318, "/v1/traces"),
            ("https://otel.example/", "otel.example", 443, "/v1/traces"),
            ("http://[::1]/otlp", "::1", 80, "/otlp/v1/traces"),
        ] {
            let found = endpoint(url, "").unwrap().unwrap();
            assert_eq!(
                (found.host.as_str(), found.port, found.uri.path()),
                (host, port, path)
            );
            assert_eq!(found.tls.is_some(), url.starts_with("https"));
        }
    }

    #[test]
    fn mistakes_name_the_key_and_not_the_secret() {
        for bad in [
            "127.0.0.1:4318",
            "ftp://x",
            "http://",
            "http://u:p@x",
            "http://x/?a=b",
        ] {
            assert!(
                endpoint(bad, "").unwrap_err().contains("telemetry.otlp_endpoint"),
                "{bad}"
            );
        }
        for bad in ["secret", "a b=secret", "a=sec\nret"] {
            let error = endpoint("http://x", bad).unwrap_err();
            assert!(
                error.contains("telemetry.otlp_headers") && !error.contains("sec"),
                "{error}"
            );
        }
        let good = endpoint("http://x", "authorization=Bearer x, x-team = 7")
            .unwrap()
            .unwrap();
        assert_eq!(good.headers.len(), 2);
        assert_eq!(good.headers[1].1, "7");
        assert!(!format!("{good:?}").contains("Bearer"));
    }
}
