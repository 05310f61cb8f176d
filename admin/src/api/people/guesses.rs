//! Attempts, which are taken before anything is looked at: by e-mail, and by the address that they come from.

use crate::metrics::Login;
use crate::problem::{Code, Problem};
use crate::serve::App;
use axum::http::header;
use shared::store::keys::Tries;
use shared::store::script::attempts::{Attempts, Taken};
use std::net::{IpAddr, Ipv6Addr};

/// The attempts to sign in with an e-mail.
pub(super) const fn login_attempts(email: &str) -> Attempts<'_> {
    Attempts {
        tries: Tries::Login,
        of: email,
    }
}

/// From where attempts come: an address, or for IPv6 the network of one customer. One that is not known is like any other.
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

/// The attempts from such a place.
pub(super) const fn source_attempts(source: &str) -> Attempts<'_> {
    Attempts {
        tries: Tries::Address,
        of: source,
    }
}

/// Takes an attempt, before anything is looked at.
///
/// # Errors
/// 429 `LOGIN_LOCKED` when there is none left.
pub(super) async fn take(app: &App, attempts: Attempts<'_>) -> Result<(), Problem> {
    match attempts.take(&app.store).await? {
        Taken::Yes => Ok(()),
        Taken::Locked(left) => {
            app.metrics.login(Login::Locked);
            let seconds = left.as_millis().div_ceil(1000).max(1);
            let problem = Problem::from(Code::LoginLocked);
            Err(problem.header(header::RETRY_AFTER, &seconds.to_string()))
        }
    }
}
