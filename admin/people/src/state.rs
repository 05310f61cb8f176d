//! The state of the operations of this crate.

use crate::metrics::LoginMetrics;
use ::password::Passwords;
use crypto::seal::Keyring;
use endpoint::Admission;
use endpoint::caller::Caller;
use keyed_limit::KeyedLimiter;
use std::sync::Arc;
use std::time::Duration;
use store::Store;
use store_health::StoreHealth;

/// The state of the operations of the user API.
pub struct PeopleState {
    /// Source of users, sessions and invitations.
    pub store: Store,
    /// State of the store, checked before a sign-in.
    pub health: Arc<StoreHealth>,
    /// Admission of requests, which also determines the cookies of sessions.
    pub admission: Arc<Admission>,
    /// Opens second factors.
    pub keyring: Arc<Keyring>,
    /// Hashes and verifies passwords.
    pub passwords: Passwords,
    /// Limiter of those who accept the same invitation: only the first one's password is hashed.
    pub accepting: KeyedLimiter,
    /// The address of this server in links.
    pub public_url: String,
    /// Maximum idle time of a session.
    pub session_idle: Duration,
    /// Maximum lifetime of a session.
    pub session_life: Duration,
    /// Attempts to sign in.
    pub metrics: LoginMetrics,
}

/// A call of one of these operations.
pub(crate) type Call<C = Caller> = endpoint::Call<PeopleState, C>;
/// A call by anyone.
pub(crate) type OpenCall = Call<()>;

/// Those who accept the same invitation at the same time, at most.
const ACCEPTING_MAX: usize = 16;

/// Creates the limiter of invitations.
pub fn accepting() -> KeyedLimiter {
    KeyedLimiter::new(1, ACCEPTING_MAX)
}

/// Attempts at a change of a user when other changes come between.
pub(crate) const CHANGE_ATTEMPTS: usize = 8;
