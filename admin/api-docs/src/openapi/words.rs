//! Texts of the document: the description of the whole API, and for each row of the route table its required
//! permissions.

use axum::http::Method;
use endpoint::{Access, Modes, Route, RouteRate};
use openapi::parts::{self, requirement, secret};
use openapi::{Json, object};

/// Description of the server, which all paths are relative to.
pub(super) const SERVER: &str = "This server. Every path under /api/v1 is served under /v1 as well.";

const ABOUT: &str = "\
Tollgate stands between AI agents and money: it meters and caps their calls to language models, and keeps their wallets, \
escrows and payout intents. This API manages it. The proxy that agents call has a document of its own.\n\n\
**Callers.** An API key, as `Authorization: Bearer <API_KEY>` or `x-api-key: <API_KEY>`, has a mode (`live` or `test`) and \
permissions (`read`, `write`, `approve`). A person's session is a cookie, and a state-changing call with it sends \
`X-CSRF-Token` too. Where both come, the API key counts.\n\n\
**Answers.** A success has `success: true`. An error is `{\"error\": \"<sentence>\", \"code\": \"<CODE>\"}`. Lists have `total`, \
`limit` and `offset`. Amounts are exact decimal numbers of USD. Fields without a value are `null` and present. Unknown fields of a \
body and unknown parameters of a query are refused, so that a misspelt one is never ignored.\n\n\
**Once.** Calls that move money take an `Idempotency-Key`: repeat them with the same one after a lost answer.";

/// Returns the head of the document.
pub(super) fn info() -> Json {
    let summary = "Agents, policies, wallets, escrow, intents, keys, webhooks, the audit trail and the people who run it.";
    parts::info("Tollgate management API", summary, ABOUT)
}

/// Returns the descriptions of the ways in which callers authenticate.
pub(super) fn security_schemes() -> Json {
    object([
        (
            "bearer",
            parts::bearer("An API key, `svc_live_…`, `svc_test_…` or `sk_service_…`."),
        ),
        (
            "apiKey",
            secret("header", "x-api-key", "The same API key in a header of its own."),
        ),
        (
            "session",
            secret(
                "cookie",
                "tollgate_session",
                "The session of a person, set by `POST /api/user/login`.",
            ),
        ),
        (
            "csrf",
            secret(
                "header",
                "X-CSRF-Token",
                "The `csrfToken` of the session, on every call that changes something.",
            ),
        ),
    ])
}

/// Returns the authentication that an operation requires.
pub(super) fn security(route: &Route) -> Json {
    let session = match route.method {
        Method::GET => requirement("session"),
        _ => requirement("session").with("csrf", Json::List(Vec::new())),
    };
    match route.access {
        Access::Key(..) => Json::List(vec![requirement("bearer"), requirement("apiKey"), session]),
        Access::Session(_) => Json::List(vec![session]),
        Access::Public => Json::List(Vec::new()),
    }
}

/// Returns the machine-readable permissions and limits of an operation.
pub(super) fn extensions(route: &Route) -> Vec<(&'static str, Json)> {
    let mut extensions = Vec::new();
    match route.access {
        Access::Key(permission, role) => {
            extensions.push(("x-permission", permission.as_str().into()));
            extensions.push(("x-role", role.as_str().into()));
        }
        Access::Session(role) => extensions.push(("x-role", role.as_str().into())),
        Access::Public => {}
    }
    if route.rate.counted().is_some() {
        extensions.push(("x-rate", rate(route.rate).into()));
    }
    if route.modes == Modes::LiveOnly {
        extensions.push(("x-modes", vec!["live"].into()));
    }
    extensions
}

const fn rate(rate: RouteRate) -> &'static str {
    match rate {
        RouteRate::WalletMinute => "wallet_requests_per_minute",
        RouteRate::PerDay => "agent_requests_per_day",
        RouteRate::PerMinute => "management_requests_per_minute",
        RouteRate::Uncounted => "none",
    }
}

/// Composes the description: the documentation, the required permissions, and the limits.
pub(super) fn about(route: &Route, says: &str) -> String {
    let who = match route.access {
        Access::Key(permission, role) => format!(
            "**Who:** an API key with the permission `{permission}`, or a session of the role `{role}` or above."
        ),
        Access::Session(role) => {
            format!("**Who:** a session of the role `{role}` or above; no API key.")
        }
        Access::Public => "**Who:** anyone.".to_owned(),
    };
    let mode = match route.modes {
        Modes::Both => "",
        Modes::LiveOnly => " Live mode only.",
    };
    let counts = match route.rate.counted().is_some() {
        true => format!(
            " **Rate:** the plan's `{}` for each live API key.",
            rate(route.rate)
        ),
        false => String::new(),
    };
    let paragraphs = [says.to_owned(), format!("{who}{mode}{counts}")];
    let paragraphs: Vec<String> = paragraphs.into_iter().filter(|text| !text.is_empty()).collect();
    paragraphs.join("\n\n")
}
