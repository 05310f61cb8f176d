//! The edge's certificate, read and tried before a port is bound: Pingora looks at it only when it listens, in a task
//! whose end leaves a process that serves nothing.

use pingora_core::listeners::tls::TlsSettings;
use rustls::ServerConfig;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use shared::settings::{BadSettings, ProxySettings};
use std::path::Path;

/// The settings of the listener; none without a certificate.
///
/// # Errors
/// One line that names the key: a file cannot be read, or the two do not belong together.
pub fn settings(proxy: &ProxySettings) -> Result<Option<TlsSettings>, BadSettings> {
    if proxy.tls_cert.as_os_str().is_empty() {
        return Ok(None);
    }
    try_out(&proxy.tls_cert, &proxy.tls_key)?;
    let (cert, key) = (
        proxy.tls_cert.display().to_string(),
        proxy.tls_key.display().to_string(),
    );
    let mut tls = TlsSettings::intermediate(&cert, &key)
        .map_err(|error| BadSettings(format!("proxy.tls_cert {cert}, proxy.tls_key {key}: {error}")))?;
    tls.enable_h2();
    Ok(Some(tls))
}

fn try_out(cert: &Path, key: &Path) -> Result<(), BadSettings> {
    let named = |name: &str, path: &Path, error: &dyn std::fmt::Display| {
        BadSettings(format!("{name} {}: {error}", path.display()))
    };
    let chain = CertificateDer::pem_file_iter(cert).and_then(Iterator::collect::<Result<Vec<_>, _>>);
    let chain = chain.map_err(|error| named("proxy.tls_cert", cert, &error))?;
    if chain.is_empty() {
        return Err(named("proxy.tls_cert", cert, &"it holds no certificate"));
    }
    let private = PrivateKeyDer::from_pem_file(key).map_err(|error| named("proxy.tls_key", key, &error))?;
    ServerConfig::builder()
        .with_no_client_auth()
        .with_single_cert(chain, private)
        .map(drop)
        .map_err(|error| named("proxy.tls_cert and proxy.tls_key", cert, &error))
}
