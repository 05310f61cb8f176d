//! The connection to the store: one multiplexed connection with deadlines that reconnects by itself, to a single server
//! or to a cluster. Scripts run with EVALSHA and fall back to EVAL where the server does not know them yet.

pub mod walk;

use super::error::StoreError;
use super::script::Script;
use crate::settings::StoreSettings;
use redis::aio::{ConnectionManager, ConnectionManagerConfig};
use redis::cluster::ClusterClient;
use redis::cluster_async::ClusterConnection;
use redis::{Cmd, FromRedisValue, Pipeline, TlsCertificates, Value};
use secrecy::ExposeSecret;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::OnceCell;

/// What the address of a cluster starts with.
const CLUSTER: &str = "redis-cluster://";
/// Longest wait for a new connection.
const CONNECT_TIMEOUT: Duration = Duration::from_millis(250);
/// Attempts to connect within one command, beyond the first.
const CONNECT_RETRIES: usize = 1;
/// Shortest and longest pause between attempts to connect.
const CONNECT_PAUSE: (Duration, Duration) = (Duration::from_millis(20), Duration::from_millis(50));
/// Redirections and waits that the cluster client may go through within one command.
const CLUSTER_RETRIES: u32 = 3;

/// A handle on the store. Cloning is cheap; all clones share the connection.
#[derive(Clone)]
pub struct Store {
    link: Link,
    timeout: Duration,
    /// See [`Store::replacing`].
    replaced: Vec<Arc<Script>>,
}

#[derive(Clone)]
enum Link {
    Single(ConnectionManager),
    Cluster(Arc<ClusterClient>, Arc<OnceCell<ClusterConnection>>),
}

impl std::fmt::Debug for Store {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Store")
            .field("timeout", &self.timeout)
            .finish_non_exhaustive()
    }
}

impl Store {
    /// A handle on the store at `url`. No connection is made before the first command, so a server that is down now
    /// can be up later. Must be called inside the runtime that will use it.
    ///
    /// # Errors
    /// [`StoreError::BadUrl`] when the address is none.
    pub fn open(url: &str, timeout: Duration) -> Result<Self, StoreError> {
        let link = match url.strip_prefix(CLUSTER) {
            Some(nodes) => cluster(nodes, timeout)?,
            None => single(client(url, None)?, timeout)?,
        };
        Ok(Self {
            link,
            timeout,
            replaced: Vec::new(),
        })
    }

    /// Like [`Store::open`], as configured.
    ///
    /// # Errors
    /// [`StoreError::BadUrl`] when the address is none, or the file of certificates cannot be read.
    pub fn of(settings: &StoreSettings) -> Result<Self, StoreError> {
        let (url, timeout) = (
            settings.url.expose_secret(),
            Duration::from_millis(settings.timeout_ms),
        );
        match roots(settings)? {
            Some(roots) if !url.starts_with(CLUSTER) => {
                let link = single(client(url, Some(roots))?, timeout)?;
                Ok(Self {
                    link,
                    timeout,
                    replaced: Vec::new(),
                })
            }
            _ => Self::open(url, timeout),
        }
    }

    /// Checks what [`Store::of`] would, without a runtime.
    ///
    /// # Errors
    /// As [`Store::of`].
    pub fn check(settings: &StoreSettings) -> Result<(), StoreError> {
        let url = settings.url.expose_secret();
        match url.strip_prefix(CLUSTER) {
            Some(nodes) => cluster(nodes, CONNECT_TIMEOUT).map(drop),
            None => client(url, roots(settings)?).map(drop),
        }
    }

    /// Whether commands go to a cluster.
    #[must_use]
    pub const fn is_cluster(&self) -> bool {
        matches!(self.link, Link::Cluster(..))
    }

    /// Runs one command.
    ///
    /// # Errors
    /// [`StoreError`]; ask it whether the command may have run.
    pub async fn command<T: FromRedisValue>(&self, command: &Cmd) -> Result<T, StoreError> {
        match &self.link {
            Link::Single(manager) => {
                let answer = within(self.timeout, command.query_async(&mut manager.clone())).await;
                answer.map_err(StoreError::unless_never_sent)
            }
            Link::Cluster(client, cell) => {
                let run = async { command.query_async(&mut connect(client, cell).await?).await };
                within(self.timeout, run).await
            }
        }
    }

    /// Runs several commands in one round trip, not atomically. On a cluster all of them must share one slot.
    ///
    /// # Errors
    /// [`StoreError`], also when a single command failed.
    pub async fn pipeline<T: FromRedisValue>(&self, pipeline: &Pipeline) -> Result<T, StoreError> {
        let run = async {
            match &self.link {
                Link::Single(manager) => pipeline.query_async(&mut manager.clone()).await,
                Link::Cluster(client, cell) => pipeline.query_async(&mut connect(client, cell).await?).await,
            }
        };
        within(self.timeout, run).await
    }

    /// Runs a script with its keys and arguments.
    ///
    /// # Errors
    /// [`StoreError`]; ask it whether the script may have run.
    pub async fn script<T: FromRedisValue>(
        &self,
        script: &Script,
        keys: &[&str],
        args: &[&str],
    ) -> Result<T, StoreError> {
        let args: Vec<&[u8]> = args.iter().map(|arg| arg.as_bytes()).collect();
        self.script_of_bytes(script, keys, &args).await
    }

    /// Like [`Store::script`], with arguments that need not be text.
    ///
    /// # Errors
    /// As [`Store::script`].
    pub async fn script_of_bytes<T: FromRedisValue>(
        &self,
        script: &Script,
        keys: &[&str],
        args: &[&[u8]],
    ) -> Result<T, StoreError> {
        let replaced = self.replaced.iter().rev();
        let script = replaced
            .map(Arc::as_ref)
            .find(|other| other.name() == script.name())
            .unwrap_or(script);
        match self.command(&script.by_hash(keys, args)).await {
            Err(StoreError::Refused { code, .. }) if code == "NOSCRIPT" => {
                self.command(&script.by_source(keys, args)).await
            }
            answer => answer,
        }
    }

    /// The same store, on which another script runs in the place of the one of the same name: the tests check that a
    /// changed script is noticed.
    #[must_use]
    pub fn replacing(&self, script: Script) -> Self {
        let mut store = self.clone();
        store.replaced.push(Arc::new(script));
        store
    }

    /// Asks every server of the store the same thing: one answer from a single server, one a node from a cluster.
    ///
    /// # Errors
    /// [`StoreError`] when any of them does not answer.
    pub async fn every_node(&self, command: &Cmd) -> Result<Vec<String>, StoreError> {
        match self.command::<Value>(command).await? {
            Value::Map(nodes) => nodes.into_iter().map(|(_, answer)| text(answer)).collect(),
            answer => Ok(vec![text(answer)?]),
        }
    }
}

fn text(answer: Value) -> Result<String, StoreError> {
    redis::from_redis_value(answer).map_err(|error| StoreError::Nonsense(error.to_string()))
}

/// Runs `command` with a deadline. A command that missed it may still run later.
async fn within<T>(
    timeout: Duration,
    command: impl Future<Output = redis::RedisResult<T>>,
) -> Result<T, StoreError> {
    match tokio::time::timeout(timeout, command).await {
        Ok(answer) => answer.map_err(StoreError::from),
        Err(_elapsed) => Err(StoreError::NoAnswer(None)),
    }
}

/// The certificates to trust instead of the usual ones.
fn roots(settings: &StoreSettings) -> Result<Option<Vec<u8>>, StoreError> {
    let file = &settings.ca_file;
    if file.as_os_str().is_empty() {
        return Ok(None);
    }
    let roots = std::fs::read(file);
    roots
        .map(Some)
        .map_err(|error| StoreError::BadUrl(format!("store.ca_file {}: {error}", file.display())))
}

fn client(url: &str, root_cert: Option<Vec<u8>>) -> Result<redis::Client, StoreError> {
    // Whoever opens a store over TLS needs a provider of cryptography; the first one installed stays.
    drop(rustls::crypto::ring::default_provider().install_default());
    let client = match root_cert {
        None => redis::Client::open(url),
        Some(_) => redis::Client::build_with_tls(
            url,
            TlsCertificates {
                client_tls: None,
                root_cert,
            },
        ),
    };
    client.map_err(|error| StoreError::BadUrl(format!("store.url: {error}")))
}

fn single(client: redis::Client, timeout: Duration) -> Result<Link, StoreError> {
    let config = ConnectionManagerConfig::new()
        .set_connection_timeout(Some(CONNECT_TIMEOUT.min(timeout)))
        .set_response_timeout(Some(timeout))
        .set_number_of_retries(CONNECT_RETRIES)
        .set_min_delay(CONNECT_PAUSE.0)
        .set_max_delay(CONNECT_PAUSE.1);
    let manager = ConnectionManager::new_lazy_with_config(client, config);
    manager
        .map(Link::Single)
        .map_err(|error| StoreError::BadUrl(format!("store.url: {error}")))
}

/// `redis-cluster://[user:password@]host:port,host:port`
fn cluster(nodes: &str, timeout: Duration) -> Result<Link, StoreError> {
    let (login, hosts) = match nodes.rsplit_once('@') {
        Some((login, hosts)) => (format!("{login}@"), hosts),
        None => (String::new(), nodes),
    };
    let urls = hosts.split(',').map(|host| format!("redis://{login}{host}"));
    let client = ClusterClient::builder(urls)
        .connection_timeout(CONNECT_TIMEOUT.min(timeout))
        .response_timeout(timeout)
        .retries(CLUSTER_RETRIES)
        .build()
        .map_err(|error| StoreError::BadUrl(format!("store.url: {error}")))?;
    Ok(Link::Cluster(Arc::new(client), Arc::new(OnceCell::new())))
}

async fn connect(
    client: &ClusterClient,
    cell: &OnceCell<ClusterConnection>,
) -> redis::RedisResult<ClusterConnection> {
    cell.get_or_try_init(|| client.get_async_connection())
        .await
        .cloned()
}
