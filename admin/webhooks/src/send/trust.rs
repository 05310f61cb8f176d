//! Trusted certificate authorities: those of the operating system.

use rustls::{ClientConfig, RootCertStore};
use std::sync::Arc;
use tokio_rustls::TlsConnector;

/// Returns the authorities of the operating system, or of `SSL_CERT_FILE` and `SSL_CERT_DIR`. Without any, no receiver
/// is trusted over TLS.
pub(super) fn system_roots() -> RootCertStore {
    let found = rustls_native_certs::load_native_certs();
    for error in &found.errors {
        tracing::warn!(%error, "certificate authorities that cannot be read");
    }
    let mut roots = RootCertStore::empty();
    let (_usable, _unusable) = roots.add_parsable_certificates(found.certs);
    if roots.is_empty() {
        tracing::warn!("this machine trusts no certificate authorities: webhooks over https will fail");
    }
    roots
}

/// Creates TLS that verifies the certificate against `roots` and the receiver's name, and speaks HTTP/1.1.
pub(super) fn connector(roots: RootCertStore) -> Result<TlsConnector, rustls::Error> {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let mut config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()?
        .with_root_certificates(roots)
        .with_no_client_auth();
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok(TlsConnector::from(Arc::new(config)))
}
