//! `POST /login`, `POST /logout`, `GET /me`.

use super::ATTEMPTS;
use super::guesses::{login_attempts, source, source_attempts, take};
use super::person::{AccountView, Fresh, Me, UserView, find, given_code, given_password, scope, signed_in};
use super::totp::{Factor, second_factor};
use crate::caller::session::{self, Sent};
use crate::metrics::Login;
use crate::openapi::is;
use crate::problem::{Code, Problem};
use crate::routes::{Answer, Call, Given, OpenCall, Reply, missing};
use crate::serve::App;
use axum::http::HeaderMap;
use secrecy::SecretString;
use serde::Serialize;
use serde_json::json;
use shared::clock::iso_from_ms;
use shared::domain::email;
use shared::store::account::Account;
use shared::store::email::EmailOwner;
use shared::store::script::session::{End, Open, Opened, end};
use shared::store::script::user::note;
use shared::store::session::{Session, SessionPlace};
use shared::store::user::{Stored, User, last_logins};
use utoipa::ToSchema;

/// Stand for the account and the user of an e-mail that nobody has: everything is done as if there were one.
const NO_ACCOUNT: &str = "acct_none";
const NO_USER: &str = "usr_none";

/// What is asked for.
struct Asked {
    email: String,
    password: SecretString,
    code: Option<String>,
}

/// `POST /login`
///
/// # Errors
/// 400, 401 `INVALID_CREDENTIALS` and `TOTP_REQUIRED`, 403 `CSRF_FAILED`, 415, 429 `LOGIN_LOCKED`, 503.
pub async fn login(call: OpenCall) -> Answer {
    let body = call.body()?.only(&["email", "password", "totp"])?;
    let asked = Asked {
        email: given_email(&body)?,
        password: given_password(&body, "password")?,
        code: given_code(&body, "totp")?,
    };
    let app = &call.app;
    app.health.trusted(&app.store).await?;
    // Taken before anything is looked at, so that guesses at the same moment are not more than there may be.
    let from = source(call.client);
    take(app, source_attempts(&from)).await?;
    take(app, login_attempts(&asked.email)).await?;

    let fresh = Fresh::new(call.headers(), call.client)?;
    let owner = EmailOwner::find(&app.store, &asked.email).await?;
    let account = owner.as_ref().map_or(NO_ACCOUNT, |owner| owner.account.as_str());
    let found = find(app, account, &asked.email).await?;
    let hash = found.as_ref().map(|(_, stored)| stored.user.password.as_str());
    if !app.passwords.is_right(asked.password.clone(), hash).await? {
        return Err(refused(&call, found.as_ref(), "password").await?);
    }
    let (account, stored) = found.ok_or(Code::InvalidCredentials)?;
    let (user, opened) = enter(&call, &asked, &account, stored, &fresh).await?;
    tidied(tidy(&call, &asked.email, &from, owner).await);
    app.metrics.login(Login::Done);
    signed_in(app, &account, &user, &opened, &fresh.token)
}

/// Somebody is in: what could not be tidied up is no reason to say otherwise.
pub(super) fn tidied(done: Result<(), Problem>) {
    if let Err(error) = done {
        tracing::warn!(
            error = error.message(),
            "not everything was tidied up after somebody signed in"
        );
    }
}

fn given_email(body: &crate::routes::Fields<'_>) -> Result<String, Problem> {
    match body.string("email")? {
        Given::Value(text) => {
            email::parse(&text).ok_or_else(|| Problem::validation("email must be an e-mail address."))
        }
        Given::Absent | Given::Null => Err(missing("email")),
    }
}

/// The password is right: asks for the second factor and opens the session.
async fn enter(
    call: &OpenCall,
    asked: &Asked,
    account: &Account,
    mut stored: Stored,
    fresh: &Fresh,
) -> Result<(User, Session), Problem> {
    let app = &call.app;
    let password = stored.user.password.clone();
    for _ in 0..ATTEMPTS {
        let (user, factor) = match second_factor(app, &account.id, &stored.user, asked.code.as_deref())? {
            Factor::None => (stored.user.clone(), "password"),
            Factor::Right(user, how) => (user, how),
            Factor::Missing => {
                // The address guessed nothing; the attempt of the e-mail stays taken until somebody is in.
                source_attempts(&source(call.client))
                    .give_back(&app.store)
                    .await?;
                return Err(Code::TotpRequired.into());
            }
            Factor::Wrong => {
                let found = (account.clone(), stored);
                return Err(refused(call, Some(&found), "code").await?);
            }
        };
        let ip = call.client.map(|client| client.to_string());
        let open = Open {
            old: &stored,
            new: &user,
            ends_others: false,
            reset: None,
            is_login: true,
            kind: "user.login",
            data: json!({ "ip": ip, "factor": factor }),
        };
        let scope = scope(&account.id, &stored.user.id);
        if let Opened::Done(session) = open.run(&app.store, &scope, &fresh.session(app)).await? {
            return Ok((user, session));
        }
        // Somebody changed the user meanwhile; a password that was changed is no longer the right one.
        let again = find(app, &account.id, &stored.user.email).await?;
        stored = match again {
            Some((_, again)) if again.user.id == stored.user.id && again.user.password == password => again,
            _ => return Err(Code::InvalidCredentials.into()),
        };
    }
    Err(Code::ServiceUnavailable.into())
}

/// 401, which the audit log of an existing user tells of. It takes as long for a user who does not exist.
pub(super) async fn refused(
    call: &OpenCall,
    found: Option<&(Account, Stored)>,
    what: &str,
) -> Result<Problem, Problem> {
    call.app.metrics.login(Login::Wrong);
    let ids = found.map(|(account, stored)| (account.id.as_str(), stored.user.id.as_str()));
    let (account, user) = ids.unwrap_or((NO_ACCOUNT, NO_USER));
    let data = json!({ "ip": call.client.map(|client| client.to_string()), "wrong": what });
    note(
        &call.app.store,
        &scope(account, user),
        user,
        "user.login_failed",
        data,
    )
    .await?;
    Ok(Code::InvalidCredentials.into())
}

/// What remains to be done when somebody is in: the attempts were right, an earlier session of this browser ends, and the
/// look-up of the e-mail, where it was read, lasts, should a crash have kept it from that.
pub(super) async fn tidy(
    call: &OpenCall,
    email: &str,
    from: &str,
    owner: Option<EmailOwner>,
) -> Result<(), Problem> {
    let store = &call.app.store;
    login_attempts(email).clear(store).await?;
    source_attempts(from).give_back(store).await?;
    if let Some(owner) = owner {
        owner.confirm(store, email).await?;
    }
    end_earlier(&call.app, call.headers()).await
}

/// Ends the session that the browser had before: its token is nobody's any more.
pub(super) async fn end_earlier(app: &App, headers: &HeaderMap) -> Result<(), Problem> {
    let Sent::Token(token) = Sent::of(headers) else {
        return Ok(());
    };
    if let Some(place) = SessionPlace::find(&app.store, &token.hash()).await? {
        let scope = scope(&place.account, &place.user);
        end(
            &app.store,
            &scope,
            &place.user,
            End::One(&place.id),
            "session.revoked",
        )
        .await?;
    }
    Ok(())
}

/// `POST /logout`
///
/// # Errors
/// 503.
pub async fn logout(call: Call) -> Answer {
    let me = Me::of(&call)?;
    let scope = scope(&call.caller.account, me.id);
    end(
        &call.app.store,
        &scope,
        me.id,
        End::One(me.session),
        "user.logout",
    )
    .await?;
    Ok(Reply::done()?.header("set-cookie", &session::no_cookie(&call.app)))
}

#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = Me)]
pub(super) struct MeView<'a> {
    success: bool,
    user: UserView<'a>,
    account: AccountView<'a>,
    session: SessionTimes<'a>,
    /// Goes into `X-CSRF-Token` of every call that changes something.
    #[schema(value_type = is::CsrfToken)]
    csrf_token: String,
}

#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = SessionTimes)]
struct SessionTimes<'a> {
    #[schema(value_type = is::SessionId)]
    id: &'a str,
    #[schema(value_type = is::Time)]
    created_at: String,
    /// When it ends at the latest.
    #[schema(value_type = is::Time)]
    expires_at: String,
}

/// `GET /me`
///
/// # Errors
/// 401, 503.
pub async fn me(call: Call) -> Answer {
    let (app, keys) = (&call.app, call.keys());
    let me = Me::of(&call)?;
    let Sent::Token(token) = Sent::of(call.headers()) else {
        return Err(session::ended(app));
    };
    let (account, stored, logins, sessions) = tokio::join!(
        Account::read(&app.store, &call.caller.account),
        me.stored(&call),
        last_logins(&app.store, &keys),
        me.sessions(&call)
    );
    let (account, stored) = (account?.ok_or_else(|| session::ended(app))?, stored?);
    let open = sessions?.into_iter().find(|session| session.id == me.session);
    let open = open.ok_or_else(|| session::ended(app))?;
    Reply::ok(&MeView {
        success: true,
        user: UserView::of(&stored.user, &logins?),
        account: AccountView::of(&account),
        session: SessionTimes {
            id: &open.id,
            created_at: iso_from_ms(open.created_at_ms),
            expires_at: iso_from_ms(open.expires_at_ms),
        },
        csrf_token: token.csrf(),
    })
}
