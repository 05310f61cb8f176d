//! `POST /password` and `POST /password/reset`: a new password ends every other session. `POST /password/reset/look`:
//! whether the link of a reset still works.

use super::guesses::{attempts, source, take};
use super::login::{end_earlier, log_failed_cleanup, refused};
use super::person::{Me, NewLogin, find, given_code, given_password, new_password, not_hashed, signed_in};
use super::totp::{Factor, second_factor};
use crate::state::{CHANGE_ATTEMPTS, Call, OpenCall, PeopleState};
use crypto::token::Token;
use endpoint::caller::session;
use endpoint::doc::is;
use endpoint::{Answer, Code, Fields, Problem, Reply, operations};
use password::Salt;
use serde::Serialize;
use serde_json::json;
use store::account::Account;
use store::credential_attempts::Attempts;
use store::keys::{AccountKeys, Tries};
use store::script::change::Scope;
use store::session::script::{SessionOpened, SessionOpening};
use store::user::script::{find_reset, is_open_reset};
use store::user::{StoredUser, User};
use utoipa::ToSchema;

operations! {
    /// Operations on passwords.
    ROUTES: PeopleState, User;

    POST "/password",            session(Viewer), Both, Uncounted, change, AlwaysAllowed;
    POST "/password/reset",      public,          Both, Uncounted, reset;
    POST "/password/reset/look", public,          Both, Uncounted, check_link;
}

/// The password was changed; the session continues with a new cookie.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = PasswordChanged)]
pub(super) struct PasswordChanged {
    success: bool,
    /// The new token for `X-CSRF-Token`.
    #[schema(value_type = is::CsrfToken)]
    csrf_token: String,
}

/// `POST /password`
pub async fn change(call: Call) -> Answer {
    let body = call.body()?.only(&["currentPassword", "newPassword"])?;
    let current = given_password(&body, "currentPassword")?;
    let new = new_password(&body, "newPassword")?;
    let (people, me) = (&call.state, Me::for_caller(&call)?);
    let mut stored = me.confirm(&call, current).await?;
    let confirmed = stored.user.password.clone();
    let salt = Salt::new(&call.caller.check_secret, &stored.user.email);
    let password = people
        .passwords
        .hash(&call.caller.account, new, salt)
        .await
        .map_err(not_hashed)?;
    let fresh = NewLogin::new(call.headers(), call.client)?;
    let scope = Scope::live(&call.caller.account, me.id);
    for _ in 0..CHANGE_ATTEMPTS {
        let user = User {
            password: password.clone(),
            ..stored.user.clone()
        };
        let open = SessionOpening {
            old: &stored,
            new: &user,
            ends_others: true,
            reset: None,
            is_login: false,
            kind: "user.password_changed",
            data: json!({ "by": "user" }),
        };
        if let SessionOpened::Done(_) = open
            .execute(&people.store, &scope, &fresh.session(people))
            .await?
        {
            let answer = Reply::ok(&PasswordChanged {
                success: true,
                csrf_token: fresh.token.csrf(),
            })?;
            return Ok(answer.header("set-cookie", &session::cookie(&people.admission, &fresh.token)));
        }
        stored = me.stored(&call).await?;
        if stored.user.password != confirmed {
            return Err(Code::InvalidCredentials.into());
        }
    }
    Err(Code::ServiceUnavailable.into())
}

/// Parses the token of a link in a body.
///
/// # Errors
/// 400 if it is missing, 404 if it is malformed.
pub(super) fn given_token(body: &Fields<'_>) -> Result<Token, Problem> {
    Token::parse(&body.string("token")?.required("token")?).ok_or_else(no_link)
}

/// Returns 404 for a link that is unknown, used or expired; the answer does not say which.
pub(super) fn no_link() -> Problem {
    Problem::new(Code::NotFound, "This link is not known, was used, or has ended.")
}

/// `POST /password/reset/look`: checks the link before its holder chooses a password. The answer does not name the
/// user.
///
/// # Errors
/// 400, 403 `CSRF_FAILED`, 404, 415, 429 `LOGIN_LOCKED`, 503.
pub async fn check_link(call: OpenCall) -> Answer {
    let token = given_token(&call.body()?.only(&["token"])?)?;
    let people = &call.state;
    people.health.trusted(&people.store).await?;
    let from = source(call.client);
    let guesses = attempts(Tries::ResetAddress, &from);
    let (account, stored) = user_of(people, &token.hash(), guesses).await?;
    let keys = AccountKeys::new(&account.id);
    // A later link takes the place of an earlier one.
    if !is_open_reset(&people.store, &keys, &stored.user.id, &token.hash()).await? {
        return Err(no_link());
    }
    guesses.give_back(&people.store).await?;
    Reply::done()
}

/// Returns the user of the link whose token has this hash. Counts a guess.
///
/// # Errors
/// 404 for a link that leads nowhere, 429 `LOGIN_LOCKED`, 503.
async fn user_of(
    people: &PeopleState,
    hash: &str,
    guesses: Attempts<'_>,
) -> Result<(Account, StoredUser), Problem> {
    take(people, guesses).await?;
    let (account, email) = find_reset(&people.store, hash).await?.ok_or_else(no_link)?;
    find(people, &account, &email).await?.ok_or_else(no_link)
}

/// `POST /password/reset`: the holder of the link sets a new password and is signed in, with the second factor if there
/// is one.
///
/// # Errors
/// 400, 401 `TOTP_REQUIRED` and `INVALID_CREDENTIALS`, 403 `CSRF_FAILED`, 404, 415, 429 `LOGIN_LOCKED`, 503.
pub async fn reset(call: OpenCall) -> Answer {
    let body = call.body()?.only(&["token", "newPassword", "totp"])?;
    let (token, new, code) = (
        given_token(&body)?,
        new_password(&body, "newPassword")?,
        given_code(&body, "totp")?,
    );
    let people = &call.state;
    let secret = people.health.trusted(&people.store).await?.check_secret;
    let from = source(call.client);
    let guesses = attempts(Tries::ResetAddress, &from);
    let hash = token.hash();
    let mut found = user_of(people, &hash, guesses).await?;
    // Without a code nothing is guessed, so no attempt is counted: the attempts stay for the code that the answer
    // requests.
    if found.1.user.totp.is_some() && code.is_some() {
        count_code(people, &found.1.user, guesses).await?;
    }
    let password = people
        .passwords
        .hash(&found.0.id, new, Salt::new(&secret, &found.1.user.email))
        .await
        .map_err(not_hashed)?;
    let fresh = NewLogin::new(call.headers(), call.client)?;
    for _ in 0..CHANGE_ATTEMPTS {
        let (account, stored) = &found;
        let (user, factor) = require_factor(&call, &found, code.as_deref(), guesses).await?;
        let password = password.clone();
        let user = User { password, ..user };
        let open = SessionOpening {
            old: stored,
            new: &user,
            ends_others: true,
            reset: Some(&hash),
            is_login: true,
            kind: "user.password_changed",
            data: json!({ "by": "link", "factor": factor }),
        };
        let scope = Scope::live(&account.id, &stored.user.id);
        match open
            .execute(&people.store, &scope, &fresh.session(people))
            .await?
        {
            SessionOpened::Done(session) => {
                log_failed_cleanup(clean_up(&call, guesses, attempts(Tries::Reset, &stored.user.id)).await);
                return signed_in(people, account, &user, &session, &fresh.token);
            }
            SessionOpened::Used => return Err(no_link()),
            SessionOpened::Changed => {}
        }
        found = find(people, &account.id, &stored.user.email)
            .await?
            .ok_or_else(no_link)?;
    }
    Err(Code::ServiceUnavailable.into())
}

/// Counts a guess of the user's code. The address guessed nothing if that is refused, since nothing is checked then.
///
/// # Errors
/// 429 `LOGIN_LOCKED`, 503.
async fn count_code(people: &PeopleState, user: &User, of_address: Attempts<'_>) -> Result<(), Problem> {
    let counted = take(people, attempts(Tries::Reset, &user.id)).await;
    if counted.is_err() {
        of_address.give_back(&people.store).await?;
    }
    counted
}

/// Returns the user with the second factor used, and the factor: `link` if the user has none, else the kind of the
/// code.
///
/// # Errors
/// 401 `TOTP_REQUIRED` and `INVALID_CREDENTIALS`, 503.
async fn require_factor(
    call: &OpenCall,
    found: &(Account, StoredUser),
    code: Option<&str>,
    of_address: Attempts<'_>,
) -> Result<(User, &'static str), Problem> {
    let (people, (account, stored)) = (&call.state, found);
    match second_factor(people, &account.id, &stored.user, code).await? {
        Factor::None => Ok((stored.user.clone(), "link")),
        Factor::Right(user, how) => Ok((user, how)),
        Factor::Missing => {
            of_address.give_back(&people.store).await?;
            Err(Code::TotpRequired.into())
        }
        Factor::Wrong => Err(refused(call, std::slice::from_ref(found), call.client, "code").await?),
    }
}

/// Completes a sign-in by link: the link was correct, so the address's attempt and all of the user's attempts are
/// returned, and an earlier session of this browser ends.
async fn clean_up(call: &OpenCall, from: Attempts<'_>, user: Attempts<'_>) -> Result<(), Problem> {
    let store = &call.state.store;
    user.clear(store).await?;
    from.give_back(store).await?;
    end_earlier(&call.state, call.headers()).await
}
