//! Options to start the product's servers: binary, environment, and the readiness check.

use crate::seed::TEST_MASTER_KEY;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// The repository's tables, as an absolute path, since the processes run in directories of their own.
const CONFIG_DIR: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../config");

/// A server's timeout for its store, in ms. A store that is slow because the machine is busy must not count as down;
/// tests of a hanging store set a shorter one.
const STORE_TIMEOUT_MS: &str = "10000";

/// A limit of requests per minute that no test reaches.
const UNHURRIED: &str = "10000000";

/// Settings of an edge.
#[derive(Debug, Clone)]
pub struct EdgeOptions {
    pub(crate) binary: PathBuf,
    pub(crate) env: BTreeMap<String, String>,
    pub(crate) args: Vec<String>,
    pub(crate) ready_path: &'static str,
}

/// Settings of an admin server.
#[derive(Debug, Clone)]
pub struct AdminOptions {
    pub(crate) binary: PathBuf,
    pub(crate) env: BTreeMap<String, String>,
    pub(crate) ready_path: &'static str,
}

pub(crate) fn common_env(redis_url: &str) -> BTreeMap<String, String> {
    let config = Path::new(CONFIG_DIR);
    let file = |name: &str| config.join(name).display().to_string();
    let pairs = [
        ("TOLLGATE_STORE__URL", redis_url.to_owned()),
        ("TOLLGATE_STORE__TIMEOUT_MS", STORE_TIMEOUT_MS.to_owned()),
        ("TOLLGATE_SECRETS__MASTER_KEY", TEST_MASTER_KEY.to_owned()),
        ("TOLLGATE_PLANS__FILE", file("plans.toml")),
        ("TOLLGATE_PRICES__FILE", file("prices.toml")),
        ("PATH", std::env::var("PATH").unwrap_or_default()),
        ("RUST_BACKTRACE", "1".to_owned()),
    ];
    pairs.map(|(name, value)| (name.to_owned(), value)).into()
}

impl EdgeOptions {
    /// An edge from `binary`, `env!("CARGO_BIN_EXE_tollgate-proxy")` in a test, with the store at `redis_url` and the
    /// provider at `upstream_base_url`.
    pub fn new(binary: &str, redis_url: impl AsRef<str>, upstream_base_url: impl Into<String>) -> Self {
        let options = Self {
            binary: binary.into(),
            env: common_env(redis_url.as_ref()),
            args: Vec::new(),
            ready_path: "/readyz",
        };
        options
            .env("TOLLGATE_UPSTREAM__BASE_URL", upstream_base_url)
            .env("TOLLGATE_PROXY__THREADS", "2")
    }

    /// Sets an environment variable: any setting of `config/tollgate.toml` as `TOLLGATE_<SECTION>__<KEY>`, also the
    /// addresses and `data_dir` that the harness chooses.
    #[must_use]
    pub fn env(mut self, name: &str, value: impl Into<String>) -> Self {
        self.env.insert(name.to_owned(), value.into());
        self
    }

    /// Adds an argument.
    #[must_use]
    pub fn arg(mut self, argument: &str) -> Self {
        self.args.push(argument.to_owned());
        self
    }

    /// Waits only until the process is alive, not until it is ready: for tests that start without a store.
    #[must_use]
    pub const fn until_alive(mut self) -> Self {
        self.ready_path = "/livez";
        self
    }
}

impl AdminOptions {
    /// An admin server from `binary`, `env!("CARGO_BIN_EXE_tollgate-admin")` in a test, with the store at `redis_url`.
    pub fn new(binary: &str, redis_url: impl AsRef<str>) -> Self {
        let options = Self {
            binary: binary.into(),
            env: common_env(redis_url.as_ref()),
            ready_path: "/readyz",
        };
        // Tests call faster than people. Tests of these limits set lower ones.
        options
            .env("TOLLGATE_LIMITS__TEST_REQUESTS_PER_MINUTE", UNHURRIED)
            .env("TOLLGATE_LIMITS__SESSION_REQUESTS_PER_MINUTE", UNHURRIED)
    }

    /// Sets an environment variable.
    #[must_use]
    pub fn env(mut self, name: &str, value: impl Into<String>) -> Self {
        self.env.insert(name.to_owned(), value.into());
        self
    }

    /// Waits only until the process is alive, not until it is ready.
    #[must_use]
    pub const fn until_alive(mut self) -> Self {
        self.ready_path = "/livez";
        self
    }
}
