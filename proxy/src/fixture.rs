//! A gate for unit tests, on a store and a provider that answer as the test says.
//!
//! The store is a server of its own, so that connections break as they really do. How often that happened is counted for the
//! whole process: tests with a gate run one at a time.

use crate::buffer_budget::Share;
use crate::call::body::Body;
use crate::call::chat_request::{Run, Wanted};
use crate::edge::connections::Connections;
use crate::gate::{Gate, Parts};
use crate::key_owners::known_key::KnownKey;
use crate::metrics::Metrics;
use crate::pending::Pending;
use crate::upstream::Upstream;
use bytes::Bytes;
use crypto::seal::SealedFor;
use domain::money::Nanos;
use secrecy::SecretString;
use settings::load_from;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use store::Store;
use store::keys::STORE;
use store::lookup::VirtualKeyOwner;
use store::script::Script;
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::{TcpListener, TcpStream};
use tokio::runtime::{Builder, Runtime};
use tokio::sync::{Mutex as AsyncMutex, MutexGuard, Notify};

/// Longest wait for what should happen at once.
pub const SOON: Duration = Duration::from_secs(10);
/// The epoch of the ledger that the store is at first.
pub const EPOCH: &str = "00112233445566778899aabbccddeeff";
/// What a call of [`wanted`] is estimated at.
pub const ESTIMATE: u64 = 1_000;

static ONE_AT_A_TIME: AsyncMutex<()> = AsyncMutex::const_new(());
static FOLDERS: AtomicU64 = AtomicU64::new(0);

/// What the store does with a command.
#[derive(Debug, Clone)]
pub enum Does {
    /// Answers with this, in the server's protocol.
    Answers(String),
    /// Hangs up.
    HangsUp,
    /// Waits for the notification, then goes on as if it had not been asked what to do.
    Waits(Arc<Notify>),
}

type Says = dyn FnMut(&[String]) -> Option<Does> + Send;

/// What is asked of the store, and what it says.
struct Lines {
    says: Mutex<Box<Says>>,
    asked: Mutex<Vec<Vec<String>>>,
}

/// The gate and all around it.
pub struct Stand {
    pub gate: Arc<Gate>,
    script: Arc<Lines>,
    provider: TcpListener,
    folder: PathBuf,
    _turn: MutexGuard<'static, ()>,
}

impl Drop for Stand {
    fn drop(&mut self) {
        drop(std::fs::remove_dir_all(&self.folder));
    }
}

/// A text as the server sends it.
pub fn text(text: &str) -> Does {
    Does::Answers(format!("${}\r\n{text}\r\n", text.len()))
}

/// Whether a command runs this script.
pub fn runs(command: &[String], script: &Script) -> bool {
    let hash = redis::Script::new(script.source()).get_hash().to_owned();
    command.get(1).is_some_and(|sha| *sha == hash)
}

/// What `INFO` says of a server that has refused so many writes of its own.
pub fn info(lost_writes: u64) -> Does {
    text(&format!(
        "maxmemory_policy:noeviction\r\naof_enabled:1\r\nunexpected_error_replies:{lost_writes}\r\n"
    ))
}

/// The store's record.
pub fn record(epoch: &str) -> Does {
    let fields = ["epoch", epoch, "check_secret", "00"];
    let fields = fields.map(|field| format!("${}\r\n{field}\r\n", field.len()));
    Does::Answers(format!("*4\r\n{}", fields.concat()))
}

/// What a store in good health says when the test has nothing to say.
fn usual(command: &[String]) -> Does {
    let word = |at: usize| command.get(at).map_or("", String::as_str);
    match (word(0), word(1)) {
        ("HGETALL", STORE) => record(EPOCH),
        ("INFO", _) => info(0),
        ("GET", _) => Does::Answers("$-1\r\n".to_owned()),
        ("EVALSHA" | "EVAL", _) => Does::Answers("-ERR nothing was said about this script\r\n".to_owned()),
        _ => Does::Answers("+OK\r\n".to_owned()),
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

async fn serve(connection: TcpStream, script: Arc<Lines>) {
    let mut connection = BufReader::new(connection);
    while let Some(command) = read_command(&mut connection).await {
        let says = || {
            let mut says = script.says.lock().unwrap_or_else(PoisonError::into_inner);
            says(&command)
        };
        script
            .asked
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .push(command.clone());
        let mut does = says();
        if let Some(Does::Waits(until)) = &does {
            until.notified().await;
            does = None;
        }
        let answer = match does.unwrap_or_else(|| usual(&command)) {
            Does::Answers(answer) => answer,
            Does::HangsUp | Does::Waits(_) => return,
        };
        if connection.get_mut().write_all(answer.as_bytes()).await.is_err() {
            return;
        }
    }
}

/// A gate that is served in a runtime of its own, and whose store was looked at. What is polled in [`timeless`] panics at its
/// first deadline.
pub fn served() -> (Runtime, Stand) {
    let runtime = Builder::new_multi_thread()
        .worker_threads(1)
        .enable_all()
        .build()
        .unwrap();
    let stand = runtime.block_on(Stand::new());
    assert!(runtime.block_on(stand.gate.watch.usable(&stand.gate)));
    (runtime, stand)
}

/// A runtime without a timer.
pub fn timeless() -> Runtime {
    Builder::new_current_thread().build().unwrap()
}

impl Stand {
    /// A gate, with nothing in the background.
    pub async fn new() -> Self {
        let turn = ONE_AT_A_TIME.lock().await;
        let number = FOLDERS.fetch_add(1, Ordering::Relaxed);
        let folder = std::env::temp_dir().join(format!("tollgate-stand-{}-{number}", std::process::id()));
        let script = Arc::new(Lines {
            says: Mutex::new(Box::new(|_| None)),
            asked: Mutex::default(),
        });
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let store = listener.local_addr().unwrap();
        let serving = Arc::clone(&script);
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
        let upstream = Upstream::new(&settings.upstream, 100).unwrap();
        upstream.target().resolve().await;
        let parts = Parts {
            sealer: settings.sealer().unwrap(),
            prices: settings.prices().unwrap(),
            plans: settings.plans().unwrap(),
            upstream,
            pending: Pending::open(&folder, 9).unwrap(),
            connections: Arc::new(Connections::new(9, 9, Vec::new())),
            settings,
        };
        let store = Store::of(&parts.settings.store).unwrap();
        Self {
            gate: Arc::new(Gate::new(parts, store, Metrics::new().unwrap())),
            script,
            provider,
            folder,
            _turn: turn,
        }
    }

    /// From now on the store does this; where it is `None`, what a store in good health does.
    pub fn store_says(&self, says: impl FnMut(&[String]) -> Option<Does> + Send + 'static) {
        *self.script.says.lock().unwrap_or_else(PoisonError::into_inner) = Box::new(says);
    }

    /// Commands that the store was sent.
    pub fn asked(&self) -> Vec<Vec<String>> {
        self.script
            .asked
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }

    /// How many commands of this name the store was sent.
    pub fn count(&self, name: &str) -> usize {
        self.asked().iter().filter(|command| command[0] == name).count()
    }

    /// The arguments of each time that a script was run.
    pub fn arguments(&self, script: &Script) -> Vec<Vec<String>> {
        let asked = self.asked().into_iter().filter(|command| runs(command, script));
        asked
            .map(|command| {
                let keys: usize = command[2].parse().unwrap();
                command[3 + keys..].to_vec()
            })
            .collect()
    }

    /// Waits until the store was sent a command of this name.
    pub async fn asked_for(&self, name: &str) {
        let asked = async {
            while self.count(name) == 0 {
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
        };
        tokio::time::timeout(SOON, asked).await.unwrap();
    }

    /// Loses a connection, as the process counts it.
    pub async fn lose_a_connection(&self) {
        let nobody = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = format!("redis://{}", nobody.local_addr().unwrap());
        drop(nobody);
        let before = store::pulse::cuts();
        let store = Store::open(&address, SOON).unwrap();
        let answer: Result<String, _> = store.command(&redis::cmd("PING")).await;
        assert!(answer.is_err() && store::pulse::cuts() > before);
    }

    /// Whether the provider was connected to.
    pub async fn provider_was_called(&self) -> bool {
        let called = tokio::time::timeout(Duration::from_millis(50), self.provider.accept());
        called.await.is_ok()
    }

    /// The next request to the provider: its text, and where the answer goes.
    pub async fn provider_request(&self) -> (String, TcpStream) {
        let (mut connection, _) = self.provider.accept().await.unwrap();
        let mut request = [0; 4096];
        let read = connection.read(&mut request).await.unwrap();
        (String::from_utf8_lossy(&request[..read]).into_owned(), connection)
    }

    /// What `authorize` answers to an approved call, with this provider key of the agent.
    pub fn approval(&self, provider_key: &str) -> Does {
        let owner = SealedFor {
            account: "acct_1",
            agent: "bot",
            provider: &self.gate.settings.upstream.provider,
            key_id: "pk_1",
        };
        let sealed = self.gate.sealer.seal(&owner, &SecretString::from(provider_key));
        text(&format!("ok 1 8 pk_1 {} free", sealed.unwrap()))
    }

    /// A call that was read.
    pub fn wanted(&self) -> Wanted {
        Wanted {
            run: Run {
                id: "r".to_owned(),
                named: true,
            },
            model: "gpt-4o".to_owned(),
            service_tier: None,
            web_search: false,
            prices: self.gate.prices.load_full(),
            estimate: Nanos::new(ESTIMATE),
        }
    }

    /// The key of the call.
    pub fn known(&self) -> Arc<KnownKey> {
        let owner = VirtualKeyOwner::new("acct_1", "bot", "vk_1");
        Arc::new(KnownKey::new(owner, Arc::default()))
    }

    /// The body of the call.
    pub fn body(&self) -> Body {
        Body {
            bytes: Bytes::from_static(b"{}"),
            share: Share::new(Arc::clone(&self.gate.body_room), Arc::default()),
        }
    }
}
