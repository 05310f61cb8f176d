//! Shared by the operations of the user API: a user in answers, the signed-in user's stored record, attempts, and the
//! answer with a new session.

use super::guesses::{attempts, take};
use crate::state::{Call, PeopleState};
use axum::http::{HeaderMap, header};
use clock::now_ms;
use crypto::token::Token;
use domain::email;
use domain::role::Role;
use domain::timestamp::iso_from_ms;
use endpoint::caller::{Credential, require_no_loss, session};
use endpoint::doc::is;
use endpoint::{Answer, Code, Fields, Problem, Reply};
use password::NotHashed;
use secrecy::SecretString;
use serde::Serialize;
use serde_json::json;
use std::collections::HashMap;
use std::net::IpAddr;
use store::StoreError;
use store::account::Account;
use store::keys::{AccountKeys, Tries};
use store::script::change::Scope;
use store::session::script::{NewSession, mint_id};
use store::session::{Session, user_agent};
use store::user::script::note;
use store::user::{StoredUser, User};
use store::versions::AccountVersion;
use utoipa::ToSchema;

/// Returns the answer when a password could not be hashed or verified.
pub(super) fn not_hashed(error: NotHashed) -> Problem {
    match error {
        NotHashed::Busy => too_many_passwords(),
        NotHashed::Failed(_) => Code::ServiceUnavailable.into(),
        NotHashed::Panicked => Code::Internal.into(),
    }
}

/// Returns the answer when as many passwords as the server hashes at once are being hashed. Nothing was changed.
pub(super) fn too_many_passwords() -> Problem {
    let message =
        "Too many passwords are being hashed at the moment, so nothing was done. Try again shortly.";
    Problem::new(Code::ServiceUnavailable, message)
}

/// A user, as returned.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = User)]
pub(super) struct UserView<'a> {
    #[schema(value_type = is::UserId)]
    id: &'a str,
    #[schema(example = "ada@example.com")]
    email: &'a str,
    #[schema(value_type = is::RoleName)]
    role: Role,
    /// True if signing in requires a second factor.
    totp_enabled: bool,
    #[schema(value_type = is::Time)]
    created_at: String,
    #[schema(value_type = Option<is::Time>)]
    last_login_at: Option<String>,
}

impl<'a> UserView<'a> {
    pub(super) fn new(user: &'a User, last_logins: &HashMap<String, u64>) -> Self {
        Self::seen(user, last_logins.get(&user.id).copied())
    }

    fn seen(user: &'a User, last_login_ms: Option<u64>) -> Self {
        Self {
            id: &user.id,
            email: &user.email,
            role: user.role,
            totp_enabled: user.totp.is_some(),
            created_at: iso_from_ms(user.created_at_ms),
            last_login_at: last_login_ms.map(iso_from_ms),
        }
    }
}

/// An account, as returned to its users.
#[derive(Serialize, ToSchema)]
#[schema(as = AccountOfUser)]
pub(super) struct UserAccountView<'a> {
    #[schema(value_type = is::AccountId)]
    pub(super) id: &'a str,
    #[schema(example = "Acme")]
    pub(super) name: &'a str,
    #[schema(example = "builder")]
    pub(super) plan: &'a str,
}

impl<'a> UserAccountView<'a> {
    pub(super) fn new(account: &'a Account) -> Self {
        Self {
            id: &account.id,
            name: &account.name,
            plan: &account.plan,
        }
    }
}

#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = SignedIn)]
pub(super) struct SignedIn<'a> {
    success: bool,
    user: UserView<'a>,
    account: UserAccountView<'a>,
    /// Value of `X-CSRF-Token` for every call that changes something.
    #[schema(value_type = is::CsrfToken)]
    csrf_token: String,
}

pub(super) fn signed_in(
    people: &PeopleState,
    account: &Account,
    user: &User,
    session: &Session,
    token: &Token,
) -> Answer {
    let answer = Reply::ok(&SignedIn {
        success: true,
        user: UserView::seen(user, Some(session.created_at_ms)),
        account: UserAccountView::new(account),
        csrf_token: token.csrf(),
    })?;
    Ok(answer.header("set-cookie", &session::cookie(&people.admission, token)))
}

/// The parts of a new session.
pub(super) struct NewLogin {
    pub(super) id: String,
    pub(super) token: Token,
    client: Option<IpAddr>,
    user_agent: String,
}

impl NewLogin {
    pub(super) fn new(headers: &HeaderMap, client: Option<IpAddr>) -> Result<Self, Problem> {
        let agent = headers.get(header::USER_AGENT);
        let agent = agent.and_then(|agent| agent.to_str().ok()).unwrap_or_default();
        Ok(Self {
            id: mint_id(now_ms())?,
            token: Token::mint()?,
            client,
            user_agent: user_agent(agent),
        })
    }

    pub(super) fn session(&self, people: &PeopleState) -> NewSession<'_> {
        NewSession {
            id: &self.id,
            token: &self.token,
            client: self.client,
            user_agent: &self.user_agent,
            life: people.session_life,
        }
    }
}

/// The user of the calling session.
pub(super) struct Me<'a> {
    pub(super) id: &'a str,
    pub(super) session: &'a str,
    email: &'a str,
}

impl<'a> Me<'a> {
    /// Returns the user of a call to a route that needs a session.
    pub(super) fn for_caller(call: &'a Call) -> Result<Self, Problem> {
        match &call.caller.credential {
            Credential::Session { id, email, .. } => Ok(Self {
                id: &call.caller.actor,
                session: id,
                email,
            }),
            Credential::Key { .. } => Err(Code::SessionRequired.into()),
        }
    }

    /// Reads the caller's current record.
    ///
    /// # Errors
    /// 401 if the user was removed since the call arrived.
    pub(super) async fn stored(&self, call: &Call) -> Result<StoredUser, Problem> {
        let stored = StoredUser::find(&call.state.store, &call.keys(), self.email).await?;
        stored
            .filter(|stored| stored.user.id == self.id)
            .ok_or_else(|| session::ended(&call.admission))
    }

    /// Returns the caller's open sessions.
    pub(super) async fn sessions(&self, call: &Call) -> Result<Vec<Session>, StoreError> {
        let idle_ms = u64::try_from(call.state.session_idle.as_millis()).unwrap_or(u64::MAX);
        Session::list(&call.state.store, &call.keys(), self.id, idle_ms, now_ms()).await
    }

    /// Checks the caller's password. Guesses are counted by user: they are also limited with a stolen session, and a
    /// stranger who locks the login of an e-mail address does not lock out a signed-in user.
    ///
    /// # Errors
    /// 401 `INVALID_CREDENTIALS`, 429 `LOGIN_LOCKED`.
    pub(super) async fn confirm(&self, call: &Call, password: SecretString) -> Result<StoredUser, Problem> {
        let (people, store) = (&call.state, &call.state.store);
        let tries = attempts(Tries::Confirm, self.id);
        take(people, tries).await?;
        let stored = self.stored(call).await?;
        let hash = stored.user.password.clone();
        if people
            .passwords
            .right_for(&call.caller.account, password, vec![hash])
            .await
            .map_err(not_hashed)?
            == [true]
        {
            tries.clear(store).await?;
            return Ok(stored);
        }
        self.note_refusal(call, "user.password_refused").await?;
        Err(Problem::new(Code::InvalidCredentials, "The password is wrong."))
    }

    /// Writes an audit entry about a refused guess of this session.
    pub(super) async fn note_refusal(&self, call: &Call, kind: &str) -> Result<(), StoreError> {
        let scope = Scope::live(&call.caller.account, self.id);
        let data = json!({ "sessionId": self.session });
        note(&call.state.store, &scope, self.id, kind, data).await
    }
}

/// Reads an account and its user with this e-mail address; `None` if there is no such user. An account that lost writes
/// is refused.
///
/// # Errors
/// 503 if the store is unreachable or cannot be trusted.
pub(super) async fn find(
    people: &PeopleState,
    account: &str,
    email: &str,
) -> Result<Option<(Account, StoredUser)>, Problem> {
    let floor = people.store.floor(account).await;
    let keys = AccountKeys::new(account);
    let (account, stored) = tokio::try_join!(
        Account::read(&people.store, account),
        StoredUser::find(&people.store, &keys, email)
    )?;
    if let Some(account) = &account {
        require_no_loss(
            &people.store,
            &account.id,
            AccountVersion::from_account(account),
            floor,
        )?;
    }
    Ok(account.zip(stored))
}

/// Parses a password of a body, which need not satisfy the rules for new ones.
///
/// # Errors
/// 400 if it is missing, or longer than any password.
pub(super) fn given_password(body: &Fields<'_>, name: &str) -> Result<SecretString, Problem> {
    let text = body.string(name)?.required(name)?;
    if text.len() > password::LONGEST {
        let message = format!("{name} must have at most {} bytes.", password::LONGEST);
        return Err(Problem::validation(message));
    }
    Ok(text.into())
}

/// Parses the e-mail address of a body.
///
/// # Errors
/// 400 if it is missing or invalid.
pub(super) fn given_email(body: &Fields<'_>) -> Result<String, Problem> {
    let text = body.string("email")?.required("email")?;
    email::parse(&text).ok_or_else(|| Problem::validation("email must be an e-mail address."))
}

/// Parses a new password of a body.
///
/// # Errors
/// 400 if it is missing, or does not satisfy the rules.
pub(super) fn new_password(body: &Fields<'_>, name: &str) -> Result<SecretString, Problem> {
    let text = body.string(name)?.required(name)?;
    password::require(&text).map_err(|why| Problem::validation(format!("{name}: {why}.")))?;
    Ok(text.into())
}

/// Parses the code of a second factor, if there is one.
///
/// # Errors
/// 400 for a text that is much longer than any code.
pub(super) fn given_code(body: &Fields<'_>, name: &str) -> Result<Option<String>, Problem> {
    let code = body.string(name)?.value();
    if code.as_ref().is_some_and(|code| code.len() > CODE_MAX) {
        return Err(Problem::validation(format!(
            "{name} must have at most {CODE_MAX} bytes."
        )));
    }
    Ok(code.map(|code| code.trim().to_owned()))
}

/// Longest code of a second factor in a body.
pub(super) const CODE_MAX: usize = 64;
