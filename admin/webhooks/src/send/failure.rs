//! Why an attempt failed, as a short text for the owner of the webhook. Never contains a library's text, which could
//! reveal details of our network.

use super::bounded::TooMuch;
use crate::dns::Unresolved;
use crate::target::BadUrl;
use http::StatusCode;
use rustls::CertificateError;
use std::error::Error as _;
use std::io;

/// Why an attempt failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum AttemptFailure {
    /// Deliveries may not go to this URL any more.
    #[error("not sent: {0}")]
    Url(#[from] BadUrl),
    /// There is no address to connect to.
    #[error(transparent)]
    Unresolved(#[from] Unresolved),
    /// The delivery's id cannot be sent.
    #[error("not sent: its id cannot stand in a header")]
    Unsendable,
    /// The deadline of the attempt, in milliseconds.
    #[error("timed out after {0} ms")]
    TimedOut(u64),
    /// No process listens there.
    #[error("connection refused")]
    Refused,
    /// There is no route, or no reply.
    #[error("the host cannot be reached")]
    Unreachable,
    /// The certificate is not trusted.
    #[error("certificate not trusted")]
    Untrusted,
    /// The certificate is for another host.
    #[error("the certificate is for another name")]
    OtherName,
    /// The certificate has expired, or is not valid yet.
    #[error("the certificate is expired or not valid yet")]
    Expired,
    /// The TLS handshake failed.
    #[error("the TLS handshake failed")]
    Handshake,
    /// The connection was closed too early.
    #[error("the connection was closed before an answer")]
    Closed,
    /// The answer is not HTTP.
    #[error("the answer is not HTTP")]
    NotHttp,
    /// The head of the answer is longer than allowed, or interim ones are before it without end.
    #[error("the head of the answer is too large")]
    LargeHead,
    /// 3xx.
    #[error("redirects are not followed")]
    Redirect,
    /// Any status other than 2xx.
    #[error("answered {0}")]
    Status(u16),
}

impl AttemptFailure {
    /// Returns the failure of a status; `None` for 2xx.
    pub(super) fn from_status(status: StatusCode) -> Option<Self> {
        if status.is_success() {
            None
        } else if status.is_redirection() {
            Some(Self::Redirect)
        } else {
            Some(Self::Status(status.as_u16()))
        }
    }

    pub(super) fn from_connect(kind: io::ErrorKind) -> Self {
        match kind {
            io::ErrorKind::ConnectionRefused => Self::Refused,
            io::ErrorKind::ConnectionReset | io::ErrorKind::ConnectionAborted => Self::Closed,
            _ => Self::Unreachable,
        }
    }

    pub(super) fn from_tls(error: &io::Error) -> Self {
        let cause = error.get_ref().and_then(|cause| cause.downcast_ref());
        let Some(rustls::Error::InvalidCertificate(wrong)) = cause else {
            return Self::Handshake;
        };
        match wrong {
            CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. } => {
                Self::OtherName
            }
            CertificateError::Expired
            | CertificateError::ExpiredContext { .. }
            | CertificateError::NotValidYet
            | CertificateError::NotValidYetContext { .. } => Self::Expired,
            _ => Self::Untrusted,
        }
    }

    pub(super) fn from_http(error: &hyper::Error) -> Self {
        let cause = error.source().and_then(|cause| cause.downcast_ref::<io::Error>());
        let is_too_much = cause
            .and_then(io::Error::get_ref)
            .is_some_and(|inner| inner.is::<TooMuch>());
        if is_too_much || error.is_parse_too_large() {
            Self::LargeHead
        } else if error.is_parse() {
            Self::NotHttp
        } else {
            Self::Closed
        }
    }
}
