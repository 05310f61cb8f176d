//! Limits on the open connections of a listener: in all, and for each client address.
//!
//! Both servers ask before they serve a connection. Without a limit a stranger could take every file descriptor, also those
//! for the store and the provider. With a limit alone he could take every place and leave none to those who call: so where
//! all places are taken, a connection without a known caller's request gives its place to the new one: strangers before known
//! callers, those of an address with a large part of all connections before others, and then who rests longest. A connection that has a
//! request of a known caller under way is never closed for another.

mod place;

use ipnet::IpNet;
use place::Place;
use std::cmp::Reverse;
use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::net::{IpAddr, Ipv6Addr};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::{Duration, Instant};

/// The bits of an IPv6 address that name a site: whoever has one has all addresses of its /64.
const SITE_BITS: u32 = 64;
/// Connections that are chosen at once to give up their places, at most: choosing looks at all that are open.
const CHOSEN_AT_ONCE: usize = 64;
/// Parts of all places: addresses that have as many of them are alike.
const PARTS: usize = 64;
/// Pause between two such looks, at least, for each connection that is looked at: 5 ms for 10,000. Who comes meanwhile and finds
/// no place is refused.
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
    /// Proxies stand for many clients: only the limit in all holds for them.
    trusted_proxies: Vec<IpNet>,
    started: Instant,
    open: Mutex<Open>,
}

#[derive(Debug, Default)]
struct Open {
    by_address: HashMap<IpAddr, usize>,
    /// The places that are taken, by number. Those of connections that are being closed for others are not.
    places: HashMap<u64, Arc<Place>>,
    next: u64,
    /// Of all connections.
    chosen: Chosen,
    /// Of those of one address. Apart, so that who is at the limit of his own address neither replaces nor delays the
    /// choice for everybody else.
    chosen_of_address: Chosen,
}

/// The connections that give up their places next.
#[derive(Debug, Default)]
struct Chosen {
    /// Of which address, where it is of one.
    of: Option<IpAddr>,
    /// The last one goes first.
    places: Vec<Weak<Place>>,
    at: Option<Instant>,
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
    place: Arc<Place>,
}

/// A known caller's request that is under way on a connection; its connection keeps its place until this is dropped.
#[derive(Debug)]
pub struct UnderWay(Arc<Place>);

impl ConnectionLimit {
    /// A limit with no connection open. Connections from `trusted_proxies` do not count against `max_per_address`.
    #[must_use]
    pub fn new(max: usize, max_per_address: usize, trusted_proxies: Vec<IpNet>) -> Self {
        Self {
            shared: Arc::new(Shared {
                max,
                max_per_address,
                trusted_proxies,
                started: Instant::now(),
                open: Mutex::default(),
            }),
        }
    }

    /// Takes a place for a connection from `peer`, of one that rests if there is no other; without an address only the limit
    /// in all holds.
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
        let of_address = counted_as.and_then(|address| open.by_address.get(&address));
        if of_address.is_some_and(|count| *count >= shared.max_per_address) {
            open.make_room(counted_as, shared.max).ok_or(Refused::Address)?;
        }
        if open.places.len() >= shared.max {
            open.make_room(None, shared.max).ok_or(Refused::All)?;
        }
        let place = Arc::new(Place::new(open.next, counted_as, shared.started));
        open.take(&place);
        drop(open);
        Ok(OpenConnection {
            shared: Arc::clone(shared),
            place,
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
        self.shared.lock().places.len()
    }
}

impl OpenConnection {
    /// Waits until the connection has to give its place to another.
    pub async fn closed_for_another(&self) {
        self.place.closed().await;
    }

    /// The handle by which a connection's requests are known to be under way.
    #[must_use]
    pub fn requests(&self) -> Requests {
        Requests(Arc::clone(&self.place))
    }
}

/// The requests of a connection.
#[derive(Debug, Clone)]
pub struct Requests(Arc<Place>);

impl Requests {
    /// The caller of a request is known: until it has ended, its connection keeps its place. `None` when that was given to
    /// another: then nothing may be done for the request, whose caller gets no answer.
    #[must_use]
    pub fn begin(&self) -> Option<UnderWay> {
        self.0.begin().then(|| UnderWay(Arc::clone(&self.0)))
    }
}

/// Keeps the place of a request's connection from when its caller is known.
#[derive(Debug, Default)]
pub struct Keeper {
    requests: Option<Requests>,
    under_way: Option<UnderWay>,
}

impl Keeper {
    /// For a request of a connection that is counted, or of none.
    #[must_use]
    pub const fn new(requests: Option<Requests>) -> Self {
        Self {
            requests,
            under_way: None,
        }
    }

    /// The caller is known: the place is kept until this is dropped. `false` when it was given to another: then nothing may
    /// be done for the request.
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

impl Shared {
    fn lock(&self) -> MutexGuard<'_, Open> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Open {
    fn take(&mut self, place: &Arc<Place>) {
        self.next += 1;
        if let Some(address) = place.counted_as {
            *self.by_address.entry(address).or_insert(0) += 1;
        }
        self.places.insert(place.number, Arc::clone(place));
    }

    /// Frees a place, once.
    fn free(&mut self, place: &Place) {
        if self.places.remove(&place.number).is_none() {
            return;
        }
        let Some(address) = place.counted_as else { return };
        if let Entry::Occupied(mut count) = self.by_address.entry(address) {
            *count.get_mut() -= 1;
            if *count.get() == 0 {
                count.remove();
            }
        }
    }

    /// Closes a connection that rests: of this address, or of any.
    fn make_room(&mut self, of: Option<IpAddr>, max: usize) -> Option<()> {
        let chosen = self.chosen(of);
        if chosen.of != of || chosen.places.is_empty() {
            self.choose(of, max)?;
        }
        while let Some(place) = self.chosen(of).places.pop() {
            let rests = place.upgrade().filter(|place| place.close());
            if let Some(place) = rests {
                self.free(&place);
                return Some(());
            }
        }
        None
    }

    /// Who was chosen last: of one address, or of all.
    const fn chosen(&mut self, of: Option<IpAddr>) -> &mut Chosen {
        match of {
            Some(_) => &mut self.chosen_of_address,
            None => &mut self.chosen,
        }
    }

    /// Chooses who goes. `None` so soon after the last time.
    fn choose(&mut self, of: Option<IpAddr>, max: usize) -> Option<()> {
        let now = Instant::now();
        let pause = PAUSE_EACH * u32::try_from(self.places.len()).unwrap_or(u32::MAX);
        let chosen_at = self.chosen(of).at;
        if chosen_at.is_some_and(|at| now.saturating_duration_since(at) < pause) {
            return None;
        }
        let candidates = self.places.values();
        let candidates = candidates.filter(|place| of.is_none() || place.counted_as == of);
        let parts = |address: &IpAddr| {
            let count = self.by_address.get(address).copied().unwrap_or(0);
            count * PARTS / max.max(1)
        };
        let mut resting: Vec<_> = candidates
            .filter_map(|place| {
                let (is_known, since) = place.rests()?;
                let alike = place.counted_as.as_ref().map_or(0, parts);
                Some((is_known, Reverse(alike), since, place.number))
            })
            .collect();
        let many = resting.len().min(CHOSEN_AT_ONCE);
        if many < resting.len() {
            resting.select_nth_unstable(many);
        }
        resting.truncate(many);
        resting.sort_unstable_by(|one, other| other.cmp(one));
        let found = resting.iter().filter_map(|(.., number)| self.places.get(number));
        let chosen = Chosen {
            of,
            places: found.map(Arc::downgrade).collect(),
            at: Some(now),
        };
        *self.chosen(of) = chosen;
        Some(())
    }
}

impl Drop for OpenConnection {
    fn drop(&mut self) {
        self.shared.lock().free(&self.place);
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
mod tests;
