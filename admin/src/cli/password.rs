//! Passwords on the command line: read from standard input, never from an argument.

use super::{Failure, stdin};
use crate::password::{LONGEST, require};
use secrecy::{ExposeSecret, SecretString};

/// Reads a password: the first line of standard input, which is read no further than a password can be long.
pub(super) fn read_stdin() -> Result<SecretString, Failure> {
    let password = stdin::line("the password", LONGEST)?;
    require(password.expose_secret()).map_err(Failure::usage)?;
    Ok(password)
}

/// The hash of a password.
pub(super) fn hash(password: &SecretString) -> Result<String, Failure> {
    let hash = crate::password::hash(password);
    hash.map_err(|error| Failure::refused("HASH", error.to_string()))
}
