//! Files of certificates to trust (`store.ca_file`, `upstream.ca_file`, `upstreams.<name>.ca_file`).

use crate::BadSettings;
use rustls::RootCertStore;
use rustls::pki_types::pem::{PemObject as _, SectionKind};
use std::path::Path;

/// Reads the `ca_file` of this section of the settings. Returns its text in PEM; `None` if `file` is empty, which
/// selects the system's certificates.
///
/// A file without a certificate is refused: nothing would be trusted, and each connection would fail.
///
/// # Errors
/// [`BadSettings`] with key and file: it cannot be read, or does not consist of certificates.
pub fn read(section: &str, file: &Path) -> Result<Option<Vec<u8>>, BadSettings> {
    if file.as_os_str().is_empty() {
        return Ok(None);
    }
    let named =
        |what: &dyn std::fmt::Display| BadSettings(format!("{section}.ca_file {}: {what}", file.display()));
    let text = std::fs::read(file).map_err(|error| named(&error))?;
    let mut trusted = RootCertStore::empty();
    for section in <(SectionKind, Vec<u8>)>::pem_slice_iter(&text) {
        let (kind, der) = section.map_err(|error| named(&error))?;
        if kind != SectionKind::Certificate {
            return Err(named(&"it must hold certificates alone"));
        }
        trusted
            .add(der.into())
            .map_err(|error| named(&format_args!("a certificate cannot be used: {error}")))?;
    }
    match trusted.is_empty() {
        true => Err(named(&"it holds no certificate")),
        false => Ok(Some(text)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `CN=Tollgate test`, made with `openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes`.
    const CERTIFICATE: &str = include_str!("ca_file/certificate.pem");

    fn read_text(text: &str) -> Result<Option<Vec<u8>>, String> {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), text).unwrap();
        read("store", file.path()).map_err(|error| {
            let error = error.to_string();
            let named = format!("store.ca_file {}: ", file.path().display());
            error.strip_prefix(&named).map(str::to_owned).unwrap()
        })
    }

    #[test]
    fn certificates_are_read_and_an_empty_path_means_the_usual_ones() {
        assert_eq!(read("store.ca_file", Path::new("")).unwrap(), None);
        for text in [
            CERTIFICATE.to_owned(),
            format!("# ours\n{CERTIFICATE}{CERTIFICATE}"),
        ] {
            assert_eq!(read_text(&text).unwrap(), Some(text.into_bytes()));
        }
    }

    #[test]
    fn a_file_without_valid_certificates_is_refused() {
        let broken = CERTIFICATE.replacen("MII", "AII", 1);
        let key = "-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n";
        for (text, what) in [
            ("", "it holds no certificate"),
            ("gate.example.com\n", "it holds no certificate"),
            (&*broken, "a certificate cannot be used"),
            (&*format!("{CERTIFICATE}{key}"), "it must hold certificates alone"),
            ("-----BEGIN CERTIFICATE-----\n", ""),
        ] {
            let error = read_text(text).unwrap_err();
            assert!(error.starts_with(what), "{text}: {error}");
        }
        let missing = read("upstream", Path::new("/nowhere/ca.pem")).unwrap_err();
        assert!(
            missing
                .to_string()
                .starts_with("upstream.ca_file /nowhere/ca.pem:")
        );
    }
}
