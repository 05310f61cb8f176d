//! The URL of a receiver. It is parsed once, by the rules of browsers, and afterwards only its parts are used, so that
//! no two parsers can find different hosts in it (decision D44).
//!
//! The rules convert every spelling of an address (`127.1`, `0x7f.1`, `2130706433`, `0177.0.0.1`, full-width or
//! percent-encoded characters) to the address itself, which is then judged like any other.

use super::ip_policy;
use http::HeaderValue;
use http::uri::PathAndQuery;
use rustls::pki_types::{DnsName, ServerName};
use std::net::IpAddr;
use url::{Host, ParseError, Url};

/// Longest URL of a receiver, in bytes.
pub(crate) const URL_MAX: usize = 2048;
/// Longest host name that DNS can look up.
const NAME_MAX: usize = 253;
/// The name of this machine, whatever a resolver returns; also applies to `*.localhost`.
const LOCALHOST: &str = "localhost";

/// Why deliveries may not go to a URL: a sentence that names the field `url`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("url must {0}.")]
pub struct BadUrl(pub(super) &'static str);

/// Refusal of a URL without a valid port.
const BAD_PORT: BadUrl = BadUrl("have a port from 1 to 65535");

/// Destination of deliveries.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeliveryTarget {
    /// True for `https`.
    pub tls: bool,
    /// The host: resolved if it is a name, and compared with the certificate.
    pub host: ReceiverHost,
    /// TCP port, by default that of the scheme.
    pub port: u16,
    /// The value of the `Host` header.
    pub authority: HeaderValue,
    /// `/` if the URL has no path.
    pub path: PathAndQuery,
}

/// The host of a receiver.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ReceiverHost {
    /// A literal address.
    Address(IpAddr),
    /// A name in ASCII, without a final dot.
    Name(DnsName<'static>),
}

impl ReceiverHost {
    /// Returns the name or address that the receiver's certificate must contain.
    pub(crate) fn server_name(&self) -> ServerName<'static> {
        match self {
            Self::Address(ip) => ServerName::IpAddress((*ip).into()),
            Self::Name(name) => ServerName::DnsName(name.clone()),
        }
    }
}

impl DeliveryTarget {
    /// Parses a URL. With `allow_private` this machine and private addresses are allowed (development).
    ///
    /// # Errors
    /// [`BadUrl`] with the rule for the URL.
    pub fn parse(text: &str, allow_private: bool) -> Result<Self, BadUrl> {
        let url = read(text)?;
        let tls = url.scheme() == "https";
        let host = match url.host() {
            Some(Host::Ipv4(ip)) => ReceiverHost::Address(ip.into()),
            Some(Host::Ipv6(ip)) => ReceiverHost::Address(ip.into()),
            Some(Host::Domain(name)) => ReceiverHost::Name(name_of(name)?),
            None => return Err(BadUrl("have a host")),
        };
        if !allow_private {
            require_public(&host)?;
        }
        let port = match url.port_or_known_default() {
            None | Some(0) => return Err(BAD_PORT),
            Some(port) => port,
        };
        let path = match url.query() {
            None => url.path().to_owned(),
            Some(query) => format!("{}?{query}", url.path()),
        };
        let unsendable = |_| BadUrl("have a path and a query that can be sent");
        Ok(Self {
            tls,
            host,
            port,
            authority: HeaderValue::from_str(url.authority())
                .map_err(|_| BadUrl("have a host name that can be looked up"))?,
            path: PathAndQuery::try_from(path).map_err(unsendable)?,
        })
    }
}

/// Refuses mistakes that the rules of browsers would repair silently, then applies the rules.
fn read(text: &str) -> Result<Url, BadUrl> {
    if text.len() > URL_MAX {
        return Err(BadUrl("have at most 2048 bytes"));
    }
    if text
        .chars()
        .any(|c| c.is_control() || c.is_whitespace() || c == '\\')
    {
        return Err(BadUrl("not contain spaces, backslashes or control characters"));
    }
    let lower = text.to_ascii_lowercase();
    let rest = lower
        .strip_prefix("https://")
        .or_else(|| lower.strip_prefix("http://"))
        .ok_or(BadUrl("begin with https:// or http://"))?;
    let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
    if authority.is_empty() {
        return Err(BadUrl("have a host"));
    }
    if authority.contains('@') {
        return Err(BadUrl("not hold credentials"));
    }
    let url = Url::parse(text).map_err(|error| match error {
        ParseError::InvalidPort => BAD_PORT,
        _ => BadUrl("be a URL with a host name or an address"),
    })?;
    if url.fragment().is_some() {
        return Err(BadUrl("not have a fragment (#)"));
    }
    Ok(url)
}

fn name_of(name: &str) -> Result<DnsName<'static>, BadUrl> {
    let unknown = BadUrl("have a host name that can be looked up");
    let name = name.strip_suffix('.').unwrap_or(name);
    if name.len() > NAME_MAX || name.ends_with('.') {
        return Err(unknown);
    }
    let name = DnsName::try_from(name).map_err(|_| unknown)?;
    Ok(name.to_owned())
}

fn require_public(host: &ReceiverHost) -> Result<(), BadUrl> {
    match host {
        ReceiverHost::Address(ip) if !ip_policy::is_public(*ip) => Err(BadUrl("not be a private address")),
        ReceiverHost::Name(name) if is_localhost(name.as_ref()) => Err(BadUrl("not name this machine")),
        ReceiverHost::Address(_) | ReceiverHost::Name(_) => Ok(()),
    }
}

/// Returns whether this is `localhost` or a name below it. The rules of URLs make the name lower case.
fn is_localhost(name: &str) -> bool {
    let above = name.strip_suffix(LOCALHOST);
    above.is_some_and(|above| above.is_empty() || above.ends_with('.'))
}

#[cfg(test)]
mod tests;
