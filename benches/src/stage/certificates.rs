//! A private authority and one certificate for every server of the bench, made for the run.

use gate_bench_rig::tls::NAME;
use rcgen::{BasicConstraints, CertificateParams, DnType, IsCa, Issuer, KeyPair};
use std::error::Error;
use std::path::{Path, PathBuf};

/// Paths of PEM files.
#[derive(Debug)]
pub(crate) struct Certificates {
    /// Certificate of the authority, which all clients trust.
    pub(crate) authority: PathBuf,
    /// The servers' certificate, for `localhost` and 127.0.0.1.
    pub(crate) chain: PathBuf,
    /// Private key of the servers.
    pub(crate) key: PathBuf,
}

impl Certificates {
    /// Creates the files in `dir`.
    pub(crate) fn make(dir: &Path) -> Result<Self, Box<dyn Error>> {
        let mut params = CertificateParams::new(Vec::new())?;
        // Not the default name of rcgen: OpenSSL takes a certificate for self-signed if its issuer has the same name.
        params
            .distinguished_name
            .push(DnType::CommonName, "Authority of the bench");
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let authority_key = KeyPair::generate()?;
        let authority = params.self_signed(&authority_key)?;
        let issuer = Issuer::new(params, authority_key);
        let key = KeyPair::generate()?;
        let certificate = CertificateParams::new(vec![NAME.to_owned(), "127.0.0.1".to_owned()])?
            .signed_by(&key, &issuer)?;
        let write = |name: &str, text: String| -> std::io::Result<PathBuf> {
            let file = dir.join(name);
            std::fs::write(&file, text)?;
            Ok(file)
        };
        Ok(Self {
            authority: write("authority.pem", authority.pem())?,
            chain: write("certificate.pem", certificate.pem())?,
            key: write("key.pem", key.serialize_pem())?,
        })
    }

    /// TLS options of the rig's own servers.
    pub(crate) fn words(&self) -> [String; 4] {
        let shown = |path: &Path| path.display().to_string();
        [
            "--tls-cert".to_owned(),
            shown(&self.chain),
            "--tls-key".to_owned(),
            shown(&self.key),
        ]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use gate_bench_rig::tls;

    #[tokio::test]
    async fn the_authority_vouches_for_the_certificate_and_for_no_other() {
        let dir = tempfile::tempdir().unwrap();
        let made = Certificates::make(dir.path()).unwrap();
        let elsewhere = tempfile::tempdir().unwrap();
        let other = Certificates::make(elsewhere.path()).unwrap();
        let acceptor = tls::acceptor(&made.chain, &made.key).unwrap();
        for (authority, trusts) in [(&made.authority, true), (&other.authority, false)] {
            let connector = tls::connector(authority, b"http/1.1").unwrap();
            let (near, far) = tokio::io::duplex(1 << 16);
            let (shown, taken) = tokio::join!(
                acceptor.accept(far),
                connector.connect(tls::name().unwrap(), near)
            );
            assert_eq!((shown.is_ok(), taken.is_ok()), (trusts, trusts));
        }
    }
}
