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
mod tests {
    use super::*;
    use futures::FutureExt as _;

    fn peer(text: &str) -> Option<IpAddr> {
        Some(text.parse().unwrap())
    }

    /// A connection with a known caller's request under way.
    fn busy(limit: &ConnectionLimit, from: &str) -> Result<(OpenConnection, UnderWay), Refused> {
        let open = limit.admit(peer(from))?;
        let under_way = open.requests().begin().unwrap();
        Ok((open, under_way))
    }

    fn is_closed(connection: &OpenConnection) -> bool {
        connection.closed_for_another().now_or_never().is_some()
    }

    /// Lets the pause between two choices pass.
    fn later(limit: &ConnectionLimit) {
        let mut open = limit.shared.lock();
        open.chosen.at = None;
        open.chosen_of_address.at = None;
    }

    /// Makes the pauses that have begun last.
    fn at_once(limit: &ConnectionLimit) {
        let ends = Instant::now() + Duration::from_secs(60);
        let mut open = limit.shared.lock();
        for of in [None, peer("192.0.2.1")] {
            let at = &mut open.chosen(of).at;
            *at = at.map(|_| ends);
        }
    }

    #[test]
    fn the_limit_of_an_address_leaves_room_for_others_and_ends_with_its_connections() {
        let limit = ConnectionLimit::new(3, 2, Vec::new());
        let first = busy(&limit, "192.0.2.1").unwrap();
        let _second = busy(&limit, "192.0.2.1").unwrap();
        assert_eq!(limit.admit(peer("192.0.2.1")).unwrap_err(), Refused::Address);
        assert_eq!(
            limit.admit(peer("::ffff:192.0.2.1")).unwrap_err(),
            Refused::Address
        );
        let _other = busy(&limit, "192.0.2.2").unwrap();
        assert_eq!(limit.admit(peer("192.0.2.3")).unwrap_err(), Refused::All);
        assert_eq!(limit.open(), 3);
        drop(first);
        assert!(limit.admit(peer("192.0.2.1")).is_ok());
    }

    #[test]
    fn who_rests_gives_its_place_to_the_next_and_strangers_go_first() {
        let limit = ConnectionLimit::new(4, 4, Vec::new());
        let (known, request) = busy(&limit, "192.0.2.1").unwrap();
        drop(request);
        let (at_work, _request) = busy(&limit, "192.0.2.2").unwrap();
        let early = limit.admit(peer("192.0.2.3")).unwrap();
        let late = limit.admit(peer("192.0.2.4")).unwrap();
        let closed = || [&known, &at_work, &early, &late].map(is_closed);
        let next = busy(&limit, "192.0.2.5").unwrap();
        assert_eq!(closed(), [false, false, true, false]);
        assert!(
            early.requests().begin().is_none(),
            "nothing is done for it any more"
        );
        let another = busy(&limit, "192.0.2.6").unwrap();
        assert_eq!(closed(), [false, false, false, true]);
        later(&limit);
        let third = busy(&limit, "192.0.2.7").unwrap();
        assert_eq!(closed(), [true, false, false, false]);
        later(&limit);
        assert_eq!(limit.admit(peer("192.0.2.8")).unwrap_err(), Refused::All);
        drop((known, early, late));
        assert_eq!(limit.open(), 4, "a place is freed once");
        drop((next, another, third));
        assert_eq!(limit.open(), 1);
    }

    #[test]
    fn an_address_with_many_connections_makes_room_before_others_do() {
        let limit = ConnectionLimit::new(3, 2, Vec::new());
        let one = limit.admit(peer("192.0.2.1")).unwrap();
        let many = [(); 2].map(|()| limit.admit(peer("192.0.2.2")).unwrap());
        let third = limit.admit(peer("192.0.2.2")).unwrap();
        assert_eq!(
            (is_closed(&many[0]), is_closed(&one)),
            (true, false),
            "its own limit"
        );
        later(&limit);
        let other = limit.admit(peer("192.0.2.3")).unwrap();
        assert_eq!(
            (is_closed(&many[1]), is_closed(&one)),
            (true, false),
            "the limit for all"
        );
        drop((third, other));
    }

    #[test]
    fn a_few_connections_of_one_address_are_no_more_than_one_of_another() {
        let limit = ConnectionLimit::new(4 * PARTS, 2 * PARTS, Vec::new());
        let addresses = 0..u32::try_from(4 * PARTS - 2).unwrap();
        let flood: Vec<_> = addresses
            .map(|n| limit.admit(Some(IpAddr::V4((n << 8).into()))).unwrap())
            .collect();
        std::thread::sleep(Duration::from_millis(2));
        let caller = [(); 2].map(|()| limit.admit(peer("192.0.2.1")).unwrap());
        let _next = limit.admit(peer("192.0.2.2")).unwrap();
        assert!(is_closed(&flood[0]) && !caller.iter().any(is_closed));
    }

    #[test]
    fn choosing_who_goes_is_done_for_some_at_once_and_not_all_the_time() {
        let strangers = CHOSEN_AT_ONCE + 10;
        let limit = ConnectionLimit::new(strangers, strangers, Vec::new());
        let held: Vec<_> = (0..strangers)
            .map(|_| limit.admit(peer("192.0.2.1")).unwrap())
            .collect();
        let next: Vec<_> = (0..CHOSEN_AT_ONCE)
            .map(|_| busy(&limit, "192.0.2.2").unwrap())
            .collect();
        limit.shared.lock().chosen.at = Some(Instant::now() + Duration::from_secs(60));
        assert_eq!(limit.admit(peer("192.0.2.2")).unwrap_err(), Refused::All);
        assert_eq!(next.len(), CHOSEN_AT_ONCE);
        assert_eq!(held.iter().filter(|open| is_closed(open)).count(), CHOSEN_AT_ONCE);
        later(&limit);
        assert!(limit.admit(peer("192.0.2.2")).is_ok());
    }

    proptest::proptest! {
        /// Whatever comes, begins, ends and leaves: no more are open than may be, in all and for each address, nobody at work
        /// is closed, and who found no place saw only others at work, or came right after a choice.
        #[test]
        fn places_are_never_more_than_there_are(steps in proptest::collection::vec((0_u8..4, 0_u8..6, 0_usize..8), 0..80)) {
            let (max, max_per_address) = (4, 2);
            let limit = ConnectionLimit::new(max, max_per_address, Vec::new());
            let mut open: Vec<(OpenConnection, Option<UnderWay>)> = Vec::new();
            for (what, address, which) in steps {
                let which = which.checked_rem(open.len());
                match (what, which) {
                    (0, _) => {
                        later(&limit);
                        let places = |limit: &ConnectionLimit| limit.shared.lock().places.len();
                        let before = places(&limit);
                        match limit.admit(peer(&format!("192.0.2.{address}"))) {
                            Ok(place) => open.push((place, None)),
                            Err(Refused::All) => proptest::prop_assert_eq!(before, max),
                            Err(Refused::Address) => proptest::prop_assert!(before >= max_per_address),
                        }
                    }
                    (1, Some(which)) => open[which].1 = open[which].0.requests().begin(),
                    (2, Some(which)) => open[which].1 = None,
                    (_, Some(which)) => drop(open.swap_remove(which)),
                    _ => {}
                }
                for (place, request) in &open {
                    proptest::prop_assert!(request.is_none() || !is_closed(place));
                }
                let shared = limit.shared.lock();
                proptest::prop_assert!(shared.places.len() <= max);
                proptest::prop_assert!(shared.by_address.values().all(|count| (1..=max_per_address).contains(count)));
                proptest::prop_assert_eq!(shared.by_address.values().sum::<usize>(), shared.places.len());
            }
        }
    }

    proptest::proptest! {
        /// Whatever somebody does at the limit of his own address, a newcomer finds a place that rests, also right after.
        #[test]
        fn who_is_at_his_own_limit_keeps_nobody_out(
            busy_ones in 0_usize..=3,
            attempts in 1_usize..10,
            newcomers in 1_usize..=2,
        ) {
            let limit = ConnectionLimit::new(5, 3, Vec::new());
            let others = ["192.0.2.2", "192.0.2.3"].map(|from| limit.admit(peer(from)).unwrap());
            let mut own: Vec<_> = (0..3).map(|_| limit.admit(peer("192.0.2.1")).unwrap()).collect();
            let requests: Vec<_> = own.iter().take(busy_ones).map(|open| open.requests().begin()).collect();
            for _ in 0..attempts {
                if let Ok(next) = limit.admit(peer("192.0.2.1")) {
                    own.push(next);
                }
            }
            at_once(&limit);
            for number in 0..newcomers {
                let newcomer = limit.admit(Some(IpAddr::from([198, 51, 100, u8::try_from(number).unwrap()])));
                proptest::prop_assert!(newcomer.is_ok(), "{newcomer:?}");
            }
            drop((others, requests));
        }
    }

    #[test]
    fn all_addresses_of_an_ipv6_site_are_one() {
        let limit = ConnectionLimit::new(10, 1, Vec::new());
        let _open = busy(&limit, "2001:db8:0:1::1").unwrap();
        assert_eq!(
            limit.admit(peer("2001:db8:0:1:ffff::2")).unwrap_err(),
            Refused::Address
        );
        assert!(limit.admit(peer("2001:db8:0:2::1")).is_ok());
    }

    #[test]
    fn a_trusted_proxy_counts_in_all_only() {
        let limit = ConnectionLimit::new(3, 1, vec!["10.0.0.0/8".parse().unwrap()]);
        let _open = [(); 3].map(|()| busy(&limit, "10.1.2.3").unwrap());
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
