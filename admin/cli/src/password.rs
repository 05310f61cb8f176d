//! Passwords on the command line: read from standard input, never from an argument.

use super::context::CommandContext;
use super::stdin;
use crate::failure::CommandFailure;
use password::{LONGEST, Salt, require};
use secrecy::{ExposeSecret, SecretString};

/// Reads a password: the first line of standard input, which is read no further than a password can be long.
pub(super) fn read_stdin() -> Result<SecretString, CommandFailure> {
    let password = stdin::line("the password", LONGEST)?;
    require(password.expose_secret()).map_err(CommandFailure::usage)?;
    Ok(password)
}

/// Returns the hash of the password of a user with this e-mail.
pub(super) fn hash(
    context: &CommandContext,
    email: &str,
    password: &SecretString,
) -> Result<String, CommandFailure> {
    let hash = password::hash(password, Salt::new(&context.record.check_secret, email));
    hash.map_err(|error| CommandFailure::refused("HASH", error.to_string()))
}
