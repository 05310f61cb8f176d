//! The address of the store (`store.url`): its forms, and the part that may be shown.

use crate::error::StoreError;
use redis::IntoConnectionInfo;

/// Error for an address that cannot be parsed. Does not contain the address, which may include a password.
const MALFORMED: &str = "store.url must be redis://HOST:PORT, rediss://HOST:PORT (TLS), redis+unix:///PATH or \
     redis-cluster://HOST:PORT,HOST:PORT,…";
/// Error for a database by number. Backups and restores of one are not marked, and a cluster has none.
const OTHER_DATABASE: &str = "store.url names a database; the ledger is in database 0 of a server of its own";
/// Error for an address with a part behind `?` or `#`: the library passes over names that it does not know, and over
/// the check of certificates with `#insecure`.
const OPTIONS: &str = "store.url has options after ? or # that are not known: there is ?protocol=resp3, and with \
     redis+unix:// also user=NAME and pass=PASSWORD";
/// Scheme of addresses with TLS.
pub(super) const TLS: &str = "rediss://";
/// Scheme of a cluster's address.
pub(super) const CLUSTER: &str = "redis-cluster://";

/// Checks the address of a server.
///
/// # Errors
/// [`StoreError::BadUrl`] if it is malformed, names a database, or has options. It does not contain the address.
pub(super) fn check(url: &str) -> Result<(), StoreError> {
    let bad = |why: &str| Err(StoreError::BadUrl(why.to_owned()));
    let Ok(info) = url.into_connection_info() else {
        return bad(MALFORMED);
    };
    if info.redis_settings().db() != 0 {
        return bad(OTHER_DATABASE);
    }
    match has_options(url) {
        true => bad(OPTIONS),
        false => Ok(()),
    }
}

/// Returns scheme and hosts of an address, or the path of its socket.
pub(super) fn shown(url: &str) -> Option<String> {
    let host = |url: &str| {
        let info = url.into_connection_info().ok()?;
        Some(info.addr().to_string())
    };
    let Some(nodes) = url.strip_prefix(CLUSTER) else {
        let (scheme, _) = url.split_once("://")?;
        return Some(format!("{scheme}://{}", host(url)?));
    };
    let hosts = nodes.rsplit_once('@').map_or(nodes, |(_, hosts)| hosts);
    let hosts: Option<Vec<String>> = hosts
        .split(',')
        .map(|node| host(&format!("redis://{node}")))
        .collect();
    Some(format!("{CLUSTER}{}", hosts?.join(",")))
}

/// Returns whether an address has a fragment, or parameters other than the protocol and the login of a Unix socket.
fn has_options(url: &str) -> bool {
    let is_login = |parameter: &str| parameter.starts_with("user=") || parameter.starts_with("pass=");
    let (address, parameters) = url.split_once('?').unwrap_or((url, ""));
    let takes_login = address.starts_with("redis+unix://");
    let is_known = |parameter: &str| parameter.starts_with("protocol=") || takes_login && is_login(parameter);
    let mut parameters = parameters.split('&').filter(|parameter| !parameter.is_empty());
    url.contains('#') || !parameters.all(is_known)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_shown_address_has_no_credentials() {
        for (url, expected) in [
            ("redis://127.0.0.1:6379", Some("redis://127.0.0.1:6379")),
            (
                "redis://ann:secret@localhost:7000/1",
                Some("redis://localhost:7000"),
            ),
            (
                "rediss://:s%2Fecret@store.example",
                Some("rediss://store.example:6379"),
            ),
            (
                "redis+unix:///run/redis.sock?user=ann&pass=secret",
                Some("redis+unix:///run/redis.sock"),
            ),
            (
                "redis-cluster://ann:secret@a:7000,b:7001",
                Some("redis-cluster://a:7000,b:7001"),
            ),
            ("redis://:se/cret@localhost", None),
            ("ftp://ann:secret@localhost", None),
            ("secret", None),
        ] {
            assert_eq!(shown(url).as_deref(), expected, "{url}");
        }
    }

    #[test]
    fn protocol_and_login_are_known() {
        assert!(!has_options("redis+unix:///run/redis.sock?user=ann&pass=secret"));
        assert!(!has_options("redis://ann:secret@localhost:7000/"));
        assert!(!has_options("redis://localhost:7000?protocol=resp3"));
    }
}
