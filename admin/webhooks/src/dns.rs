//! Resolves a host to the addresses that may be connected to: each is checked by the policy, and the attempt connects
//! to no others (decision D44). Registrations and deliveries resolve each time, since the addresses of a name can
//! change. Each look-up is made for an account, so that its slow name servers do not use up the look-ups of others
//! (decision D43).

mod system;

pub use system::System;

use super::ip_policy;
use super::target::{BadUrl, DeliveryTarget, ReceiverHost};
use futures::FutureExt;
use futures::future::BoxFuture;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// Maximum number of addresses of a name that are tried; all of them are checked.
pub const ADDRESSES_MAX: usize = 8;
/// Longest wait for the addresses of a name.
const LOOKUP_TIMEOUT: Duration = Duration::from_secs(5);

/// Why there is no address to connect to, as a short text for the owner of the webhook.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Unresolved {
    /// The name has no address, or its name servers do not reply.
    #[error("the name does not resolve")]
    NoAddress,
    /// No answer in time.
    #[error("resolving the name takes too long")]
    Slow,
    /// The look-up did not begin in time: the look-ups of the account's share, or of the whole server, are in progress.
    #[error("too many names are being resolved")]
    Busy,
    /// At least one address is not public.
    #[error("the name resolves to a private address")]
    PrivateName,
    /// The address in the URL is not public.
    #[error("the address is private")]
    PrivateAddress,
}

/// The addresses of a name, or why there are none.
pub type Addresses = Result<Vec<IpAddr>, Unresolved>;

/// A look-up that is in progress or waits for its turn.
pub struct PendingLookup {
    /// Outcome of the look-up.
    pub answer: BoxFuture<'static, Addresses>,
    /// Set when a lookup slot was obtained.
    pub begun: Arc<AtomicBool>,
}

impl PendingLookup {
    /// Creates a look-up whose turn came at once.
    pub fn at_once(answer: impl Future<Output = Addresses> + Send + 'static) -> Self {
        Self {
            answer: answer.boxed(),
            begun: Arc::new(AtomicBool::new(true)),
        }
    }
}

/// Finds the addresses of a name: [`System`], or a fake in tests.
pub trait Lookup: Send + Sync + 'static {
    /// Looks up all addresses of a name, for an account.
    fn lookup(&self, account: &str, name: &str) -> PendingLookup;
}

/// Why a URL is not registered.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Refused {
    /// Nothing may be delivered to it.
    #[error(transparent)]
    Url(#[from] BadUrl),
    /// See [`Unresolved::Busy`]. The caller may retry.
    #[error("{}", Unresolved::Busy)]
    Busy,
}

/// Finds and judges addresses.
#[derive(Clone)]
pub struct Resolver {
    lookup: Arc<dyn Lookup>,
    allow_private: bool,
}

impl Resolver {
    /// Creates a resolver. With `allow_private` no address is refused (development).
    pub fn new(lookup: impl Lookup, allow_private: bool) -> Self {
        let lookup = Arc::new(lookup);
        Self {
            lookup,
            allow_private,
        }
    }

    /// Parses a URL.
    ///
    /// # Errors
    /// [`BadUrl`] of [`DeliveryTarget::parse`].
    pub fn target(&self, url: &str) -> Result<DeliveryTarget, BadUrl> {
        DeliveryTarget::parse(url, self.allow_private)
    }

    /// Checks at registration whether deliveries of an account may go to a URL: parses it and looks up its addresses.
    ///
    /// # Errors
    /// [`Refused::Url`] with the rule for the URL; [`Refused::Busy`].
    pub async fn check(&self, account: &str, url: &str) -> Result<(), Refused> {
        let target = self.target(url)?;
        let judged = self.addresses(account, &target).await;
        judged.map(drop).map_err(|refused| {
            let must = match refused {
                Unresolved::NoAddress => "name a host that can be looked up; this one has no address",
                Unresolved::Slow => "name a host that can be looked up; this one does not answer in time",
                Unresolved::Busy => return Refused::Busy,
                Unresolved::PrivateName => "name a host whose addresses are all public",
                Unresolved::PrivateAddress => "not be a private address",
            };
            BadUrl(must).into()
        })
    }

    /// Returns the addresses to connect to for an account, at least one and at most [`ADDRESSES_MAX`], in the order to
    /// try them. A single address that is not public refuses them all, since such a name is not trustworthy.
    ///
    /// # Errors
    /// [`Unresolved`]
    pub async fn addresses(
        &self,
        account: &str,
        target: &DeliveryTarget,
    ) -> Result<Vec<SocketAddr>, Unresolved> {
        let (found, refusal) = match &target.host {
            ReceiverHost::Address(ip) => (vec![*ip], Unresolved::PrivateAddress),
            ReceiverHost::Name(name) => {
                let PendingLookup { answer, begun } = self.lookup.lookup(account, name.as_ref());
                let found = tokio::time::timeout(LOOKUP_TIMEOUT, answer).await;
                let late = |_elapsed| match begun.load(Ordering::Relaxed) {
                    true => Unresolved::Slow,
                    false => Unresolved::Busy,
                };
                (found.map_err(late)??, Unresolved::PrivateName)
            }
        };
        if found.is_empty() {
            return Err(Unresolved::NoAddress);
        }
        if !self.allow_private && !found.iter().all(|ip| ip_policy::is_public(*ip)) {
            return Err(refusal);
        }
        let sockets = found.into_iter().map(|ip| SocketAddr::new(ip, target.port));
        Ok(sockets.take(ADDRESSES_MAX).collect())
    }
}

#[cfg(test)]
pub(super) mod tests;
