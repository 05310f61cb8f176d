//! Address of the provider, resolved in the background so that no call waits for DNS.

use arc_swap::ArcSwapOption;
use http::uri::Authority;
use http::{HeaderValue, Uri};
use pingora::upstreams::peer::HttpPeer;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

/// Interval of resolving the provider's name.
pub const RESOLVE_EVERY: Duration = Duration::from_secs(30);
/// Deadline of a resolution.
const RESOLVE_TIMEOUT: Duration = Duration::from_secs(5);

/// The provider's address.
#[derive(Debug)]
pub struct Target {
    /// Whether to use TLS.
    pub tls: bool,
    /// Host name, which the certificate must contain. Never empty: an empty name would turn verification off.
    pub host: String,
    /// Value of the `Host` header.
    pub authority: HeaderValue,
    port: u16,
    peer: ArcSwapOption<HttpPeer>,
}

impl Target {
    /// Parses the `base_url` of a section of the settings.
    ///
    /// # Errors
    /// One line that says what is wrong with the address.
    pub fn parse(section: &str, base_url: &str) -> Result<Self, String> {
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
        let peer = literal.map(|ip| HttpPeer::new(SocketAddr::new(ip, port), tls, host.clone()));
        let peer = ArcSwapOption::from_pointee(peer);
        Ok(Self {
            tls,
            host,
            authority: HeaderValue::from_str(authority.as_str()).map_err(|_| wrong("has no host"))?,
            port,
            peer,
        })
    }

    /// Returns the provider at its last good address; `None` if the name was never resolved.
    pub fn peer(&self) -> Option<Arc<HttpPeer>> {
        self.peer.load_full()
    }

    /// Resolves the name again. Keeps the address if that fails, or if the address is still among those found: idle
    /// connections use it, and names with several addresses return them in any order.
    pub async fn resolve(&self) {
        if self.host.parse::<IpAddr>().is_ok() {
            return;
        }
        let lookup = tokio::net::lookup_host((self.host.as_str(), self.port));
        match tokio::time::timeout(RESOLVE_TIMEOUT, lookup).await {
            Ok(Ok(found)) => self.choose(found),
            Ok(Err(error)) => {
                tracing::warn!(upstream.host = %self.host, %error, "the provider's name does not resolve")
            }
            Err(_elapsed) => {
                tracing::warn!(upstream.host = %self.host, "resolving the provider's name takes too long")
            }
        }
    }

    /// Keeps the address in use if it is among those found, else takes the first.
    fn choose(&self, mut found: impl Iterator<Item = SocketAddr>) {
        let Some(first) = found.next() else { return };
        let current = self.peer.load();
        let is_current = |address: &SocketAddr| {
            let peer = current.as_ref();
            peer.is_some_and(|peer| peer._address.as_inet() == Some(address))
        };
        if !is_current(&first) && !found.any(|address| is_current(&address)) {
            let peer = HttpPeer::new(first, self.tls, self.host.clone());
            self.peer.store(Some(Arc::new(peer)));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_that_is_still_found_stays_in_use() {
        let target = Target::parse("upstream", "https://api.example.com/v1/").unwrap();
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
    fn base_urls_are_parsed() {
        let parse = |base_url| Target::parse("upstreams.azure", base_url);
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
