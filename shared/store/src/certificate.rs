//! The end of the certificate that the store presents to new connections. The library of commands does not show it, so
//! a connection of its own does the TLS handshake, sends nothing and ends.

use crate::error::StoreError;
use redis::{ConnectionAddr, IntoConnectionInfo};
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{CertificateError, ClientConfig, RootCertStore};
use std::io;
use std::sync::Arc;
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use x509_parser::parse_x509_certificate;

/// The address of a store with TLS, and the certificates that are trusted there.
pub(crate) struct CertificateProbe {
    host: String,
    port: u16,
    name: ServerName<'static>,
    connector: TlsConnector,
}

impl CertificateProbe {
    /// Creates the probe of the store at `url`; `None` if `url` has no TLS. `roots` are trusted certificates in PEM; if
    /// there are none, those are trusted that the library of commands trusts.
    ///
    /// # Errors
    /// [`StoreError::BadUrl`] without the address, which may include a password.
    pub(crate) fn new(url: &str, roots: Option<&[u8]>) -> Result<Option<Self>, StoreError> {
        let Ok(address) = url.into_connection_info() else {
            return Ok(None);
        };
        let ConnectionAddr::TcpTls { host, port, .. } = address.addr() else {
            return Ok(None);
        };
        let bad = |what: &dyn std::fmt::Display| StoreError::BadUrl(format!("store.url: {what}"));
        let name = ServerName::try_from(host.clone()).map_err(|error| bad(&error))?;
        let trusted = trusted(roots).map_err(|error| bad(&error))?;
        // The first crypto provider of the process that is installed stays.
        drop(rustls::crypto::ring::default_provider().install_default());
        let config = ClientConfig::builder()
            .with_root_certificates(trusted)
            .with_no_client_auth();
        Ok(Some(Self {
            host: host.clone(),
            port: *port,
            name,
            connector: TlsConnector::from(Arc::new(config)),
        }))
    }

    /// Connects, and returns the end of the certificate in seconds since 1970; of a chain, the earliest end. `None` if
    /// the server is away, or presents a certificate that is not trusted for another reason than its end.
    pub(crate) async fn ends_s(&self) -> Option<i64> {
        match self.presented().await {
            Ok(ends_s) => ends_s,
            Err(error) => end_of_refused(&error),
        }
    }

    async fn presented(&self) -> io::Result<Option<i64>> {
        let connection = TcpStream::connect((self.host.as_str(), self.port)).await?;
        let stream = self.connector.connect(self.name.clone(), connection).await?;
        let (_, session) = stream.get_ref();
        let chain = session.peer_certificates().unwrap_or_default();
        Ok(chain.iter().filter_map(end_of).min())
    }
}

/// Returns the trusted certificates, as the library of commands chooses them.
fn trusted(roots: Option<&[u8]>) -> Result<RootCertStore, rustls::Error> {
    let mut trusted = RootCertStore::empty();
    match roots {
        None => trusted.extend(webpki_roots::TLS_SERVER_ROOTS.iter().cloned()),
        Some(pem) => {
            for certificate in CertificateDer::pem_slice_iter(pem).flatten() {
                trusted.add(certificate)?;
            }
        }
    }
    Ok(trusted)
}

fn end_of(certificate: &CertificateDer<'_>) -> Option<i64> {
    let (_, certificate) = parse_x509_certificate(certificate).ok()?;
    Some(certificate.validity().not_after.timestamp())
}

/// Returns the end of a certificate that was refused because it has ended.
fn end_of_refused(error: &io::Error) -> Option<i64> {
    let error = error.get_ref()?.downcast_ref::<rustls::Error>()?;
    match error {
        rustls::Error::InvalidCertificate(CertificateError::ExpiredContext { not_after, .. }) => {
            i64::try_from(not_after.as_secs()).ok()
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustls::ServerConfig;
    use rustls::pki_types::PrivateKeyDer;
    use tokio::io::AsyncReadExt as _;
    use tokio::net::TcpListener;
    use tokio_rustls::TlsAcceptor;

    /// Starts a server with a certificate of its own that ends on the first day of `year`. Returns its address as
    /// `store.url`, its certificate in PEM, and the bytes that a connection sent after its handshake.
    async fn server(year: i32) -> (String, String, tokio::task::JoinHandle<Vec<u8>>) {
        drop(rustls::crypto::ring::default_provider().install_default());
        let mut params = rcgen::CertificateParams::new(["127.0.0.1".to_owned()]).unwrap();
        params.not_before = rcgen::date_time_ymd(2000, 1, 1);
        params.not_after = rcgen::date_time_ymd(year, 1, 1);
        let key = rcgen::KeyPair::generate().unwrap();
        let certificate = params.self_signed(&key).unwrap();
        let der = PrivateKeyDer::try_from(key.serialize_der()).unwrap();
        let config = ServerConfig::builder()
            .with_no_client_auth()
            .with_single_cert(vec![certificate.der().clone()], der)
            .unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!(
            "rediss://user:secret@127.0.0.1:{}",
            listener.local_addr().unwrap().port()
        );
        let serving = tokio::spawn(async move {
            let (connection, _) = listener.accept().await.unwrap();
            let mut sent = Vec::new();
            if let Ok(mut stream) = TlsAcceptor::from(Arc::new(config)).accept(connection).await {
                // A client that ends without a word of TLS is an error here.
                drop(stream.read_to_end(&mut sent).await);
            }
            sent
        });
        (url, certificate.pem(), serving)
    }

    /// 2100-01-01 and 2020-01-01.
    #[tokio::test]
    async fn the_end_is_that_of_the_presented_certificate_also_when_it_is_past() {
        for (year, ends_s) in [(2100, 4_102_444_800), (2020, 1_577_836_800)] {
            let (url, pem, serving) = server(year).await;
            let probe = CertificateProbe::new(&url, Some(pem.as_bytes()))
                .unwrap()
                .unwrap();
            assert_eq!(probe.ends_s().await, Some(ends_s), "{year}");
            assert_eq!(serving.await.unwrap(), b"", "nothing is sent");
        }
    }

    #[tokio::test]
    async fn a_certificate_of_another_authority_has_no_end() {
        let (url, ..) = server(2100).await;
        let (_, other, _) = server(2100).await;
        for roots in [None, Some(other.as_bytes())] {
            let probe = CertificateProbe::new(&url, roots).unwrap().unwrap();
            assert_eq!(probe.ends_s().await, None);
        }
    }

    #[test]
    fn a_store_without_tls_presents_none() {
        for url in [
            "redis://127.0.0.1:6379",
            "redis+unix:///run/redis.sock",
            "redis-cluster://a:1,b:2",
        ] {
            assert!(CertificateProbe::new(url, None).unwrap().is_none(), "{url}");
        }
    }
}
