//! Limits the open connections of a listener: in total, and per client address.
//!
//! Both servers take a slot for a connection before they serve it. Without a limit one client could use up all file
//! descriptors, including those for the store and the provider. With only a limit it could occupy every slot. So when
//! all slots are taken, an idle connection is closed for the new one: first connections of unknown callers, then
//! connections of an address with a large share, then the longest idle. A connection with a request of a known caller
//! in flight is never closed. A closed connection has its descriptor until its task ends, so the number of these is
//! limited too.

mod slot;

use ipnet::IpNet;
use parking_lot::Mutex;
use slot::ConnectionSlot;
use std::cmp::Reverse;
use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::net::{IpAddr, Ipv6Addr};
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};
use tokio::sync::Semaphore;

/// Prefix length of an IPv6 site: one client controls its whole /64.
const SITE_BITS: u32 = 64;
/// Maximum number of connections chosen for closing at once: a choice examines all open connections.
const CHOSEN_AT_ONCE: usize = 64;
/// Maximum number of connections that were closed for others and still have their descriptors. New connections wait
/// until the tasks of some of these have ended.
pub const CLOSING_MAX: usize = 64;
/// Shares of all slots: addresses within the same share rank equally.
const PARTS: usize = 64;
/// Shortest pause between two choices, per open connection: 5 ms for 10,000 connections. New connections that find no
/// slot meanwhile are refused.
const PAUSE_EACH: Duration = Duration::from_nanos(500);

/// Counts the open connections of one listener.
#[derive(Debug, Clone)]
pub struct ConnectionLimit {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    max: usize,
    max_per_address: usize,
    /// Trusted proxies, to which only the total limit applies.
    trusted_proxies: Vec<IpNet>,
    started: Instant,
    open: Mutex<OpenSlots>,
    /// One permit for each connection that may be closed before the task of an earlier one has ended.
    closing: Semaphore,
}

#[derive(Debug, Default)]
struct OpenSlots {
    by_address: HashMap<IpAddr, usize>,
    /// Taken slots, by number, without those of connections being closed.
    slots: HashMap<u64, Arc<ConnectionSlot>>,
    next: u64,
    /// Next connections to close, of all addresses.
    chosen: ChosenSlots,
    /// Next connections to close, of one address. Separate, so that a client at its own limit neither replaces nor
    /// delays the choice for others.
    chosen_of_address: ChosenSlots,
}

/// Connections to close next.
#[derive(Debug, Default)]
struct ChosenSlots {
    /// The address, if the choice was for one address.
    of: Option<IpAddr>,
    /// Connections are closed from the end of the list.
    slots: Vec<Weak<ConnectionSlot>>,
    at: Option<Instant>,
}

/// The limit that lets no further connection in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReachedLimit {
    /// The total limit is reached.
    All,
    /// The address has its maximum of connections.
    Address,
}

impl ReachedLimit {
    /// Every reason as a metric's label, in the order of the variants.
    pub const LABELS: [&'static str; 2] = ["all", "address"];
}

/// The slot of an open connection; freed when dropped, which must be after the connection's descriptor is closed.
#[derive(Debug)]
pub struct OpenConnection {
    shared: Arc<Shared>,
    slot: Arc<ConnectionSlot>,
}

/// A request of a known caller in flight. Keeps its connection's slot until dropped.
#[derive(Debug)]
pub struct UnderWay(Arc<ConnectionSlot>);

impl ConnectionLimit {
    /// Creates a limit. Connections from `trusted_proxies` do not count against `max_per_address`.
    pub fn new(max: usize, max_per_address: usize, trusted_proxies: Vec<IpNet>) -> Self {
        Self {
            shared: Arc::new(Shared {
                max,
                max_per_address,
                trusted_proxies,
                started: Instant::now(),
                open: Mutex::default(),
                closing: Semaphore::new(CLOSING_MAX),
            }),
        }
    }

    /// Takes a slot for a connection from `peer`, closing an idle connection if necessary. Waits while [`CLOSING_MAX`]
    /// connections are being closed.
    ///
    /// # Errors
    /// The limit that is reached.
    pub async fn admit(&self, peer: IpAddr) -> Result<OpenConnection, ReachedLimit> {
        let shared = &self.shared;
        let may_close = shared
            .closing
            .acquire()
            .await
            .map_err(|_closed| ReachedLimit::All)?;
        let peer = peer.to_canonical();
        let is_proxy = shared.trusted_proxies.iter().any(|net| net.contains(&peer));
        let counted_as = (!is_proxy).then(|| site(peer));
        let mut open = shared.open.lock();
        let of_address = counted_as.and_then(|address| open.by_address.get(&address));
        if of_address.is_some_and(|count| *count >= shared.max_per_address) {
            open.make_room(counted_as, shared.max)
                .ok_or(ReachedLimit::Address)?;
            may_close.forget();
        } else if open.slots.len() >= shared.max {
            open.make_room(None, shared.max).ok_or(ReachedLimit::All)?;
            may_close.forget();
        }
        let slot = Arc::new(ConnectionSlot::new(open.next, counted_as, shared.started));
        open.take(&slot);
        drop(open);
        Ok(OpenConnection {
            shared: Arc::clone(shared),
            slot,
        })
    }

    /// Returns the total limit.
    pub fn max(&self) -> usize {
        self.shared.max
    }

    /// Returns the count of open connections.
    pub fn open(&self) -> usize {
        self.shared.open.lock().slots.len()
    }
}

impl OpenConnection {
    /// Waits until the connection must close to make room for another.
    pub async fn closed_for_another(&self) {
        self.slot.closed().await;
    }

    /// Returns the handle on which requests are recorded.
    pub fn requests(&self) -> Requests {
        Requests(Arc::clone(&self.slot))
    }
}

/// Handle with which a connection's requests are recorded.
#[derive(Debug, Clone)]
pub struct Requests(Arc<ConnectionSlot>);

impl Requests {
    /// Records a known caller's request: until it ends, its connection keeps its slot. `None` if the slot was already
    /// given away; then the request must not be processed.
    pub fn begin(&self) -> Option<UnderWay> {
        self.0.begin().then(|| UnderWay(Arc::clone(&self.0)))
    }
}

/// Keeps a connection's slot once its request's caller is known.
#[derive(Debug, Default)]
pub struct Keeper {
    requests: Option<Requests>,
    under_way: Option<UnderWay>,
}

impl Keeper {
    /// Creates the handle for a request of a counted connection, or of none.
    pub const fn new(requests: Option<Requests>) -> Self {
        Self {
            requests,
            under_way: None,
        }
    }

    /// Records that the caller is known. Returns false if the slot was already given away; then the request must not
    /// be processed.
    pub fn keep(&mut self) -> bool {
        let Some(requests) = &self.requests else {
            return true;
        };
        self.under_way = requests.begin();
        self.under_way.is_some()
    }
}

impl Drop for UnderWay {
    fn drop(&mut self) {
        self.0.end();
    }
}

impl OpenSlots {
    fn take(&mut self, slot: &Arc<ConnectionSlot>) {
        self.next += 1;
        if let Some(address) = slot.counted_as {
            *self.by_address.entry(address).or_insert(0) += 1;
        }
        self.slots.insert(slot.number, Arc::clone(slot));
    }

    /// Frees a slot, once.
    fn free(&mut self, slot: &ConnectionSlot) {
        if self.slots.remove(&slot.number).is_none() {
            return;
        }
        let Some(address) = slot.counted_as else { return };
        if let Entry::Occupied(mut count) = self.by_address.entry(address) {
            *count.get_mut() -= 1;
            if *count.get() == 0 {
                count.remove();
            }
        }
    }

    /// Closes an idle connection of this address, or of any address.
    fn make_room(&mut self, of: Option<IpAddr>, max: usize) -> Option<()> {
        let chosen = self.chosen(of);
        if chosen.of != of || chosen.slots.is_empty() {
            self.choose(of, max)?;
        }
        while let Some(slot) = self.chosen(of).slots.pop() {
            let rests = slot.upgrade().filter(|slot| slot.close());
            if let Some(slot) = rests {
                self.free(&slot);
                return Some(());
            }
        }
        None
    }

    /// Returns the last choice, for one address or for all.
    const fn chosen(&mut self, of: Option<IpAddr>) -> &mut ChosenSlots {
        match of {
            Some(_) => &mut self.chosen_of_address,
            None => &mut self.chosen,
        }
    }

    /// Chooses connections to close; `None` if the last choice is too recent.
    fn choose(&mut self, of: Option<IpAddr>, max: usize) -> Option<()> {
        let now = Instant::now();
        let pause = PAUSE_EACH * u32::try_from(self.slots.len()).unwrap_or(u32::MAX);
        let chosen_at = self.chosen(of).at;
        if chosen_at.is_some_and(|at| now.saturating_duration_since(at) < pause) {
            return None;
        }
        let candidates = self.slots.values();
        let candidates = candidates.filter(|slot| of.is_none() || slot.counted_as == of);
        let parts = |address: &IpAddr| {
            let count = self.by_address.get(address).copied().unwrap_or(0);
            count * PARTS / max.max(1)
        };
        let mut resting: Vec<_> = candidates
            .filter_map(|slot| {
                let (is_known, since) = slot.rests()?;
                let alike = slot.counted_as.as_ref().map_or(0, parts);
                Some((is_known, Reverse(alike), since, slot.number))
            })
            .collect();
        let many = resting.len().min(CHOSEN_AT_ONCE);
        if many < resting.len() {
            resting.select_nth_unstable(many);
        }
        resting.truncate(many);
        resting.sort_unstable_by(|one, other| other.cmp(one));
        let found = resting.iter().filter_map(|(.., number)| self.slots.get(number));
        let chosen = ChosenSlots {
            of,
            slots: found.map(Arc::downgrade).collect(),
            at: Some(now),
        };
        *self.chosen(of) = chosen;
        Some(())
    }
}

impl Drop for OpenConnection {
    fn drop(&mut self) {
        // Connections are closed for others under the same lock.
        let mut open = self.shared.open.lock();
        match self.slot.is_closed() {
            true => self.shared.closing.add_permits(1),
            false => open.free(&self.slot),
        }
    }
}

/// Returns the unit of a limit per client: an IPv4 address, or the /64 network of an IPv6 address, which one customer
/// has.
pub fn site(peer: IpAddr) -> IpAddr {
    match peer {
        IpAddr::V4(address) => IpAddr::V4(address),
        IpAddr::V6(address) => {
            let site = address.to_bits() >> SITE_BITS << SITE_BITS;
            IpAddr::V6(Ipv6Addr::from_bits(site))
        }
    }
}

#[cfg(test)]
mod tests;
