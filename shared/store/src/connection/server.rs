//! Connection to a single server. The library reconnects when the connection breaks. This module also reconnects when:
//!
//! - the server reports that it became a replica: the address may meanwhile lead to another server, and the old
//!   connection would last as long as the old server;
//! - the server refused to set up the connection, by a wrong password for example. The library would return that
//!   refusal to every later command and never connect again.

use super::{SILENCE_MAX, StoreError};
use arc_swap::ArcSwap;
use parking_lot::Mutex;
use redis::aio::{ConnectionLike, ConnectionManager, ConnectionManagerConfig};
use redis::{Cmd, ErrorKind, Pipeline, RedisError, RedisFuture, RedisResult, ServerErrorKind, Value};
use std::sync::Arc;
use std::time::Duration;
use tokio::time::Instant;

/// Least time for one attempt to connect, where the caller's deadline allows it.
const ATTEMPT_MIN: Duration = Duration::from_millis(250);
/// Number of connection retries within one command.
const CONNECT_RETRIES: usize = 1;
/// Shortest pause between attempts to connect.
const CONNECT_PAUSE_MIN: Duration = Duration::from_millis(20);
/// Longest pause between attempts to connect.
const CONNECT_PAUSE_MAX: Duration = Duration::from_millis(50);
/// Commands queued to be written together; beyond the library's default of 50 callers would wait for each other.
const QUEUED_MAX: usize = 1024;
/// Shortest time between two reconnects after refused writes or refused logins.
const RENEW_EVERY: Duration = Duration::from_millis(500);

/// Returns how long a connection is tried, new or idle, before another takes its place: a quarter of the caller's
/// `deadline`, but no longer than a silent connection stays open.
pub(super) fn attempt_timeout(deadline: Duration) -> Duration {
    let quarter = deadline / 4;
    quarter.clamp(ATTEMPT_MIN, SILENCE_MAX).min(deadline)
}

/// A connection shared by all clones.
#[derive(Clone)]
pub(super) struct SharedConnection(Arc<ConnectionState>);

struct ConnectionState {
    client: redis::Client,
    timeout: Duration,
    manager: ArcSwap<ConnectionManager>,
    renewed: Mutex<Option<Instant>>,
}

impl SharedConnection {
    /// Creates the connection, which connects with the first command. Must be called inside the runtime that will use
    /// it.
    pub(super) fn new(client: redis::Client, timeout: Duration) -> Result<Self, StoreError> {
        let manager = manager(client.clone(), timeout)?;
        Ok(Self(Arc::new(ConnectionState {
            client,
            timeout,
            manager: ArcSwap::from_pointee(manager),
            renewed: Mutex::default(),
        })))
    }

    /// Returns `host:port`, or the path of the socket.
    pub(super) fn address(&self) -> String {
        self.0.client.get_connection_info().addr().to_string()
    }

    fn manager(&self) -> ConnectionManager {
        ConnectionManager::clone(&self.0.manager.load())
    }

    /// Executes one command.
    ///
    /// # Errors
    /// An error of the connection or of the server.
    pub(super) async fn send(&self, command: &Cmd) -> RedisResult<Value> {
        let answer = self.manager().send_packed_command(command).await;
        let answer = answer.and_then(Value::extract_error);
        if answer.as_ref().is_err_and(needs_renewal) {
            self.renew();
        }
        answer
    }

    /// Executes a pipeline; returns `count` answers from `offset` on, refusals included.
    ///
    /// # Errors
    /// An error of the connection.
    pub(super) async fn send_all(
        &self,
        pipeline: &Pipeline,
        offset: usize,
        count: usize,
    ) -> RedisResult<Vec<Value>> {
        let mut manager = self.manager();
        let answers = manager.send_packed_commands(pipeline, offset, count).await;
        let refused = match &answers {
            Ok(answers) => answers.iter().any(is_read_only),
            Err(error) => needs_renewal(error),
        };
        if refused {
            self.renew();
        }
        answers
    }

    /// Makes the next command use a new connection. Commands in flight keep the old one.
    fn renew(&self) {
        let mut renewed = self.0.renewed.lock();
        if renewed.is_some_and(|at| at.elapsed() < RENEW_EVERY) {
            return;
        }
        match manager(self.0.client.clone(), self.0.timeout) {
            Ok(manager) => self.0.manager.store(Arc::new(manager)),
            Err(error) => tracing::warn!(%error, "the connection to the store cannot be renewed"),
        }
        *renewed = Some(Instant::now());
    }
}

impl ConnectionLike for SharedConnection {
    fn req_packed_command<'a>(&'a mut self, command: &'a Cmd) -> RedisFuture<'a, Value> {
        Box::pin(self.send(command))
    }

    fn req_packed_commands<'a>(
        &'a mut self,
        pipeline: &'a Pipeline,
        offset: usize,
        count: usize,
    ) -> RedisFuture<'a, Vec<Value>> {
        Box::pin(self.send_all(pipeline, offset, count))
    }

    fn get_db(&self) -> i64 {
        0
    }
}

/// Error codes of a refused login. A command on a connection that is logged in does not receive them.
const LOGIN_REFUSALS: [&str; 2] = ["NOAUTH", "WRONGPASS"];
/// Part of the message of a user that may not execute `HELLO`, the first command of a connection under RESP3.
const HELLO: &str = "'hello'";
/// Start of the library's messages about refused commands of a new connection.
const SETUP_REFUSED: &str = "Redis server refused to ";
/// Message of a server without a free connection.
const FULL: &str = "max number of clients";

/// Returns whether later commands need a new connection: the server is a replica, or it refused to set up the
/// connection. I/O errors are not included: the library reconnects after those.
fn needs_renewal(error: &RedisError) -> bool {
    match error.kind() {
        ErrorKind::Io => false,
        ErrorKind::Server(ServerErrorKind::ReadOnly | ServerErrorKind::BusyLoading) => true,
        ErrorKind::Server(ServerErrorKind::NoPerm) => error.to_string().contains(HELLO),
        ErrorKind::Server(ServerErrorKind::ResponseError) => {
            let message = error.to_string();
            message.starts_with(SETUP_REFUSED) || message.contains(FULL)
        }
        ErrorKind::Server(_) => false,
        // The codes of scripts and the codes that the library does not know.
        ErrorKind::Extension => error.code().is_some_and(|code| LOGIN_REFUSALS.contains(&code)),
        // Of the library itself: an answer to a login that it does not accept, or cannot parse.
        _ => true,
    }
}

/// Returns whether an answer of a pipeline is a replica's refusal of a write.
pub(super) fn is_read_only(answer: &Value) -> bool {
    matches!(answer, Value::ServerError(error) if error.kind() == Some(ServerErrorKind::ReadOnly))
}

/// Creates a reconnecting connection without timeouts of its own. The caller sets the deadline: a second timer per
/// command would fire at the same time.
fn manager(client: redis::Client, timeout: Duration) -> Result<ConnectionManager, StoreError> {
    let config = ConnectionManagerConfig::new()
        .set_connection_timeout(Some(attempt_timeout(timeout)))
        .set_response_timeout(None)
        .set_pipeline_buffer_size(QUEUED_MAX)
        .set_number_of_retries(CONNECT_RETRIES)
        .set_min_delay(CONNECT_PAUSE_MIN)
        .set_max_delay(CONNECT_PAUSE_MAX);
    let manager = ConnectionManager::new_lazy_with_config(client, config);
    manager.map_err(|error| StoreError::BadUrl(format!("store.url: {error}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(line: &str) -> RedisError {
        let answer = redis::parse_redis_value(format!("-{line}\r\n").as_bytes());
        answer.and_then(Value::extract_error).unwrap_err()
    }

    #[test]
    fn a_refused_connection_is_renewed_and_a_refused_command_is_not() {
        let broken = std::io::Error::from(std::io::ErrorKind::BrokenPipe);
        let (password, database) = (
            (ErrorKind::AuthenticationFailed, "Password authentication failed"),
            (
                ErrorKind::Server(ServerErrorKind::ResponseError),
                "Redis server refused to switch database",
                "DB index is out of range".to_owned(),
            ),
        );
        let no_resp3 = (
            ErrorKind::RESP3NotSupported,
            "Redis Server doesn't support HELLO command",
        );
        let [renewed, kept] = [
            vec![
                password.into(),
                database.into(),
                no_resp3.into(),
                said("WRONGPASS invalid username-password pair or user is disabled."),
                said("NOAUTH Authentication required."),
                said("NOPERM User a has no permissions to run the 'hello' command"),
                said("ERR max number of clients reached"),
                said("LOADING Redis is loading the dataset in memory"),
                said("READONLY You can't write against a read only replica."),
            ],
            vec![
                broken.into(),
                said("NOPERM User a has no permissions to run the 'config|get' command"),
                said("ERR unknown command"),
                said("NOSCRIPT No matching script."),
                said("OOM command not allowed when used memory > 'maxmemory'."),
                said("MOVED 1 127.0.0.1:7000"),
                said("CLOCK 1 2"),
            ],
        ];
        for error in renewed {
            assert!(needs_renewal(&error), "{error}");
        }
        for error in kept {
            let error: RedisError = error;
            assert!(!needs_renewal(&error), "{error}");
        }
    }
}
