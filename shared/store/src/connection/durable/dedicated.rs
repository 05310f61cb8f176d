//! Dedicated connections: each is used by one caller at a time, pooled per server by `bb8`.
//!
//! `bb8-redis` connects and tests; this module adds four rules:
//!
//! - **Outstanding replies.** A caller that is dropped during a `WAIT` leaves a blocked connection. The connection is
//!   marked before anything is sent and unmarked after the last reply; a marked connection does not return to the pool.
//! - **Generations.** When a server is given up, so are its connections: idle ones when the pool is next used, others
//!   when they are returned. A failure of a connection does not count against those of a later generation.
//! - **Failures to connect.** `bb8` reports them only to its error sink, and a caller would wait until a time-out. So
//!   the pool hands out a slot without a connection, and its user connects and receives the error.
//! - **Deadlines.** `bb8-redis` connects within a second, waits 500 ms for a reply, less than most waits take, and
//!   without a limit when it tests a connection. Only the deadline of the settings is to count, so that a busy machine
//!   or a distant store loses nothing that the operator allowed.

use crate::connection::server::{attempt_timeout, is_read_only};
use bb8_redis::RedisConnectionManager;
use bb8_redis::bb8::ManageConnection;
use redis::aio::MultiplexedConnection;
use redis::{ConnectionInfo, ErrorKind, Pipeline, RedisError, RedisResult, Value};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// A server, shared by its pool and connections.
pub(super) struct DedicatedServer {
    connector: RedisConnectionManager,
    /// Longest wait for the replies to a batch.
    deadline: Duration,
    /// Incremented when the server is given up; connections of earlier generations are not reused.
    generation: AtomicU64,
}

impl DedicatedServer {
    /// # Errors
    /// The address is malformed.
    pub(super) fn new(address: ConnectionInfo, deadline: Duration) -> RedisResult<Self> {
        Ok(Self {
            connector: RedisConnectionManager::new(address)?,
            deadline,
            generation: AtomicU64::new(0),
        })
    }

    fn generation(&self) -> u64 {
        self.generation.load(Ordering::Acquire)
    }

    /// Gives up the connections of this generation, once.
    fn give_up(&self, generation: u64) {
        let next = generation.wrapping_add(1);
        // If the exchange fails, another connection of the generation has already incremented it.
        let _ = self
            .generation
            .compare_exchange(generation, next, Ordering::AcqRel, Ordering::Acquire);
    }
}

/// A slot of a server's pool; connected at first use.
pub(super) struct Dedicated {
    server: Arc<DedicatedServer>,
    connection: Option<MultiplexedConnection>,
    generation: u64,
    awaits_replies: bool,
}

impl Dedicated {
    fn new(server: &Arc<DedicatedServer>) -> Self {
        Self {
            server: Arc::clone(server),
            connection: None,
            generation: server.generation(),
            awaits_replies: false,
        }
    }

    /// Connects if not connected, repeatedly until the caller's deadline, which ends it.
    ///
    /// # Errors
    /// The server refused the connection; nothing was sent.
    pub(super) async fn connect(&mut self) -> RedisResult<()> {
        if self.connection.is_some() {
            return Ok(());
        }
        let server = &self.server;
        self.generation = server.generation();
        let mut connection = loop {
            match server.connector.connect().await {
                Err(slow) if slow.is_timeout() => {}
                connected => break connected?,
            }
        };
        connection.set_response_timeout(server.deadline);
        self.connection = Some(connection);
        Ok(())
    }

    /// Sends commands at once and returns all replies, refusals included.
    ///
    /// # Errors
    /// The connection broke, or a reply missed the deadline: the server is given up.
    pub(super) async fn send(&mut self, commands: &Pipeline) -> RedisResult<Vec<Value>> {
        let Some(connection) = &mut self.connection else {
            return Err((ErrorKind::Client, "no connection").into());
        };
        self.awaits_replies = true;
        let replies = connection.send_packed_commands(commands, 0, commands.len()).await;
        self.awaits_replies = replies.is_err();
        // A server that became a replica may have been replaced at the same address.
        if replies
            .as_ref()
            .map_or(true, |replies| replies.iter().any(is_read_only))
        {
            self.server.give_up(self.generation);
        }
        replies
    }

    fn is_given_up(&self) -> bool {
        self.generation != self.server.generation()
    }

    /// Tests an idle connection.
    async fn test(&mut self) -> RedisResult<()> {
        if self.is_given_up() {
            return Err(late("the server was given up"));
        }
        let Some(connection) = &mut self.connection else {
            return Ok(());
        };
        self.awaits_replies = true;
        let tested = self.server.connector.is_valid(connection);
        let tested = tokio::time::timeout(attempt_timeout(self.server.deadline), tested).await;
        let tested = tested.unwrap_or_else(|_elapsed| Err(late("an idle connection did not answer")));
        match &tested {
            Ok(()) => self.awaits_replies = false,
            Err(_) => self.server.give_up(self.generation),
        }
        tested
    }
}

/// `bb8`'s manager for the pool of one server.
pub(super) struct Manager(pub(super) Arc<DedicatedServer>);

impl ManageConnection for Manager {
    type Connection = Dedicated;
    type Error = RedisError;

    /// Creates an unconnected slot.
    async fn connect(&self) -> Result<Dedicated, RedisError> {
        Ok(Dedicated::new(&self.0))
    }

    async fn is_valid(&self, dedicated: &mut Dedicated) -> Result<(), RedisError> {
        dedicated.test().await
    }

    fn has_broken(&self, dedicated: &mut Dedicated) -> bool {
        dedicated.connection.is_none() || dedicated.awaits_replies || dedicated.is_given_up()
    }
}

/// Returns the error for a deadline that passed before anything was sent.
pub(super) fn late(what: &'static str) -> RedisError {
    std::io::Error::new(std::io::ErrorKind::TimedOut, what).into()
}
