//! Passwords on the command line: read from standard input, never from an argument.

use super::Failure;
use crate::password::{LONGEST, require};
use secrecy::SecretString;
use std::io::Read;

/// Reads a password: the first line of standard input, which is read no further than a password can be long.
pub(super) fn read_stdin() -> Result<SecretString, Failure> {
    let mut text = String::new();
    let limit = u64::try_from(LONGEST + 2).unwrap_or(u64::MAX);
    std::io::stdin()
        .lock()
        .take(limit)
        .read_to_string(&mut text)
        .map_err(|_| Failure::usage("the password on standard input is no UTF-8 text"))?;
    let line = text.lines().next().unwrap_or_default();
    require(line).map_err(Failure::usage)?;
    Ok(line.into())
}

/// The hash of a password.
pub(super) fn hash(password: &SecretString) -> Result<String, Failure> {
    let hash = crate::password::hash(password);
    hash.map_err(|error| Failure::refused("HASH", error.to_string()))
}
