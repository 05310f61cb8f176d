//! Commands that are acknowledged only when their effect has the durability that `store.durability` requires.
//!
//! `WAIT` and `WAITAOF` cover only writes on their own connection, and block that connection. So a script that moves
//! money is sent on a *dedicated connection* of a pool, used by one caller at a time: script, fence and wait in one
//! round trip. The fence is a write to the same slot. It is needed because a script whose work was already done writes
//! nothing, while the work that it reports may not be durable yet; since Redis 7.2 a wait without a write on its
//! connection confirms nothing.

mod confirmation;
mod dedicated;
mod fair_queue;
mod offers;
mod pools;

use self::confirmation::{
    Confirmation, followed_mark, followed_query, nodes_query, offer_queries, readable_config,
};
use self::dedicated::{Dedicated, late};
use self::fair_queue::Address;
pub(super) use self::pools::Dial;
use self::pools::Pools;
use super::cluster::{Master, is_ask, not_here, redirection, replicas_listed};
use super::{Store, StoreError};
use crate::durability::Offer;
use crate::error_counters;
use crate::keys::FENCE;
use crate::malformed::MalformedPlace;
use crate::versions::fence;
use parking_lot::Mutex;
use redis::{Cmd, FromRedisValue, Pipeline, RedisError, RedisResult, Value};
use settings::durability::Durability;
use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use tokio::time::Instant;

/// Maximum age of the known durability of a server.
const REFRESH_EVERY: Duration = Duration::from_secs(1);

/// Time for which a change under `auto` still waits for a replica that stopped following, unless the operator declares
/// it gone: longer than Redis by default allows a lagging replica to take over (ten times `cluster-node-timeout`, or
/// Sentinel's `down-after-milliseconds`).
const REPLICA_EXPECTED: Duration = Duration::from_secs(300);

/// Sends changes of money and confirms them.
pub(super) struct ConfirmedWrites {
    configured: Durability,
    /// Longest wait for the confirmation alone.
    wait: Duration,
    /// Longest wait for change and confirmation.
    deadline: Duration,
    connections: Pools,
    /// The last known state of each server, by address; `None` is the single server. Only callers with a change for a
    /// server query it.
    servers: Mutex<HashMap<Address, KnownServer>>,
}

/// A server's way of confirming changes, as of the last query.
#[derive(Clone)]
struct KnownServer {
    at: Instant,
    /// True if a confirmation has failed since.
    stale: bool,
    confirmation: Result<Confirmation, String>,
    /// When the server last had a replica, connected or listed by the cluster, if known.
    replica_at: Option<Instant>,
}

/// Replies to a command batch.
struct DurableReply {
    address: Address,
    confirmation: Confirmation,
    change: Value,
    fence: Option<Value>,
    confirmations: Vec<Value>,
}

/// Commands sent together, with the index of each reply.
struct CommandBatch {
    pipeline: Pipeline,
    change: usize,
    fence: Option<usize>,
    confirmations: Vec<usize>,
}

/// Outcome of sending a change.
enum SendOutcome {
    /// The server replied.
    Replied(DurableReply),
    /// Nothing was sent, since the server cannot confirm the change; with the reason.
    Refused(String),
}

/// One attempt to send a change.
struct SendAttempt<'a> {
    change: &'a MoneyCommand<'a>,
    /// True if the change may have reached a server that did not refuse it.
    sent: AtomicBool,
}

impl DurableReply {
    /// Checks that the change is confirmed; else returns why not.
    fn check_confirmed(&mut self) -> Result<(), String> {
        if let Some(fence) = self.fence.take() {
            let refused = |error: RedisError| format!("the store refused a write beside it: {error}");
            fence.extract_error().map_err(refused)?;
        }
        self.confirmation
            .confirmed(std::mem::take(&mut self.confirmations))
    }
}

impl ConfirmedWrites {
    pub(super) fn new(configured: Durability, wait: Duration, timeout: Duration, dial: Dial) -> Self {
        let deadline = timeout + wait;
        Self {
            configured,
            wait,
            deadline,
            connections: Pools::new(dial, deadline),
            servers: Mutex::default(),
        }
    }

    /// Builds the batch: the change, the fence if needed, and the waits. Behind a migrating slot, `ASKING` precedes
    /// each command with a key.
    fn command_batch(
        &self,
        confirmation: Confirmation,
        change: &MoneyCommand<'_>,
        asking: bool,
    ) -> CommandBatch {
        let mut pipeline = Pipeline::new();
        let mut add = |command: Cmd, asking: bool| {
            if asking {
                pipeline.cmd("ASKING");
            }
            pipeline.add_command(command);
            pipeline.len() - 1
        };
        let fence = fence(change.key).filter(|_| confirmation.needs_a_fence());
        let at = add(change.command.clone(), asking);
        let fence = fence.map(|key| add(fence::write(&key), asking));
        let waits = confirmation.wait_commands(self.wait).into_iter();
        let confirmations = waits.map(|wait| add(wait, false)).collect();
        CommandBatch {
            pipeline,
            change: at,
            fence,
            confirmations,
        }
    }

    /// Sends a change with its confirmation on one dedicated connection.
    async fn send(&self, change: &MoneyCommand<'_>) -> Result<SendOutcome, StoreError> {
        let attempt = SendAttempt {
            change,
            sent: AtomicBool::new(false),
        };
        let run = async {
            match &self.connections.dial {
                Dial::Single(_) => self.send_to(None, &attempt, false).await,
                Dial::Cluster(cluster) => {
                    let send = |master: Master, asking| self.send_to_master(master, &attempt, asking);
                    cluster.follow_key(change.key, send).await
                }
            }
        };
        let sent = tokio::time::timeout(self.deadline, run).await;
        let sent = sent.unwrap_or_else(|_elapsed| {
            if let Dial::Cluster(cluster) = &self.connections.dial {
                cluster.refresh_in_background();
            }
            Err(late("the deadline is over"))
        });
        sent.map_err(|error| attempt.failed(error))
    }

    /// Sends to a cluster node. A redirection is an error, after which the change is sent again.
    async fn send_to_master(
        &self,
        master: Master,
        attempt: &SendAttempt<'_>,
        asking: bool,
    ) -> RedisResult<SendOutcome> {
        let reply = match self.send_to(Some(master.address), attempt, asking).await? {
            SendOutcome::Replied(reply) => reply,
            refused => return Ok(refused),
        };
        if let Some(error) = redirection(&reply.change) {
            return Err(error);
        }
        let only_reads = attempt.change.only_reads;
        match reply.fence.as_ref().and_then(redirection) {
            // A redirected fence does not confirm the state that was read here.
            Some(error) if only_reads && is_ask(&error) => Err(not_here()),
            Some(error) if only_reads => Err(error),
            _ => Ok(SendOutcome::Replied(reply)),
        }
    }

    async fn send_to(
        &self,
        address: Address,
        attempt: &SendAttempt<'_>,
        asking: bool,
    ) -> RedisResult<SendOutcome> {
        // An earlier server that redirected the command did not run it.
        attempt.sent.store(false, Ordering::Relaxed);
        let mut connection = self.connections.take(&address, attempt.change.key).await?;
        let confirmation = match self.confirmation_on(&address, &mut connection).await? {
            Ok(confirmation) => confirmation,
            Err(why) => return Ok(SendOutcome::Refused(why)),
        };
        let command_batch = self.command_batch(confirmation, attempt.change, asking);
        attempt.sent.store(true, Ordering::Relaxed);
        let mut answers = connection.send(&command_batch.pipeline).await?;
        let mut answer = |at: usize| answers.get_mut(at).map(std::mem::take).unwrap_or_default();
        Ok(SendOutcome::Replied(DurableReply {
            address,
            confirmation,
            change: answer(command_batch.change),
            fence: command_batch.fence.map(&mut answer),
            confirmations: command_batch.confirmations.into_iter().map(answer).collect(),
        }))
    }

    /// Returns the durability that the server at `address` offers; queries it unless the last reply is recent.
    async fn confirmation_on(
        &self,
        address: &Address,
        connection: &mut Dedicated,
    ) -> RedisResult<Result<Confirmation, String>> {
        if let Durability::Replicas(count) = self.configured {
            return Ok(Ok(Confirmation::by_replicas(count)));
        }
        if let Some(confirmation) = self.known_recently(address) {
            return Ok(confirmation);
        }
        let offer = self.offer_of(address, connection).await?;
        Ok(self.remember(address, &offer))
    }

    /// Queries the durability that the server offers.
    async fn offer_of(&self, address: &Address, connection: &mut Dedicated) -> RedisResult<Offer> {
        let (info, config) = offer_queries();
        let mut queries = Pipeline::new();
        queries.add_command(info).add_command(config);
        // A cluster may list replicas that are not following now.
        let is_of_a_cluster = address.is_some();
        queries.add_command(match is_of_a_cluster {
            true => nodes_query(),
            false => followed_query(),
        });
        let mut answers = connection.send(&queries).await?.into_iter();
        let mut next = || answers.next().unwrap_or_default().extract_error();
        let info: String = redis::from_redis_value(next()?)?;
        let config = readable_config(next())?;
        let offer = Offer::from_info(&info, config.as_deref());
        Ok(match next() {
            Ok(nodes) if is_of_a_cluster => {
                offer_of_listed(offer, &redis::from_redis_value::<String>(nodes)?)
            }
            // The user may lack permission to list the nodes.
            Err(_) if is_of_a_cluster => offer,
            followed => {
                let followed: Option<String> = redis::from_redis_value(followed?)?;
                let offer = offer.marked(followed.as_deref());
                if offer.replicas > 0 {
                    let mut mark = Pipeline::new();
                    mark.add_command(followed_mark(&offer.run_id));
                    connection.send(&mark).await?;
                }
                offer
            }
        })
    }

    /// Records the durability that a server offers. A replica that followed recently is still expected, since it may
    /// take over; in the first query the server reports whether there was one.
    fn remember(&self, address: &Address, offer: &Offer) -> Result<Confirmation, String> {
        let at = Instant::now();
        self.with_servers(|servers| {
            let known = servers.get(address);
            let has_replica = offer.listed > 0 || (known.is_none() && offer.had_replica);
            let before = known.and_then(|known| known.replica_at);
            let replica_at = if has_replica { Some(at) } else { before };
            let is_expected = replica_at.is_some_and(|last| at - last < REPLICA_EXPECTED);
            let confirmation =
                Confirmation::new(self.configured, &offer.clone().listed(u64::from(is_expected)));
            let known = KnownServer {
                at,
                stale: false,
                confirmation: confirmation.clone(),
                replica_at,
            };
            servers.insert(address.clone(), known);
            confirmation
        })
    }

    fn known_recently(&self, address: &Address) -> Option<Result<Confirmation, String>> {
        self.with_servers(|servers| {
            let known = servers.get(address)?;
            (!known.stale && known.at.elapsed() < REFRESH_EVERY).then(|| known.confirmation.clone())
        })
    }

    fn with_servers<T>(&self, act: impl FnOnce(&mut HashMap<Address, KnownServer>) -> T) -> T {
        act(&mut self.servers.lock())
    }

    /// Returns whether the server of `key` is recently known to confirm nothing: then no dedicated connection is
    /// needed.
    fn is_unconfirmed(&self, key: &str) -> bool {
        let address = match &self.connections.dial {
            Dial::Single(_) => None,
            Dial::Cluster(cluster) => match cluster.address_of(key) {
                None => return false,
                address => address,
            },
        };
        matches!(self.known_recently(&address), Some(Ok(confirmation)) if confirmation.is_unconfirmed())
    }

    /// Makes the next change query the server again, after a missing confirmation.
    fn forget_confirmation(&self, address: &Address) {
        self.with_servers(|servers| {
            if let Some(known) = servers.get_mut(address) {
                known.stale = true;
            }
        });
    }
}

impl SendAttempt<'_> {
    /// Classifies an error of the change.
    fn failed(&self, error: RedisError) -> StoreError {
        match StoreError::from(error).unless_never_sent() {
            StoreError::NoAnswer(Some(source))
                if source.is_io_error() && !self.sent.load(Ordering::Relaxed) =>
            {
                StoreError::NotConnected(source)
            }
            error => error,
        }
    }
}

/// A command that changes money or reads a change, and its first key.
#[derive(Clone, Copy)]
pub(super) struct MoneyCommand<'a> {
    pub(super) command: &'a Cmd,
    pub(super) key: &'a str,
    /// True if it only reads, so that it may run twice.
    pub(super) only_reads: bool,
}

impl Store {
    /// Executes a change of money, or reads one, and returns when it is as durable as configured.
    pub(super) async fn execute_confirmed(
        &self,
        money: &ConfirmedWrites,
        change: MoneyCommand<'_>,
    ) -> Result<Value, StoreError> {
        if money.is_unconfirmed(change.key) {
            return self.answer(change.command).await;
        }
        let sent = money.send(&change).await;
        let mut reply = match sent.inspect_err(error_counters::count)? {
            SendOutcome::Replied(reply) => reply,
            SendOutcome::Refused(why) => return Err(StoreError::NotDurable { ran: false, why }),
        };
        let answer = std::mem::take(&mut reply.change).extract_error();
        let answer = answer
            .map_err(StoreError::from)
            .inspect_err(error_counters::count)?;
        if let Err(why) = reply.check_confirmed() {
            money.forget_confirmation(&reply.address);
            return Err(StoreError::NotDurable { ran: true, why });
        }
        Ok(answer)
    }

    /// Returns whether `key`, or this field of it, exists and has the configured durability: checked before an earlier
    /// change is acted on or acknowledged again.
    ///
    /// # Errors
    /// [`StoreError::NotDurable`] if it exists and cannot be confirmed, or another error.
    pub async fn is_safely_there(&self, key: &str, field: Option<&str>) -> Result<bool, StoreError> {
        let mut exists = redis::cmd(if field.is_some() { "HEXISTS" } else { "EXISTS" });
        exists.arg(key).arg(field);
        let change = MoneyCommand {
            command: &exists,
            key,
            only_reads: true,
        };
        self.confirmed(change).await
    }

    /// Executes a repeatable command that writes to `key`, and returns when the write has the configured durability.
    ///
    /// # Errors
    /// [`StoreError::NotDurable`] if it cannot be confirmed, or another error.
    pub async fn command_safely<T: FromRedisValue>(&self, command: &Cmd, key: &str) -> Result<T, StoreError> {
        let change = MoneyCommand {
            command,
            key,
            only_reads: false,
        };
        self.confirmed(change).await
    }

    async fn confirmed<T: FromRedisValue>(&self, change: MoneyCommand<'_>) -> Result<T, StoreError> {
        let command = change.command;
        let answer = match &self.money {
            None => self.command(command).await,
            Some(money) => self.execute_confirmed(money, change).await,
        };
        let answer = answer.map_err(|error| error.at(|_| Some(MalformedPlace::of_command(command))))?;
        redis::from_redis_value(answer).map_err(StoreError::unexpected)
    }
}

/// Returns the offer of a master whose `CLUSTER NODES` this is. Without a node in the list that may have followed, the
/// traces of a replica are those of backups.
fn offer_of_listed(offer: Offer, nodes: &str) -> Offer {
    let listed = replicas_listed(nodes);
    Offer {
        had_replica: offer.had_replica && listed.may_have_followed(),
        ..offer.listed(listed.usable)
    }
}

/// Returns the fence key of `key`'s bucket.
fn fence(key: &str) -> Option<String> {
    let (tag, _) = key.split_once('}')?;
    tag.starts_with('{').then(|| format!("{tag}}}/{FENCE}"))
}

#[cfg(test)]
mod tests;
