//! Identifies the caller of a request by its headers: account, mode, and permissions or role.
//!
//! A key's status, permissions, mode, addresses and expiry are read from the store on every request, so that a
//! revocation applies to the next one. A text that cannot be a key is refused without a query of the store.

mod credential;
pub mod session;
mod versions;

pub use versions::require_no_loss;

use crate::Access;
use crate::admission::Admission;
use crate::problem::{Code, Problem};
use axum::http::{HeaderMap, Method};
use crypto::token::Token;
use crypto::virtual_key::CheckSecret;
use domain::mode::Mode;
use domain::permission::Permission;
use domain::role::Role;
use session::SentCookie;
use std::net::IpAddr;
use store::account::Account;
use store::api_key::ApiKey;
use store::authority::{Authority, SessionOfUser};
use store::keys::AccountKeys;
use store::lookup::ApiKeyOwner;
use store::versions::AccountVersion;
use telemetry::PacedLine;

/// An authenticated caller.
#[derive(Debug, Clone)]
pub struct Caller {
    /// Account id, `acct_…`.
    pub account: String,
    /// The mode of the call: the key's, or the one named in the session's request.
    pub mode: Mode,
    /// The actor in the audit log: the id of the key or of the user.
    pub actor: String,
    /// The account's plan, as of this request.
    pub plan: String,
    /// The store's secret, from which ids are derived for idempotency keys.
    pub check_secret: CheckSecret,
    /// Key or session that authenticated the call.
    pub credential: Credential,
}

/// The credential of a caller, with its permissions.
#[derive(Debug, Clone)]
pub enum Credential {
    /// An API key.
    Key {
        /// A route may require one of them.
        permissions: Vec<Permission>,
        /// Time of last use, to the minute, as recorded before this request.
        last_used_ms: Option<u64>,
    },
    /// A session of the dashboard.
    Session {
        /// Session id, `ses_…`.
        id: String,
        /// The e-mail address of its user.
        email: String,
        /// The role of its user.
        role: Role,
    },
}

impl Caller {
    /// Identifies the caller of a request with `access` from the address `client`, which may be unknown. An API key
    /// takes precedence; the session cookie is only read if there is no key.
    ///
    /// # Errors
    /// 401 for a key or session that is missing or invalid, 403 `IP_BLOCKED` and `CSRF_FAILED`, 400 for an unknown
    /// mode, 503 if the store is unreachable or cannot be trusted.
    pub async fn identify(
        admission: &Admission,
        access: Access,
        method: &Method,
        headers: &HeaderMap,
        client: Option<IpAddr>,
    ) -> Result<Self, Problem> {
        let missing = match credential::key_hash(headers) {
            Ok(hash) => {
                let caller = Self::from_key(admission, &hash, client).await?;
                // The key's own mode applies, but an unknown mode is refused nevertheless.
                session::mode(headers)?;
                return Ok(caller);
            }
            Err(problem) if problem.code() == Code::ApiKeyRequired => problem,
            Err(problem) => return Err(problem),
        };
        match (SentCookie::from_headers(headers), access) {
            (SentCookie::Token(token), _) => Self::from_session(admission, method, headers, &token).await,
            (SentCookie::Malformed, _) => Err(session::ended(admission)),
            (SentCookie::Nothing, Access::Session(_)) => Err(Code::SessionRequired.into()),
            (SentCookie::Nothing, _) => Err(missing),
        }
    }

    /// Returns the caller of a session. The allowed addresses of API keys do not apply to it.
    async fn from_session(
        admission: &Admission,
        method: &Method,
        headers: &HeaderMap,
        token: &Token,
    ) -> Result<Self, Problem> {
        let open = session::find(admission, token).await?;
        session::require_csrf_token(admission, method, headers, token)?;
        let user = open.found.user.user;
        Ok(Self {
            account: open.account,
            mode: session::mode(headers)?,
            actor: user.id,
            plan: open.found.plan,
            check_secret: open.record.check_secret,
            credential: Credential::Session {
                id: open.found.session.id,
                email: user.email,
                role: user.role,
            },
        })
    }

    async fn from_key(admission: &Admission, hash: &str, client: Option<IpAddr>) -> Result<Self, Problem> {
        let (sane, owner) = tokio::join!(
            admission.health.trusted(&admission.store),
            ApiKeyOwner::find(&admission.store, hash)
        );
        let record = sane?;
        let owner = owner?.ok_or(Code::InvalidApiKey)?;
        // Taken before the read: a record older than this lost writes in a failover. If it were taken afterwards,
        // another request of this account could have raised the floor in between.
        let floor = admission.store.floor(&owner.account).await;
        let keys = AccountKeys::new(&owner.account);
        let (key, account) = tokio::try_join!(
            ApiKey::read(&admission.store, &keys, &owner.key_id),
            Account::read(&admission.store, &owner.account)
        )?;
        let key = key.ok_or(Code::InvalidApiKey)?;
        let account = account.ok_or_else(|| lost_writes(&owner.account))?;
        require_no_loss(
            &admission.store,
            &owner.account,
            AccountVersion::from_account(&account),
            floor,
        )?;
        if !key.is_of_hash(hash) {
            return Err(wrong_look_up(&owner));
        }
        if key.status(clock::now_ms()) != "active" {
            return Err(Code::InvalidApiKey.into());
        }
        if !may_come_from(&key, client) {
            return Err(Code::IpBlocked.into());
        }
        Ok(Self {
            account: owner.account,
            mode: key.mode,
            actor: owner.key_id,
            plan: account.plan,
            check_secret: record.check_secret,
            credential: Credential::Key {
                permissions: key.permissions,
                last_used_ms: key.last_used_ms,
            },
        })
    }

    /// Refuses a caller without the permission `access`.
    ///
    /// # Errors
    /// 403 `INSUFFICIENT_API_KEY_PERMISSIONS` for a key, `INSUFFICIENT_ROLE` for a session.
    pub fn require(&self, access: Access) -> Result<(), Problem> {
        match (access, &self.credential) {
            (Access::Public, _) => Ok(()),
            (Access::Key(permission, _), Credential::Key { permissions, .. }) => {
                if permissions.contains(&permission) {
                    return Ok(());
                }
                let message = format!("This operation needs an API key with the permission `{permission}`.");
                Err(Problem::new(Code::InsufficientPermissions, message))
            }
            (Access::Session(_), Credential::Key { .. }) => {
                let message = "No API key can do this: it needs a session of the dashboard.";
                Err(Problem::new(Code::InsufficientPermissions, message))
            }
            (Access::Key(_, least) | Access::Session(least), Credential::Session { role, .. }) => {
                if *role >= least {
                    return Ok(());
                }
                let message = format!("This needs the role {least}; yours is {role}.");
                Err(Problem::new(Code::InsufficientRole, message))
            }
        }
    }

    /// Returns the authority for the changes of a request with this `access`, which the step that makes each change
    /// checks.
    pub fn authority(&self, access: Access) -> Authority {
        let least = match access {
            Access::Key(_, least) | Access::Session(least) => least,
            Access::Public => Role::Viewer,
        };
        match &self.credential {
            Credential::Key { .. } => Authority::from_key(&self.account, &self.actor),
            Credential::Session { id, email, .. } => {
                let session = SessionOfUser {
                    session: id,
                    user: &self.actor,
                    email,
                };
                Authority::from_session(&self.account, &session, least)
            }
        }
    }

    /// Refuses a test-mode caller.
    ///
    /// # Errors
    /// 400 `LIVE_MODE_REQUIRED`.
    pub(crate) fn require_live(&self) -> Result<(), Problem> {
        match self.mode {
            Mode::Live => Ok(()),
            Mode::Test => Err(Code::LiveModeRequired.into()),
        }
    }
}

/// Returns the error if a look-up leads to an API key with another secret. Nothing else bounds the lines of its caller.
fn wrong_look_up(owner: &ApiKeyOwner) -> Problem {
    static LINE: PacedLine = PacedLine::new();
    if let Some(left_out) = LINE.due() {
        let (account, key) = (&owner.account, &owner.key_id);
        tracing::error!(
            account,
            key,
            left_out,
            "a look-up leads to an API key with another secret: run `ledger check`"
        );
    }
    Code::InvalidApiKey.into()
}

/// Returns the error if the store has an older version of an account than before (decision D47).
fn lost_writes(account: &str) -> Problem {
    // No rate is counted for a caller that is not known yet, so nothing else bounds these lines. The guard of the
    // workers names each such account, too.
    static LINE: PacedLine = PacedLine::new();
    if let Some(left_out) = LINE.due() {
        tracing::error!(
            account,
            left_out,
            "the store lost writes of this account; see `tollgate-admin store accept`"
        );
    }
    Code::ServiceUnavailable.into()
}

/// Returns whether the key may be used from this address. An unknown address is not on any list.
fn may_come_from(key: &ApiKey, client: Option<IpAddr>) -> bool {
    key.allow_ips.is_empty()
        || client.is_some_and(|client| key.allow_ips.iter().any(|net| net.contains(&client)))
}
