//! The user API: signing in, operations of users on themselves, and their team (specification §4.4, decisions D9, D55).
//!
//! Uses `endpoint` for the common parts of operations, `password` for hashes, the store's users, sessions and
//! invitations, and the view of API keys from `api`.

mod doc;
mod guesses;

mod invitations;
mod login;
mod me;
pub mod metrics;
mod password;
mod person;
mod sessions;
mod state;
mod team;
mod totp;

pub use doc::sections;
pub use state::{PeopleState, accepting};

use endpoint::Operation;

/// Returns all operations, in the order in which the document lists their paths.
pub fn operations() -> impl Iterator<Item = &'static Operation<PeopleState>> {
    [
        login::ROUTES,
        password::ROUTES,
        sessions::ROUTES,
        totp::ROUTES,
        team::ROUTES,
        invitations::ROUTES,
    ]
    .into_iter()
    .flatten()
}
