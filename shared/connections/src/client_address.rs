//! The client's address (decision D11): the socket's peer or, behind trusted proxies, the address that they report.

use http::HeaderMap;
use ipnet::IpNet;
use std::net::{IpAddr, SocketAddr};
use std::sync::atomic::{AtomicBool, Ordering};

const X_FORWARDED_FOR: &str = "x-forwarded-for";
/// The message of the 403 `IP_BLOCKED` for a client whose address cannot be read.
pub const UNKNOWN_ADDRESS: &str = "Your address cannot be read from the `X-Forwarded-For` of the proxy in front, and the operator of this service blocks some addresses.";

/// Returns the address of the client behind `peer`. Only entries of `X-Forwarded-For` that trusted proxies appended
/// count: from the right, the first address that is not a trusted proxy is the client. `None` if a trusted proxy sent
/// no `X-Forwarded-For` or a malformed entry (a `%` zone included): the client is then unknown, and a non-empty block
/// list refuses it (decision D73).
pub fn client_address(peer: IpAddr, headers: &HeaderMap, trusted: &[IpNet]) -> Option<IpAddr> {
    let is_trusted = |address: IpAddr| trusted.iter().any(|net| net.contains(&address));
    let peer = peer.to_canonical();
    if !is_trusted(peer) {
        return Some(peer);
    }
    let mut client = None;
    for line in headers.get_all(X_FORWARDED_FOR).iter().rev() {
        // Entry by entry, since a line can also contain text of the client, to the left of the proxy's entry.
        for entry in line.as_bytes().rsplit(|byte| *byte == b',') {
            let address = parse(entry.trim_ascii())?.to_canonical();
            if !is_trusted(address) {
                return Some(address);
            }
            client = Some(address);
        }
    }
    client
}

/// Set once the warning about an untrusted proxy was logged.
static WARNED: AtomicBool = AtomicBool::new(false);

/// Logs once per process that `peer` sends `X-Forwarded-For` without being a trusted proxy: if it is a proxy of this
/// installation, all its clients count as one address.
pub fn warn_of_untrusted_proxy(peer: IpAddr, headers: &HeaderMap, trusted: &[IpNet]) {
    if WARNED.load(Ordering::Relaxed) || !headers.contains_key(X_FORWARDED_FOR) {
        return;
    }
    let peer = peer.to_canonical();
    if !trusted.iter().any(|net| net.contains(&peer)) && !WARNED.swap(true, Ordering::Relaxed) {
        tracing::warn!(
            %peer,
            "X-Forwarded-For from an address that is not in network.trusted_proxies is not read; behind a proxy all clients \
            count as this one address (said once)"
        );
    }
}

/// Parses an address with an optional port.
fn parse(text: &[u8]) -> Option<IpAddr> {
    let text = std::str::from_utf8(text).ok()?;
    let with_port = || text.parse::<SocketAddr>().map(|address| address.ip());
    text.parse().or_else(|_| with_port()).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use http::HeaderValue;

    fn client(peer: &str, forwarded: &[&str]) -> Option<String> {
        let trusted: Vec<IpNet> = ["10.0.0.0/8", "::1/128"].map(|net| net.parse().unwrap()).into();
        let mut headers = HeaderMap::new();
        for line in forwarded {
            headers.append(X_FORWARDED_FOR, HeaderValue::from_bytes(line.as_bytes()).unwrap());
        }
        client_address(peer.parse().unwrap(), &headers, &trusted).map(|address| address.to_string())
    }

    #[test]
    fn only_trusted_proxies_are_believed() {
        for (peer, forwarded, expected) in [
            ("192.0.2.1", vec!["203.0.113.9"], Some("192.0.2.1")),
            ("10.0.0.1", vec![], None),
            ("10.0.0.1", vec!["203.0.113.9"], Some("203.0.113.9")),
            (
                "10.0.0.1",
                vec!["198.51.100.1, 203.0.113.9, 10.0.0.2"],
                Some("203.0.113.9"),
            ),
            (
                "10.0.0.1",
                vec!["198.51.100.1", "203.0.113.9:4711"],
                Some("203.0.113.9"),
            ),
            ("::1", vec!["[2001:db8::1]:80"], Some("2001:db8::1")),
            ("::ffff:10.0.0.1", vec!["203.0.113.9"], Some("203.0.113.9")),
            ("10.0.0.1", vec!["10.0.0.7"], Some("10.0.0.7")),
            ("10.0.0.1", vec!["203.0.113.9, unknown"], None),
            ("10.0.0.1", vec![""], None),
            ("10.0.0.1", vec!["fe80::1%eth0"], None),
            ("10.0.0.1", vec!["203.0.113.9", "fe80::1%25eth0, 10.0.0.2"], None),
            ("10.0.0.1", vec!["[fe80::1%eth0]:80"], None),
            // Text that the client itself sent to the proxy is ignored, and cannot hide the client either.
            ("10.0.0.1", vec!["é, 203.0.113.9"], Some("203.0.113.9")),
            (
                "10.0.0.1",
                vec!["x y=z; \u{7f3a}, 203.0.113.9, 10.0.0.2"],
                Some("203.0.113.9"),
            ),
            ("10.0.0.1", vec!["é", "203.0.113.9"], Some("203.0.113.9")),
            ("10.0.0.1", vec!["203.0.113.9, é"], None),
        ] {
            assert_eq!(
                client(peer, &forwarded).as_deref(),
                expected,
                "{peer} {forwarded:?}"
            );
        }
    }
}
