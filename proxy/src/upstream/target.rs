//! Where the provider is: the configured address, resolved in the background so that no call waits for DNS.

use arc_swap::ArcSwapOption;
use http::Uri;
use http::uri::Authority;
use pingora_core::upstreams::peer::HttpPeer;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

/// Between two resolutions of the provider's name.
pub const RESOLVE_EVERY: Duration = Duration::from_secs(30);
/// Longest wait for a resolution.
const RESOLVE_TIMEOUT: Duration = Duration::from_secs(5);

/// The provider's address.
#[derive(Debug)]
pub struct Target {
    /// Whether to speak TLS.
    pub tls: bool,
    /// The host name; also what its certificate must be for. Never empty: an empty name would switch verification off.
    pub host: String,
    /// The value of the `Host` header.
    pub authority: String,
    /// The path that calls are sent to.
    pub path: String,
    port: u16,
    peer: ArcSwapOption<HttpPeer>,
}

impl Target {
    /// Reads `upstream.base_url`; calls go to `<base_url>/chat/completions`.
    ///
    /// # Errors
    /// One line that says what is wrong with the address.
    pub fn parse(base_url: &str) -> Result<Self, String> {
        let wrong = |what: &str| format!("`upstream.base_url` {what}");
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
        let path = format!("{}/chat/completions", uri.path().trim_end_matches('/'));
        let literal: Option<IpAddr> = host.parse().ok();
        let peer = literal.map(|ip| HttpPeer::new(SocketAddr::new(ip, port), tls, host.clone()));
        let peer = ArcSwapOption::from_pointee(peer);
        Ok(Self {
            tls,
            host,
            authority: authority.as_str().to_owned(),
            path,
            port,
            peer,
        })
    }

    /// The provider at its last good address, if the name was ever resolved.
    pub fn peer(&self) -> Option<Arc<HttpPeer>> {
        self.peer.load_full()
    }

    /// Resolves the name once more. A failure keeps the last good address.
    pub async fn resolve(&self) {
        if self.host.parse::<IpAddr>().is_ok() {
            return;
        }
        let lookup = tokio::net::lookup_host((self.host.as_str(), self.port));
        match tokio::time::timeout(RESOLVE_TIMEOUT, lookup).await {
            Ok(Ok(mut found)) => {
                if let Some(address) = found.next() {
                    let peer = HttpPeer::new(address, self.tls, self.host.clone());
                    self.peer.store(Some(Arc::new(peer)));
                }
            }
            Ok(Err(error)) => {
                tracing::warn!(upstream.host = %self.host, %error, "the provider's name does not resolve")
            }
            Err(_elapsed) => {
                tracing::warn!(upstream.host = %self.host, "resolving the provider's name takes too long")
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_read() {
        let target = Target::parse("https://api.example.com/v1/").unwrap();
        assert!(target.tls);
        assert_eq!(
            (target.host.as_str(), target.port, target.path.as_str()),
            ("api.example.com", 443, "/v1/chat/completions")
        );
        assert!(target.peer().is_none());
        let local = Target::parse("http://127.0.0.1:8090/v1").unwrap();
        assert_eq!(local.peer().unwrap()._address.to_string(), "127.0.0.1:8090");
        assert_eq!(local.authority, "127.0.0.1:8090");
        let six = Target::parse("http://[::1]:80").unwrap().peer().unwrap();
        assert_eq!(six._address.to_string(), "[::1]:80");
        for bad in [
            "",
            "https://",
            "https:///v1",
            "https://u:p@host/v1",
            "https://host/v1?x=1",
        ] {
            assert!(Target::parse(bad).is_err(), "{bad}");
        }
    }
}
