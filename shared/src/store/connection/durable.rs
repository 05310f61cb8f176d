//! Commands whose effect must be safe before anybody is told of it (`store.durability`).
//!
//! `WAIT` and `WAITAOF` speak of what their own connection wrote, and hold that connection up. So a script of money goes
//! down a *lane*, a connection that only one caller uses at a time: the script, a fence, and the wait in one round trip.
//! The fence is a write of the same slot: a script that found its work done before has written nothing itself, and what
//! it tells of may not be safe yet. From Redis 7.2 on a wait speaks of nothing that its connection did not write, so without
//! the fence it confirms nothing.

use super::cluster::{Cluster, Master, is_asked, not_here, redirection};
use super::server::is_read_only;
use super::walk::Node;
use super::{CONNECT_TIMEOUT, Store, StoreError};
use crate::store::durability::{ALWAYS, Disk, Durability, Offer, Status, is_always};
use crate::store::keys::FENCE;
use crate::store::pulse;
use crate::store::script::fence;
use redis::aio::MultiplexedConnection;
use redis::{AsyncConnectionConfig, Cmd, Pipeline, RedisError, RedisResult, Value};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::sync::Semaphore;
use tokio::time::Instant;

/// Changes of money that one process waits for at the same time; more wait for their turn within the deadline.
const LANES_MAX: usize = 32;
/// How old knowledge of what the servers offer may be.
const LOOK_EVERY: Duration = Duration::from_secs(1);

/// How changes of money are confirmed.
pub(super) struct Money {
    asked: Durability,
    /// The longest wait for the confirmation alone.
    wait: Duration,
    /// The longest wait for all of it.
    deadline: Duration,
    dial: Dial,
    idle: Mutex<Vec<Lane>>,
    room: Semaphore,
    seen: Mutex<Option<Seen>>,
}

/// What the servers offered when they were last asked.
#[derive(Clone)]
struct Seen {
    at: Instant,
    status: Status,
    disks: Arc<Disks>,
}

/// Makes connections.
pub(super) enum Dial {
    Single(Box<redis::Client>),
    Cluster(Arc<Cluster>),
}

/// A connection that one caller uses at a time, and the node of a cluster that it goes to.
struct Lane {
    address: Option<String>,
    connection: MultiplexedConnection,
}

/// How changes are confirmed.
enum Safety {
    Disks(Arc<Disks>),
    Replicas(u8),
}

/// How each server confirms what is on its disk: they may be of different versions.
struct Disks {
    by_node: BTreeMap<Node, Disk>,
    /// Of a server that came since: what the oldest of the others has.
    others: Disk,
}

/// How one change is confirmed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum How {
    WaitAof,
    Always,
    Replicas(u8),
}

impl Safety {
    /// On this node of a cluster, or on the single server.
    fn on(&self, address: Option<&str>) -> How {
        match self {
            Self::Replicas(count) => How::Replicas(*count),
            Self::Disks(disks) => match disks.of(&Node::at(address)) {
                Disk::WaitAof => How::WaitAof,
                Disk::Always => How::Always,
            },
        }
    }
}

impl Disks {
    fn new(by_node: BTreeMap<Node, Disk>) -> Self {
        let always = by_node.values().any(|disk| *disk == Disk::Always);
        let others = if always { Disk::Always } else { Disk::WaitAof };
        Self { by_node, others }
    }

    fn of(&self, node: &Node) -> Disk {
        self.by_node.get(node).copied().unwrap_or(self.others)
    }
}

/// What came back up a lane.
struct Reply {
    how: How,
    change: Value,
    fence: Option<Value>,
    confirmation: Value,
}

impl Reply {
    /// Whether the change is as safe as asked for; else why not.
    fn safe(self) -> Result<(), String> {
        if let Some(fence) = self.fence {
            let refused = |error: RedisError| format!("the store refused a write beside it: {error}");
            fence.extract_error().map_err(refused)?;
        }
        confirmed(self.how, self.confirmation)
    }
}

impl Money {
    pub(super) fn new(asked: Durability, wait: Duration, timeout: Duration, dial: Dial) -> Self {
        Self {
            asked,
            wait,
            deadline: timeout + wait,
            dial,
            idle: Mutex::default(),
            room: Semaphore::new(LANES_MAX),
            seen: Mutex::default(),
        }
    }

    /// What goes down a lane: the change, the fence where there is one, and the question whether they are safe. Each with a
    /// key is announced by `ASKING` to a node that a slot is on its way to. Also which answers count.
    fn pipeline(&self, how: How, change: &Change<'_>, asking: bool) -> (Pipeline, Vec<usize>) {
        let (mut pipeline, mut counts) = (Pipeline::new(), Vec::new());
        let fence = fence(change.key).filter(|_| matches!(how, How::WaitAof | How::Replicas(_)));
        let fence = fence.map(|key| fence::write(&key));
        for command in std::iter::once(change.command).chain(&fence) {
            if asking {
                pipeline.cmd("ASKING");
            }
            counts.push(pipeline.len());
            pipeline.add_command(command.clone());
        }
        counts.push(pipeline.len());
        let wait = self.wait.as_millis().to_string();
        match how {
            How::WaitAof => pipeline.cmd("WAITAOF").arg(1).arg(0).arg(wait),
            How::Replicas(count) => pipeline.cmd("WAIT").arg(count).arg(wait),
            How::Always => {
                let names = ALWAYS.map(|(name, _)| name);
                pipeline.cmd("CONFIG").arg("GET").arg(names.as_slice())
            }
        };
        (pipeline, counts)
    }

    /// Runs a change and what confirms it on one connection.
    async fn down_a_lane(&self, safety: &Safety, change: &Change<'_>) -> Result<Reply, StoreError> {
        let closed = |_| StoreError::NoAnswer(None);
        let run = async {
            let _turn = self.room.acquire().await.map_err(closed)?;
            let reply = match &self.dial {
                Dial::Single(_) => self.send(None, safety, change, false).await,
                Dial::Cluster(cluster) => {
                    let send = |master: Master, asking| self.send_to(master, safety, change, asking);
                    cluster.follow_key(change.key, send).await
                }
            };
            reply.map_err(|error| StoreError::from(error).unless_never_sent())
        };
        tokio::time::timeout(self.deadline, run)
            .await
            .unwrap_or_else(|_elapsed| {
                if let Dial::Cluster(cluster) = &self.dial {
                    cluster.look_soon();
                }
                Err(StoreError::NoAnswer(None))
            })
    }

    /// The same on a node of a cluster. A slot that is elsewhere, or on its way, is an error, after which it is sent again.
    async fn send_to(
        &self,
        master: Master,
        safety: &Safety,
        change: &Change<'_>,
        asking: bool,
    ) -> RedisResult<Reply> {
        let reply = self.send(Some(master.address), safety, change, asking).await?;
        if let Some(error) = redirection(&reply.change) {
            return Err(error);
        }
        match reply.fence.as_ref().and_then(redirection) {
            // Where the fence is asked for nothing is known of what was found here.
            Some(error) if change.only_reads && is_asked(&error) => Err(not_here()),
            Some(error) if change.only_reads => Err(error),
            _ => Ok(reply),
        }
    }

    async fn send(
        &self,
        address: Option<String>,
        safety: &Safety,
        change: &Change<'_>,
        asking: bool,
    ) -> RedisResult<Reply> {
        let mut lane = self.open(address).await?;
        let how = safety.on(lane.address.as_deref());
        let (pipeline, counts) = self.pipeline(how, change, asking);
        // A lane that fails, or whose caller leaves, is dropped with its connection.
        let sent = lane
            .connection
            .send_packed_commands(&pipeline, 0, pipeline.len())
            .await;
        let mut answers = match sent {
            Ok(answers) => answers,
            Err(error) => {
                self.lanes(Vec::clear);
                return Err(error);
            }
        };
        // So is one to a server that is a replica by now: another may be behind the same name.
        if answers.iter().any(is_read_only) {
            self.lanes(|idle| idle.retain(|other| other.address != lane.address));
        } else {
            self.lanes(|idle| idle.push(lane));
        }
        let mut answer = |at: usize| answers.get_mut(at).map(std::mem::take);
        let confirmation = counts.last().copied().and_then(&mut answer);
        let fence = (counts.len() > 2).then(|| counts.get(1).copied().and_then(&mut answer));
        Ok(Reply {
            how,
            change: counts.first().copied().and_then(&mut answer).unwrap_or_default(),
            fence: fence.map(Option::unwrap_or_default),
            confirmation: confirmation.unwrap_or_default(),
        })
    }

    fn lanes<T>(&self, act: impl FnOnce(&mut Vec<Lane>) -> T) -> T {
        act(&mut self.idle.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// An idle lane that still answers, else a new one.
    async fn open(&self, address: Option<String>) -> RedisResult<Lane> {
        let idle = self.lanes(|lanes| {
            let found = lanes.iter().position(|lane| lane.address == address)?;
            Some(lanes.swap_remove(found))
        });
        if let Some(mut lane) = idle {
            let ping = redis::cmd("PING");
            let answer = lane.connection.send_packed_command(&ping);
            let answer = tokio::time::timeout(CONNECT_TIMEOUT, answer).await;
            if matches!(answer, Ok(Ok(_))) {
                return Ok(lane);
            }
            self.lanes(Vec::clear);
        }
        let connection = match (&self.dial, &address) {
            (Dial::Cluster(cluster), Some(address)) => cluster.dial(address, self.deadline).await?,
            (Dial::Cluster(cluster), None) => cluster.dial("", self.deadline).await?,
            (Dial::Single(client), _) => {
                let config = AsyncConnectionConfig::new()
                    .set_connection_timeout(Some(CONNECT_TIMEOUT.min(self.deadline)))
                    .set_response_timeout(Some(self.deadline));
                client
                    .get_multiplexed_async_connection_with_config(&config)
                    .await?
            }
        };
        Ok(Lane { address, connection })
    }
}

/// A command that changes money or looks at a change, and the first of its keys.
#[derive(Clone, Copy)]
pub(super) struct Change<'a> {
    pub(super) command: &'a Cmd,
    pub(super) key: &'a str,
    /// Whether it may run again.
    pub(super) only_reads: bool,
}

impl Store {
    /// Runs a change of money, or finds out that it was made, and answers when that is as safe as configured.
    pub(super) async fn safely(&self, money: &Money, change: Change<'_>) -> Result<Value, StoreError> {
        let Some(safety) = self.safety(money).await? else {
            return self.command(change.command).await;
        };
        let reply = money.down_a_lane(&safety, &change).await;
        let mut reply = reply.inspect_err(pulse::count)?;
        let answer = std::mem::take(&mut reply.change).extract_error();
        let answer = answer.map_err(StoreError::from).inspect_err(pulse::count)?;
        if let Err(why) = reply.safe() {
            *money.seen.lock().unwrap_or_else(PoisonError::into_inner) = None;
            return Err(StoreError::NotDurable { ran: true, why });
        }
        Ok(answer)
    }

    /// Whether `key`, or this field of it, is there and as safe as configured: before anybody acts on what was done
    /// before, or is told of it again.
    ///
    /// # Errors
    /// [`StoreError::NotDurable`] when it is there and cannot be confirmed, or another one.
    pub async fn is_safely_there(&self, key: &str, field: Option<&str>) -> Result<bool, StoreError> {
        let mut exists = redis::cmd(if field.is_some() { "HEXISTS" } else { "EXISTS" });
        exists.arg(key).arg(field);
        let answer = match &self.money {
            None => self.command(&exists).await?,
            Some(money) => {
                let change = Change {
                    command: &exists,
                    key,
                    only_reads: true,
                };
                self.safely(money, change).await?
            }
        };
        redis::from_redis_value(answer).map_err(|error| StoreError::Nonsense(error.to_string()))
    }

    /// How a change is confirmed now; `None` when it is not.
    async fn safety(&self, money: &Money) -> Result<Option<Safety>, StoreError> {
        if let Durability::Replicas(count) = money.asked {
            return Ok(Some(Safety::Replicas(count)));
        }
        let known = money.seen.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let seen = match known {
            Some(seen) if seen.at.elapsed() < LOOK_EVERY => seen,
            // While one server of several is away, what was seen last holds: each change is confirmed for itself.
            Some(seen) => self.look(money).await.unwrap_or(seen),
            None => self.look(money).await?,
        };
        if seen.status.refuses() {
            let why = seen.status.sentence();
            return Err(StoreError::NotDurable { ran: false, why });
        }
        Ok((seen.status.confirmed == Durability::Aof).then_some(Safety::Disks(seen.disks)))
    }

    /// How changes of money stand, asked now.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn durability(&self) -> Result<Status, StoreError> {
        match &self.money {
            None => Ok(Status::of(Durability::Async, &[])),
            Some(money) => self.look(money).await.map(|seen| seen.status),
        }
    }

    async fn look(&self, money: &Money) -> Result<Seen, StoreError> {
        let mut info = redis::cmd("INFO");
        info.arg(["server", "persistence", "replication"].as_slice());
        let mut config = redis::cmd("CONFIG");
        config.arg("GET").arg(ALWAYS.map(|(name, _)| name).as_slice());
        let nodes = self.nodes().await?;
        let (infos, configs) = (self.ask(&nodes, &info).await, self.ask(&nodes, &config).await);
        let offers = infos.into_iter().zip(configs).map(|(info, config)| {
            let info = super::text(info?)?;
            Ok(Offer::of(&info, readable(config)?.as_deref()))
        });
        let offers: Vec<Offer> = offers.collect::<Result<_, StoreError>>()?;
        let disks = nodes.into_iter().zip(&offers);
        let disks = disks.filter_map(|(node, offer)| Some((node, offer.disk.ok()?)));
        let seen = Seen {
            at: Instant::now(),
            status: Status::of(money.asked, &offers),
            disks: Arc::new(Disks::new(disks.collect())),
        };
        *money.seen.lock().unwrap_or_else(PoisonError::into_inner) = Some(seen.clone());
        Ok(seen)
    }
}

/// A server that does not let us read its configuration says so, and then confirms nothing by it.
fn readable(answer: Result<Value, StoreError>) -> Result<Option<Vec<(String, String)>>, StoreError> {
    match answer {
        Ok(answer) => Ok(pairs(answer)),
        Err(StoreError::Refused { .. }) => Ok(None),
        Err(StoreError::NoAnswer(Some(source))) if source.code().is_some() => Ok(None),
        Err(error) => Err(error),
    }
}

/// What `CONFIG GET` says.
fn pairs(answer: Value) -> Option<Vec<(String, String)>> {
    redis::from_redis_value(answer).ok()
}

/// A key of the bucket of `key` that nobody reads.
fn fence(key: &str) -> Option<String> {
    let (tag, _) = key.split_once('}')?;
    tag.starts_with('{').then(|| format!("{tag}}}/{FENCE}"))
}

/// Whether this is the confirmation that was asked for; else why not.
fn confirmed(how: How, answer: Value) -> Result<(), String> {
    let answer = answer.extract_error().map_err(|error| error.to_string())?;
    let few = |found: i64, what: &str| Err(format!("only {found} {what} confirmed it in time"));
    match how {
        How::Replicas(wanted) => match redis::from_redis_value::<i64>(answer) {
            Ok(found) if found >= i64::from(wanted) => Ok(()),
            found => few(found.unwrap_or(0), "replicas"),
        },
        How::WaitAof => match redis::from_redis_value::<(i64, i64)>(answer) {
            Ok((local, _)) if local >= 1 => Ok(()),
            found => few(found.map_or(0, |(local, _)| local), "disks"),
        },
        How::Always => match pairs(answer) {
            Some(config) if is_always(&config) => Ok(()),
            _ => Err("the store no longer writes through (appendfsync always)".to_owned()),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fence_is_in_the_slot_of_its_key() {
        let made = fence("{b0007}/acct_1/live/intent/int_1");
        assert_eq!(made.as_deref(), Some("{b0007}/fence"));
        assert_eq!(fence("tollgate/wallet-number"), None);
    }

    #[test]
    fn too_few_is_no_confirmation() {
        let pair = |local, replicas| Value::Array(vec![Value::Int(local), Value::Int(replicas)]);
        assert!(confirmed(How::Replicas(2), Value::Int(2)).is_ok());
        assert!(
            confirmed(How::Replicas(2), Value::Int(1))
                .unwrap_err()
                .contains("only 1 replicas")
        );
        assert!(confirmed(How::WaitAof, pair(1, 0)).is_ok());
        assert!(confirmed(How::WaitAof, pair(0, 3)).is_err());
        for how in [How::Replicas(1), How::WaitAof, How::Always] {
            assert!(confirmed(how, Value::Nil).is_err(), "{how:?}");
        }
    }

    #[test]
    fn servers_of_different_versions_are_each_asked_in_their_own_way() {
        let node = |name| Node::at(Some(name));
        let disks = Disks::new([(node("new:1"), Disk::WaitAof), (node("old:1"), Disk::Always)].into());
        let mixed = Safety::Disks(Arc::new(disks));
        assert_eq!(mixed.on(Some("new:1")), How::WaitAof);
        assert_eq!(mixed.on(Some("old:1")), How::Always);
        // One that nobody has asked yet must meet what is true of every version.
        assert_eq!(mixed.on(Some("unknown:1")), How::Always);
        let alike = Safety::Disks(Arc::new(Disks::new([(Node::at(None), Disk::WaitAof)].into())));
        assert_eq!(alike.on(None), How::WaitAof);
        assert_eq!(alike.on(Some("unknown:1")), How::WaitAof);
    }
}
