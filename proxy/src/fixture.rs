//! Fixture of unit tests: the components of an edge, with a store and a provider whose replies the test sets.
//!
//! The store is a separate server, so that connections break as in production. Broken connections are counted for the
//! whole process, so tests with a fixture run one at a time.

use crate::buffer_budget::Reservation;
use crate::call::body::BufferedBody;
use crate::call::call_request::{CallRequest, CallRun};
use crate::call::hold::OpenHold;
use crate::edge::connections::Connections;
use crate::key_owners::known_key::KnownKey;
use crate::metrics::Metrics;
use crate::metrics::connections::ConnectionMetrics;
use crate::retry_queue::RetryQueue;
use crate::retry_queue::item::HoldOrigin;
use crate::server::components::{EdgeComponents, EdgeInputs};
use crate::upstream::{Upstream, Upstreams};
use bytes::Bytes;
use crypto::seal::SealedFor;
use domain::measured::Endpoint;
use domain::money::Nanos;
use domain::price::CallShape;
use parking_lot::Mutex;
use settings::load_from;
use std::ops::Deref;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, LazyLock};
use std::time::Duration;
use store::Store;
use store::call::authorize::{AUTHORIZE, AccountView};
use store::call::hold::HoldName;
use store::command_rights::REFUSED_COMMANDS;
use store::keys::STORE;
use store::lookup::VirtualKeyOwner;
use store::script::Script;
use store::versions::AccountVersion;
use telemetry::registrar::Registrar;
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::{TcpListener, TcpStream};
use tokio::runtime::{Builder, Runtime};
use tokio::sync::{Mutex as AsyncMutex, MutexGuard, Notify};

/// Longest wait for an event that should happen immediately.
pub const SOON: Duration = Duration::from_secs(10);
/// Epoch of the store's ledger, unless the test sets another.
pub const EPOCH: &str = "00112233445566778899aabbccddeeff";
/// Estimate of [`Fixture::request`], in nano-USD.
pub const ESTIMATE: u64 = 1_000;

static ONE_AT_A_TIME: AsyncMutex<()> = AsyncMutex::const_new(());
static FOLDERS: AtomicU64 = AtomicU64::new(0);

/// Reaction of the store to a command.
#[derive(Debug, Clone)]
pub enum StoreReaction {
    /// Replies with these bytes of the protocol.
    Raw(String),
    /// Closes the connection.
    Close,
    /// Waits for the notification, then sends the default reply.
    After(Arc<Notify>),
}

type OnCommand = dyn FnMut(&[String]) -> Option<StoreReaction> + Send;

/// The store's commands so far, and its replies.
struct FakeStore {
    on_command: Mutex<Box<OnCommand>>,
    commands: Mutex<Vec<Vec<String>>>,
}

/// The components of an edge, its store and its provider. Nothing runs in the background.
pub struct Fixture {
    components: EdgeComponents,
    pub registrar: Registrar,
    fake_store: Arc<FakeStore>,
    provider: TcpListener,
    folder: PathBuf,
    _turn: MutexGuard<'static, ()>,
}

impl Deref for Fixture {
    type Target = EdgeComponents;

    fn deref(&self) -> &EdgeComponents {
        &self.components
    }
}

impl Drop for Fixture {
    fn drop(&mut self) {
        drop(std::fs::remove_dir_all(&self.folder));
    }
}

/// Builds a text reply.
pub fn text(text: &str) -> StoreReaction {
    StoreReaction::Raw(format!("${}\r\n{text}\r\n", text.len()))
}

/// Returns whether a command executes this script.
pub fn runs(command: &[String], script: &Script) -> bool {
    let hash = redis::Script::new(script.source()).get_hash().to_owned();
    command.get(1).is_some_and(|sha| *sha == hash)
}

/// Builds the reply to `INFO` of a server that refused this many of its own writes at start.
pub fn info(lost_writes: u64) -> StoreReaction {
    info_with(&format!("unexpected_error_replies:{lost_writes}"))
}

/// Builds the `INFO` reply of a server that refuses writes because it has no memory left.
pub fn full() -> StoreReaction {
    info_with("used_memory:2\r\nmaxmemory:1")
}

fn info_with(lines: &str) -> StoreReaction {
    text(&format!(
        "server_time_usec:{}000\r\nmaxmemory_policy:noeviction\r\naof_enabled:1\r\n{lines}\r\n",
        clock::now_ms()
    ))
}

/// Builds the reply with the store's record.
pub fn record(epoch: &str) -> StoreReaction {
    fields(&["epoch", epoch, "check_secret", "00"])
}

/// Like [`record`], with the encrypted checkpoint key.
pub fn sealed_record(sealed: &str) -> StoreReaction {
    fields(&["epoch", EPOCH, "check_secret", "00", "checkpoint_key", sealed])
}

fn fields(words: &[&str]) -> StoreReaction {
    let texts: Vec<String> = words
        .iter()
        .map(|word| format!("${}\r\n{word}\r\n", word.len()))
        .collect();
    StoreReaction::Raw(format!("*{}\r\n{}", words.len(), texts.concat()))
}

/// Builds the reply of a healthy store.
fn default_reply(command: &[String]) -> StoreReaction {
    let word = |at: usize| command.get(at).map_or("", String::as_str);
    match (word(0), word(1)) {
        ("HGETALL", STORE) => record(EPOCH),
        ("INFO", _) => info(0),
        ("GET", _) => StoreReaction::Raw("$-1\r\n".to_owned()),
        ("EVAL", source) if source == REFUSED_COMMANDS.source() => text(""),
        ("EVALSHA" | "EVAL", _) => {
            StoreReaction::Raw("-ERR nothing was said about this script\r\n".to_owned())
        }
        _ => StoreReaction::Raw("+OK\r\n".to_owned()),
    }
}

async fn read_command(from: &mut BufReader<TcpStream>) -> Option<Vec<String>> {
    async fn number(from: &mut BufReader<TcpStream>) -> Option<usize> {
        let mut line = String::new();
        from.read_line(&mut line).await.ok()?;
        line.trim_end().get(1..)?.parse().ok()
    }
    let mut command = Vec::new();
    for _ in 0..number(from).await? {
        let mut word = vec![0; number(from).await? + 2];
        from.read_exact(&mut word).await.ok()?;
        command.push(String::from_utf8_lossy(&word[..word.len() - 2]).into_owned());
    }
    Some(command)
}

async fn serve(connection: TcpStream, fake: Arc<FakeStore>) {
    let mut connection = BufReader::new(connection);
    while let Some(command) = read_command(&mut connection).await {
        let on_command = || {
            let mut on_command = fake.on_command.lock();
            on_command(&command)
        };
        fake.commands.lock().push(command.clone());
        let mut reply = on_command();
        if let Some(StoreReaction::After(until)) = &reply {
            until.notified().await;
            reply = None;
        }
        let bytes = match reply.unwrap_or_else(|| default_reply(&command)) {
            StoreReaction::Raw(bytes) => bytes,
            StoreReaction::Close | StoreReaction::After(_) => return,
        };
        if connection.get_mut().write_all(bytes.as_bytes()).await.is_err() {
            return;
        }
    }
}

/// The default upstream, for tests that send nothing.
pub fn upstream() -> Arc<Upstream> {
    static UPSTREAM: LazyLock<Arc<Upstream>> = LazyLock::new(|| upstream_of(""));
    Arc::clone(&UPSTREAM)
}

/// Creates the default upstream from these settings, for tests that send nothing.
pub fn upstream_of(settings: &str) -> Arc<Upstream> {
    upstream_for("", settings)
}

/// The upstream to which these settings send calls for `model`.
pub fn upstream_for(model: &str, settings: &str) -> Arc<Upstream> {
    drop(rustls::crypto::ring::default_provider().install_default());
    let settings = load_from(Some(settings), std::iter::empty()).unwrap();
    Arc::clone(Upstreams::new(&settings, 1).unwrap().choose(model))
}

/// Creates a fixture on its own runtime, with a checked store. A call that is polled in [`without_timer`] panics at its
/// first deadline.
pub fn on_own_runtime() -> (Runtime, Fixture) {
    let runtime = Builder::new_multi_thread()
        .worker_threads(1)
        .enable_all()
        .build()
        .unwrap();
    let fixture = runtime.block_on(Fixture::new());
    assert!(runtime.block_on(fixture.health.is_trusted()));
    (runtime, fixture)
}

/// Creates a runtime without a timer.
pub fn without_timer() -> Runtime {
    Builder::new_current_thread().build().unwrap()
}

impl Fixture {
    /// Creates a fixture, once no other test has one.
    pub async fn new() -> Self {
        let turn = ONE_AT_A_TIME.lock().await;
        let number = FOLDERS.fetch_add(1, Ordering::Relaxed);
        let folder = std::env::temp_dir().join(format!("tollgate-fixture-{}-{number}", std::process::id()));
        let fake_store = Arc::new(FakeStore {
            on_command: Mutex::new(Box::new(|_| None)),
            commands: Mutex::default(),
        });
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let store = listener.local_addr().unwrap();
        let serving = Arc::clone(&fake_store);
        tokio::spawn(async move {
            while let Ok((connection, _)) = listener.accept().await {
                tokio::spawn(serve(connection, Arc::clone(&serving)));
            }
        });
        let provider = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let settings = [
            ("STORE__URL", format!("redis://{store}")),
            (
                "UPSTREAM__BASE_URL",
                format!("http://{}/v1", provider.local_addr().unwrap()),
            ),
            ("SECRETS__MASTER_KEY", format!("{}ERE=", "ERER".repeat(10))),
            ("PROXY__DATA_DIR", folder.display().to_string()),
            ("STORE__TIMEOUT_MS", "5000".to_owned()),
        ];
        let settings = settings.map(|(name, value)| (format!("TOLLGATE_{name}"), value));
        let settings = load_from(None, settings.into_iter()).unwrap();
        drop(rustls::crypto::ring::default_provider().install_default());
        let registrar = Registrar::new("tollgate_proxy");
        let metrics = Metrics::new(&registrar, &settings.providers()).unwrap();
        let of_callers = ConnectionMetrics::new(&registrar).unwrap();
        let upstreams = Upstreams::new(&settings, 100).unwrap();
        upstreams.default_upstream().target().refresh_addresses().await;
        let parts = EdgeInputs {
            keyring: settings.keyring().unwrap(),
            prices: settings.prices().unwrap(),
            plans: settings.plans().unwrap(),
            upstreams,
            retry_queue: Arc::new(RetryQueue::open(&folder, 9).unwrap()),
            connections: Arc::new(Connections::new(9, 9, Vec::new(), of_callers)),
            settings,
        };
        let store = Store::from_settings(&parts.settings.store).unwrap();
        Self {
            components: EdgeComponents::new(parts, store, Arc::new(metrics)),
            registrar,
            fake_store,
            provider,
            folder,
            _turn: turn,
        }
    }

    /// Creates a fixture with a checked store that replies with `reply` to `authorize.lua`. The account's plan is
    /// known.
    pub async fn with_decision(reply: StoreReaction) -> Self {
        let fixture = Self::new().await;
        assert!(fixture.health.is_trusted().await);
        let view = AccountView {
            generation: 1,
            version: 7,
            plan: "free".to_owned(),
        };
        fixture.views.record("acct_1", &view);
        fixture.on_command(move |command| runs(command, &AUTHORIZE).then(|| reply.clone()));
        fixture
    }

    /// Sets the store's replies from now on; `None` selects the reply of a healthy store.
    pub fn on_command(&self, on_command: impl FnMut(&[String]) -> Option<StoreReaction> + Send + 'static) {
        let mut current = self.fake_store.on_command.lock();
        *current = Box::new(on_command);
    }

    /// Returns the commands that the store received.
    pub fn commands(&self) -> Vec<Vec<String>> {
        self.fake_store.commands.lock().clone()
    }

    /// Returns the number of commands with this name that the store received.
    pub fn count(&self, name: &str) -> usize {
        self.commands()
            .iter()
            .filter(|command| command[0] == name)
            .count()
    }

    /// Returns the arguments of each execution of a script.
    pub fn arguments(&self, script: &Script) -> Vec<Vec<String>> {
        let executions = self
            .commands()
            .into_iter()
            .filter(|command| runs(command, script));
        executions
            .map(|command| {
                let keys: usize = command[2].parse().unwrap();
                let last = match script.bounds_clock() {
                    // This process's time and the bound: of no interest here.
                    true => command.len() - 2,
                    false => command.len(),
                };
                command[3 + keys..last].to_vec()
            })
            .collect()
    }

    /// Waits until the store received a command of this name.
    pub async fn wait_for(&self, name: &str) {
        let received = async {
            while self.count(name) == 0 {
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
        };
        tokio::time::timeout(SOON, received).await.unwrap();
    }

    /// Breaks a connection to a store, which the process counts.
    pub async fn lose_a_connection(&self) {
        let nobody = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = format!("redis://{}", nobody.local_addr().unwrap());
        drop(nobody);
        let before = store::error_counters::connections_lost();
        let store = Store::open(&address, SOON).unwrap();
        let answer: Result<String, _> = store.command(&redis::cmd("PING")).await;
        assert!(answer.is_err() && store::error_counters::connections_lost() > before);
    }

    /// Returns whether the provider accepts a connection shortly.
    pub async fn was_provider_called(&self) -> bool {
        let called = tokio::time::timeout(Duration::from_millis(50), self.provider.accept());
        called.await.is_ok()
    }

    /// Waits for the next request to the provider. Returns it with the connection for the answer.
    pub async fn provider_request(&self) -> (String, TcpStream) {
        let (mut connection, _) = self.provider.accept().await.unwrap();
        let mut request = [0; 4096];
        let read = connection.read(&mut request).await.unwrap();
        (String::from_utf8_lossy(&request[..read]).into_owned(), connection)
    }

    /// Builds the reply of `authorize.lua` to an approved call, with this provider key of the agent.
    pub fn approval(&self, provider_key: &str) -> StoreReaction {
        let owner = SealedFor {
            account: "acct_1",
            agent: "bot",
            provider: &self.settings.upstream.provider,
            key_id: "pk_1",
        };
        let sealed = self.provider_keys.seal(&owner, provider_key);
        text(&format!("ok 1 8 pk_1 {sealed} free"))
    }

    /// A valid call.
    pub fn request(&self) -> CallRequest {
        CallRequest {
            run: CallRun {
                id: "r".to_owned(),
                named: true,
            },
            model: "gpt-4o".to_owned(),
            service_tier: None,
            shape: CallShape::EMPTY,
            upstream: Arc::clone(self.upstreams.default_upstream()),
            prices: self.prices.get(),
            estimate: Nanos::new(ESTIMATE),
            endpoint: Endpoint::Chat,
            stream: None,
        }
    }

    /// An open hold of [`ESTIMATE`].
    pub async fn open_hold(&self) -> OpenHold {
        let name = HoldName {
            account: "acct_1".to_owned(),
            agent: "bot".to_owned(),
            run: "r".to_owned(),
            allow_id: "allow_1".to_owned(),
        };
        let as_of = AccountVersion {
            generation: 1,
            version: 8,
        };
        OpenHold {
            keys: Box::new(name.keys()),
            name,
            origin: HoldOrigin {
                ledger: self.health.read_ledger().await.unwrap(),
                as_of,
            },
            estimate: Nanos::from_stored(ESTIMATE),
            extension: None,
        }
    }

    /// The key of the call.
    pub fn key(&self) -> Arc<KnownKey> {
        let owner = VirtualKeyOwner::new("acct_1", "bot", "vk_1");
        Arc::new(KnownKey::new(owner, Arc::default()))
    }

    /// The body of the call.
    pub fn body(&self) -> BufferedBody {
        BufferedBody {
            bytes: Bytes::from_static(b"{}"),
            reservation: Reservation::new(Arc::clone(&self.budget), Arc::default()),
        }
    }
}
