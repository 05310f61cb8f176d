//! The user API: people who sign in, what they do about themselves, and their team (specification §4.4, decisions D9, D55).

mod doc;
mod guesses;

pub(crate) use doc::sections;

pub mod invitations;
pub mod login;
pub mod password;
mod person;
pub mod sessions;
pub mod team;
pub mod totp;

/// Attempts at a change of a user whom somebody else changes at the same moment.
const ATTEMPTS: usize = 8;
