//! From a host to the addresses that may be connected to: resolved, each checked by the policy, and from then on the only
//! ones (decision D44). Registrations and deliveries resolve each time, since the addresses of a name can change.

mod system;

pub use system::System;

use super::ip_policy;
use super::target::{BadUrl, Receiver, Target};
use futures::future::BoxFuture;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

/// Addresses of a name that are tried at most; all of them are checked.
pub const ADDRESSES_MAX: usize = 8;
/// Longest wait for the addresses of a name.
const LOOKUP_TIMEOUT: Duration = Duration::from_secs(5);

/// Why there is no address to connect to, in a few words for the owner of the webhook.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Unresolved {
    /// The name has no address, or its servers cannot be asked.
    #[error("the name does not resolve")]
    NoAddress,
    /// No answer in time.
    #[error("resolving the name takes too long")]
    Slow,
    /// At least one address is not public.
    #[error("the name resolves to a private address")]
    PrivateName,
    /// The address in the URL is not public.
    #[error("the address is private")]
    PrivateAddress,
}

/// What finds the addresses of a name: [`System`], or what a test makes of it.
pub trait Lookup: Send + Sync + 'static {
    /// All addresses of a name.
    fn lookup(&self, name: &str) -> BoxFuture<'static, Result<Vec<IpAddr>, Unresolved>>;
}

/// Finds and judges addresses.
#[derive(Clone)]
pub struct Resolver {
    lookup: Arc<dyn Lookup>,
    allow_private: bool,
}

impl Resolver {
    /// With `allow_private` nothing is refused (development).
    pub fn new(lookup: impl Lookup, allow_private: bool) -> Self {
        let lookup = Arc::new(lookup);
        Self {
            lookup,
            allow_private,
        }
    }

    /// Reads a URL.
    ///
    /// # Errors
    /// [`BadUrl`] as [`Target::parse`].
    pub fn target(&self, url: &str) -> Result<Target, BadUrl> {
        Target::parse(url, self.allow_private)
    }

    /// Whether deliveries may go to a URL: reads it and asks for its addresses, for the moment of its registration.
    ///
    /// # Errors
    /// [`BadUrl`] says what the URL must be.
    pub async fn check(&self, url: &str) -> Result<(), BadUrl> {
        let target = self.target(url)?;
        let judged = self.addresses(&target).await;
        judged.map(drop).map_err(|refused| match refused {
            Unresolved::NoAddress => BadUrl("name a host that can be looked up; this one has no address"),
            Unresolved::Slow => BadUrl("name a host that can be looked up; this one does not answer in time"),
            Unresolved::PrivateName => BadUrl("name a host whose addresses are all public"),
            Unresolved::PrivateAddress => BadUrl("not be a private address"),
        })
    }

    /// The addresses to connect to, at least one and at most [`ADDRESSES_MAX`], in the order to try them. One address
    /// that is not public refuses them all: what else the name has is no reason to trust it.
    ///
    /// # Errors
    /// [`Unresolved`]
    pub async fn addresses(&self, target: &Target) -> Result<Vec<SocketAddr>, Unresolved> {
        let (found, refusal) = match &target.host {
            Receiver::Address(ip) => (vec![*ip], Unresolved::PrivateAddress),
            Receiver::Name(name) => {
                let looking = self.lookup.lookup(name.as_ref());
                let found = tokio::time::timeout(LOOKUP_TIMEOUT, looking).await;
                (
                    found.map_err(|_elapsed| Unresolved::Slow)??,
                    Unresolved::PrivateName,
                )
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

impl std::fmt::Debug for Resolver {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let mut shown = f.debug_struct("Resolver");
        shown
            .field("allow_private", &self.allow_private)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
pub(super) mod tests;
