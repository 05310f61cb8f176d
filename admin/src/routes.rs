//! The route table of the management API: one row for each operation, which drives authentication, routing, logs and the
//! tests that try every row (specification §4.2 and §4.3).

mod body;
mod call;
mod dispatch;
mod reply;
mod request_id;
mod run_id;
mod wallet_name;

pub use body::{CURRENCIES, Fields, Given, Text, missing};
pub use call::{Call, IDEMPOTENCY_FIELDS, page, require_agent_id};
pub(crate) use dispatch::method_label;
pub use dispatch::{BODY_MAX, Seen};
pub use reply::{Answer, Reply};
pub use run_id::require_run_id;
pub use wallet_name::WalletName;

use crate::api::{
    agents, decisions, deposits, dry_run, escrow, intents, policies, provider_keys, runs, spend,
    transactions, transfers, virtual_keys, wallets, webhooks,
};
use crate::problem::{Code, Problem};
use crate::serve::App;
use axum::Router;
use axum::extract::RawPathParams;
use axum::extract::rejection::RawPathParamsRejection;
use axum::http::{Method, Request};
use axum::middleware::from_fn_with_state;
use axum::routing::{MethodFilter, MethodRouter};
use futures::future::BoxFuture;
use shared::domain::permission::Permission;
use std::collections::BTreeMap;
use std::sync::Arc;

/// What every path stands under: both base forms serve the same handlers (decision D12).
pub const PREFIXES: [&str; 2] = ["/api/v1", "/v1"];

/// The prefix of the specification's user API, under which one path stands as well (decision D42).
const USER_PREFIX: &str = "/api/user";
/// That path.
const USER_PATH: &str = "/webhooks/{id}/deliveries";

/// What a path of the table stands under.
pub fn prefixes(path: &str) -> impl Iterator<Item = &'static str> {
    let user = (path == USER_PATH).then_some(USER_PREFIX);
    PREFIXES.into_iter().chain(user)
}

/// Which modes of key a route takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Modes {
    /// Live and test; each sees its own records only.
    Both,
    /// Live only, else 400 `LIVE_MODE_REQUIRED`.
    LiveOnly,
}

/// One operation.
#[derive(Debug)]
pub struct Route {
    /// The method.
    pub method: Method,
    /// The path behind the prefix, with its parameters in braces.
    pub path: &'static str,
    /// What the key must be allowed to do.
    pub permission: Permission,
    /// Which modes of key it takes.
    pub modes: Modes,
    handler: fn(Call) -> BoxFuture<'static, Answer>,
}

macro_rules! routes {
    ($($method:ident $path:literal, $permission:ident, $modes:ident, $handler:path;)+) => {
        /// Every operation of the management API.
        pub static ROUTES: &[Route] = &[$(Route {
            method: Method::$method,
            path: $path,
            permission: Permission::$permission,
            modes: Modes::$modes,
            handler: |call| Box::pin($handler(call)),
        },)+];
    };
}

routes! {
    POST   "/agents",                              Write, Both,     agents::create;
    GET    "/agents",                              Read,  Both,     agents::list;
    GET    "/agents/{id}",                         Read,  Both,     agents::get;
    PATCH  "/agents/{id}",                         Write, Both,     agents::update;
    DELETE "/agents/{id}",                         Write, Both,     agents::delete;
    POST   "/agents/{id}/freeze",                  Write, Both,     agents::freeze;
    POST   "/agents/{id}/unfreeze",                Write, Both,     agents::unfreeze;
    POST   "/agents/{id}/provider-keys",           Write, LiveOnly, provider_keys::store;
    GET    "/agents/{id}/provider-keys",           Read,  LiveOnly, provider_keys::list;
    POST   "/agents/{id}/virtual-keys",            Write, LiveOnly, virtual_keys::create;
    GET    "/agents/{id}/virtual-keys",            Read,  LiveOnly, virtual_keys::list;
    DELETE "/agents/{id}/virtual-keys/{keyId}",    Write, LiveOnly, virtual_keys::revoke;
    POST   "/policies",                            Write, Both,     policies::set;
    GET    "/policies",                            Read,  Both,     policies::list;
    POST   "/policies/{id}",                       Write, Both,     policies::set_for_agent;
    DELETE "/policies/{id}",                       Write, Both,     policies::delete;
    POST   "/wallets/create",                      Write, Both,     wallets::create;
    GET    "/wallets/{id}",                        Read,  Both,     wallets::get;
    GET    "/wallets/{id}/transactions",           Read,  Both,     transactions::list_of_wallet;
    POST   "/wallets/transfer",                    Write, Both,     transfers::create;
    GET    "/agents/{id}/wallet",                  Read,  Both,     wallets::of_agent_id;
    GET    "/wallet",                              Read,  Both,     wallets::all;
    POST   "/wallet/transfer",                     Write, Both,     transfers::create;
    POST   "/wallet/deposits",                     Write, Both,     deposits::create;
    POST   "/wallet/deposits/confirm",             Write, Both,     deposits::confirm;
    GET    "/transactions",                        Read,  Both,     transactions::list;
    POST   "/escrow/create",                       Write, Both,     escrow::create;
    POST   "/escrow/fund",                         Write, Both,     escrow::fund;
    POST   "/escrow/release",                      Write, Both,     escrow::release;
    POST   "/escrow/dispute",                      Write, Both,     escrow::dispute;
    GET    "/escrow",                              Read,  Both,     escrow::list;
    GET    "/escrow/{id}",                         Read,  Both,     escrow::get;

    POST   "/spend",                               Write, Both,     spend::spend;
    GET    "/intents",                             Read,  Both,     intents::list;
    GET    "/intents/{id}",                        Read,  Both,     intents::get;
    GET    "/intents/{id}/export",                 Read,  Both,     intents::export;
    POST   "/intents/{id}/approve",                Approve, Both,   intents::approve;
    POST   "/intents/{id}/deny",                   Approve, Both,   intents::deny;
    POST   "/decisions/dry-run",                   Write, Both,     dry_run::predict;
    GET    "/decisions/{id}",                      Read,  Both,     decisions::get;
    GET    "/agents/{id}/runs",                    Read,  Both,     runs::list;
    GET    "/agents/{id}/runs/{runId}",            Read,  Both,     runs::get;
    POST   "/agents/{id}/runs/{runId}",            Write, Both,     runs::end;

    POST   "/webhooks",                            Write, Both,     webhooks::create;
    GET    "/webhooks",                            Read,  Both,     webhooks::list;
    GET    "/webhooks/{id}",                       Read,  Both,     webhooks::get;
    PATCH  "/webhooks/{id}",                       Write, Both,     webhooks::update;
    DELETE "/webhooks/{id}",                       Write, Both,     webhooks::delete;
    POST   "/webhooks/{id}/test",                  Write, Both,     webhooks::test;
    GET    "/webhooks/{id}/deliveries",            Read,  Both,     webhooks::deliveries;
}

/// The service of the management listener.
pub fn router(app: Arc<App>) -> Router {
    let mut paths: BTreeMap<&str, MethodRouter> = BTreeMap::new();
    for route in ROUTES {
        let app = Arc::clone(&app);
        let handler = move |params: Result<RawPathParams, RawPathParamsRejection>, request: Request<_>| {
            dispatch::run(Arc::clone(&app), route, params, request)
        };
        let router = paths.remove(route.path).unwrap_or_default();
        paths.insert(route.path, router.on(filter(&route.method), handler));
    }
    let mut router = Router::new();
    for (path, methods) in &paths {
        for prefix in prefixes(path) {
            router = router.route(&format!("{prefix}{path}"), methods.clone());
        }
    }
    router
        .method_not_allowed_fallback(async || Problem::from(Code::MethodNotAllowed).into_response())
        .fallback(async || Problem::from(Code::NotFound).into_response())
        .layer(from_fn_with_state(app, dispatch::around))
}

/// The methods of the table; a GET route answers HEAD as well.
fn filter(method: &Method) -> MethodFilter {
    match *method {
        Method::GET => MethodFilter::GET,
        Method::PATCH => MethodFilter::PATCH,
        Method::DELETE => MethodFilter::DELETE,
        _ => MethodFilter::POST,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn permissions_follow_the_method() {
        for route in ROUTES {
            let decides = ["/intents/{id}/approve", "/intents/{id}/deny"].contains(&route.path);
            let expected = match (&route.method, decides) {
                (&Method::GET, _) => Permission::Read,
                (_, true) => Permission::Approve,
                (_, false) => Permission::Write,
            };
            assert_eq!(route.permission, expected, "{} {}", route.method, route.path);
            let known = [Method::GET, Method::POST, Method::PATCH, Method::DELETE];
            assert!(
                known.contains(&route.method),
                "`filter` does not know {}",
                route.method
            );
        }
    }

    #[test]
    fn provider_and_virtual_keys_are_live_only() {
        for route in ROUTES {
            let keys = route.path.contains("provider-keys") || route.path.contains("virtual-keys");
            assert_eq!(
                keys,
                route.modes == Modes::LiveOnly,
                "{} {}",
                route.method,
                route.path
            );
        }
    }

    #[test]
    fn no_operation_is_listed_twice() {
        let mut seen = HashSet::new();
        for route in ROUTES {
            assert!(
                seen.insert((&route.method, route.path)),
                "{} {}",
                route.method,
                route.path
            );
        }
    }
}
