//! Password rules, and the argon2id hash, the only form in which a password is stored. A hash takes 19 MiB and tens of
//! milliseconds, so a server computes only a few concurrently, outside the threads that answer requests.
//!
//! Uses neither the store nor HTTP.

mod hashing_threads;

use argon2::password_hash::{Output, PasswordHash, SaltString};
use argon2::{Algorithm, Argon2, Block, Params, Version};
use crypto::virtual_key::CheckSecret;
use entropy::random_bytes;
use hashing_threads::HashingThreads;
use keyed_limit::{KeyedLimiter, QueueFull};
use secrecy::{ExposeSecret, SecretString};
use std::num::NonZeroUsize;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::Semaphore;
use unicode_normalization::UnicodeNormalization as _;

/// Shortest password, in characters.
pub const SHORTEST: usize = 8;
/// Longest password, in bytes.
pub const LONGEST: usize = 1024;
/// Maximum number of concurrent hashes; fewer if there are fewer cores.
const AT_ONCE: NonZeroUsize = NonZeroUsize::new(8).unwrap();
/// Maximum number of waiting requests. Each holds a connection, and a flood of guesses must leave connections to
/// others.
const WAITING_MAX: usize = 256;
/// Those of one origin among them.
const WAITING_OF_ONE_MAX: usize = WAITING_MAX / 4;
/// Longest wait for one's turn.
pub const TURN: Duration = Duration::from_secs(10);

/// Longest salt of a hash in PHC form, in bytes.
const SALT_BYTES_MAX: usize = 48;

/// Checks that a text can be a password. The error is the reason why not.
pub fn require(password: &str) -> Result<(), &'static str> {
    match (password.chars().count() >= SHORTEST, password.len() <= LONGEST) {
        (true, true) => Ok(()),
        (false, _) => Err("the password must have at least 8 characters"),
        (_, false) => Err("the password must have at most 1024 bytes"),
    }
}

/// A password could not be hashed.
#[derive(Debug, thiserror::Error)]
#[error("the password could not be hashed")]
pub struct HashFailed;

/// Why a server did not hash or verify a password. The log has the cause.
#[derive(Debug, thiserror::Error)]
pub enum NotHashed {
    /// Too many requests wait for their hashes.
    #[error("too many passwords are hashed at once")]
    Busy,
    /// There was not enough memory.
    #[error(transparent)]
    Failed(#[from] HashFailed),
    /// The hashing thread panicked.
    #[error("hashing a password failed")]
    Panicked,
}

/// Salt of a password: 16 bytes derived from an e-mail address, in a way that only this installation can compute. All
/// users with the address have the same salt, so that one hash shows for which of them a password is correct, and
/// signing in takes the same time for any number of users (decision D74).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Salt([u8; 16]);

impl Salt {
    /// Returns the salt of the users of this e-mail.
    pub fn new(secret: &CheckSecret, email: &str) -> Self {
        Self(secret.derive(&["password-salt", email]).to_be_bytes())
    }
}

/// Computes the argon2id hash of a password in PHC form.
///
/// # Errors
/// [`HashFailed`] without memory.
pub fn hash(password: &SecretString, salt: Salt) -> Result<String, HashFailed> {
    hash_in(password, salt, &mut Memory::default())
}

fn hash_in(password: &SecretString, salt: Salt, memory: &mut Memory) -> Result<String, HashFailed> {
    let salt = SaltString::encode_b64(&salt.0).map_err(|_| HashFailed)?;
    let params = Params::default();
    let mut way = PasswordHash {
        algorithm: Algorithm::default().ident(),
        version: Some(Version::default().into()),
        params: (&params).try_into().map_err(|_| HashFailed)?,
        salt: Some(salt.as_salt()),
        hash: None,
    };
    way.hash = compute(password, &way, memory);
    way.hash.ok_or(HashFailed).map(|_| way.to_string())
}

/// Memory for computing hashes, 19 MiB with the current parameters. Each [hashing thread](HashingThreads) reuses its
/// own.
#[derive(Default)]
struct Memory(Vec<Block>);

impl std::fmt::Debug for Memory {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Memory({} KiB)", self.0.len())
    }
}

impl Memory {
    /// Returns the blocks that these parameters need.
    fn blocks(&mut self, params: &Params) -> &mut [Block] {
        let count = params.block_count();
        if self.0.len() < count {
            self.0.resize(count, Block::default());
        }
        &mut self.0[..count]
    }
}

/// Returns which of the hashes the password matches. The work is the same for none, one or many hashes of one e-mail
/// address, which have one salt: a user whose hash is made otherwise must name its account to sign in.
fn right_for(password: &SecretString, hashes: &[String], dummy_hash: &str, memory: &mut Memory) -> Vec<bool> {
    let parsed: Vec<Option<PasswordHash<'_>>> =
        hashes.iter().map(|hash| PasswordHash::new(hash).ok()).collect();
    // If no hash can be parsed, the work is done for the dummy.
    let dummy_hash = PasswordHash::new(dummy_hash).ok();
    let way = parsed.iter().flatten().next().or(dummy_hash.as_ref());
    let output = way.and_then(|way| compute(password, way, memory));
    let is_right = |hash: &PasswordHash<'_>| {
        let is_computed = way.is_some_and(|way| is_alike(way, hash));
        is_computed && output.is_some() && output == hash.hash
    };
    parsed
        .iter()
        .map(|hash| hash.as_ref().is_some_and(is_right))
        .collect()
}

/// Returns whether a password has the same hash under both.
fn is_alike(one: &PasswordHash<'_>, other: &PasswordHash<'_>) -> bool {
    let of = |hash: &PasswordHash<'_>| (hash.algorithm.to_string(), hash.version, hash.params.to_string());
    one.salt == other.salt && of(one) == of(other)
}

/// Computes the hash of a password with the parameters of `way`. Outputs are compared in constant time. The password
/// counts in its composed form (NFC): systems differ in the form that their keyboards give.
fn compute(password: &SecretString, way: &PasswordHash<'_>, memory: &mut Memory) -> Option<Output> {
    let password = SecretString::from(password.expose_secret().nfc().collect::<String>());
    let params = Params::try_from(way).ok()?;
    let algorithm = Algorithm::try_from(way.algorithm).ok()?;
    let version = way.version.map(Version::try_from).transpose().ok()?;
    let length = params.output_len().unwrap_or(Params::DEFAULT_OUTPUT_LEN);
    let mut salt = [0; SALT_BYTES_MAX];
    let salt = way.salt?.decode_b64(&mut salt).ok()?;
    let blocks = memory.blocks(&params);
    let argon2 = Argon2::new(algorithm, version.unwrap_or_default(), params);
    Output::init_with(length, |output| {
        let made =
            argon2.hash_password_into_with_memory(password.expose_secret().as_bytes(), salt, output, blocks);
        made.map_err(|_| argon2::password_hash::Error::Crypto)
    })
    .ok()
}

/// Hashes and verifies passwords for a server.
#[derive(Debug)]
pub struct Passwords {
    /// As many permits as there are threads.
    room: Arc<Semaphore>,
    threads: HashingThreads,
    /// Permits of waiting requests.
    line: Semaphore,
    /// Limit for each origin: at most half of the concurrent hashes. Its further requests queue, so that others keep
    /// the other half.
    origins: KeyedLimiter,
    /// Hash that is verified for unknown users, so that they take as long as known ones.
    dummy_hash: String,
}

impl Passwords {
    /// Starts the hashing threads, and computes the dummy hash.
    ///
    /// # Errors
    /// [`HashFailed`] without memory, randomness or threads. The log has the cause.
    pub fn new() -> Result<Self, HashFailed> {
        let cores = std::thread::available_parallelism().unwrap_or(NonZeroUsize::MIN);
        let at_once = cores.min(AT_ONCE);
        let threads = HashingThreads::start(at_once).map_err(|error| {
            tracing::error!(%error, "no thread that hashes passwords");
            HashFailed
        })?;
        let password = hex::encode(random_bytes::<32>().map_err(|_| HashFailed)?);
        Ok(Self {
            room: Arc::new(Semaphore::new(at_once.get())),
            threads,
            line: Semaphore::new(WAITING_MAX),
            origins: KeyedLimiter::new((at_once.get() / 2).max(1), WAITING_OF_ONE_MAX),
            dummy_hash: hash(&password.into(), Salt([0; 16]))?,
        })
    }

    /// The hash of a new password, for `origin`: the account that the user belongs to, or the address of a client whose
    /// account is not known yet.
    ///
    /// # Errors
    /// [`NotHashed::Busy`] when the server or the origin has too many to make.
    pub async fn hash(&self, origin: &str, password: SecretString, salt: Salt) -> Result<String, NotHashed> {
        self.off_thread(origin, move |memory| hash_in(&password, salt, memory))
            .await?
            .map_err(|error| {
                tracing::error!(%error, "no hash");
                error.into()
            })
    }

    /// Returns, for each of these hashes (those of the users of one e-mail), whether the password matches. Takes the
    /// same time if there are none. `origin` is as for [`hash`](Self::hash).
    ///
    /// # Errors
    /// [`NotHashed::Busy`] when the server or the origin has too many to verify.
    pub async fn right_for(
        &self,
        origin: &str,
        password: SecretString,
        hashes: Vec<String>,
    ) -> Result<Vec<bool>, NotHashed> {
        let dummy_hash = self.dummy_hash.clone();
        self.off_thread(origin, move |memory| {
            right_for(&password, &hashes, &dummy_hash, memory)
        })
        .await
    }

    async fn off_thread<T: Send + 'static>(
        &self,
        origin: &str,
        work: impl FnOnce(&mut Memory) -> T + Send + 'static,
    ) -> Result<T, NotHashed> {
        let too_many = || {
            tracing::warn!("too many passwords at once");
            NotHashed::Busy
        };
        let of_origin = self.origins.enter(origin).map_err(|QueueFull| too_many())?;
        let place = self.line.try_acquire().map_err(|_| too_many())?;
        let turn = async {
            let own = of_origin.acquire().await?;
            let turn = Arc::clone(&self.room).acquire_owned().await.ok()?;
            Some((own, turn))
        };
        let Ok(Some(turn)) = tokio::time::timeout(TURN, turn).await else {
            return Err(too_many());
        };
        drop(place);
        let work = move |memory: &mut Memory| {
            let done = work(memory);
            drop(turn);
            done
        };
        self.threads.compute(work).await.ok_or_else(|| {
            tracing::error!("hashing a password panicked");
            NotHashed::Panicked
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::task::Poll;

    const SALT: Salt = Salt([7; 16]);

    fn right(password: &str, hashes: &[&str]) -> Vec<bool> {
        let hashes: Vec<String> = hashes.iter().map(|hash| (*hash).to_owned()).collect();
        let dummy_hash = hash(&"nobody".into(), Salt([0; 16])).unwrap();
        right_for(&password.into(), &hashes, &dummy_hash, &mut Memory::default())
    }

    #[test]
    fn a_password_is_right_for_those_who_have_it() {
        let of = |password: &str, salt| hash(&password.into(), salt).unwrap();
        let first = of("correct horse", SALT);
        assert!(first.starts_with("$argon2id$v=19$m=19456,t=2,p=1$"));
        assert_ne!(first, of("correct horse", Salt([8; 16])));
        let (other, elsewhere) = (of("wrong horse", SALT), of("correct horse", Salt([9; 16])));
        assert_eq!(
            right("correct horse", &["no hash", &first, &other, &elsewhere, &first]),
            [false, true, false, false, true]
        );
        assert_eq!(right("wrong horse", &[&first, &other]), [false, true]);
        assert_eq!(right("another", &[&first, &other]), [false, false]);
        assert_eq!(right("correct horse", &[]), [false; 0]);
        assert_eq!(right("correct horse", &["no hash"]), [false]);
    }

    #[test]
    fn a_password_is_the_same_in_both_forms_of_its_letters() {
        let [composed, decomposed] = ["p\u{e4}ssw\u{f6}rd", "pa\u{308}sswo\u{308}rd"];
        let stored = hash(&composed.into(), Salt([1; 16])).unwrap();
        assert_eq!(right(decomposed, &[&stored]), [true]);
        assert_eq!(right("passwordx", &[&stored]), [false]);
    }

    #[test]
    fn each_e_mail_has_a_salt_of_its_own_in_each_installation() {
        let secret = |byte: &str| CheckSecret::from_stored(byte.repeat(32));
        let salt = Salt::new(&secret("00"), "a@example.com");
        assert_eq!(salt, Salt::new(&secret("00"), "a@example.com"));
        assert_ne!(salt, Salt::new(&secret("00"), "b@example.com"));
        assert_ne!(salt, Salt::new(&secret("01"), "a@example.com"));
    }

    #[test]
    fn passwords_have_bounds() {
        assert_eq!(require("12345678"), Ok(()));
        assert_eq!(require(&"x".repeat(LONGEST)), Ok(()));
        assert!(require("1234567").is_err() && require("ééééééé").is_err());
        assert!(require(&"x".repeat(LONGEST + 1)).is_err());
    }

    #[tokio::test]
    async fn waiting_requests_are_bounded_and_the_next_is_refused_at_once() {
        let passwords = Passwords::new().unwrap();
        let cores = u32::try_from(passwords.room.available_permits()).unwrap();
        let busy = passwords.room.acquire_many(cores).await.unwrap();
        let hash = |origin| Box::pin(passwords.hash(origin, "correct horse".into(), SALT));
        let mut waiting = Vec::new();
        let refused = async |origin| {
            let Poll::Ready(Err(error)) = futures::poll!(hash(origin)) else {
                panic!("one more waits");
            };
            assert!(matches!(error, NotHashed::Busy));
        };
        for origin in ["a", "b", "c", "d"] {
            for _ in 0..WAITING_OF_ONE_MAX {
                let mut one = hash(origin);
                assert!(futures::poll!(&mut one).is_pending());
                waiting.push(one);
            }
            // The others still find a place.
            refused(origin).await;
        }
        refused("e").await;
        drop(waiting);
        drop(busy);
        assert!(hash("a").await.is_ok(), "who gave up has left the line");
    }

    #[tokio::test]
    async fn no_origin_takes_the_turns_of_the_others() {
        let passwords = Passwords::new().unwrap();
        let hash = |origin| Box::pin(passwords.hash(origin, "correct horse".into(), SALT));
        let mut many: Vec<_> = (0..WAITING_OF_ONE_MAX).map(|_| hash("many")).collect();
        for one in &mut many {
            assert!(futures::poll!(one).is_pending());
        }
        assert!(hash("other").await.is_ok());
        let mut left = 0;
        for one in &mut many {
            left += usize::from(futures::poll!(one).is_pending());
        }
        // Nobody polled the turns of the others meanwhile: those that were under way are done, at most.
        assert!(left >= WAITING_OF_ONE_MAX - AT_ONCE.get(), "{left}");
    }
}
