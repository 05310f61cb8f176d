//! `POST /login`, `POST /logout`.

use super::guesses::{at_user, attempts, count_named, count_right_password, locked, source, take};
use super::me;
use super::person::{Me, NewLogin, find, given_code, given_email, given_password, not_hashed, signed_in};
use super::totp::{Factor, second_factor};
use crate::metrics::Login;
use crate::state::{CHANGE_ATTEMPTS, Call, OpenCall, PeopleState};
use axum::http::HeaderMap;
use endpoint::caller::session::{self, SentCookie};
use endpoint::{Answer, Code, Fields, Problem, Reply, operations};
use futures::{StreamExt, TryStreamExt, stream};
use secrecy::SecretString;
use serde_json::json;
use std::net::IpAddr;
use store::StoreError;
use store::account::Account;
use store::credential_attempts::{Attempts, SPAN};
use store::keys::Tries;
use store::script::change::Scope;
use store::session::script::{SessionEnd, SessionOpened, SessionOpening, end};
use store::session::{Session, SessionPlace};
use store::user::email::EmailOwner;
use store::user::script::note;
use store::user::{StoredUser, User};

operations! {
    /// Operations on signing in and out.
    ROUTES: PeopleState, User;

    POST "/login",  public,          Both, Uncounted, login;
    POST "/logout", session(Viewer), Both, Uncounted, logout, AlwaysAllowed;
    GET  "/me",     session(Viewer), Both, Uncounted, me::get, AlwaysAllowed;
}

/// Dummy account for unknown e-mail addresses: the same work is done for them, so that the response time reveals
/// nothing.
const NO_ACCOUNT: &str = "acct_none";
const NO_USER: &str = "usr_none";

/// Longest account id in a login.
pub(super) const ACCOUNT_MAX: usize = 64;

/// The body of a login, with the keys of its attempt counters.
struct LoginRequest {
    email: String,
    password: SecretString,
    code: Option<String>,
    /// The account, if given.
    account: Option<String>,
    /// The [`source`] of attempts.
    from: String,
    /// The user of the account, if given: see [`at_user`].
    named: Option<String>,
}

/// `POST /login`
///
/// # Errors
/// 400, also `ACCOUNT_REQUIRED`; 401 `INVALID_CREDENTIALS` and `TOTP_REQUIRED`, 403 `CSRF_FAILED`, 415, 429
/// `LOGIN_LOCKED`, 503.
pub async fn login(call: OpenCall) -> Answer {
    let people = &call.state;
    let request = LoginRequest::read(&call)?;
    people.health.trusted(&people.store).await?;
    // Counted before anything is read, so that concurrent guesses do not exceed the limit.
    let (right, may_be_locked) = count(people, &request).await?;
    let fresh = NewLogin::new(call.headers(), call.client)?;
    let found = candidates(people, &request).await?;
    let found = unlocked(people, &request, found).await?;
    let theirs = with_right_password(people, &request, &found).await?;
    let (account, stored) = match theirs.as_slice() {
        [(account, stored)] => (account, stored.clone()),
        [] => {
            let client = request.account.as_ref().and(call.client);
            let problem = refused(&call, &found, client, "password").await?;
            // Not for how long: that of one user would show beside those of the others.
            return Err(if may_be_locked {
                locked(people, SPAN)
            } else {
                problem
            });
        }
        several => {
            give_back(people, &right).await?;
            return Err(account_required(several));
        }
    };
    let (user, opened) = enter(&call, &request, account, stored, (&fresh, &right)).await?;
    log_failed_cleanup(clean_up(&call, &right).await);
    people.metrics.login(Login::Done);
    signed_in(people, account, &user, &opened, &fresh.token)
}

impl LoginRequest {
    fn read(call: &OpenCall) -> Result<Self, Problem> {
        let body = call.body()?.only(&["email", "password", "totp", "account"])?;
        let (email, password) = (given_email(&body)?, given_password(&body, "password")?);
        let (code, account) = (given_code(&body, "totp")?, given_account(&body)?);
        Ok(Self {
            from: source(call.client),
            named: account.as_ref().map(|account| at_user(&email, account)),
            email,
            password,
            code,
            account,
        })
    }
}

/// Counts the attempt. Returns the counts that a right password gives back, and whether a user of the e-mail may be
/// locked and left out of the sign-in. Whether there is such a user does not show.
///
/// # Errors
/// 429 `LOGIN_LOCKED`, 503.
async fn count<'a>(
    people: &PeopleState,
    request: &'a LoginRequest,
) -> Result<(Vec<Attempts<'a>>, bool), Problem> {
    let of_address = attempts(Tries::LoginAddress, &request.from);
    let of_email = match &request.named {
        Some(user) => attempts(Tries::LoginAccount, user),
        None => attempts(Tries::Login, &request.email),
    };
    take(people, of_address).await?;
    if let Err(problem) = take_of_email(people, request, of_email).await {
        // Nothing is checked, so the address guessed nothing.
        of_address.give_back(&people.store).await?;
        return Err(problem);
    }
    let mut right = vec![of_address, of_email];
    if request.account.is_some() {
        right.extend(count_named(people, &request.email).await?);
        return Ok((right, false));
    }
    let named = attempts(Tries::LoginNamed, &request.email);
    let may_be_locked = named.locked(&people.store).await?.is_some();
    Ok((right, may_be_locked))
}

/// Returns the users in `found` who have the password, after counting it if no account is named.
async fn with_right_password<'a>(
    people: &PeopleState,
    request: &LoginRequest,
    found: &'a [(Account, StoredUser)],
) -> Result<Vec<&'a (Account, StoredUser)>, Problem> {
    let hashes = found.iter().map(|(_, stored)| stored.user.password.clone());
    let are_right = people
        .passwords
        .right_for(&request.from, request.password.clone(), hashes.collect())
        .await
        .map_err(not_hashed)?;
    let theirs = found.iter().zip(are_right);
    let theirs: Vec<_> = theirs
        .filter_map(|(one, is_right)| is_right.then_some(one))
        .collect();
    if let (None, Some((_, stored))) = (&request.account, theirs.first()) {
        count_right_password(people, &request.email, &stored.user.password).await?;
    }
    Ok(theirs)
}

/// Takes the attempt of the e-mail. A sign-in that names an account is locked with those that name none.
async fn take_of_email(
    people: &PeopleState,
    request: &LoginRequest,
    of_email: Attempts<'_>,
) -> Result<(), Problem> {
    if request.account.is_some() {
        let unnamed = attempts(Tries::Login, &request.email);
        if let Some(left) = unnamed.locked(&people.store).await? {
            return Err(locked(people, left));
        }
    }
    take(people, of_email).await
}

/// If no account is named, leaves out the locked users. Only these are locked: users of the same e-mail in other
/// accounts can still sign in.
async fn unlocked(
    people: &PeopleState,
    request: &LoginRequest,
    found: Vec<(Account, StoredUser)>,
) -> Result<Vec<(Account, StoredUser)>, Problem> {
    if request.account.is_some() {
        return Ok(found);
    }
    let reads = found.into_iter().map(|one| async move {
        let user = at_user(&request.email, &one.0.id);
        let left = attempts(Tries::LoginAccount, &user).locked(&people.store).await?;
        Ok::<_, StoreError>(left.is_none().then_some(one))
    });
    let reads: Vec<Option<_>> = stream::iter(reads)
        .buffered(ACCOUNTS_AT_ONCE)
        .try_collect()
        .await?;
    Ok(reads.into_iter().flatten().collect())
}

/// Returns the users that may be signing in: that of the named account, or all of the e-mail. One account is read even
/// where there is none, so that the time does not disclose it.
async fn candidates(
    people: &PeopleState,
    request: &LoginRequest,
) -> Result<Vec<(Account, StoredUser)>, Problem> {
    let owners = EmailOwner::all(&people.store, &request.email).await?;
    let accounts: Vec<String> = match &request.account {
        Some(account) => vec![account.clone()],
        None if owners.is_empty() => vec![NO_ACCOUNT.to_owned()],
        None => owners.into_iter().map(|owner| owner.account).collect(),
    };
    let email = request.email.as_str();
    let reads = accounts
        .into_iter()
        .map(|account| async move { find(people, &account, email).await });
    let mut reads = std::pin::pin!(stream::iter(reads).buffered(ACCOUNTS_AT_ONCE));
    let (mut found, mut failed) = (Vec::new(), None);
    while let Some(read) = reads.next().await {
        match read {
            Ok(one) => found.extend(one),
            // An account whose record lost writes does not prevent sign-ins to the others.
            Err(problem) => failed = Some(problem),
        }
    }
    match failed {
        Some(problem) if found.is_empty() => Err(problem),
        _ => Ok(found),
    }
}

/// Maximum number of accounts with one e-mail address that are read concurrently.
const ACCOUNTS_AT_ONCE: usize = 32;

/// Returns 400 with the accounts for whose users the password is correct; only somebody who knows the password sees
/// them.
fn account_required(theirs: &[&(Account, StoredUser)]) -> Problem {
    let accounts = theirs
        .iter()
        .map(|(account, _)| json!({ "id": account.id, "name": account.name }));
    Problem::from(Code::AccountRequired).with("accounts", accounts.collect::<Vec<_>>())
}

/// Logs a failed cleanup: the login has succeeded, so it is no reason for an error.
pub(super) fn log_failed_cleanup(done: Result<(), Problem>) {
    if let Err(error) = done {
        tracing::warn!(
            error = error.message(),
            "the clean-up after a sign-in is incomplete"
        );
    }
}

fn given_account(body: &Fields<'_>) -> Result<Option<String>, Problem> {
    let account = body.string("account")?.value();
    if account.as_ref().is_some_and(|text| text.len() > ACCOUNT_MAX) {
        return Err(Problem::validation(format!(
            "account must have at most {ACCOUNT_MAX} bytes."
        )));
    }
    Ok(account)
}

/// Continues a sign-in with a correct password: requires the second factor and opens the session. The attempts `right`
/// are returned if the code is missing.
async fn enter(
    call: &OpenCall,
    request: &LoginRequest,
    account: &Account,
    mut stored: StoredUser,
    (fresh, right): (&NewLogin, &[Attempts<'_>]),
) -> Result<(User, Session), Problem> {
    let people = &call.state;
    let password = stored.user.password.clone();
    for _ in 0..CHANGE_ATTEMPTS {
        let (user, factor) =
            match second_factor(people, &account.id, &stored.user, request.code.as_deref()).await? {
                Factor::None => (stored.user.clone(), "password"),
                Factor::Right(user, how) => (user, how),
                Factor::Missing => {
                    give_back(people, right).await?;
                    return Err(Code::TotpRequired.into());
                }
                Factor::Wrong => {
                    let found = [(account.clone(), stored)];
                    return Err(refused(call, &found, call.client, "code").await?);
                }
            };
        let ip = call.client.map(|client| client.to_string());
        let open = SessionOpening {
            old: &stored,
            new: &user,
            ends_others: false,
            reset: None,
            is_login: true,
            kind: "user.login",
            data: json!({ "ip": ip, "factor": factor }),
        };
        let scope = Scope::live(&account.id, &stored.user.id);
        if let SessionOpened::Done(session) = open
            .execute(&people.store, &scope, &fresh.session(people))
            .await?
        {
            return Ok((user, session));
        }
        // The user was changed meanwhile; if the password was, the checked one is not valid any more.
        let again = find(people, &account.id, &stored.user.email).await?;
        stored = match again {
            Some((_, again)) if again.user.id == stored.user.id && again.user.password == password => again,
            _ => return Err(Code::InvalidCredentials.into()),
        };
    }
    Err(Code::ServiceUnavailable.into())
}

/// 401, after noting the failed login in the audit log of each user that it may have been; as many writes are made for
/// a user who does not exist. `client` is `None` if it may have been a user of another account. Otherwise an account
/// would see sign-ins to other accounts, or that they exist.
pub(super) async fn refused(
    call: &OpenCall,
    found: &[(Account, StoredUser)],
    client: Option<IpAddr>,
    what: &str,
) -> Result<Problem, Problem> {
    call.state.metrics.login(Login::Wrong);
    let data = json!({ "ip": client.map(|client| client.to_string()), "wrong": what });
    let mut ids: Vec<(String, String)> = found
        .iter()
        .map(|(account, stored)| (account.id.clone(), stored.user.id.clone()))
        .collect();
    if ids.is_empty() {
        ids.push((NO_ACCOUNT.to_owned(), NO_USER.to_owned()));
    }
    let (store, data) = (&call.state.store, &data);
    let noting = ids.into_iter().map(|(account, user)| async move {
        let scope = Scope::live(&account, &user);
        note(store, &scope, &user, "user.login_failed", data.clone()).await
    });
    let noting = stream::iter(noting).buffer_unordered(ACCOUNTS_AT_ONCE);
    noting.try_collect::<()>().await?;
    Ok(Code::InvalidCredentials.into())
}

/// Cleans up after a login: returns the attempts with correct guesses, and ends an earlier session of this browser.
async fn clean_up(call: &OpenCall, right: &[Attempts<'_>]) -> Result<(), Problem> {
    give_back(&call.state, right).await?;
    end_earlier(&call.state, call.headers()).await
}

async fn give_back(people: &PeopleState, right: &[Attempts<'_>]) -> Result<(), Problem> {
    for attempt in right {
        attempt.give_back(&people.store).await?;
    }
    Ok(())
}

/// Ends the previous session of the browser, whose cookie is overwritten.
pub(super) async fn end_earlier(people: &PeopleState, headers: &HeaderMap) -> Result<(), Problem> {
    let SentCookie::Token(token) = SentCookie::from_headers(headers) else {
        return Ok(());
    };
    if let Some(place) = SessionPlace::find(&people.store, &token.hash()).await? {
        let scope = Scope::live(&place.account, &place.user);
        end(
            &people.store,
            &scope,
            &place.user,
            SessionEnd::One(&place.id),
            "session.revoked",
        )
        .await?;
    }
    Ok(())
}

/// `POST /logout`
pub async fn logout(call: Call) -> Answer {
    let me = Me::for_caller(&call)?;
    let scope = Scope::live(&call.caller.account, me.id);
    end(
        &call.state.store,
        &scope,
        me.id,
        SessionEnd::One(me.session),
        "user.logout",
    )
    .await?;
    Ok(Reply::done()?.header("set-cookie", &session::no_cookie(&call.admission)))
}
