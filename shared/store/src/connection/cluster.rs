//! Connections to a cluster: one per master, and the map of slots.
//!
//! Only commands for a master wait for its connection, so an unreachable node affects only its own accounts. (With the
//! library's cluster client, version 1.8.1, the accounts of all nodes were denied for over a minute when one master was
//! killed under load.) A command is sent again only if it certainly did not run.

mod slots;

use super::client;
use super::server::{SharedConnection, attempt_timeout};
use crate::error::StoreError;
use arc_swap::ArcSwap;
use futures::future::join_all;
use redis::aio::{ConnectionLike, MultiplexedConnection};
use redis::{
    AsyncConnectionConfig, Cmd, ConnectionInfo, ErrorKind, Pipeline, RedisError, RedisFuture, RedisResult,
    ServerErrorKind, Value,
};
use slots::{BestReport, SlotMap, bracketed, parse_report, slot_of_command};
pub(super) use slots::{SLOTS, replicas_listed, slot_of};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;
use tokio::sync::Mutex;
use tokio::time::Instant;

/// Maximum number of retries of a command that certainly did not run: on another node, or after a pause.
const RETRIES_MAX: usize = 5;
/// Pause before a retry where the node could not serve the slot. All pauses together fit into a command's deadline.
const RETRY_PAUSE: Duration = Duration::from_millis(25);
/// Shortest time between two refreshes of the slot map.
const REFRESH_EVERY: Duration = Duration::from_millis(100);
/// Longest wait for a node's report.
const REFRESH_TIMEOUT: Duration = Duration::from_millis(400);

/// A cluster: its seeds, its masters and the slot map.
pub(super) struct Cluster {
    /// `user:password@`, or nothing.
    login: String,
    /// Configured nodes, masters or not.
    seeds: Vec<String>,
    timeout: Duration,
    map: ArcSwap<SlotMap<Master>>,
    last_refresh: Arc<Mutex<LastRefresh>>,
    /// Counts commands without a key, which the masters execute in turn.
    keyless: AtomicUsize,
}

/// Time and quality of the last refresh.
#[derive(Default)]
struct LastRefresh {
    at: Option<Instant>,
    best: BestReport,
}

impl LastRefresh {
    fn is_recent(&self) -> bool {
        self.at.is_some_and(|at| at.elapsed() < REFRESH_EVERY)
    }
}

/// A master's `host:port` and connection.
#[derive(Clone)]
pub(super) struct Master {
    pub(super) address: String,
    connection: SharedConnection,
}

/// The next step after an error.
pub(super) enum AfterError {
    /// Return the error: the command may have run, or is permanently refused.
    End,
    /// Send it again, according to the refreshed map.
    Again,
    /// Send it to this node once, after `ASKING`.
    SendAsking(String),
}

impl Cluster {
    /// Parses `[user:password@]host:port,host:port`. Connects to nothing yet.
    pub(super) fn new(nodes: &str, timeout: Duration) -> Result<Self, StoreError> {
        let (login, hosts) = match nodes.rsplit_once('@') {
            Some((login, hosts)) => (format!("{login}@"), hosts),
            None => (String::new(), nodes),
        };
        let seeds: Vec<String> = hosts.split(',').map(str::to_owned).collect();
        let cluster = Self {
            login,
            seeds,
            timeout,
            map: ArcSwap::default(),
            last_refresh: Arc::default(),
            keyless: AtomicUsize::new(0),
        };
        for seed in &cluster.seeds {
            cluster.client(seed)?;
        }
        Ok(cluster)
    }

    fn client(&self, address: &str) -> Result<redis::Client, StoreError> {
        client(&format!("redis://{}{address}", self.login), None)
    }

    /// Returns the connection info of a node.
    ///
    /// # Errors
    /// The address is malformed.
    pub(super) fn info(&self, address: &str) -> RedisResult<ConnectionInfo> {
        let client = self.client(address).map_err(unusable)?;
        Ok(client.get_connection_info().clone())
    }

    /// Returns whether a node is a known master.
    pub(super) fn is_master(&self, address: &str) -> bool {
        self.map.load().find(address).is_some()
    }

    /// Connects to a node, to read its report.
    async fn dial(&self, address: &str) -> RedisResult<MultiplexedConnection> {
        let client = self.client(address).map_err(unusable)?;
        let config = AsyncConnectionConfig::new()
            .set_connection_timeout(Some(attempt_timeout(REFRESH_TIMEOUT)))
            .set_response_timeout(Some(REFRESH_TIMEOUT));
        client.get_multiplexed_async_connection_with_config(&config).await
    }

    fn master(&self, address: &str) -> RedisResult<Master> {
        if let Some(known) = self.map.load().find(address) {
            return Ok(known.clone());
        }
        let client = self.client(address).map_err(unusable)?;
        Ok(Master {
            address: address.to_owned(),
            connection: SharedConnection::new(client, self.timeout).map_err(unusable)?,
        })
    }

    /// Returns the master at an address that a redirection named. It stays in the map, without slots, until the next
    /// refresh: while a slot migrates, each of its commands goes there.
    fn master_at(&self, address: &str) -> RedisResult<Master> {
        let master = self.master(address)?;
        if self.map.load().find(address).is_none() {
            self.map.rcu(|map| map.with_master(&master));
        }
        Ok(master)
    }

    /// Returns the master of a slot, or any master.
    async fn master_of(self: &Arc<Self>, slot: Option<u16>) -> RedisResult<Master> {
        for may_refresh in [true, false] {
            let map = self.map.load();
            let found = match slot {
                Some(slot) => map.at(slot),
                None => map.any(self.keyless.fetch_add(1, Ordering::Relaxed)),
            };
            if let Some(master) = found {
                return Ok(master.clone());
            }
            drop(map);
            if may_refresh {
                self.refresh().await;
            }
        }
        let no_master = std::io::Error::new(std::io::ErrorKind::ConnectionRefused, "no node serves the slot");
        Err(no_master.into())
    }

    /// Returns the address of the master of `key`'s slot, if known.
    pub(super) fn address_of(&self, key: &str) -> Option<String> {
        let map = self.map.load();
        let master = map.at(slot_of(key.as_bytes()));
        master.map(|master| master.address.clone())
    }

    /// Returns every known master; refreshes first if none is known.
    pub(super) async fn masters(&self) -> Vec<Master> {
        if self.map.load().masters().is_empty() {
            self.refresh().await;
        }
        self.map.load().masters().to_vec()
    }

    /// Refreshes the slot map from the nodes' reports: the report of highest rank is used. Concurrent callers wait for
    /// one refresh.
    pub(super) async fn refresh(&self) {
        let mut last = self.last_refresh.lock().await;
        self.refresh_locked(&mut last).await;
    }

    async fn refresh_locked(&self, last: &mut LastRefresh) {
        if last.is_recent() {
            return;
        }
        let known = self.map.load_full();
        let mut addresses: Vec<String> = known
            .masters()
            .iter()
            .map(|master| master.address.clone())
            .collect();
        addresses.extend(self.seeds.iter().cloned());
        addresses.sort_unstable();
        addresses.dedup();
        let reports = addresses.iter().map(|address| async {
            let report = tokio::time::timeout(REFRESH_TIMEOUT, self.report_of(address)).await;
            report.ok()?.ok()
        });
        let reports = join_all(reports).await.into_iter().flatten();
        if let Some(report) = reports.max_by_key(slots::NodeReport::rank)
            && last.best.accepts(report.rank(), Instant::now())
        {
            let map = SlotMap::build(&report.ranges, |address| self.master(address));
            self.map.store(Arc::new(map));
        }
        last.at = Some(Instant::now());
    }

    /// Reads a node's report.
    async fn report_of(&self, address: &str) -> RedisResult<slots::NodeReport> {
        let mut connection = self.dial(address).await?;
        let info = redis::cmd("CLUSTER")
            .arg("INFO")
            .query_async(&mut connection)
            .await?;
        let ranges = redis::cmd("CLUSTER")
            .arg("SLOTS")
            .query_async(&mut connection)
            .await?;
        Ok(parse_report(info, ranges, address))
    }

    /// Refreshes in a background task, unless a refresh is running.
    pub(super) fn refresh_in_background(self: &Arc<Self>) {
        let Ok(mut last) = Arc::clone(&self.last_refresh).try_lock_owned() else {
            return;
        };
        if !last.is_recent() {
            let cluster = Arc::clone(self);
            tokio::spawn(async move { cluster.refresh_locked(&mut last).await });
        }
    }

    /// Decides the next step after an error, and refreshes the map if the error requires it.
    pub(super) async fn next_after(self: &Arc<Self>, error: &RedisError) -> AfterError {
        match (error.code(), error.redirect_node()) {
            (Some("MOVED"), Some((address, slot))) => {
                if let Ok(master) = self.master(&bracketed(address)) {
                    self.map.rcu(|map| map.with_slot(slot, &master));
                }
                self.refresh_in_background();
                AfterError::Again
            }
            (Some("ASK"), Some((address, _))) => AfterError::SendAsking(bracketed(address)),
            // During a migration the keys of a script are on both nodes.
            (Some("TRYAGAIN" | "LOADING"), _) => {
                tokio::time::sleep(RETRY_PAUSE).await;
                AfterError::Again
            }
            (Some("CLUSTERDOWN" | "MASTERDOWN" | "READONLY"), _) => {
                tokio::time::sleep(RETRY_PAUSE).await;
                self.refresh().await;
                AfterError::Again
            }
            _ if error.is_connection_refusal() => {
                tokio::time::sleep(RETRY_PAUSE).await;
                self.refresh().await;
                AfterError::Again
            }
            (None, _) => {
                self.refresh_in_background();
                AfterError::End
            }
            _ => AfterError::End,
        }
    }

    /// Calls [`Cluster::follow`] for the slot of `key`.
    ///
    /// # Errors
    /// The error of the last attempt.
    pub(super) async fn follow_key<T, F>(
        self: &Arc<Self>,
        key: &str,
        send: impl Fn(Master, bool) -> F,
    ) -> RedisResult<T>
    where
        F: Future<Output = RedisResult<T>>,
    {
        self.follow(Some(slot_of(key.as_bytes())), send).await
    }

    /// Sends to the master of a slot, and again, possibly elsewhere, if the command certainly did not run. `send`
    /// receives whether it must send `ASKING` first.
    ///
    /// # Errors
    /// The error of the last attempt.
    async fn follow<T, F>(
        self: &Arc<Self>,
        slot: Option<u16>,
        send: impl Fn(Master, bool) -> F,
    ) -> RedisResult<T>
    where
        F: Future<Output = RedisResult<T>>,
    {
        let (mut left, mut ask) = (RETRIES_MAX, None::<String>);
        loop {
            let (to, asking) = match ask.take() {
                Some(address) => (self.master_at(&address), true),
                None => (self.master_of(slot).await, false),
            };
            let sent = match to {
                Ok(master) => send(master, asking).await,
                Err(error) => Err(error),
            };
            let error = match sent {
                Ok(answer) => return Ok(answer),
                Err(error) => error,
            };
            match self.next_after(&error).await {
                AfterError::Again if left > 0 => {}
                AfterError::SendAsking(address) if left > 0 => ask = Some(address),
                _ => return Err(error),
            }
            left -= 1;
        }
    }

    async fn run(self: &Arc<Self>, command: &Cmd) -> RedisResult<Value> {
        let send = |master: Master, asking: bool| async move {
            if !asking {
                return master.connection.send(command).await;
            }
            let mut pipeline = Pipeline::new();
            pipeline.cmd("ASKING").add_command(command.clone());
            let mut answers = master.connection.send_all(&pipeline, 1, 1).await?;
            answers.pop().unwrap_or(Value::Nil).extract_error()
        };
        self.follow(slot_of_command(command), send).await
    }

    /// Executes commands of one slot. They are retried as a whole, so they must be reads or a transaction.
    async fn run_all(
        self: &Arc<Self>,
        pipeline: &Pipeline,
        offset: usize,
        count: usize,
    ) -> RedisResult<Vec<Value>> {
        let slot = pipeline.cmd_iter().find_map(slot_of_command);
        let mut left = RETRIES_MAX;
        loop {
            let sent = match self.master_of(slot).await {
                Ok(master) => master.connection.send_all(pipeline, offset, count).await,
                Err(error) => Err(error),
            };
            let error = match sent {
                Ok(answers) => match answers.iter().find_map(redirection) {
                    None => return Ok(answers),
                    Some(error) => error,
                },
                Err(error) => error,
            };
            match self.next_after(&error).await {
                AfterError::Again if left > 0 => {}
                AfterError::SendAsking(_) if left > 0 && !pipeline.is_transaction() => {
                    let each = pipeline.cmd_iter().map(|command| self.run(command));
                    return join_all(each).await.into_iter().map(as_answer).collect();
                }
                AfterError::SendAsking(_) if left > 0 => tokio::time::sleep(RETRY_PAUSE).await,
                _ => return Err(error),
            }
            left -= 1;
        }
    }

    /// Executes a command on one master, without redirections.
    pub(super) async fn execute_on(self: &Arc<Self>, address: &str, command: &Cmd) -> RedisResult<Value> {
        let sent = match self.master(address) {
            Ok(master) => master.connection.send(command).await,
            Err(error) => Err(error),
        };
        if sent.as_ref().is_err_and(|error| error.code().is_none()) {
            self.refresh_in_background();
        }
        sent
    }
}

/// Turns a server error of one command into its answer, as in a pipeline.
fn as_answer(sent: RedisResult<Value>) -> RedisResult<Value> {
    sent.or_else(|error| {
        let errors = error.clone().into_server_errors();
        let first = errors.as_deref().and_then(|errors| errors.first());
        first
            .map(|(_, error)| Value::ServerError(error.clone()))
            .ok_or(error)
    })
}

/// Returns whether an error is an `ASK` redirection.
pub(super) fn is_ask(error: &RedisError) -> bool {
    error.code() == Some("ASK")
}

/// Returns the error that makes a command retry after a pause, since its keys are not all on one node.
pub(super) fn not_here() -> RedisError {
    (
        ErrorKind::Server(ServerErrorKind::TryAgain),
        "the slot is on its way",
    )
        .into()
}

/// Returns the redirection among the answers of a pipeline, or the error that the node serves nothing now.
pub(super) fn redirection(answer: &Value) -> Option<RedisError> {
    let error = answer.clone().extract_error().err()?;
    let elsewhere = matches!(
        error.code(),
        Some("MOVED" | "ASK" | "TRYAGAIN" | "CLUSTERDOWN" | "LOADING" | "MASTERDOWN" | "READONLY")
    );
    elsewhere.then_some(error)
}

fn unusable(error: StoreError) -> RedisError {
    (ErrorKind::InvalidClientConfig, "address", error.to_string()).into()
}

/// A connection that routes each command by its keys.
pub(super) struct Routed(pub(super) Arc<Cluster>);

impl ConnectionLike for Routed {
    fn req_packed_command<'a>(&'a mut self, command: &'a Cmd) -> RedisFuture<'a, Value> {
        Box::pin(self.0.run(command))
    }

    fn req_packed_commands<'a>(
        &'a mut self,
        pipeline: &'a Pipeline,
        offset: usize,
        count: usize,
    ) -> RedisFuture<'a, Vec<Value>> {
        Box::pin(self.0.run_all(pipeline, offset, count))
    }

    fn get_db(&self) -> i64 {
        0
    }
}
