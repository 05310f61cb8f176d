//! The route tables: one row for each operation, which drives authentication, routing, rate limits, logs, documentation and
//! the tests that try every row (specification §4.2 and §4.3, decisions D8 to D12).

use super::route::{Access, Base, Handler, Modes, Rate, Route};
use crate::api::{
    account, agents, api_keys, audit, decisions, deposits, dry_run, escrow, intents, overview, people,
    policies, provider_keys, runs, spend, transactions, transfers, usage, virtual_keys, wallets, webhooks,
};
use axum::http::Method;
use domain::permission::Permission;
use domain::role::Role;

macro_rules! access {
    (key($permission:ident, $role:ident)) => {
        Access::Key(Permission::$permission, Role::$role)
    };
    (session($role:ident)) => {
        Access::Session(Role::$role)
    };
    (public) => {
        Access::Public
    };
}

macro_rules! handler {
    (public, $handler:path) => {
        Handler::Open(|call| Box::pin($handler(call)))
    };
    ($access:ident, $handler:path) => {
        Handler::Known(|call| Box::pin($handler(call)))
    };
}

macro_rules! has_query {
    () => {
        false
    };
    (query) => {
        true
    };
}

macro_rules! routes {
    ($(#[$doc:meta])+ $name:ident, $base:ident;
     $($method:ident $path:literal, $access:ident $(($($who:tt)+))?, $modes:ident, $rate:ident, $handler:path
       $(, $query:ident)?;)+) => {
        $(#[$doc])+
        pub static $name: &[Route] = &[$(Route {
            base: Base::$base,
            method: Method::$method,
            path: $path,
            access: access!($access $(($($who)+))?),
            modes: Modes::$modes,
            rate: Rate::$rate,
            has_query: has_query!($($query)?),
            handler: handler!($access, $handler),
        },)+];
    };
}

routes! {
    /// Every operation of the management API.
    ROUTES, Management;

    POST   "/agents",                             key(Write, Admin),     Both,     PerDay,       agents::create;
    GET    "/agents",                             key(Read, Viewer),     Both,     PerMinute,    agents::list, query;
    GET    "/agents/{id}",                        key(Read, Viewer),     Both,     PerMinute,    agents::get;
    PATCH  "/agents/{id}",                        key(Write, Admin),     Both,     PerMinute,    agents::update;
    DELETE "/agents/{id}",                        key(Write, Admin),     Both,     PerMinute,    agents::delete;
    POST   "/agents/{id}/freeze",                 key(Write, Manager),   Both,     PerMinute,    agents::freeze;
    POST   "/agents/{id}/unfreeze",               key(Write, Manager),   Both,     PerMinute,    agents::unfreeze;
    POST   "/agents/{id}/provider-keys",          key(Write, Admin),     LiveOnly, PerMinute,    provider_keys::store;
    GET    "/agents/{id}/provider-keys",          key(Read, Viewer),     LiveOnly, PerMinute,    provider_keys::list, query;
    POST   "/agents/{id}/virtual-keys",           key(Write, Admin),     LiveOnly, PerMinute,    virtual_keys::create;
    GET    "/agents/{id}/virtual-keys",           key(Read, Viewer),     LiveOnly, PerMinute,    virtual_keys::list, query;
    DELETE "/agents/{id}/virtual-keys/{keyId}",   key(Write, Admin),     LiveOnly, PerMinute,    virtual_keys::revoke;
    GET    "/agents/{id}/usage",                  key(Read, Viewer),     Both,     PerMinute,    usage::get;
    GET    "/overview",                           key(Read, Viewer),     Both,     PerMinute,    overview::get, query;
    GET    "/account",                            key(Read, Viewer),     Both,     PerMinute,    account::get;
    POST   "/account/plan",                       session(Owner),        Both,     Uncounted,    account::choose_plan;
    POST   "/policies",                           key(Write, Admin),     Both,     PerMinute,    policies::set;
    GET    "/policies",                           key(Read, Viewer),     Both,     PerMinute,    policies::list, query;
    POST   "/policies/{id}",                      key(Write, Admin),     Both,     PerDay,       policies::set_for_agent;
    DELETE "/policies/{id}",                      key(Write, Admin),     Both,     PerMinute,    policies::delete;
    POST   "/wallets/create",                     key(Write, Admin),     Both,     WalletMinute, wallets::create;
    GET    "/wallets/{id}",                       key(Read, Viewer),     Both,     WalletMinute, wallets::get;
    GET    "/wallets/{id}/transactions",          key(Read, Viewer),     Both,     WalletMinute, transactions::list_of_wallet, query;
    POST   "/wallets/transfer",                   key(Write, Admin),     Both,     WalletMinute, transfers::create;
    GET    "/agents/{id}/wallet",                 key(Read, Viewer),     Both,     PerDay,       wallets::of_agent_id;
    GET    "/wallet",                             key(Read, Viewer),     Both,     PerMinute,    wallets::all, query;
    POST   "/wallet/transfer",                    key(Write, Admin),     Both,     PerDay,       transfers::create;
    POST   "/wallet/deposits",                    key(Write, Owner),     Both,     PerMinute,    deposits::create;
    POST   "/wallet/deposits/confirm",            key(Write, Owner),     Both,     PerMinute,    deposits::confirm;
    GET    "/transactions",                       key(Read, Viewer),     Both,     PerDay,       transactions::list, query;
    POST   "/escrow/create",                      key(Write, Admin),     Both,     WalletMinute, escrow::create;
    POST   "/escrow/fund",                        key(Write, Admin),     Both,     PerMinute,    escrow::fund;
    POST   "/escrow/release",                     key(Write, Manager),   Both,     WalletMinute, escrow::release;
    POST   "/escrow/dispute",                     key(Write, Manager),   Both,     PerMinute,    escrow::dispute;
    GET    "/escrow",                             key(Read, Viewer),     Both,     PerMinute,    escrow::list, query;
    GET    "/escrow/{id}",                        key(Read, Viewer),     Both,     PerMinute,    escrow::get;

    GET    "/audit",                              key(Read, Viewer),     Both,     PerDay,       audit::list, query;
    GET    "/audit/export",                       key(Read, Viewer),     Both,     PerMinute,    audit::export, query;
    GET    "/audit/verify",                       key(Read, Viewer),     Both,     PerMinute,    audit::verify;
    GET    "/audit/checkpoint",                   key(Read, Viewer),     Both,     PerMinute,    audit::checkpoint, query;

    POST   "/spend",                              key(Write, Admin),     Both,     PerDay,       spend::spend;
    GET    "/intents",                            key(Read, Viewer),     Both,     PerMinute,    intents::list, query;
    GET    "/intents/{id}",                       key(Read, Viewer),     Both,     PerMinute,    intents::get;
    GET    "/intents/{id}/export",                key(Read, Viewer),     Both,     PerMinute,    intents::export, query;
    POST   "/intents/{id}/approve",               key(Approve, Manager), Both,     PerMinute,    intents::approve;
    POST   "/intents/{id}/deny",                  key(Approve, Manager), Both,     PerMinute,    intents::deny;
    POST   "/decisions/dry-run",                  key(Write, Viewer),    Both,     PerMinute,    dry_run::predict;
    GET    "/decisions/{id}",                     key(Read, Viewer),     Both,     PerMinute,    decisions::get;
    GET    "/agents/{id}/runs",                   key(Read, Viewer),     Both,     PerMinute,    runs::list, query;
    GET    "/agents/{id}/runs/{runId}",           key(Read, Viewer),     Both,     PerMinute,    runs::get;
    POST   "/agents/{id}/runs/{runId}",           key(Write, Admin),     Both,     PerMinute,    runs::end;

    POST   "/webhooks",                           key(Write, Admin),     Both,     PerMinute,    webhooks::create;
    GET    "/webhooks",                           key(Read, Viewer),     Both,     PerMinute,    webhooks::list, query;
    GET    "/webhooks/{id}",                      key(Read, Viewer),     Both,     PerMinute,    webhooks::get;
    PATCH  "/webhooks/{id}",                      key(Write, Admin),     Both,     PerMinute,    webhooks::update;
    DELETE "/webhooks/{id}",                      key(Write, Admin),     Both,     PerMinute,    webhooks::delete;
    POST   "/webhooks/{id}/test",                 key(Write, Admin),     Both,     PerMinute,    webhooks::test;
    GET    "/webhooks/{id}/deliveries",           key(Read, Viewer),     Both,     PerMinute,    webhooks::deliveries, query;
    POST   "/webhooks/{id}/deliveries/{deliveryId}/redeliver", key(Write, Admin), Both, PerMinute, webhooks::again;

    POST   "/api-keys",                           session(Admin),        Both,     Uncounted,    api_keys::create;
    GET    "/api-keys",                           session(Admin),        Both,     Uncounted,    api_keys::list, query;
    DELETE "/api-keys/{id}",                      session(Admin),        Both,     Uncounted,    api_keys::revoke;
}

routes! {
    /// Every operation of the user API.
    USER_ROUTES, User;

    POST   "/login",                              public,                Both,     Uncounted,    people::login::login;
    POST   "/logout",                             session(Viewer),       Both,     Uncounted,    people::login::logout;
    GET    "/me",                                 session(Viewer),       Both,     Uncounted,    people::login::me;
    POST   "/password",                           session(Viewer),       Both,     Uncounted,    people::password::change;
    POST   "/password/reset",                     public,                Both,     Uncounted,    people::password::reset;
    GET    "/sessions",                           session(Viewer),       Both,     Uncounted,    people::sessions::list, query;
    DELETE "/sessions/{id}",                      session(Viewer),       Both,     Uncounted,    people::sessions::revoke;
    POST   "/sessions/revoke-others",             session(Viewer),       Both,     Uncounted,    people::sessions::revoke_others;
    POST   "/totp",                               session(Viewer),       Both,     Uncounted,    people::totp::begin;
    POST   "/totp/confirm",                       session(Viewer),       Both,     Uncounted,    people::totp::confirm;
    POST   "/totp/disable",                       session(Viewer),       Both,     Uncounted,    people::totp::disable;
    GET    "/team",                               session(Viewer),       Both,     Uncounted,    people::team::list, query;
    PATCH  "/team/{id}",                          session(Owner),        Both,     Uncounted,    people::team::change;
    DELETE "/team/{id}",                          session(Owner),        Both,     Uncounted,    people::team::remove, query;
    POST   "/invitations",                        session(Owner),        Both,     Uncounted,    people::invitations::create;
    GET    "/invitations",                        session(Owner),        Both,     Uncounted,    people::invitations::list, query;
    DELETE "/invitations/{id}",                   session(Owner),        Both,     Uncounted,    people::invitations::revoke;
    POST   "/invitations/look",                   public,                Both,     Uncounted,    people::invitations::look;
    POST   "/invitations/accept",                 public,                Both,     Uncounted,    people::invitations::accept;
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
            let Access::Key(permission, _) = route.access else {
                continue;
            };
            assert_eq!(permission, expected, "{} {}", route.method, route.path);
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
        for route in ROUTES.iter().chain(USER_ROUTES) {
            for prefix in route.prefixes() {
                let path = format!("{prefix}{}", route.path);
                assert!(
                    seen.insert((&route.method, path)),
                    "{} {}",
                    route.method,
                    route.path
                );
            }
        }
    }

    #[test]
    fn only_what_a_key_can_call_is_counted() {
        for route in ROUTES.iter().chain(USER_ROUTES) {
            let counted = route.rate != Rate::Uncounted;
            let by_key = matches!(route.access, Access::Key(..));
            assert_eq!(counted, by_key, "{} {}", route.method, route.path);
        }
    }

    #[test]
    fn looking_changes_nothing_and_needs_no_more_than_a_viewer() {
        let team = ["/invitations", "/api-keys"];
        for route in ROUTES.iter().chain(USER_ROUTES) {
            let least = match route.access {
                Access::Key(_, role) | Access::Session(role) => role,
                Access::Public => continue,
            };
            if route.method == Method::GET && !team.contains(&route.path) {
                assert_eq!(least, Role::Viewer, "{}", route.path);
            }
        }
    }
}
