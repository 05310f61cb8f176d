//! Callers' connections, counted in all and for each address: beyond either limit a new one is closed at once, before a
//! byte of it is read.

use ipnet::IpNet;
use std::collections::HashMap;
use std::net::{IpAddr, Ipv6Addr};
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

/// Seconds between two lines of log about connections that were refused.
const WARN_EVERY_S: u64 = 60;
/// Bits of an IPv6 address that count as one: who has one address of such a network usually has all of them.
const SIX_NETWORK_BITS: u32 = 64;

/// Which limit refused a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Limit {
    /// `proxy.max_connections`.
    All,
    /// `proxy.max_connections_per_address`.
    Address,
}

impl Limit {
    /// Both, as the metrics name them.
    pub const NAMES: [&str; 2] = ["all", "address"];
}

/// The connections that are open.
#[derive(Debug)]
pub struct Connections {
    open: AtomicUsize,
    max: usize,
    /// Of each address that has one. Never more entries than connections.
    by_address: Mutex<HashMap<IpAddr, usize>>,
    max_per_address: usize,
    /// Proxies whose connections are those of many callers: no limit for each address.
    trusted: Vec<IpNet>,
    refused: [AtomicU64; 2],
    started: Instant,
    warned_at_s: AtomicU64,
}

/// The place of one open connection, given back when it is dropped.
#[derive(Debug)]
pub struct Place {
    connections: Arc<Connections>,
    /// The address that it counts for.
    address: Option<IpAddr>,
}

impl Connections {
    /// No connections, of at most `max`, and `max_per_address` from each address outside of `trusted`.
    #[must_use]
    pub fn new(max: usize, max_per_address: usize, trusted: Vec<IpNet>) -> Self {
        Self {
            open: AtomicUsize::new(0),
            max,
            by_address: Mutex::default(),
            max_per_address,
            trusted,
            refused: Default::default(),
            started: Instant::now(),
            // The first refusal is told at once.
            warned_at_s: AtomicU64::new(u64::MAX),
        }
    }

    /// Takes a place for a connection from `peer`.
    ///
    /// # Errors
    /// The limit that it would pass.
    pub fn admit(self: &Arc<Self>, peer: Option<IpAddr>) -> Result<Place, Limit> {
        self.take(peer).inspect_err(|limit| {
            self.refused[*limit as usize].fetch_add(1, Ordering::Relaxed);
            self.warn(*limit);
        })
    }

    fn take(self: &Arc<Self>, peer: Option<IpAddr>) -> Result<Place, Limit> {
        if self.open.fetch_add(1, Ordering::Relaxed) >= self.max {
            self.open.fetch_sub(1, Ordering::Relaxed);
            return Err(Limit::All);
        }
        // From here on the place is given back, whatever happens.
        let mut place = Place {
            connections: Arc::clone(self),
            address: None,
        };
        let Some(address) = peer.map(|peer| peer.to_canonical()) else {
            return Ok(place);
        };
        if self.trusted.iter().any(|net| net.contains(&address)) {
            return Ok(place);
        }
        let address = network(address);
        let mut by_address = self.by_address();
        let open = by_address.entry(address).or_default();
        if *open >= self.max_per_address {
            drop(by_address);
            return Err(Limit::Address);
        }
        *open += 1;
        drop(by_address);
        place.address = Some(address);
        Ok(place)
    }

    fn by_address(&self) -> MutexGuard<'_, HashMap<IpAddr, usize>> {
        self.by_address.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Open connections.
    pub fn open(&self) -> usize {
        self.open.load(Ordering::Relaxed)
    }

    /// How many there can be.
    #[must_use]
    pub const fn max(&self) -> usize {
        self.max
    }

    /// Connections that were refused, by [`Limit`].
    pub fn refused(&self) -> [u64; 2] {
        [Limit::All, Limit::Address].map(|limit| self.refused[limit as usize].load(Ordering::Relaxed))
    }

    /// Says it once in a while: a flood must not fill the log.
    fn warn(&self, limit: Limit) {
        let now = self.started.elapsed().as_secs();
        let last = self.warned_at_s.load(Ordering::Relaxed);
        let is_due = last == u64::MAX || now.saturating_sub(last) >= WARN_EVERY_S;
        let swapped = || {
            let (ok, other) = (Ordering::Relaxed, Ordering::Relaxed);
            self.warned_at_s.compare_exchange(last, now, ok, other).is_ok()
        };
        if is_due && swapped() {
            let setting = match limit {
                Limit::All => "proxy.max_connections",
                Limit::Address => "proxy.max_connections_per_address",
            };
            tracing::warn!(
                setting,
                open = self.open(),
                "new connections are closed: the limit is reached"
            );
        }
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.connections.open.fetch_sub(1, Ordering::Relaxed);
        let Some(address) = self.address else { return };
        let mut by_address = self.connections.by_address();
        if let Some(open) = by_address.get_mut(&address) {
            *open -= 1;
            if *open == 0 {
                by_address.remove(&address);
            }
        }
    }
}

/// What counts as one address.
fn network(address: IpAddr) -> IpAddr {
    match address {
        IpAddr::V4(_) => address,
        IpAddr::V6(six) => IpAddr::V6(Ipv6Addr::from_bits(
            six.to_bits() & (u128::MAX << (u128::BITS - SIX_NETWORK_BITS)),
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn connections(max: usize, each: usize) -> Arc<Connections> {
        let trusted = vec!["10.0.0.0/8".parse().unwrap()];
        Arc::new(Connections::new(max, each, trusted))
    }

    fn from(connections: &Arc<Connections>, address: &str) -> Result<Place, Limit> {
        connections.admit(Some(address.parse().unwrap()))
    }

    #[test]
    fn each_address_has_its_limit_and_all_have_one() {
        let all = connections(5, 2);
        let first = from(&all, "203.0.113.1").unwrap();
        let _second = from(&all, "::ffff:203.0.113.1").unwrap();
        assert_eq!(from(&all, "203.0.113.1").unwrap_err(), Limit::Address);
        let _other = from(&all, "203.0.113.2").unwrap();
        drop(first);
        let _again = from(&all, "203.0.113.1").unwrap();
        let _fourth = from(&all, "203.0.113.3").unwrap();
        let _fifth = from(&all, "203.0.113.4").unwrap();
        assert_eq!(from(&all, "203.0.113.5").unwrap_err(), Limit::All);
        assert_eq!((all.open(), all.refused()), (5, [1, 1]));
    }

    #[test]
    fn a_trusted_proxy_has_the_common_limit_only() {
        let all = connections(5, 1);
        let held: Vec<_> = (0..5).map(|_| from(&all, "10.1.2.3").unwrap()).collect();
        assert_eq!(from(&all, "10.1.2.3").unwrap_err(), Limit::All);
        drop(held);
        assert_eq!(all.open(), 0);
    }

    #[test]
    fn a_network_of_version_6_counts_as_one_address() {
        let all = connections(9, 1);
        let _one = from(&all, "2001:db8::1").unwrap();
        assert_eq!(from(&all, "2001:db8::ffff:1").unwrap_err(), Limit::Address);
        let _other = from(&all, "2001:db8:0:1::1").unwrap();
    }

    #[test]
    fn what_is_closed_leaves_nothing_behind() {
        let all = connections(100, 10);
        drop(
            (0..50)
                .map(|at| from(&all, &format!("203.0.113.{at}")))
                .collect::<Vec<_>>(),
        );
        assert_eq!((all.open(), all.by_address().len()), (0, 0));
    }
}
