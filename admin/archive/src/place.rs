//! Where archived segments and checkpoints lie (`audit.archive`): a directory, or a bucket of an S3-compatible service.
//!
//! Objects appear and are replaced as a whole: a reader sees the old bytes or the new ones. What was put is durable:
//! files are synced to disk, with the directories that name them, before `put` returns.

use bytes::Bytes;
use futures::TryStreamExt;
use nix::sys::stat::{Mode, umask};
use object_store::aws::{AmazonS3Builder, AmazonS3ConfigKey};
use object_store::local::LocalFileSystem;
use object_store::path::Path;
use object_store::{BackoffConfig, ClientOptions, ObjectStore, ObjectStoreExt, RetryConfig};
use secrecy::ExposeSecret;
use settings::{AuditSettings, BadSettings};
use std::sync::Arc;
use std::time::Duration;

/// Longest time for one operation, its retries included.
const DEADLINE: Duration = Duration::from_secs(60);
/// Longest time for one request to the service.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(20);
/// Longest time to connect to it.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(3);
/// Times that a request is repeated when the service fails or does not answer.
const RETRIES: usize = 3;
/// Time after which a request is not repeated any more.
const RETRY_TIMEOUT: Duration = Duration::from_secs(30);
/// Pauses between repetitions.
const PAUSES: [Duration; 2] = [Duration::from_millis(100), Duration::from_secs(2)];
/// The longest object that is read.
pub const OBJECT_BYTES_MAX: u64 = 256 << 20;
/// Most names that one list holds.
pub const NAMES_MAX: usize = 1_000_000;
/// Longest part of a failure's text that is shown, in characters: a service may answer with a page.
const CAUSE_MAX: usize = 300;
/// How the name of a bucket begins.
const S3: &str = "s3://";

/// Permissions that no file of the process has from the moment that it has a directory as archive: what is written
/// there is for its owner alone, files 0600 and folders 0700. The mask is the process's, so that no file is open to
/// others for a moment.
const OTHERS: Mode = Mode::S_IRWXG.union(Mode::S_IRWXO);

/// An archive.
#[derive(Debug, Clone)]
pub struct Place {
    objects: Arc<dyn ObjectStore>,
    /// What all paths begin with.
    base: Path,
}

/// The archive did not do what it should.
#[derive(Debug, thiserror::Error)]
#[error("the archive cannot {what} `{path}`: {cause}")]
pub struct PlaceError {
    /// `write`, `read` or `list`.
    what: &'static str,
    /// Which object, or which part of the archive.
    path: String,
    cause: String,
}

impl Place {
    /// The place that the settings name. A directory is made when something is put there first.
    ///
    /// # Errors
    /// [`BadSettings`] names the key.
    pub fn of(settings: &AuditSettings) -> Result<Self, BadSettings> {
        match settings.archive.strip_prefix(S3) {
            Some(name) => Self::bucket(settings, name),
            None => Self::directory(&settings.archive),
        }
    }

    fn directory(name: &str) -> Result<Self, BadSettings> {
        let bad = |why: &str| BadSettings(format!("audit.archive `{name}`: {why}"));
        if name.is_empty() {
            return Err(BadSettings(
                "audit.archive must name a directory or s3://bucket/prefix".to_owned(),
            ));
        }
        if name.contains("://") {
            return Err(bad("it must be a directory or start with s3://"));
        }
        let path = std::path::absolute(name).map_err(|error| bad(&error.to_string()))?;
        if path.exists() && !path.is_dir() {
            return Err(bad("it is there and no directory"));
        }
        let base = Path::from_absolute_path(&path).map_err(|error| bad(&brief(&error.to_string())))?;
        umask(OTHERS);
        Ok(Self {
            objects: Arc::new(LocalFileSystem::new().with_fsync(true)),
            base,
        })
    }

    fn bucket(settings: &AuditSettings, name: &str) -> Result<Self, BadSettings> {
        let (bucket, prefix) = name.split_once('/').unwrap_or((name, ""));
        if bucket.is_empty() {
            return Err(BadSettings("audit.archive must be s3://bucket/prefix".to_owned()));
        }
        let prefix = Path::parse(prefix.trim_end_matches('/'));
        let base =
            prefix.map_err(|error| BadSettings(format!("audit.archive: {}", brief(&error.to_string()))))?;
        for (key, value) in [
            ("s3_region", settings.s3_region.as_str()),
            ("s3_access_key_id", &settings.s3_access_key_id),
            (
                "s3_secret_access_key",
                settings.s3_secret_access_key.expose_secret(),
            ),
        ] {
            if value.is_empty() {
                return Err(BadSettings(format!(
                    "audit.{key} is missing: audit.archive is a bucket"
                )));
            }
        }
        let endpoint = settings.s3_endpoint.trim_end_matches('/');
        let plain = endpoint.starts_with("http://");
        if !(endpoint.is_empty() || plain || endpoint.starts_with("https://")) {
            return Err(BadSettings(
                "audit.s3_endpoint must start with https:// or http://".to_owned(),
            ));
        }
        // Whoever speaks TLS needs a provider of cryptography; the first one installed stays.
        drop(rustls::crypto::ring::default_provider().install_default());
        let mut builder = AmazonS3Builder::new()
            .with_bucket_name(bucket)
            .with_region(&settings.s3_region)
            .with_access_key_id(&settings.s3_access_key_id)
            .with_secret_access_key(settings.s3_secret_access_key.expose_secret())
            .with_client_options(client(plain))
            .with_retry(retry());
        if !endpoint.is_empty() {
            builder = builder.with_config(AmazonS3ConfigKey::Endpoint, endpoint);
        }
        let objects = builder.build().map_err(|error| {
            let text = brief(&error.to_string());
            BadSettings(format!("audit.archive, audit.s3_endpoint: {text}"))
        })?;
        Ok(Self {
            objects: Arc::new(objects),
            base,
        })
    }

    /// Puts `bytes` under `path`, in place of what is there.
    ///
    /// # Errors
    /// [`PlaceError`]; the object may be there all the same.
    pub async fn put(&self, path: &str, bytes: Vec<u8>) -> Result<(), PlaceError> {
        let writing = async {
            let at = self.at(path)?;
            self.objects.put(&at, bytes.into()).await.map(drop)
        };
        within("write", path, writing).await
    }

    /// The object under `path`, or `None` when there is none.
    ///
    /// # Errors
    /// [`PlaceError`], also for an object longer than [`OBJECT_BYTES_MAX`].
    pub async fn get(&self, path: &str) -> Result<Option<Bytes>, PlaceError> {
        let reading = async {
            let found = match self.objects.get(&self.at(path)?).await {
                Err(object_store::Error::NotFound { .. }) => return Ok(None),
                found => found?,
            };
            if found.meta.size > OBJECT_BYTES_MAX {
                return Err(beyond("it is longer than any segment"));
            }
            found.bytes().await.map(Some)
        };
        within("read", path, reading).await
    }

    /// The paths of all objects below `prefix`, a path that ends where a name ends, sorted.
    ///
    /// # Errors
    /// [`PlaceError`], also for more than [`NAMES_MAX`] of them.
    pub async fn list(&self, prefix: &str) -> Result<Vec<String>, PlaceError> {
        let listing = async {
            let below = self.at(prefix.trim_end_matches('/'))?;
            let skipped = match self.base.as_ref().len() {
                0 => 0,
                length => length + 1,
            };
            let mut names = Vec::new();
            let mut found = self.objects.list(Some(&below));
            while let Some(object) = found.try_next().await? {
                if names.len() == NAMES_MAX {
                    return Err(beyond("there are too many names"));
                }
                let name = object.location.as_ref().get(skipped..);
                names.extend(name.map(str::to_owned));
            }
            names.sort_unstable();
            Ok(names)
        };
        within("list", prefix, listing).await
    }

    /// The whole path of an object.
    fn at(&self, path: &str) -> object_store::Result<Path> {
        let path = Path::parse(path)?;
        Ok(self.base.parts().chain(path.parts()).collect())
    }
}

fn client(plain: bool) -> ClientOptions {
    ClientOptions::new()
        .with_allow_http(plain)
        .with_timeout(REQUEST_TIMEOUT)
        .with_connect_timeout(CONNECT_TIMEOUT)
}

fn retry() -> RetryConfig {
    RetryConfig {
        backoff: BackoffConfig {
            init_backoff: PAUSES[0],
            max_backoff: PAUSES[1],
            base: 2.0,
        },
        max_retries: RETRIES,
        retry_timeout: RETRY_TIMEOUT,
    }
}

fn beyond(what: &'static str) -> object_store::Error {
    object_store::Error::Generic {
        store: "archive",
        source: what.into(),
    }
}

/// Runs an operation with a deadline.
async fn within<T>(
    what: &'static str,
    path: &str,
    operation: impl Future<Output = object_store::Result<T>>,
) -> Result<T, PlaceError> {
    let failed = |cause: &str| PlaceError {
        what,
        path: path.to_owned(),
        cause: brief(cause),
    };
    match tokio::time::timeout(DEADLINE, operation).await {
        Ok(done) => done.map_err(|error| failed(&error.to_string())),
        Err(_elapsed) => Err(failed("it took too long")),
    }
}

/// One line of bounded length.
fn brief(text: &str) -> String {
    let words: Vec<&str> = text.split_whitespace().collect();
    let line = words.join(" ");
    line.chars()
        .filter(|character| !character.is_control())
        .take(CAUSE_MAX)
        .collect()
}

#[cfg(test)]
mod tests;
