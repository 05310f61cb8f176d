//! Limits on guesses at passwords and codes, by person and by client address. An attempt is counted before anything is
//! read. Each route has its own limit: who exhausts one leaves the others untouched.

use crate::metrics::Login;
use crate::state::PeopleState;
use axum::http::header;
use endpoint::problem::{Code, Problem};
use std::net::{IpAddr, Ipv6Addr};
use store::attempts::{Attempts, Taken};
use store::keys::Tries;

/// The attempts of this kind by a person, named by e-mail or user id, or from a [`source`].
pub(super) const fn attempts(tries: Tries, of: &str) -> Attempts<'_> {
    Attempts { tries, of }
}

/// The key of attempts by client address: the address, or for IPv6 the /64 network of one customer. All unknown
/// addresses share one.
pub(super) fn source(client: Option<IpAddr>) -> String {
    match client {
        None => "unknown".to_owned(),
        Some(IpAddr::V4(address)) => address.to_string(),
        Some(IpAddr::V6(address)) => {
            let [a, b, c, d, ..] = address.segments();
            Ipv6Addr::new(a, b, c, d, 0, 0, 0, 0).to_string()
        }
    }
}

/// Takes an attempt, before anything is read.
///
/// # Errors
/// 429 `LOGIN_LOCKED` when there is none left.
pub(super) async fn take(people: &PeopleState, attempts: Attempts<'_>) -> Result<(), Problem> {
    match attempts.take(&people.store).await? {
        Taken::Yes => Ok(()),
        Taken::Locked(left) => {
            people.metrics.login(Login::Locked);
            let seconds = left.as_millis().div_ceil(1000).max(1);
            let problem = Problem::from(Code::LoginLocked);
            Err(problem.header(header::RETRY_AFTER, &seconds.to_string()))
        }
    }
}
