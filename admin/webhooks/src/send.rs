//! One attempt to deliver a body to a URL: to the judged addresses and no other, without redirects, proxies, cookies or
//! credentials, within one deadline over everything, and with little kept of the answer (decisions D43 and D44).
//!
//! Each attempt has a connection of its own, so that what was judged for it is what it connects to, and nothing of a
//! receiver stays behind.

mod connect;
mod exchange;
mod failure;
mod trust;

pub use failure::Failure;

use super::resolve::{Refused, Resolver, System};
use super::sign::{self, Secrets};
use bytes::Bytes;
use clock::now_ms;
use connect::connect;
use http::StatusCode;
use rustls::RootCertStore;
use settings::WebhookSettings;
use std::time::Duration;
use tokio::time::{Instant, timeout_at};
use tokio_rustls::TlsConnector;

/// A delivery to be sent.
#[derive(Debug, Clone, Copy)]
pub struct Message<'a> {
    /// Id of the account whose event it is, `acct_…`.
    pub account: &'a str,
    /// The delivery's id, the same at every attempt.
    pub id: &'a str,
    /// The exact bytes that are signed and sent.
    pub body: &'a Bytes,
    /// What signs them.
    pub secrets: &'a Secrets,
}

/// Outcome of an attempt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Attempted {
    /// When it was made.
    pub at_ms: u64,
    /// How long it took.
    pub took_ms: u64,
    /// The status that the receiver answered with, if it answered.
    pub code: Option<u16>,
    /// Why it failed, in a few words for people; `None` when the receiver has accepted the delivery.
    pub error: Option<String>,
    /// The beginning of the answer's body as one printable line, at most 256 bytes; `None` when there was none.
    pub excerpt: Option<String>,
}

impl Attempted {
    /// Whether the receiver has accepted the delivery: it answered 2xx.
    pub fn accepted(&self) -> bool {
        self.error.is_none()
    }
}

/// When an attempt has to be over.
#[derive(Debug, Clone, Copy)]
struct Deadline {
    at: Instant,
    /// How long that is from its beginning, to be said.
    timeout_ms: u64,
}

impl Deadline {
    fn left(self) -> Duration {
        self.at.saturating_duration_since(Instant::now())
    }
}

/// Makes attempts.
#[derive(Clone)]
pub struct Sender {
    resolver: Resolver,
    /// Judges URLs that are to be registered.
    registrar: Resolver,
    tls: TlsConnector,
    timeout_ms: u64,
}

impl Sender {
    /// A sender that asks the operating system for addresses and trusts the certificate authorities that it trusts.
    ///
    /// # Errors
    /// When the cryptography cannot be set up.
    pub fn new(settings: &WebhookSettings) -> Result<Self, rustls::Error> {
        let resolver = Resolver::new(System::default(), settings.allow_private);
        let sender = Self::with(resolver, trust::system_roots(), settings.timeout_ms)?;
        let registrar = Resolver::new(System::of_registrations(), settings.allow_private);
        Ok(Self { registrar, ..sender })
    }

    /// A sender with its own resolver, for registrations too, and authorities.
    pub fn with(resolver: Resolver, roots: RootCertStore, timeout_ms: u64) -> Result<Self, rustls::Error> {
        Ok(Self {
            registrar: resolver.clone(),
            resolver,
            tls: trust::connector(roots)?,
            timeout_ms,
        })
    }

    /// Whether deliveries of an account may go to a URL, for the moment of its registration.
    ///
    /// # Errors
    /// [`Refused`], as [`Resolver::check`].
    pub async fn check(&self, account: &str, url: &str) -> Result<(), Refused> {
        self.registrar.check(account, url).await
    }

    /// Makes one attempt. It ends within `webhooks.timeout_ms`, whatever the receiver does.
    pub async fn send(&self, url: &str, message: Message<'_>) -> Attempted {
        let at_ms = now_ms();
        let began = Instant::now();
        let deadline = Deadline {
            at: began + Duration::from_millis(self.timeout_ms),
            timeout_ms: self.timeout_ms,
        };
        let answer = self.exchange(url, message, at_ms, deadline).await;
        let took_ms = u64::try_from(began.elapsed().as_millis()).unwrap_or(u64::MAX);
        let (code, excerpt, failure) = match answer {
            Ok((status, excerpt)) => (Some(status), excerpt, Failure::of_status(status)),
            Err(failure) => (None, None, Some(failure)),
        };
        Attempted {
            at_ms,
            took_ms,
            code: code.map(|status| status.as_u16()),
            error: failure.map(|failure| failure.to_string()),
            excerpt,
        }
    }

    async fn exchange(
        &self,
        url: &str,
        message: Message<'_>,
        at_ms: u64,
        deadline: Deadline,
    ) -> Result<(StatusCode, Option<String>), Failure> {
        let target = self.resolver.target(url)?;
        let headers = sign::headers(message.secrets, message.id, at_ms, message.body)
            .map_err(|_| Failure::Unsendable)?;
        let request = exchange::request(&target, headers, message.body.clone());
        let answering = async {
            let addresses = self.resolver.addresses(message.account, &target).await?;
            let stream = connect(&target, &addresses, &self.tls, deadline).await?;
            exchange::answer(stream, request).await
        };
        let answer = timeout_at(deadline.at, answering).await;
        let answer = answer.map_err(|_elapsed| Failure::TimedOut(deadline.timeout_ms))??;
        Ok((answer.status(), answer.excerpt(deadline.at).await))
    }
}

impl std::fmt::Debug for Sender {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let mut shown = f.debug_struct("Sender");
        shown
            .field("timeout_ms", &self.timeout_ms)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
