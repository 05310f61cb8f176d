//! Passwords: what is one, and the argon2id hash as which alone it is kept. A hash costs 19 MiB and tens of milliseconds, so a
//! server makes a few at a time, off the threads that answer.

use crate::problem::{Code, Problem};
use argon2::Argon2;
use argon2::password_hash::{PasswordHash, PasswordHasher, PasswordVerifier, SaltString};
use secrecy::{ExposeSecret, SecretString};
use shared::entropy::random_bytes;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::Semaphore;

/// Shortest password, in characters.
pub const SHORTEST: usize = 8;
/// Longest password, in bytes.
pub const LONGEST: usize = 1024;
/// Hashes that are made at once, at most; fewer where there are fewer cores.
const AT_ONCE: usize = 8;
/// Requests that wait for their turn, at most. Each holds a connection, and a flood of guesses must leave the others theirs.
const WAITING_MAX: usize = 256;
/// Longest wait for one's turn.
const TURN: Duration = Duration::from_secs(10);

/// Why a text can be no password.
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

/// The argon2id hash of a password, with a salt of its own, in PHC form.
///
/// # Errors
/// [`HashFailed`] without randomness or memory.
pub fn hash(password: &SecretString) -> Result<String, HashFailed> {
    let salt = random_bytes::<16>().map_err(|_| HashFailed)?;
    let salt = SaltString::encode_b64(&salt).map_err(|_| HashFailed)?;
    let hash = Argon2::default().hash_password(password.expose_secret().as_bytes(), &salt);
    hash.map(|hash| hash.to_string()).map_err(|_| HashFailed)
}

fn is_right(password: &SecretString, hash: &str) -> bool {
    PasswordHash::new(hash).is_ok_and(|hash| {
        let password = password.expose_secret().as_bytes();
        Argon2::default().verify_password(password, &hash).is_ok()
    })
}

/// Hashes and verifies passwords for a server.
#[derive(Debug)]
pub struct Passwords {
    room: Arc<Semaphore>,
    /// The places of those who wait.
    line: Semaphore,
    /// What the password of nobody is compared with, so that it takes as long as anybody's.
    nobody: String,
}

impl Passwords {
    /// Makes the hash of nobody's password.
    ///
    /// # Errors
    /// [`HashFailed`].
    pub fn new() -> Result<Self, HashFailed> {
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        let password = hex::encode(random_bytes::<32>().map_err(|_| HashFailed)?);
        Ok(Self {
            room: Arc::new(Semaphore::new(cores.min(AT_ONCE))),
            line: Semaphore::new(WAITING_MAX),
            nobody: hash(&password.into())?,
        })
    }

    /// The hash of a new password.
    ///
    /// # Errors
    /// 503 when the server has too many to make.
    pub async fn hash(&self, password: SecretString) -> Result<String, Problem> {
        self.off_thread(move || hash(&password)).await?.map_err(|error| {
            tracing::error!(%error, "no hash");
            Code::ServiceUnavailable.into()
        })
    }

    /// Whether this is the password of the hash; for nobody's it takes as long, and is not.
    ///
    /// # Errors
    /// 503 when the server has too many to verify.
    pub async fn is_right(&self, password: SecretString, hash: Option<&str>) -> Result<bool, Problem> {
        let somebody = hash.is_some();
        let hash = hash.unwrap_or(&self.nobody).to_owned();
        let right = self.off_thread(move || is_right(&password, &hash)).await?;
        Ok(right && somebody)
    }

    async fn off_thread<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, Problem> {
        let too_many = || {
            tracing::warn!("too many passwords at once");
            Problem::from(Code::ServiceUnavailable)
        };
        let place = self.line.try_acquire().map_err(|_| too_many())?;
        let turn = Arc::clone(&self.room).acquire_owned();
        let Ok(Ok(turn)) = tokio::time::timeout(TURN, turn).await else {
            return Err(too_many());
        };
        drop(place);
        let working = tokio::task::spawn_blocking(move || {
            let done = work();
            drop(turn);
            done
        });
        working.await.map_err(|error| {
            tracing::error!(%error, "hashing failed");
            Code::Internal.into()
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::task::Poll;

    #[test]
    fn hashes_verify_and_are_salted() {
        let password: SecretString = "correct horse".into();
        let (first, second) = (hash(&password).unwrap(), hash(&password).unwrap());
        assert!(first.starts_with("$argon2id$v=19$m=19456,t=2,p=1$") && first != second);
        assert!(is_right(&password, &first) && is_right(&password, &second));
        assert!(!is_right(&"wrong horse".into(), &first));
        assert!(!is_right(&password, "no hash"));
    }

    #[test]
    fn passwords_have_bounds() {
        assert_eq!(require("12345678"), Ok(()));
        assert_eq!(require(&"x".repeat(LONGEST)), Ok(()));
        assert!(require("1234567").is_err() && require("ééééééé").is_err());
        assert!(require(&"x".repeat(LONGEST + 1)).is_err());
    }

    #[tokio::test]
    async fn nobody_has_no_right_password() {
        let passwords = Passwords::new().unwrap();
        let hash = passwords.hash("correct horse".into()).await.unwrap();
        assert!(
            passwords
                .is_right("correct horse".into(), Some(&hash))
                .await
                .unwrap()
        );
        assert!(
            !passwords
                .is_right("wrong horse".into(), Some(&hash))
                .await
                .unwrap()
        );
        assert!(!passwords.is_right("correct horse".into(), None).await.unwrap());
    }

    #[tokio::test]
    async fn those_who_wait_are_bounded_and_the_next_is_told_at_once() {
        let passwords = Passwords::new().unwrap();
        let cores = u32::try_from(passwords.room.available_permits()).unwrap();
        let busy = passwords.room.acquire_many(cores).await.unwrap();
        let hash = || Box::pin(passwords.hash("correct horse".into()));
        let mut waiting: Vec<_> = (0..WAITING_MAX).map(|_| hash()).collect();
        for one in &mut waiting {
            assert!(futures::poll!(one).is_pending());
        }
        let Poll::Ready(Err(problem)) = futures::poll!(hash()) else {
            panic!("one more waits");
        };
        assert_eq!(problem.code(), Code::ServiceUnavailable);
        drop(waiting);
        drop(busy);
        assert!(hash().await.is_ok(), "who gave up has left the line");
    }
}
