//! One attempt to deliver a body to a URL: only to the judged addresses, without redirects, proxies, cookies or
//! credentials, within one deadline for everything, and with only a part of the answer kept (decisions D43 and D44).
//!
//! Each attempt has its own connection, so that it connects to exactly the addresses judged for it, and no state of a
//! receiver remains.

mod address_limiter;
mod bounded;
mod connect;
mod exchange;
mod failure;
mod trust;

pub use failure::AttemptFailure;

use super::dns::{Refused, Resolver, System, Unresolved};
use super::sign::{self, Secrets};
use address_limiter::AddressLimiter;
use bytes::Bytes;
use clock::now_ms;
use connect::connect;
use http::StatusCode;
use rustls::RootCertStore;
use settings::WebhookSettings;
use std::sync::Arc;
use std::time::Duration;
use store::webhook::delivery::Attempt;
use tokio::time::{Instant, timeout_at};
use tokio_rustls::TlsConnector;

/// Attempts of an account under way at one address, of all its webhooks; more if `webhooks.requests_at_once` is.
const AT_ADDRESS_MAX: usize = 16;

/// A delivery to be sent.
#[derive(Debug, Clone, Copy)]
pub struct OutgoingDelivery<'a> {
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
    address_limiter: Arc<AddressLimiter>,
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
        let registrar = Resolver::new(System::for_registrations(), settings.allow_private);
        let at_address = AT_ADDRESS_MAX.max(settings.requests_at_once);
        Ok(Self {
            registrar,
            address_limiter: Arc::new(AddressLimiter::new(at_address)),
            ..sender
        })
    }

    /// Creates a sender with another resolver, also for registrations, and other authorities.
    pub fn with(resolver: Resolver, roots: RootCertStore, timeout_ms: u64) -> Result<Self, rustls::Error> {
        Ok(Self {
            registrar: resolver.clone(),
            resolver,
            tls: trust::connector(roots)?,
            address_limiter: Arc::new(AddressLimiter::new(AT_ADDRESS_MAX)),
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

    /// Makes one attempt. It ends within `webhooks.timeout_ms`, whatever the receiver does, without the wait for a
    /// permit at its address, which ends at `begin_by`. `None` if there was no permit: nothing was sent.
    pub async fn send(&self, url: &str, message: OutgoingDelivery<'_>, begin_by: Instant) -> Option<Attempt> {
        let at_ms = now_ms();
        let began = Instant::now();
        let mut waited = Duration::ZERO;
        let answer = self.exchange(url, message, at_ms, (began, begin_by), &mut waited);
        let answer = answer.await.transpose()?;
        let took = began.elapsed().saturating_sub(waited);
        let took_ms = u64::try_from(took.as_millis()).unwrap_or(u64::MAX);
        let (code, excerpt, failure) = match answer {
            Ok((status, excerpt)) => (Some(status), excerpt, AttemptFailure::from_status(status)),
            Err(failure) => (None, None, Some(failure)),
        };
        Some(Attempt {
            at_ms,
            took_ms,
            code: code.map(|status| status.as_u16()),
            error: failure.map(|failure| failure.to_string()),
            excerpt,
            redelivery_requested: false,
        })
    }

    /// Returns the answer; `None` if there was no turn at the receiver's address until `begin_by`. Sets the time that
    /// was `waited` for it.
    async fn exchange(
        &self,
        url: &str,
        message: OutgoingDelivery<'_>,
        at_ms: u64,
        (began, begin_by): (Instant, Instant),
        waited: &mut Duration,
    ) -> Result<Option<(StatusCode, Option<String>)>, AttemptFailure> {
        let timeout_ms = self.timeout_ms;
        let mut deadline = Deadline {
            at: began + Duration::from_millis(timeout_ms),
            timeout_ms,
        };
        let late = |_elapsed| AttemptFailure::TimedOut(timeout_ms);
        let target = self.resolver.target(url)?;
        let headers = sign::headers(message.secrets, message.id, at_ms, message.body)
            .map_err(|_| AttemptFailure::Unsendable)?;
        let request = exchange::request(&target, headers, message.body.clone());
        let resolving = self.resolver.addresses(message.account, &target);
        let addresses = timeout_at(deadline.at, resolving).await.map_err(late)??;
        let Some(first) = addresses.first() else {
            return Err(Unresolved::NoAddress.into());
        };
        let resolved = Instant::now();
        let Some(_permit) = self
            .address_limiter
            .enter(message.account, *first, begin_by)
            .await
        else {
            return Ok(None);
        };
        *waited = resolved.elapsed();
        deadline.at += *waited;
        let try_enter = |address| self.address_limiter.try_enter(message.account, address);
        let answering = async {
            let (stream, permit) = connect(&target, &addresses, &self.tls, (deadline, &try_enter)).await?;
            Ok::<_, AttemptFailure>((exchange::answer(stream, request).await?, permit))
        };
        let (answer, _permit_elsewhere) = timeout_at(deadline.at, answering).await.map_err(late)??;
        Ok(Some((answer.status(), answer.excerpt(deadline.at).await)))
    }
}

#[cfg(test)]
mod tests;
