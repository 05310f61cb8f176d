//! TLS of the rig: certificates of the servers and trust of the clients. The only authority is a private one of the
//! run.

use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::{ClientConfig, RootCertStore, ServerConfig, crypto};
use std::io;
use std::path::Path;
use std::sync::Arc;
use tokio_rustls::{TlsAcceptor, TlsConnector};

/// The name in every certificate of the bench.
pub const NAME: &str = "localhost";

fn unusable(error: impl std::error::Error + Send + Sync + 'static) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidInput, error)
}

/// Installs the cryptography that Pingora uses, too. Later calls have no effect.
pub fn install() {
    drop(crypto::ring::default_provider().install_default());
}

/// Returns a connector that trusts only the authority in `ca` and offers one version of HTTP.
///
/// # Errors
/// When the file holds no certificate.
pub fn connector(ca: &Path, version: &[u8]) -> io::Result<TlsConnector> {
    install();
    let mut roots = RootCertStore::empty();
    for certificate in CertificateDer::pem_file_iter(ca).map_err(unusable)? {
        roots.add(certificate.map_err(unusable)?).map_err(unusable)?;
    }
    let mut config = ClientConfig::builder()
        .with_root_certificates(roots)
        .with_no_client_auth();
    config.alpn_protocols = vec![version.to_vec()];
    Ok(TlsConnector::from(Arc::new(config)))
}

/// Returns the server's name for a connector.
///
/// # Errors
/// Never, as long as [`NAME`] is a valid name.
pub fn name() -> io::Result<ServerName<'static>> {
    ServerName::try_from(NAME).map_err(unusable)
}

/// Returns an acceptor with this certificate and key, for HTTP/1.1.
///
/// # Errors
/// When one of the files cannot be used.
pub fn acceptor(certificate: &Path, key: &Path) -> io::Result<TlsAcceptor> {
    install();
    let chain = CertificateDer::pem_file_iter(certificate).map_err(unusable)?;
    let chain = chain.collect::<Result<Vec<_>, _>>().map_err(unusable)?;
    let key = PrivateKeyDer::from_pem_file(key).map_err(unusable)?;
    let mut config = ServerConfig::builder()
        .with_no_client_auth()
        .with_single_cert(chain, key)
        .map_err(unusable)?;
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok(TlsAcceptor::from(Arc::new(config)))
}
