//! The user API: people who sign in, what they do about themselves, and their team (specification §4.4, decisions D9, D55).

mod doc;
mod guesses;

mod invitations;
mod login;
pub mod metrics;
mod password;
mod person;
mod sessions;
mod team;
mod totp;

pub use doc::sections;

use ::password::Passwords;
use crypto::seal::Sealer;
use endpoint::caller::Caller;
use endpoint::{Admission, Operation};
use metrics::LoginMetrics;
use std::sync::Arc;
use std::time::Duration;
use store::Store;
use store_health::StoreHealth;

/// A call of one of these operations.
pub(crate) type Call<C = Caller> = endpoint::Call<PeopleState, C>;
/// A call by anyone.
pub(crate) type OpenCall = Call<()>;

/// What the operations of the user API need beside their calls.
pub struct PeopleState {
    /// The store.
    pub store: Store,
    /// Whether the store may be trusted: asked before somebody signs in.
    pub health: Arc<StoreHealth>,
    /// How requests are admitted: cookies of sessions follow from it.
    pub admission: Arc<Admission>,
    /// Seals second factors.
    pub sealer: Arc<Sealer>,
    /// Hashes and verifies passwords.
    pub passwords: Passwords,
    /// The address of this server in links.
    pub public_url: String,
    /// How long a session may pause.
    pub session_idle: Duration,
    /// How long a session lives at most.
    pub session_life: Duration,
    /// Attempts to sign in.
    pub metrics: LoginMetrics,
}

/// Every operation, in the order in which the document lists their paths.
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

/// Attempts at a change of a user whom somebody else changes at the same moment.
const ATTEMPTS: usize = 8;
