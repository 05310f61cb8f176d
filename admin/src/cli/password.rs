//! Passwords: read from standard input, kept only as an argon2id hash.

use super::{Failure, stdin};
use argon2::Argon2;
use argon2::password_hash::{PasswordHasher, SaltString};
use secrecy::{ExposeSecret, SecretString};
use shared::entropy::random_bytes;

/// Shortest password, in characters.
const SHORTEST: usize = 8;
/// Longest password, in bytes; standard input is read no further.
const LONGEST: usize = 1024;

/// Reads a password: the first line of standard input.
pub(super) fn read_stdin() -> Result<SecretString, Failure> {
    let password = stdin::line("the password", LONGEST)?;
    let line = password.expose_secret();
    match (line.chars().count() >= SHORTEST, line.len() <= LONGEST) {
        (true, true) => Ok(password),
        (false, _) => Err(Failure::usage("the password must have at least 8 characters")),
        (_, false) => Err(Failure::usage("the password must have at most 1024 bytes")),
    }
}

/// The argon2id hash of a password, with a salt of its own, in PHC form.
pub(super) fn hash(password: &SecretString) -> Result<String, Failure> {
    let failed = |_| Failure::refused("HASH", "the password could not be hashed");
    let salt = SaltString::encode_b64(&random_bytes::<16>()?).map_err(failed)?;
    let hash = Argon2::default().hash_password(password.expose_secret().as_bytes(), &salt);
    hash.map(|hash| hash.to_string()).map_err(failed)
}

#[cfg(test)]
mod tests {
    use super::*;
    use argon2::password_hash::{PasswordHash, PasswordVerifier};

    #[test]
    fn hashes_verify_and_are_salted() {
        let password: SecretString = "correct horse".into();
        let (first, second) = (hash(&password).unwrap(), hash(&password).unwrap());
        assert!(first.starts_with("$argon2id$v=19$m=19456,t=2,p=1$") && first != second);
        let verify = |text: &str| {
            Argon2::default().verify_password(text.as_bytes(), &PasswordHash::new(&first).unwrap())
        };
        assert!(verify("correct horse").is_ok() && verify("wrong horse").is_err());
    }
}
