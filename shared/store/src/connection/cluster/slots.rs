//! Slots: the slot of a key, and the map from slots to masters.

use redis::{Arg, Cmd, RedisResult, Value};
use std::sync::Arc;
use std::time::Duration;
use tokio::time::Instant;

pub(in crate::connection) const SLOTS: u16 = 16_384;
/// Marks a slot without a master.
const NO_MASTER: u16 = u16::MAX;

/// Time that reports with a lower rank than the map's are ignored. A rebuilt cluster has permanently lower epochs.
const LOWER_RANK_IGNORED: Duration = Duration::from_secs(10);

/// First slot, last slot, address of the master.
pub(super) type Range = (u16, u16, String);

/// A node's report: which master serves which slots.
pub(super) struct NodeReport {
    /// Highest cluster epoch that the node has seen.
    epoch: u64,
    pub(super) ranges: Vec<Range>,
}

impl NodeReport {
    /// Returns the rank of the report: first by epoch, then by the number of slots with a known master.
    pub(super) fn rank(&self) -> (u64, usize) {
        let slots = |(first, last, _): &Range| usize::from(last.saturating_sub(*first)) + 1;
        (self.epoch, self.ranges.iter().map(slots).sum())
    }
}

/// Rank of the best report so far, and when a report of this rank was last received. A node that is cut off or restarts
/// must not revert the map.
#[derive(Default)]
pub(super) struct BestReport {
    rank: (u64, usize),
    received_at: Option<Instant>,
}

impl BestReport {
    /// Returns whether a report of this rank replaces the map.
    pub(super) fn accepts(&mut self, rank: (u64, usize), now: Instant) -> bool {
        let has_expired = self.received_at.is_none_or(|at| now - at >= LOWER_RANK_IGNORED);
        let is_accepted = rank >= self.rank || has_expired;
        if is_accepted {
            (self.rank, self.received_at) = (rank, Some(now));
        }
        is_accepted
    }
}

/// The masters and their slots.
pub(super) struct SlotMap<M> {
    /// Index of each slot's master; empty if no map is known.
    slots: Vec<u16>,
    masters: Vec<M>,
}

impl<M> Default for SlotMap<M> {
    fn default() -> Self {
        Self {
            slots: Vec::new(),
            masters: Vec::new(),
        }
    }
}

/// A type with a server address.
pub(super) trait HasAddress {
    fn address(&self) -> &str;
}

impl HasAddress for super::Master {
    fn address(&self) -> &str {
        &self.address
    }
}

impl<M: HasAddress + Clone> SlotMap<M> {
    /// Builds a map, with masters made by `make`. Slots of a master that it cannot make stay without a master.
    pub(super) fn build(ranges: &[Range], make: impl Fn(&str) -> RedisResult<M>) -> Self {
        let mut map = Self {
            slots: vec![NO_MASTER; usize::from(SLOTS)],
            masters: Vec::new(),
        };
        for (first, last, address) in ranges {
            let known = map.masters.iter().position(|master| master.address() == address);
            let place = match known {
                Some(place) => place,
                None => match make(address) {
                    Ok(master) => {
                        map.masters.push(master);
                        map.masters.len() - 1
                    }
                    Err(error) => {
                        tracing::warn!(%error, "a node of the cluster has an invalid address");
                        continue;
                    }
                },
            };
            let place = u16::try_from(place).unwrap_or(NO_MASTER);
            let (first, last) = (usize::from(*first), usize::from((*last).min(SLOTS - 1)));
            if let Some(slots) = map.slots.get_mut(first..=last) {
                slots.fill(place);
            }
        }
        map
    }

    /// Returns the map with `master` added, without slots.
    pub(super) fn with_master(self: &Arc<Self>, master: &M) -> Arc<Self> {
        if self.find(master.address()).is_some() {
            return Arc::clone(self);
        }
        let mut masters = self.masters.clone();
        masters.push(master.clone());
        let slots = self.slots.clone();
        Arc::new(Self { slots, masters })
    }

    /// Returns the map with `slot` assigned to `master`.
    pub(super) fn with_slot(self: &Arc<Self>, slot: u16, master: &M) -> Arc<Self> {
        if self
            .at(slot)
            .is_some_and(|known| known.address() == master.address())
        {
            return Arc::clone(self);
        }
        let mut masters = self.masters.clone();
        let known = masters
            .iter()
            .position(|known| known.address() == master.address());
        let place = known.unwrap_or_else(|| {
            masters.push(master.clone());
            masters.len() - 1
        });
        let mut slots = self.slots.clone();
        slots.resize(usize::from(SLOTS), NO_MASTER);
        if let (Some(slot), Ok(place)) = (slots.get_mut(usize::from(slot)), u16::try_from(place)) {
            *slot = place;
        }
        Arc::new(Self { slots, masters })
    }

    /// Returns the master of a slot.
    pub(super) fn at(&self, slot: u16) -> Option<&M> {
        let place = self.slots.get(usize::from(slot))?;
        self.masters.get(usize::from(*place))
    }

    /// Returns some master, round robin by `turn`.
    pub(super) fn any(&self, turn: usize) -> Option<&M> {
        let place = turn.checked_rem(self.masters.len())?;
        self.masters.get(place)
    }

    /// Returns the master at this address.
    pub(super) fn find(&self, address: &str) -> Option<&M> {
        self.masters.iter().find(|master| master.address() == address)
    }

    pub(super) fn masters(&self) -> &[M] {
        &self.masters
    }
}

/// Returns the slot of a key: of the part between its first `{` and the next `}`, unless that is empty.
pub(in crate::connection) fn slot_of(key: &[u8]) -> u16 {
    let tag = key.iter().position(|byte| *byte == b'{').and_then(|open| {
        let rest = &key[open + 1..];
        let close = rest.iter().position(|byte| *byte == b'}')?;
        (close > 0).then(|| &rest[..close])
    });
    crc16(tag.unwrap_or(key)) % SLOTS
}

/// Computes CRC-16/XMODEM.
fn crc16(bytes: &[u8]) -> u16 {
    bytes.iter().fold(0, |crc, byte| {
        (0..8).fold(crc ^ (u16::from(*byte) << 8), |crc, _| match crc & 0x8000 {
            0 => crc << 1,
            _ => (crc << 1) ^ 0x1021,
        })
    })
}

/// Returns the slot of a command's first key; `None` for a command without keys, which any master can execute.
pub(super) fn slot_of_command(command: &Cmd) -> Option<u16> {
    let mut words = command.args_iter().map(|word| match word {
        Arg::Simple(word) => word,
        _ => b"0".as_slice(),
    });
    let name = words.next()?;
    match name {
        b"EVALSHA" | b"EVAL" => {
            let count = words.nth(1)?;
            (count != b"0").then(|| words.next().map(slot_of))?
        }
        b"TIME" | b"PING" | b"INFO" | b"CONFIG" | b"CLUSTER" | b"DBSIZE" | b"SCAN" => None,
        _ => words.next().map(slot_of),
    }
}

/// Parses `CLUSTER INFO` and `CLUSTER SLOTS` of the node at `address`.
pub(super) fn parse_report(info: String, slots: Vec<Vec<Value>>, address: &str) -> NodeReport {
    let line = info
        .lines()
        .find_map(|line| line.strip_prefix("cluster_current_epoch:"));
    let epoch = line.and_then(|text| text.trim().parse().ok()).unwrap_or(0);
    let own_host = address.rsplit_once(':').map_or(address, |(host, _)| host);
    let ranges = slots
        .into_iter()
        .filter_map(|words| range(words, own_host))
        .collect();
    NodeReport { epoch, ranges }
}

/// The replicas that a master lists.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(in crate::connection) struct ListedReplicas {
    /// Those that may take over.
    pub usable: u64,
    /// Those that are marked as failed.
    pub failed: u64,
    /// Other nodes that are listed as masters without slots. One may be a replica whose role this master does not
    /// know yet: it comes with the next message, seconds after the replica began to follow.
    pub without_slots: u64,
}

impl ListedReplicas {
    /// Returns whether any node may have followed the master.
    pub const fn may_have_followed(self) -> bool {
        self.usable + self.failed + self.without_slots > 0
    }
}

/// Counts the replicas of a master in its own `CLUSTER NODES`, in sync or not. `CLUSTER SLOTS` omits a replica that has
/// not reported a replication offset yet, but such a replica may take over.
pub(in crate::connection) fn replicas_listed(nodes: &str) -> ListedReplicas {
    let nodes: Vec<NodeLine> = nodes.lines().filter_map(NodeLine::parse).collect();
    let Some(own) = nodes.iter().find(|node| node.is("myself")) else {
        return ListedReplicas::default();
    };
    let mut listed = ListedReplicas::default();
    for node in nodes.iter().filter(|node| own.is("master") && node.id != own.id) {
        if node.is("slave") && node.master == own.id {
            match node.is("fail") {
                true => listed.failed += 1,
                false => listed.usable += 1,
            }
        } else if node.is("master") && !node.has_slots {
            listed.without_slots += 1;
        }
    }
    listed
}

/// A line of `CLUSTER NODES`.
struct NodeLine<'a> {
    id: &'a str,
    /// Separated by commas.
    flags: &'a str,
    /// Id of its master; `-` if it has none.
    master: &'a str,
    has_slots: bool,
}

impl<'a> NodeLine<'a> {
    fn parse(line: &'a str) -> Option<Self> {
        // <id> <address> <flag>,… <id of its master> <ping sent> <pong received> <epoch> <link> <slots>…
        let mut words = line.split(' ');
        Some(Self {
            id: words.next()?,
            flags: words.nth(1)?,
            master: words.next()?,
            has_slots: words.nth(4).is_some(),
        })
    }

    fn is(&self, flag: &str) -> bool {
        self.flags.split(',').any(|own| own == flag)
    }
}

/// Parses one range of `CLUSTER SLOTS`. `own_host` is the host of the reporting node.
fn range(words: Vec<Value>, own_host: &str) -> Option<Range> {
    // <first> <last> <master> <replica>…, each server being <host> <port> and more.
    let mut words = words.into_iter();
    let first = redis::from_redis_value(words.next()?).ok()?;
    let last = redis::from_redis_value(words.next()?).ok()?;
    let master: Vec<Value> = redis::from_redis_value(words.next()?).ok()?;
    let mut words = master.into_iter();
    let host: Option<String> = redis::from_redis_value(words.next()?).ok()?;
    let port: u16 = redis::from_redis_value(words.next()?).ok()?;
    // An empty host means the reporting node.
    let host = host.filter(|host| !host.is_empty() && host != "?");
    let address = format!("{}:{port}", host.as_deref().unwrap_or(own_host));
    Some((first, last, bracketed(&address)))
}

/// Formats `host:port` with brackets around an IPv6 host, which nodes leave out.
pub(super) fn bracketed(address: &str) -> String {
    match address.rsplit_once(':') {
        Some((host, port)) if host.contains(':') && !host.starts_with('[') => format!("[{host}]:{port}"),
        _ => address.to_owned(),
    }
}

#[cfg(test)]
mod tests;
