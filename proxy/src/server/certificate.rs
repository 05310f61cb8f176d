//! Expiry of the edge's certificate. After it, every caller that verifies certificates fails to connect.

use domain::timestamp::spoken_from_ms;
use rustls::pki_types::CertificateDer;
use settings::BadSettings;
use std::path::{Path, PathBuf};
use x509_parser::parse_x509_certificate;

/// Time before the expiry of a certificate from which on to warn, in seconds: 14 days, as in the alert
/// `TollgateCertificateEnds`.
const WARNED_BEFORE_S: i64 = 14 * 24 * 3600;

/// The certificate that the edge presents to callers.
#[derive(Debug)]
pub struct Certificate {
    /// `proxy.tls_cert`
    path: PathBuf,
    /// Expiry in seconds since 1970; `None` if it cannot be read.
    ends_s: Option<i64>,
}

/// State of the certificate at a point in time.
#[derive(Debug, PartialEq, Eq)]
enum Validity {
    Valid,
    ExpiresSoon,
    Expired,
    Unknown,
}

impl Certificate {
    /// Reads the expiry of the first certificate of the file `path`.
    pub fn new(path: &Path, der: &CertificateDer<'_>) -> Self {
        let parsed = parse_x509_certificate(der);
        Self {
            path: path.to_owned(),
            ends_s: parsed
                .ok()
                .map(|(_, certificate)| certificate.validity().not_after.timestamp()),
        }
    }

    /// Returns the expiry in seconds since 1970; 0 if it cannot be read.
    pub fn ends_s(&self) -> i64 {
        self.ends_s.unwrap_or_default()
    }

    /// Fails if the certificate has expired, so that the process does not replace a running one.
    ///
    /// # Errors
    /// [`BadSettings`] with the file and the expiry.
    pub fn check_takeover(&self) -> Result<(), BadSettings> {
        match self.validity(now_s()) {
            Validity::Expired => Err(BadSettings(format!(
                "{}, so it takes nothing over; the running process goes on",
                self.ended()
            ))),
            _ => Ok(()),
        }
    }

    /// Logs an expiry that is past or near.
    pub fn log(&self) {
        match self.validity(now_s()) {
            Validity::Valid => {}
            Validity::ExpiresSoon => tracing::warn!(
                "proxy.tls_cert {}: the certificate ends at {}",
                self.path.display(),
                self.end()
            ),
            Validity::Expired => tracing::error!("{}: callers that verify it fail", self.ended()),
            Validity::Unknown => tracing::warn!(
                "proxy.tls_cert {}: the end of the certificate cannot be read",
                self.path.display()
            ),
        }
    }

    fn ended(&self) -> String {
        format!(
            "proxy.tls_cert {}: the certificate ended at {}",
            self.path.display(),
            self.end()
        )
    }

    fn end(&self) -> String {
        spoken_from_ms(
            u64::try_from(self.ends_s())
                .unwrap_or_default()
                .saturating_mul(1000),
        )
    }

    fn validity(&self, now_s: i64) -> Validity {
        match self.ends_s {
            None => Validity::Unknown,
            Some(ends_s) if ends_s < now_s => Validity::Expired,
            Some(ends_s) if ends_s - now_s < WARNED_BEFORE_S => Validity::ExpiresSoon,
            Some(_) => Validity::Valid,
        }
    }
}

fn now_s() -> i64 {
    i64::try_from(clock::now_ms() / 1000).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustls::pki_types::pem::PemObject as _;

    /// Valid until 2126-11-02T20:54:32Z.
    const PEM: &str = include_str!("../../../shared/settings/src/ca_file/certificate.pem");
    const ENDS_S: i64 = 4_949_326_472;

    fn certificate(ends_s: Option<i64>) -> Certificate {
        Certificate {
            path: "/etc/cert.pem".into(),
            ends_s,
        }
    }

    #[test]
    fn the_end_is_read_from_the_certificate() {
        let der = CertificateDer::from_pem_slice(PEM.as_bytes()).unwrap();
        let read = Certificate::new(Path::new("/etc/cert.pem"), &der);
        assert_eq!(read.ends_s(), ENDS_S);
        let unread = Certificate::new(Path::new("/etc/cert.pem"), &CertificateDer::from(vec![0; 9]));
        assert_eq!((unread.ends_s(), unread.validity(0)), (0, Validity::Unknown));
    }

    #[test]
    fn the_validity_depends_on_the_remaining_time() {
        let certificate = certificate(Some(ENDS_S));
        for (left_s, validity) in [
            (WARNED_BEFORE_S, Validity::Valid),
            (WARNED_BEFORE_S - 1, Validity::ExpiresSoon),
            (0, Validity::ExpiresSoon),
            (-1, Validity::Expired),
        ] {
            assert_eq!(certificate.validity(ENDS_S - left_s), validity, "{left_s}");
        }
    }

    #[test]
    fn an_ended_one_takes_nothing_over() {
        let error = certificate(Some(1_577_836_800))
            .check_takeover()
            .unwrap_err()
            .to_string();
        let start = "proxy.tls_cert /etc/cert.pem: the certificate ended at 2020-01-01";
        assert!(error.starts_with(start), "{error}");
        certificate(Some(ENDS_S)).check_takeover().unwrap();
        certificate(None).check_takeover().unwrap();
    }
}
