//! Dedicated connections: each is used by one caller at a time, and `bb8` keeps those of a server in a pool.
//!
//! `bb8-redis` connects and tests; these rules are added to it:
//!
//! - **Outstanding replies.** A caller that leaves in the middle of a `WAIT` leaves a connection that is blocked. It is
//! marked before anything is sent and unmarked after the last reply; a marked connection does not return to the pool.
//! - **Generations.** When a server is given up, its connections are: idle ones when the pool is next used, those in
//! use when they are returned. A connection of an earlier generation says nothing about those that were made after it.
//! - **Failures to connect.** `bb8` hands them to its error sink alone, and whoever waits for the connection waits
//! until a time-out. So the pool gives out a place without a connection, and its user connects and receives the error.
//! - **Deadlines.** `bb8-redis` waits 500 ms for a reply, which is less than most waits take, and without a limit of
//! its own when it tests a connection.

use crate::connection::CONNECT_TIMEOUT;
use crate::connection::server::is_read_only;
use bb8_redis::RedisConnectionManager;
use bb8_redis::bb8::ManageConnection;
use redis::aio::MultiplexedConnection;
use redis::{ConnectionInfo, ErrorKind, Pipeline, RedisError, RedisResult, Value};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// A server, shared by its pool and the connections to it.
pub(super) struct Server {
    connector: RedisConnectionManager,
    /// Longest wait for the replies to what is sent at once.
    deadline: Duration,
    /// Raised when the server is given up. Connections of earlier generations are not used again.
    generation: AtomicU64,
}

impl Server {
    /// # Errors
    /// The address is none.
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

    /// Gives up the connections of this generation, unless that was done.
    fn give_up(&self, generation: u64) {
        let next = generation.wrapping_add(1);
        // A failure means that another connection of the same generation did it.
        let _ = self
            .generation
            .compare_exchange(generation, next, Ordering::AcqRel, Ordering::Acquire);
    }
}

/// A place in the pool of a server, with its connection from the first use on.
pub(super) struct Dedicated {
    server: Arc<Server>,
    connection: Option<MultiplexedConnection>,
    generation: u64,
    /// Whether replies are outstanding.
    awaits_replies: bool,
}

impl Dedicated {
    fn new(server: &Arc<Server>) -> Self {
        Self {
            server: Arc::clone(server),
            connection: None,
            generation: server.generation(),
            awaits_replies: false,
        }
    }

    /// Connects, unless it is connected.
    ///
    /// # Errors
    /// There is no connection within [`CONNECT_TIMEOUT`]; nothing was sent.
    pub(super) async fn connect(&mut self) -> RedisResult<()> {
        if self.connection.is_some() {
            return Ok(());
        }
        let server = &self.server;
        self.generation = server.generation();
        let connecting = server.connector.connect();
        let connected = tokio::time::timeout(CONNECT_TIMEOUT.min(server.deadline), connecting).await;
        let mut connection = connected.map_err(|_elapsed| late("no connection in time"))??;
        connection.set_response_timeout(server.deadline);
        self.connection = Some(connection);
        Ok(())
    }

    /// Sends commands at once. Returns the reply to each of them, among them what the server refused.
    ///
    /// # Errors
    /// The connection broke, or the replies did not come within the deadline: the server is given up.
    pub(super) async fn send(&mut self, commands: &Pipeline) -> RedisResult<Vec<Value>> {
        let Some(connection) = &mut self.connection else {
            return Err((ErrorKind::Client, "no connection").into());
        };
        self.awaits_replies = true;
        let replies = connection.send_packed_commands(commands, 0, commands.len()).await;
        self.awaits_replies = replies.is_err();
        // Behind the address of a server that became a replica another one may answer by now.
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

    /// Whether the server answers an idle connection.
    async fn test(&mut self) -> RedisResult<()> {
        if self.is_given_up() {
            return Err(late("the server was given up"));
        }
        let Some(connection) = &mut self.connection else {
            return Ok(());
        };
        self.awaits_replies = true;
        let tested = self.server.connector.is_valid(connection);
        let tested = tokio::time::timeout(CONNECT_TIMEOUT, tested).await;
        let tested = tested.unwrap_or_else(|_elapsed| Err(late("an idle connection did not answer")));
        match &tested {
            Ok(()) => self.awaits_replies = false,
            Err(_) => self.server.give_up(self.generation),
        }
        tested
    }
}

/// What keeps the pool of a server.
pub(super) struct Manager(pub(super) Arc<Server>);

impl ManageConnection for Manager {
    type Connection = Dedicated;
    type Error = RedisError;

    /// Makes a place. Its user connects.
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

/// Nothing was sent: the time is over.
pub(super) fn late(what: &'static str) -> RedisError {
    std::io::Error::new(std::io::ErrorKind::TimedOut, what).into()
}
