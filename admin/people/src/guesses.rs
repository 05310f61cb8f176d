//! Limits on guesses at passwords and codes, by user and by client address. An attempt is counted before anything is
//! read. Each route has its own limit, so exhausting one does not affect the others.

use crate::metrics::Login;
use crate::state::PeopleState;
use axum::http::header;
use connections::limit::site;
use endpoint::problem::{Code, Problem};
use std::net::IpAddr;
use std::time::Duration;
use store::credential_attempts::{AttemptPermit, Attempts};
use store::keys::Tries;

/// Returns the attempts of this kind by a person, named by e-mail or user id, or from a [`source`].
pub(super) const fn attempts(tries: Tries, of: &str) -> Attempts<'_> {
    Attempts { tries, of }
}

/// Returns the key of attempts by client address, by [`site`]. All unknown addresses share one.
pub(super) fn source(client: Option<IpAddr>) -> String {
    client.map_or_else(|| "unknown".to_owned(), |address| site(address).to_string())
}

/// Counts an attempt, before anything is read.
///
/// # Errors
/// 429 `LOGIN_LOCKED` if none is left.
pub(super) async fn take(people: &PeopleState, attempts: Attempts<'_>) -> Result<(), Problem> {
    match attempts.take(&people.store).await? {
        AttemptPermit::Yes => Ok(()),
        AttemptPermit::Locked(left) => Err(locked(people, left)),
    }
}

/// 429 `LOGIN_LOCKED` for so long.
pub(super) fn locked(people: &PeopleState, left: Duration) -> Problem {
    people.metrics.login(Login::Locked);
    let seconds = left.as_millis().div_ceil(1000).max(1);
    let problem = Problem::from(Code::LoginLocked);
    problem.header(header::RETRY_AFTER, &seconds.to_string())
}

/// The name of attempts at the user of an e-mail in one account.
pub(super) fn at_user(email: &str, account: &str) -> String {
    format!("{email} {account}")
}

/// Counts a sign-in that names an account, whichever it is, and returns the attempt if a right password gives it back.
/// Each one beyond the limit starts the span again, so that it lasts as long as the lock of any user of the e-mail.
///
/// # Errors
/// 503.
pub(super) async fn count_named<'a>(
    people: &PeopleState,
    email: &'a str,
) -> Result<Option<Attempts<'a>>, Problem> {
    let named = attempts(Tries::LoginNamed, email);
    if named.take(&people.store).await? == AttemptPermit::Yes {
        return Ok(Some(named));
    }
    named.give_back(&people.store).await?;
    named.take(&people.store).await?;
    Ok(None)
}

/// Counts a password that was right in a sign-in without an account, each once in a span. Where the e-mail has users in
/// several accounts it was a guess at the others: who owns one of these accounts could try any number of passwords by
/// giving them to its own user. It is counted alike where there is one user, so that the difference does not show.
///
/// # Errors
/// 429 `LOGIN_LOCKED` when there were too many different ones.
pub(super) async fn count_right_password(
    people: &PeopleState,
    email: &str,
    hash: &str,
) -> Result<(), Problem> {
    let same = at_user(email, hash);
    match attempts(Tries::RightPassword, &same).take(&people.store).await? {
        AttemptPermit::Locked(_) => Ok(()),
        AttemptPermit::Yes => {
            let counted = take(people, attempts(Tries::RightPasswords, email)).await;
            if counted.is_err() {
                attempts(Tries::RightPassword, &same)
                    .give_back(&people.store)
                    .await?;
            }
            counted
        }
    }
}
