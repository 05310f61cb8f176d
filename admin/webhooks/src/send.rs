//! One attempt to deliver a body to a URL: only to the judged addresses, without redirects, proxies, cookies or
//! credentials, within one deadline for everything, and with only a part of the answer kept (decisions D43 and D44).
//!
//! Each attempt has its own connection, so that it connects to exactly the addresses judged for it, and no state of a
//! receiver remains.

mod bounded;
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
use store::webhook::delivery::Attempt;
use tokio::time::{Instant, timeout_at};
use tokio_rustls::TlsConnector;

/// A delivery to be sent.
#[derive(Debug, Clone, Copy)]
pub struct Message<'a> {
    /// Id of the event's account, `acct_…`.
    pub account: &'a str,
    /// The delivery's id, the same for every attempt.
    pub id: &'a str,
    /// The exact bytes that are signed and sent.
    pub body: &'a Bytes,
    /// Secrets that sign the headers.
    pub secrets: &'a Secrets,
}

/// Deadline of an attempt.
#[derive(Debug, Clone, Copy)]
struct Deadline {
    at: Instant,
    /// Its length from the start of the attempt, for error texts.
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
    /// Creates a sender with the operating system's resolver and trusted certificate authorities.
    ///
    /// # Errors
    /// TLS cannot be set up.
    pub fn new(settings: &WebhookSettings) -> Result<Self, rustls::Error> {
        let resolver = Resolver::new(System::default(), settings.allow_private);
        let sender = Self::with(resolver, trust::system_roots(), settings.timeout_ms)?;
        let registrar = Resolver::new(System::of_registrations(), settings.allow_private);
        Ok(Self { registrar, ..sender })
    }

    /// Creates a sender with another resolver, also for registrations, and other authorities.
    pub fn with(resolver: Resolver, roots: RootCertStore, timeout_ms: u64) -> Result<Self, rustls::Error> {
        Ok(Self {
            registrar: resolver.clone(),
            resolver,
            tls: trust::connector(roots)?,
            timeout_ms,
        })
    }

    /// Checks at registration whether deliveries of an account may go to a URL.
    ///
    /// # Errors
    /// [`Refused`] of [`Resolver::check`].
    pub async fn check(&self, account: &str, url: &str) -> Result<(), Refused> {
        self.registrar.check(account, url).await
    }

    /// Makes one attempt. It ends within `webhooks.timeout_ms`, whatever the receiver does.
    pub async fn send(&self, url: &str, message: Message<'_>) -> Attempt {
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
        Attempt {
            at_ms,
            took_ms,
            code: code.map(|status| status.as_u16()),
            error: failure.map(|failure| failure.to_string()),
            excerpt,
            redelivery_requested: false,
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

#[cfg(test)]
mod tests;
