//! The connection to the store: one multiplexed, reconnecting connection with deadlines, to a single server or to a
//! cluster. Scripts are sent as EVALSHA, and as EVAL if the server does not have them.

mod address;
pub mod batch;
mod cluster;
mod durable;
mod each;
pub mod scan;
mod server;
mod versioned;

pub use versioned::witness_of;

use self::address::{CLUSTER, TLS, shown};
use self::cluster::{Cluster, Routed};
use self::durable::{ConfirmedWrites, Dial, MoneyCommand};
use self::server::SharedConnection;
use crate::certificate::CertificateProbe;
use crate::error::StoreError;
use crate::error_counters;
use crate::malformed::MalformedPlace;
use crate::script::Script;
use crate::script::names::Inputs;
use crate::script::reply::ScriptReply;
use crate::server_clock;
use crate::versions::Versions;
use domain::budget::Budgets;
use futures::future::BoxFuture;
use redis::io::tcp::TcpSettings;
use redis::io::tcp::socket2::TcpKeepalive;
use redis::{
    Cmd, FromRedisValue, IntoConnectionInfo, Pipeline, RedisFuture, RedisResult, TlsCertificates, Value,
};
use secrecy::ExposeSecret;
use settings::durability::Durability;
use settings::{StoreSettings, ca_file, default_budgets, default_max_clock_difference_ms};
use std::collections::HashMap;
use std::pin::{Pin, pin};
use std::sync::{Arc, LazyLock};
use std::time::Duration;

/// Error for certificates to trust without TLS.
const CA_FILE_WITHOUT_TLS: &str = "store.ca_file is set, and store.url does not begin with rediss://, so there is no TLS \
     that it could be for: change store.url, or leave store.ca_file empty";
/// Maximum time that sent data may stay unacknowledged before the connection is closed and reopened. The kernel's
/// default is about 15 minutes.
const SILENCE_MAX: Duration = Duration::from_millis(2_500);
/// Idle time before a keepalive probe.
const KEEPALIVE_AFTER: Duration = Duration::from_secs(5);
/// Interval of further keepalive probes.
const KEEPALIVE_EVERY: Duration = Duration::from_secs(1);
/// Arguments that [`Store::script`] adds to a script's own at most: two for the clock, and two for the version and one
/// for the authority of a change.
const ADDED_ARGS_MAX: usize = 5;

/// A handle on the store. Clones are cheap and share the connection.
#[derive(Clone)]
pub struct Store {
    link: Link,
    timeout: Duration,
    /// Confirmation of changes of money; `None` if they are not confirmed.
    money: Option<Arc<ConfirmedWrites>>,
    /// Budgets of records, and their text for scripts.
    budgets: Arc<(Budgets, String)>,
    /// Maximum difference between a server's clock and this process's, in ms.
    clock_difference_max_ms: u64,
    /// Newest known version of each account.
    versions: Arc<Versions>,
    /// `None` without TLS.
    certificate: Option<Arc<CertificateProbe>>,
    /// See [`Store::replacing`].
    replaced: Vec<Arc<Script>>,
}

/// Budgets of `config/tollgate.toml`.
static DEFAULT_BUDGETS: LazyLock<Arc<(Budgets, String)>> = LazyLock::new(|| with_words(default_budgets()));

/// `store.max_clock_difference_ms` of `config/tollgate.toml`.
static DEFAULT_CLOCK_DIFFERENCE_MS: LazyLock<u64> = LazyLock::new(default_max_clock_difference_ms);

fn with_words(budgets: Budgets) -> Arc<(Budgets, String)> {
    Arc::new((budgets, budgets.words()))
}

#[derive(Clone)]
enum Link {
    Single(SharedConnection),
    Cluster(Arc<Cluster>),
}

impl std::fmt::Debug for Store {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Store")
            .field("timeout", &self.timeout)
            .finish_non_exhaustive()
    }
}

impl Store {
    /// Returns a handle on the store at `url`. The first command connects, so the server may start later. Must be
    /// called inside the runtime that will use it.
    ///
    /// # Errors
    /// [`StoreError::BadUrl`] if the address is malformed.
    pub fn open(url: &str, timeout: Duration) -> Result<Self, StoreError> {
        Self::opened(url, None, timeout)
    }

    fn opened(url: &str, roots: Option<Vec<u8>>, timeout: Duration) -> Result<Self, StoreError> {
        let certificate = CertificateProbe::new(url, roots.as_deref())?.map(Arc::new);
        let link = match url.strip_prefix(CLUSTER) {
            Some(nodes) => Link::Cluster(Arc::new(Cluster::new(nodes, timeout)?)),
            None => Link::Single(SharedConnection::new(client(url, roots)?, timeout)?),
        };
        Ok(Self {
            link,
            timeout,
            money: None,
            budgets: Arc::clone(&DEFAULT_BUDGETS),
            clock_difference_max_ms: *DEFAULT_CLOCK_DIFFERENCE_MS,
            versions: Arc::default(),
            certificate,
            replaced: Vec::new(),
        })
    }

    /// Like [`Store::open`], from the settings.
    ///
    /// # Errors
    /// [`StoreError::BadUrl`] if the address is malformed or the certificate file cannot be read.
    pub fn from_settings(settings: &StoreSettings) -> Result<Self, StoreError> {
        let (url, timeout) = (
            settings.url.expose_secret(),
            Duration::from_millis(settings.timeout_ms),
        );
        let roots = roots(settings)?;
        let mut store = Self::opened(url, roots.clone(), timeout)?;
        store.clock_difference_max_ms = settings.max_clock_difference_ms;
        if settings.durability != Durability::Async {
            let dial = match &store.link {
                Link::Cluster(cluster) => Dial::Cluster(Arc::clone(cluster)),
                Link::Single(_) => Dial::Single(Box::new(client(url, roots)?)),
            };
            let wait = Duration::from_millis(settings.durability_timeout_ms);
            store.money = Some(Arc::new(ConfirmedWrites::new(
                settings.durability,
                wait,
                timeout,
                dial,
            )));
        }
        Ok(store)
    }

    /// Sets budgets other than those of the default configuration (decision D71).
    #[must_use]
    pub fn with_budgets(mut self, budgets: Budgets) -> Self {
        self.budgets = with_words(budgets);
        self
    }

    /// Returns the budgets of records.
    pub fn budgets(&self) -> Budgets {
        self.budgets.0
    }

    /// Returns the most that a server's clock may differ from this process's, in ms (`store.max_clock_difference_ms`).
    pub(super) const fn clock_difference_max_ms(&self) -> u64 {
        self.clock_difference_max_ms
    }

    /// Returns the budgets as scripts read them.
    pub(super) fn budget_words(&self) -> &str {
        &self.budgets.1
    }

    /// Performs the checks of [`Store::from_settings`] without a runtime.
    pub fn check(settings: &StoreSettings) -> Result<(), StoreError> {
        let (url, roots) = (settings.url.expose_secret(), roots(settings)?);
        match url.strip_prefix(CLUSTER) {
            Some(nodes) => Cluster::new(nodes, Duration::from_millis(settings.timeout_ms)).map(drop),
            None => client(url, roots).map(drop),
        }
    }

    /// Returns the address in `settings` without user, password and options; `None` if it is malformed.
    pub fn shown_address(settings: &StoreSettings) -> Option<String> {
        shown(settings.url.expose_secret())
    }

    /// Returns `store.timeout_ms`, the deadline of one command.
    pub const fn timeout(&self) -> Duration {
        self.timeout
    }

    /// Returns the end of the certificate that the store presents to a new connection, in seconds since 1970. `None`
    /// without TLS, and if it cannot be read within the deadline of one command.
    pub async fn certificate_ends_s(&self) -> Option<i64> {
        let probe = self.certificate.as_ref()?;
        let ends_s = tokio::time::timeout(self.timeout, probe.ends_s()).await;
        ends_s.ok().flatten()
    }

    /// Returns whether the store is a cluster.
    pub const fn is_cluster(&self) -> bool {
        matches!(self.link, Link::Cluster(..))
    }

    /// Executes one command.
    ///
    /// # Errors
    /// [`StoreError`]; [`may_have_run`](StoreError::may_have_run) says whether the command may have run.
    pub async fn command<T: FromRedisValue>(&self, command: &Cmd) -> Result<T, StoreError> {
        let answer = self.answer(command).await;
        answer.map_err(|error| error.at(|_| Some(MalformedPlace::of_command(command))))
    }

    /// Executes one command. The place of malformed data is not known yet.
    async fn answer<T: FromRedisValue>(&self, command: &Cmd) -> Result<T, StoreError> {
        let answer = match &self.link {
            Link::Single(server) => {
                // Not through `ConnectionLike`, which boxes each future.
                let answered =
                    async { redis::from_redis_value(server.send(command).await?).map_err(Into::into) };
                within(self.timeout, pin!(answered)).await
            }
            Link::Cluster(cluster) => {
                let mut routed = Routed(Arc::clone(cluster));
                let run: RedisFuture<'_, T> = Box::pin(command.query_async(&mut routed));
                self.in_time(run).await
            }
        };
        answer.map_err(StoreError::unless_never_sent)
    }

    /// Awaits a reply within the deadline. A cluster node that does not reply may have been replaced, so the slot map
    /// is refreshed.
    async fn in_time<T>(&self, mut run: RedisFuture<'_, T>) -> Result<T, StoreError> {
        let answer = within(self.timeout, run.as_mut()).await;
        if let (Link::Cluster(cluster), Err(StoreError::NoAnswer(_))) = (&self.link, &answer) {
            cluster.refresh_in_background();
        }
        answer
    }

    /// Reads the text at `key` and parses it; `None` if there is none.
    ///
    /// # Errors
    /// [`StoreError`] with `kind`, if `parse` does not accept the text.
    pub(crate) async fn lookup<T>(
        &self,
        key: String,
        kind: &str,
        parse: impl FnOnce(&str) -> Option<T>,
    ) -> Result<Option<T>, StoreError> {
        let text: Option<String> = self.command(redis::cmd("GET").arg(key)).await?;
        text.map(|text| parse(&text).ok_or_else(|| StoreError::unexpected(kind)))
            .transpose()
    }

    /// Reads the record at `key` and parses its fields; `None` if there is no record.
    ///
    /// # Errors
    /// [`StoreError`] with `kind`, if `parse` does not accept the record.
    pub(crate) async fn record<T>(
        &self,
        key: String,
        kind: &str,
        parse: impl FnOnce(&HashMap<String, String>) -> Option<T>,
    ) -> Result<Option<T>, StoreError> {
        let fields: HashMap<String, String> = self.command(redis::cmd("HGETALL").arg(key)).await?;
        if fields.is_empty() {
            return Ok(None);
        }
        parse(&fields)
            .map(Some)
            .ok_or_else(|| StoreError::unexpected(kind))
    }

    /// Executes several commands in one round trip, not atomically. On a cluster they must share one slot, and be reads
    /// or a transaction: they may run twice while the slot is migrated.
    ///
    /// # Errors
    /// [`StoreError`], also if a single command failed.
    pub async fn pipeline<T: FromRedisValue>(&self, pipeline: &Pipeline) -> Result<T, StoreError> {
        let answer = match &self.link {
            Link::Single(server) => {
                within(self.timeout, pin!(pipeline.query_async(&mut server.clone()))).await
            }
            Link::Cluster(cluster) => {
                let mut routed = Routed(Arc::clone(cluster));
                let run: RedisFuture<'_, T> = Box::pin(pipeline.query_async(&mut routed));
                self.in_time(run).await
            }
        };
        answer.map_err(|error| error.at(|source| MalformedPlace::of_pipeline(pipeline, source)))
    }

    /// Executes a script. A script that changes an account is refused if the store has an older version of the account
    /// than this process knows. The version in its reply is recorded once the change has the durability that
    /// `store.durability` requires.
    ///
    /// # Errors
    /// [`StoreError`]; [`may_have_run`](StoreError::may_have_run) says whether the script may have run.
    pub async fn script<T: FromRedisValue>(
        &self,
        script: &Script,
        keys: &[&str],
        args: &[impl AsRef<[u8]>],
    ) -> Result<T, StoreError> {
        let replaced = self.replaced.iter().rev();
        let script = replaced
            .map(Arc::as_ref)
            .find(|other| other.name() == script.name())
            .unwrap_or(script);
        let mut digits = [itoa::Buffer::new(); 2];
        let clock = script
            .bounds_clock()
            .then(|| server_clock::bound_args(self, &mut digits));
        // With room for all that is added: a list that grows is copied.
        let mut all_args: Vec<&[u8]> = Vec::with_capacity(args.len() + ADDED_ARGS_MAX);
        all_args.extend(args.iter().map(AsRef::as_ref).chain(clock.into_iter().flatten()));
        if script.is_versioned() {
            // On the heap, to keep the future of calls small.
            let run: BoxFuture<'_, _> = Box::pin(self.change(script, keys, all_args));
            let answer = run.await?;
            return redis::from_redis_value(answer).map_err(StoreError::unexpected);
        }
        self.execute(script, keys, &all_args).await
    }

    /// Like [`Store::script`], for a script that replies with words.
    pub(crate) fn reply<'s>(
        &'s self,
        script: &'s Script,
        keys: impl Inputs<Value: AsRef<str>>,
        args: impl Inputs<Value: AsRef<[u8]>>,
    ) -> impl Future<Output = Result<ScriptReply, StoreError>> {
        // Evaluated here and not in the future, which would reserve space for both inputs and their values.
        self.words(script, keys.values(), args.values())
    }

    async fn words(
        &self,
        script: &Script,
        keys: Vec<impl AsRef<str>>,
        args: Vec<impl AsRef<[u8]>>,
    ) -> Result<ScriptReply, StoreError> {
        let keys: Vec<&str> = keys.iter().map(AsRef::as_ref).collect();
        let args: Vec<&[u8]> = args.iter().map(AsRef::as_ref).collect();
        let words = self.script(script, &keys, &args).await?;
        Ok(ScriptReply::new(script, words))
    }

    /// Executes a script without version check and confirmation.
    pub(crate) async fn execute<T: FromRedisValue>(
        &self,
        script: &Script,
        keys: &[&str],
        args: &[impl AsRef<[u8]>],
    ) -> Result<T, StoreError> {
        let first = keys.first().copied().unwrap_or_default();
        let answer = match self.run(script, &script.by_hash(keys, args), first).await {
            Err(StoreError::Refused { code, .. }) if code == "NOSCRIPT" => {
                self.run(script, &script.by_source(keys, args), first).await
            }
            answer => answer,
        };
        answer.map_err(|error| error.at(|source| Some(MalformedPlace::of_script(script, keys, source))))
    }

    async fn run<T: FromRedisValue>(
        &self,
        script: &Script,
        command: &Cmd,
        first_key: &str,
    ) -> Result<T, StoreError> {
        match &self.money {
            Some(money) if script.is_confirmed() => {
                // Boxed, to keep the future of calls small.
                let change = MoneyCommand {
                    command,
                    key: first_key,
                    only_reads: false,
                };
                let run: BoxFuture<'_, _> = Box::pin(self.execute_confirmed(money, change));
                let answer = run.await?;
                redis::from_redis_value(answer).map_err(StoreError::unexpected)
            }
            _ => self.answer(command).await,
        }
    }

    /// Returns the newest known version of each account.
    pub fn versions(&self) -> &Versions {
        &self.versions
    }

    /// Returns the store with `script` in place of the script of the same name: tests execute changed scripts.
    pub fn replacing(&self, script: Script) -> Self {
        let mut store = self.clone();
        store.replaced.push(Arc::new(script));
        store
    }
}

fn text(answer: Value) -> Result<String, StoreError> {
    redis::from_redis_value(answer).map_err(StoreError::unexpected)
}

/// Awaits `command` within a deadline. A command that missed it may still run later.
async fn within<T>(
    timeout: Duration,
    command: Pin<&mut (impl Future<Output = redis::RedisResult<T>> + ?Sized)>,
) -> Result<T, StoreError> {
    let answer = match tokio::time::timeout(timeout, command).await {
        Ok(answer) => answer.map_err(StoreError::from),
        Err(_elapsed) => Err(StoreError::NoAnswer(None)),
    };
    answer.inspect_err(error_counters::count)
}

/// Reads the certificates to trust instead of the system's.
fn roots(settings: &StoreSettings) -> Result<Option<Vec<u8>>, StoreError> {
    let url = settings.url.expose_secret();
    if !settings.ca_file.as_os_str().is_empty() && !url.starts_with(TLS) && shown(url).is_some() {
        return Err(StoreError::BadUrl(CA_FILE_WITHOUT_TLS.to_owned()));
    }
    ca_file::read("store", &settings.ca_file).map_err(|error| StoreError::BadUrl(error.to_string()))
}

fn client(url: &str, root_cert: Option<Vec<u8>>) -> Result<redis::Client, StoreError> {
    address::check(url)?;
    // TLS needs a process-wide crypto provider. The first one installed stays.
    drop(rustls::crypto::ring::default_provider().install_default());
    let made = || -> RedisResult<redis::Client> {
        let address = url.into_connection_info()?.set_tcp_settings(tcp());
        let Some(root_cert) = root_cert else {
            return redis::Client::open(address);
        };
        let trusted = TlsCertificates {
            client_tls: None,
            root_cert: Some(root_cert),
        };
        redis::Client::build_with_tls(address, trusted)
    };
    made().map_err(|error| StoreError::BadUrl(format!("store.url: {error}")))
}

/// Keepalive and acknowledgement timeouts detect an unreachable peer. Nagle's algorithm is off: callers share the
/// connection, and one would wait for the acknowledgement of another's data.
fn tcp() -> TcpSettings {
    let keepalive = TcpKeepalive::new()
        .with_time(KEEPALIVE_AFTER)
        .with_interval(KEEPALIVE_EVERY);
    TcpSettings::default()
        .set_nodelay(true)
        .set_keepalive(keepalive)
        .set_user_timeout(SILENCE_MAX)
}

#[cfg(test)]
mod tests;
