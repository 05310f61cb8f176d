//! Address of the provider, resolved in the background so that no call waits for DNS.

use super::destination::Destination;
use super::failure::UpstreamFailure;
use arc_swap::ArcSwapOption;
use http::uri::Authority;
use http::{HeaderValue, Uri};
use parking_lot::Mutex;
use pingora::upstreams::peer::HttpPeer;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

/// Interval of resolving the provider's name.
pub const RESOLVE_EVERY: Duration = Duration::from_secs(30);
/// Deadline of a resolution.
const RESOLVE_TIMEOUT: Duration = Duration::from_secs(5);

/// Deadline of a connection, TLS included. It is far shorter than that of a call, so that an address which swallows all
/// packets costs few calls: the first that fails makes the others use the name's next address.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);

/// Error of a name that was not resolved yet.
const NOT_YET: &str = "its name is being resolved";

/// Maximum number of a name's addresses that are used; more are ignored.
const ADDRESSES_MAX: usize = 16;

/// The provider's address.
#[derive(Debug)]
pub struct UpstreamTarget {
    /// True for `https`.
    pub tls: bool,
    /// Host name, which the certificate must contain. Never empty: an empty name would turn verification off.
    pub host: String,
    /// Value of the `Host` header.
    pub authority: HeaderValue,
    /// For the log.
    pub(super) destination: Arc<Destination>,
    pub(super) connect_timeout: Duration,
    port: u16,
    /// The address in use. Changed under the lock of `addresses`.
    peer: ArcSwapOption<HttpPeer>,
    /// The addresses last found. Sorted, so that successive failures reach each of them, in whatever order the name's
    /// servers list them.
    addresses: Mutex<Vec<SocketAddr>>,
    /// Why the last resolution failed.
    resolve_error: Mutex<String>,
}

impl UpstreamTarget {
    /// Parses the `base_url` of a section of the settings; `name` is the upstream's name in the log.
    ///
    /// # Errors
    /// One-line fault of the address.
    pub fn parse(section: &str, name: &str, base_url: &str) -> Result<Self, String> {
        let wrong = |what: &str| format!("`{section}.base_url` {what}");
        let uri: Uri = base_url.parse().map_err(|_| wrong("is not a URL"))?;
        let tls = uri.scheme_str() == Some("https");
        let authority: &Authority = uri.authority().ok_or_else(|| wrong("has no host"))?;
        if authority.as_str().contains('@') {
            return Err(wrong("must not hold credentials"));
        }
        if uri.query().is_some() {
            return Err(wrong("must not have a query"));
        }
        let host = authority
            .host()
            .trim_start_matches('[')
            .trim_end_matches(']')
            .to_owned();
        if host.is_empty() {
            return Err(wrong("has no host"));
        }
        let port = authority.port_u16().unwrap_or(if tls { 443 } else { 80 });
        let literal: Option<IpAddr> = host.parse().ok();
        let target = Self {
            tls,
            destination: Arc::new(Destination::new(name, &host, port)),
            host,
            connect_timeout: CONNECT_TIMEOUT,
            authority: HeaderValue::from_str(authority.as_str()).map_err(|_| wrong("has no host"))?,
            port,
            peer: ArcSwapOption::empty(),
            addresses: Mutex::default(),
            resolve_error: Mutex::new(NOT_YET.to_owned()),
        };
        if let Some(ip) = literal {
            target.use_address(SocketAddr::new(ip, port));
        }
        Ok(target)
    }

    /// Returns the provider at its last good address; `None` if the name was never resolved.
    pub fn peer(&self) -> Option<Arc<HttpPeer>> {
        self.peer.load_full()
    }

    /// Resolves the name again. Keeps the address if that fails, or if the address is still among those found: idle
    /// connections use it, and names with several addresses return them in any order.
    pub async fn refresh_addresses(&self) {
        if self.host.parse::<IpAddr>().is_ok() {
            return;
        }
        let lookup = tokio::net::lookup_host((self.host.as_str(), self.port));
        let error = match tokio::time::timeout(RESOLVE_TIMEOUT, lookup).await {
            Ok(Ok(found)) => return self.choose(found),
            Ok(Err(error)) => error.to_string(),
            Err(_elapsed) => format!("no answer within {} s", RESOLVE_TIMEOUT.as_secs()),
        };
        let Destination { name, address } = &*self.destination;
        tracing::warn!(
            upstream.name = name,
            upstream.address = address,
            error,
            "the provider's name does not resolve"
        );
        *self.resolve_error.lock() = error;
    }

    /// Logs a call to a provider whose name was never resolved.
    pub fn unresolved(&self) -> UpstreamFailure {
        self.destination.unresolved(&self.resolve_error.lock())
    }

    /// Keeps the address in use if it is among those found, else takes the first.
    pub(super) fn choose(&self, found: impl Iterator<Item = SocketAddr>) {
        let mut found: Vec<SocketAddr> = found.take(ADDRESSES_MAX).collect();
        let Some(first) = found.first().copied() else {
            return;
        };
        found.sort_unstable();
        let mut addresses = self.addresses.lock();
        *addresses = found;
        if !self.address().is_some_and(|address| addresses.contains(&address)) {
            self.use_address(first);
        }
    }

    /// Uses the name's next address from now on, since no connection to `peer` could be made.
    pub fn leave(&self, peer: &HttpPeer) {
        let addresses = self.addresses.lock();
        let current = self.address();
        // Otherwise another call left the address before.
        if current.is_some() && current.as_ref() == peer._address.as_inet() {
            let at = addresses.iter().position(|address| Some(*address) == current);
            let after = at.map_or(0, |at| at + 1);
            let next = addresses.get(after).or(addresses.first());
            if let Some(next) = next.filter(|next| Some(**next) != current) {
                let Destination { name, address } = &*self.destination;
                tracing::warn!(
                    upstream.name = name,
                    upstream.address = address,
                    %next,
                    "the provider's next address is used"
                );
                self.use_address(*next);
            }
        }
    }

    fn address(&self) -> Option<SocketAddr> {
        self.peer.load().as_ref()?._address.as_inet().copied()
    }

    fn use_address(&self, address: SocketAddr) {
        let mut peer = HttpPeer::new(address, self.tls, self.host.clone());
        peer.options.total_connection_timeout = Some(self.connect_timeout);
        self.peer.store(Some(Arc::new(peer)));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_that_is_still_found_stays_in_use() {
        let target = UpstreamTarget::parse("upstream", "openai", "https://api.example.com/v1/").unwrap();
        let address = |last: u8| SocketAddr::from(([203, 0, 113, last], 443));
        let after = |found: &[u8]| {
            target.choose(found.iter().map(|last| address(*last)));
            target.peer().map(|peer| peer._address.to_string())
        };
        assert_eq!(after(&[]), None);
        let first = after(&[1, 2]);
        assert_eq!(first.as_deref(), Some("203.0.113.1:443"));
        assert_eq!(after(&[2, 1]), first, "in another order");
        assert_eq!(after(&[]), first);
        assert_eq!(after(&[3, 2]).as_deref(), Some("203.0.113.3:443"), "it is gone");
    }

    #[test]
    fn failures_go_round_through_all_addresses() {
        let target = UpstreamTarget::parse("upstream", "openai", "https://api.example.com/v1/").unwrap();
        let address = |last: u8| SocketAddr::from(([203, 0, 113, last], 443));
        let current = || target.peer().unwrap();
        let is_at = |last: u8| target.address() == Some(address(last));
        target.choose([2, 1, 3].map(address).into_iter());
        let first = current();
        assert!(is_at(2));
        target.leave(&first);
        assert!(is_at(3));
        target.leave(&first);
        assert!(is_at(3), "it was left before");
        target.choose([3, 2, 1].map(address).into_iter());
        target.leave(&current());
        assert!(is_at(1));
        target.leave(&current());
        assert!(is_at(2));
        target.choose([address(2)].into_iter());
        target.leave(&current());
        assert!(is_at(2), "the only one");
        let literal = UpstreamTarget::parse("upstream", "openai", "http://127.0.0.1:8090").unwrap();
        let only = literal.peer().unwrap();
        literal.leave(&only);
        assert_eq!(literal.address(), only._address.as_inet().copied());
    }

    #[test]
    fn a_name_has_a_bounded_number_of_addresses() {
        let target = UpstreamTarget::parse("upstream", "openai", "https://api.example.com/v1/").unwrap();
        let many = (0..=ADDRESSES_MAX).map(|last| SocketAddr::from(([203, 0, 113, last as u8], 443)));
        target.choose(many.clone().take(ADDRESSES_MAX));
        assert_eq!(target.addresses.lock().len(), ADDRESSES_MAX);
        target.choose(many);
        assert_eq!(target.addresses.lock().len(), ADDRESSES_MAX);
    }

    #[test]
    fn base_urls_are_parsed() {
        let parse = |base_url| UpstreamTarget::parse("upstreams.azure", "azure", base_url);
        let target = parse("https://api.example.com/v1/").unwrap();
        assert!(target.tls);
        assert_eq!((target.host.as_str(), target.port), ("api.example.com", 443));
        assert!(target.peer().is_none());
        let local = parse("http://127.0.0.1:8090/v1").unwrap();
        assert_eq!(local.peer().unwrap()._address.to_string(), "127.0.0.1:8090");
        assert_eq!(local.authority, "127.0.0.1:8090");
        let six = parse("http://[::1]:80").unwrap().peer().unwrap();
        assert_eq!(six._address.to_string(), "[::1]:80");
        for bad in [
            "",
            "https://",
            "https:///v1",
            "https://u:p@host/v1",
            "https://host/v1?x=1",
        ] {
            let error = parse(bad).unwrap_err();
            assert!(error.starts_with("`upstreams.azure.base_url`"), "{error}");
        }
    }
}
