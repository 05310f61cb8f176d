//! The client's address (decision D11): the socket's peer, unless that is a trusted proxy; then what the proxies say.

use http::HeaderMap;
use ipnet::IpNet;
use std::net::{IpAddr, SocketAddr};

const X_FORWARDED_FOR: &str = "x-forwarded-for";

/// The address of the client behind `peer`. Only the entries of `X-Forwarded-For` that trusted proxies appended count:
/// read from the right, the first address that is no trusted proxy is the client. `None` when a trusted proxy sent
/// something that is no address: then the client is not known.
#[must_use]
pub fn client_address(peer: IpAddr, headers: &HeaderMap, trusted: &[IpNet]) -> Option<IpAddr> {
    let is_trusted = |address: IpAddr| trusted.iter().any(|net| net.contains(&address));
    let mut client = peer.to_canonical();
    if !is_trusted(client) {
        return Some(client);
    }
    for line in headers.get_all(X_FORWARDED_FOR).iter().rev() {
        let line = line.to_str().ok()?;
        for entry in line.rsplit(',') {
            client = parse(entry.trim())?.to_canonical();
            if !is_trusted(client) {
                return Some(client);
            }
        }
    }
    Some(client)
}

/// An address, with or without a port.
fn parse(text: &str) -> Option<IpAddr> {
    let with_port = || text.parse::<SocketAddr>().map(|address| address.ip());
    text.parse().or_else(|_| with_port()).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn client(peer: &str, forwarded: &[&str]) -> Option<String> {
        let trusted: Vec<IpNet> = ["10.0.0.0/8", "::1/128"].map(|net| net.parse().unwrap()).into();
        let mut headers = HeaderMap::new();
        for line in forwarded {
            headers.append(X_FORWARDED_FOR, line.parse().unwrap());
        }
        client_address(peer.parse().unwrap(), &headers, &trusted).map(|address| address.to_string())
    }

    #[test]
    fn only_trusted_proxies_are_believed() {
        for (peer, forwarded, expected) in [
            ("192.0.2.1", vec!["203.0.113.9"], Some("192.0.2.1")),
            ("10.0.0.1", vec![], Some("10.0.0.1")),
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
        ] {
            assert_eq!(
                client(peer, &forwarded).as_deref(),
                expected,
                "{peer} {forwarded:?}"
            );
        }
    }
}
