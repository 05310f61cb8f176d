//! The edge's certificate, read before a port is bound.

use super::certificate::Certificate;
use pingora::listeners::tls::Acceptor;
use rustls::pki_types::pem::{self, PemObject as _};
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::{InconsistentKeys, ServerConfig};
use settings::{BadSettings, ProxySettings};
use std::path::Path;
use std::sync::Arc;

/// Protocols that callers can choose, in order of preference.
const PROTOCOLS: [&[u8]; 2] = [b"h2", b"http/1.1"];

/// Creates the TLS acceptor, and returns the certificate that it presents; `None` without a certificate.
///
/// # Errors
/// One line that names the setting: certificate or key is missing, a file cannot be read, or certificate and key do not
/// match.
pub fn acceptor(proxy: &ProxySettings) -> Result<Option<(Acceptor, Certificate)>, BadSettings> {
    let has = |path: &Path| !path.as_os_str().is_empty();
    match (has(&proxy.tls_cert), has(&proxy.tls_key)) {
        (false, false) => return Ok(None),
        (true, true) => {}
        _ => {
            return Err(BadSettings(
                "`proxy.tls_cert` and `proxy.tls_key` belong together".to_owned(),
            ));
        }
    }
    let (mut config, certificate) = config(&proxy.tls_cert, &proxy.tls_key)?;
    config.alpn_protocols = PROTOCOLS.map(<[u8]>::to_vec).into();
    Ok(Some((
        Acceptor::from_server_config(Arc::new(config)),
        certificate,
    )))
}

fn config(cert: &Path, key: &Path) -> Result<(ServerConfig, Certificate), BadSettings> {
    let named = |name: &str, path: &Path, error: &dyn std::fmt::Display| {
        BadSettings(format!("{name} {}: {error}", path.display()))
    };
    let chain = CertificateDer::pem_file_iter(cert).and_then(Iterator::collect::<Result<Vec<_>, _>>);
    let chain = chain.map_err(|error| named("proxy.tls_cert", cert, &error))?;
    let Some(first) = chain.first() else {
        return Err(named("proxy.tls_cert", cert, &"it holds no certificate"));
    };
    let certificate = Certificate::new(cert, first);
    let private = PrivateKeyDer::from_pem_file(key).map_err(|error| match error {
        pem::Error::NoItemsFound => named("proxy.tls_key", key, &"it holds no private key"),
        error => named("proxy.tls_key", key, &error),
    })?;
    let config = ServerConfig::builder()
        .with_no_client_auth()
        .with_single_cert(chain, private)
        .map_err(|error| match error {
            rustls::Error::InconsistentKeys(InconsistentKeys::KeyMismatch) => BadSettings(format!(
                "proxy.tls_cert {} is not the certificate of the key in proxy.tls_key {}",
                cert.display(),
                key.display()
            )),
            error => named("proxy.tls_cert and proxy.tls_key", cert, &error),
        })?;
    Ok((config, certificate))
}
