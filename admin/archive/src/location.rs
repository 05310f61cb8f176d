//! Location of archived segments and checkpoints (`audit.archive`): a directory, or a bucket of an S3-compatible
//! service.
//!
//! Objects are created and replaced atomically: a reader sees the old bytes or the new ones. A written object is
//! durable: files, and the directories that contain them, are synced to disk before `put` returns.

use bytes::Bytes;
use futures::TryStreamExt;
use nix::sys::stat::{Mode, umask};
use nix::unistd::Uid;
use object_store::aws::{AmazonS3Builder, AmazonS3ConfigKey};
use object_store::local::LocalFileSystem;
use object_store::path::Path;
use object_store::{BackoffConfig, ClientOptions, ObjectStore, ObjectStoreExt, RetryConfig};
use secrecy::ExposeSecret;
use settings::{AuditSettings, BadSettings};
use std::io;
use std::os::unix::fs::{MetadataExt as _, lchown};
use std::sync::Arc;
use std::time::Duration;

/// Longest time for one operation, including its retries.
const DEADLINE: Duration = Duration::from_secs(60);
/// Longest time for one request to the service.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(20);
/// Longest time for connecting to it.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(3);
/// Number of retries of a request if the service fails or does not reply.
const RETRIES: usize = 3;
/// Time after which a request is not retried any more.
const RETRY_TIMEOUT: Duration = Duration::from_secs(30);
/// Pauses between repetitions.
const PAUSES: [Duration; 2] = [Duration::from_millis(100), Duration::from_secs(2)];
/// Longest object that is read, in bytes.
pub const OBJECT_BYTES_MAX: u64 = 256 << 20;
/// Maximum number of names in one list.
pub const NAMES_MAX: usize = 1_000_000;
/// Maximum number of characters of a failure's text that are shown: a service may reply with a whole page.
const CAUSE_MAX: usize = 300;
/// Prefix of the name of a bucket.
const S3: &str = "s3://";

/// Permissions that the process removes from all its new files once its archive is a directory: archive files are 0600
/// and folders 0700. The umask applies to the whole process, so no file is accessible to others at any time.
const OTHERS: Mode = Mode::S_IRWXG.union(Mode::S_IRWXO);

/// Location of an archive: a directory, or a part of a bucket.
#[derive(Debug, Clone)]
pub struct ArchiveLocation {
    objects: Arc<dyn ObjectStore>,
    /// The same, if the archive is a directory.
    files: Option<Arc<LocalFileSystem>>,
    /// Common prefix of all paths.
    base: Path,
}

/// A failed operation of the archive.
#[derive(Debug, thiserror::Error)]
#[error("the archive cannot {what} `{path}`: {cause}")]
pub struct LocationError {
    /// `write`, `read` or `list`.
    what: &'static str,
    /// The object, or the part of the archive.
    path: String,
    cause: String,
    /// Returns true if the location replied, and its object at the path cannot be one of an archive.
    is_damage: bool,
}

impl LocationError {
    /// Returns whether the file at the path cannot be an object of an archive, as opposed to a location that could not
    /// be read or written.
    pub const fn is_damage(&self) -> bool {
        self.is_damage
    }
}

impl ArchiveLocation {
    /// Opens the configured location. A directory is created with the first object.
    ///
    /// # Errors
    /// [`BadSettings`] with the key.
    pub fn from_settings(settings: &AuditSettings) -> Result<Self, BadSettings> {
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
        let files = Arc::new(LocalFileSystem::new().with_fsync(true));
        Ok(Self {
            objects: Arc::clone(&files) as Arc<dyn ObjectStore>,
            files: Some(files),
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
        // TLS needs a process-wide crypto provider. The first one installed stays.
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
            files: None,
            base,
        })
    }

    /// Writes `bytes` to `path`, replacing existing content. Files and folders that root writes belong to the owner of
    /// the archive's directory, as all others do.
    ///
    /// # Errors
    /// [`LocationError`]; the object may have been written nevertheless.
    pub async fn put(&self, path: &str, bytes: Vec<u8>) -> Result<(), LocationError> {
        let writing = async {
            let at = self.at(path)?;
            self.objects.put(&at, bytes.into()).await?;
            match Uid::effective().is_root() {
                true => self.give_to_owner(&at),
                false => Ok(()),
            }
        };
        within("write", path, writing).await
    }

    /// Reads the object at `path`; `None` if there is none.
    ///
    /// # Errors
    /// [`LocationError`], also for an object longer than [`OBJECT_BYTES_MAX`].
    pub async fn get(&self, path: &str) -> Result<Option<Bytes>, LocationError> {
        let reading = async {
            let at = self.at(path)?;
            self.refuse_pipe(&at).await?;
            let found = match self.objects.get(&at).await {
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

    /// Returns the paths of all objects below `prefix`, a path that ends where a name ends, sorted.
    ///
    /// # Errors
    /// [`LocationError`], also for more than [`NAMES_MAX`] objects.
    pub async fn list(&self, prefix: &str) -> Result<Vec<String>, LocationError> {
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

    /// Gives a new file of root, and the folders around it, to the owner of the archive's directory: root runs the
    /// operator's commands, and the admin server and the backup could not read its files.
    fn give_to_owner(&self, at: &Path) -> object_store::Result<()> {
        let Some(files) = &self.files else {
            return Ok(());
        };
        let named = |source: io::Error| object_store::Error::Generic {
            store: "archive",
            source: format!("its owner cannot be set: {source}").into(),
        };
        let mut below = files.path_to_filesystem(&self.base)?;
        let owner = std::fs::metadata(&below).map_err(named)?;
        for part in at.parts().skip(self.base.parts().count()) {
            below.push(part.as_ref());
            let about = std::fs::symlink_metadata(&below).map_err(named)?;
            // The owner could have put a link there, to a file of root.
            if about.is_symlink() {
                break;
            }
            if about.uid() == Uid::effective().as_raw() && owner.uid() != about.uid() {
                lchown(&below, Some(owner.uid()), Some(owner.gid())).map_err(named)?;
            }
        }
        Ok(())
    }

    /// Returns the names of the folders in the folder `prefix`, sorted, without reading their contents.
    ///
    /// # Errors
    /// [`LocationError`], also for more than [`NAMES_MAX`] folders.
    pub async fn folders(&self, prefix: &str) -> Result<Vec<String>, LocationError> {
        let listing = async {
            let below = self.at(prefix.trim_end_matches('/'))?;
            let found = self.objects.list_with_delimiter(Some(&below)).await?;
            if found.common_prefixes.len() > NAMES_MAX {
                return Err(beyond("there are too many names"));
            }
            let names = found.common_prefixes.iter();
            let mut names: Vec<String> = names
                .filter_map(|path| path.filename().map(str::to_owned))
                .collect();
            names.sort_unstable();
            Ok(names)
        };
        within("list", prefix, listing).await
    }

    /// Returns whether the archive is a directory that does not exist.
    pub(crate) async fn is_missing(&self) -> bool {
        let path = self
            .files
            .as_ref()
            .and_then(|files| files.path_to_filesystem(&self.base).ok());
        match path {
            Some(path) => tokio::fs::try_exists(path).await.is_ok_and(|exists| !exists),
            None => false,
        }
    }

    /// Refuses a path that is neither a file nor a directory: opening a pipe waits until somebody writes to it, and no
    /// deadline ends that.
    async fn refuse_pipe(&self, at: &Path) -> object_store::Result<()> {
        let Some(files) = &self.files else {
            return Ok(());
        };
        match tokio::fs::metadata(files.path_to_filesystem(at)?).await {
            Ok(found) if !found.is_file() && !found.is_dir() => Err(beyond("it is no file")),
            _ => Ok(()),
        }
    }

    /// Returns the whole path of an object.
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

/// Name in errors of a file that cannot be an object of an archive.
const OURS: &str = "archive";

fn beyond(what: &'static str) -> object_store::Error {
    object_store::Error::Generic {
        store: OURS,
        source: what.into(),
    }
}

/// Runs an operation with a deadline.
async fn within<T>(
    what: &'static str,
    path: &str,
    operation: impl Future<Output = object_store::Result<T>>,
) -> Result<T, LocationError> {
    let failed = |cause: &str, is_damage: bool| LocationError {
        what,
        path: path.to_owned(),
        cause: brief(cause),
        is_damage,
    };
    match tokio::time::timeout(DEADLINE, operation).await {
        Ok(done) => done.map_err(|error| {
            let is_damage = matches!(&error, object_store::Error::Generic { store: OURS, .. });
            failed(&error.to_string(), is_damage)
        }),
        Err(_elapsed) => Err(failed("it took too long", false)),
    }
}

/// Returns one line of bounded length.
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
