//! Limits on the open connections of a listener: in all, and for each client address.
//!
//! Both servers ask before they serve a connection and close it at once when it is refused. Without a limit a stranger
//! could take every file descriptor, also those for the store and the provider.

use ipnet::IpNet;
use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::net::{IpAddr, Ipv6Addr};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The bits of an IPv6 address that name a site: whoever has one has all addresses of its /64.
const SITE_BITS: u32 = 64;

/// Counts the open connections of one listener.
#[derive(Debug, Clone)]
pub struct ConnectionLimit {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    max: usize,
    max_per_address: usize,
    /// Proxies stand for many clients: only the limit in all holds for them.
    trusted_proxies: Vec<IpNet>,
    open: Mutex<Open>,
}

#[derive(Debug, Default)]
struct Open {
    total: usize,
    by_address: HashMap<IpAddr, usize>,
}

/// Why a connection is refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Refused {
    /// As many are open as may be in all.
    All,
    /// As many are open from this address as may be.
    Address,
}

impl Refused {
    /// Every reason as a metric's label, in the order of the variants.
    pub const LABELS: [&'static str; 2] = ["all", "address"];
}

/// The place of one open connection; dropping it frees the place.
#[derive(Debug)]
pub struct OpenConnection {
    shared: Arc<Shared>,
    counted_as: Option<IpAddr>,
}

impl ConnectionLimit {
    /// A limit with no connection open. Connections from `trusted_proxies` do not count against `max_per_address`.
    #[must_use]
    pub fn new(max: usize, max_per_address: usize, trusted_proxies: Vec<IpNet>) -> Self {
        Self {
            shared: Arc::new(Shared {
                max,
                max_per_address,
                trusted_proxies,
                open: Mutex::default(),
            }),
        }
    }

    /// Takes a place for a connection from `peer`; without an address only the limit in all holds.
    ///
    /// # Errors
    /// Which limit is reached.
    pub fn admit(&self, peer: Option<IpAddr>) -> Result<OpenConnection, Refused> {
        let shared = &self.shared;
        let is_proxy = |address: &IpAddr| shared.trusted_proxies.iter().any(|net| net.contains(address));
        let client = peer
            .map(|peer| peer.to_canonical())
            .filter(|peer| !is_proxy(peer));
        let counted_as = client.map(site);
        let mut open = shared.lock();
        if open.total >= shared.max {
            return Err(Refused::All);
        }
        if let Some(address) = counted_as {
            let count = open.by_address.entry(address).or_insert(0);
            if *count >= shared.max_per_address {
                return Err(Refused::Address);
            }
            *count += 1;
        }
        open.total += 1;
        drop(open);
        Ok(OpenConnection {
            shared: Arc::clone(shared),
            counted_as,
        })
    }

    /// How many connections there can be.
    #[must_use]
    pub fn max(&self) -> usize {
        self.shared.max
    }

    /// How many connections are open.
    #[must_use]
    pub fn open(&self) -> usize {
        self.shared.lock().total
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, Open> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for OpenConnection {
    fn drop(&mut self) {
        let mut open = self.shared.lock();
        open.total -= 1;
        let Some(address) = self.counted_as else { return };
        if let Entry::Occupied(mut count) = open.by_address.entry(address) {
            *count.get_mut() -= 1;
            if *count.get() == 0 {
                count.remove();
            }
        }
    }
}

/// What counts as one address: an IPv4 address, or the /64 of an IPv6 address.
fn site(peer: IpAddr) -> IpAddr {
    match peer {
        IpAddr::V4(address) => IpAddr::V4(address),
        IpAddr::V6(address) => {
            let site = address.to_bits() >> SITE_BITS << SITE_BITS;
            IpAddr::V6(Ipv6Addr::from_bits(site))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn peer(text: &str) -> Option<IpAddr> {
        Some(text.parse().unwrap())
    }

    #[test]
    fn the_limit_of_an_address_leaves_room_for_others_and_ends_with_its_connections() {
        let limit = ConnectionLimit::new(3, 2, Vec::new());
        let first = limit.admit(peer("192.0.2.1")).unwrap();
        let _second = limit.admit(peer("192.0.2.1")).unwrap();
        assert_eq!(limit.admit(peer("192.0.2.1")).unwrap_err(), Refused::Address);
        assert_eq!(
            limit.admit(peer("::ffff:192.0.2.1")).unwrap_err(),
            Refused::Address
        );
        let _other = limit.admit(peer("192.0.2.2")).unwrap();
        assert_eq!(limit.admit(peer("192.0.2.3")).unwrap_err(), Refused::All);
        assert_eq!(limit.open(), 3);
        drop(first);
        assert!(limit.admit(peer("192.0.2.1")).is_ok());
    }

    #[test]
    fn all_addresses_of_an_ipv6_site_are_one() {
        let limit = ConnectionLimit::new(10, 1, Vec::new());
        let _open = limit.admit(peer("2001:db8:0:1::1")).unwrap();
        assert_eq!(
            limit.admit(peer("2001:db8:0:1:ffff::2")).unwrap_err(),
            Refused::Address
        );
        assert!(limit.admit(peer("2001:db8:0:2::1")).is_ok());
    }

    #[test]
    fn a_trusted_proxy_counts_in_all_only() {
        let limit = ConnectionLimit::new(3, 1, vec!["10.0.0.0/8".parse().unwrap()]);
        let _open = [(); 3].map(|()| limit.admit(peer("10.1.2.3")).unwrap());
        assert_eq!(limit.admit(peer("10.1.2.3")).unwrap_err(), Refused::All);
    }

    #[test]
    fn nothing_is_remembered_of_addresses_without_a_connection() {
        let limit = ConnectionLimit::new(2, 2, Vec::new());
        for n in 0..100_u32 {
            drop(limit.admit(Some(IpAddr::V4(n.into()))).unwrap());
        }
        assert!(limit.shared.lock().by_address.is_empty());
        assert_eq!(limit.open(), 0);
    }
}
