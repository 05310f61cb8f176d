//! Properties of an operation that follow from its row of the route table.

use axum::http::Method;
use endpoint::{Modes, Rate, Route};

/// True if the operation reads a request body.
pub(super) fn has_body(route: &Route) -> bool {
    matches!(route.method, Method::POST | Method::PATCH)
}

/// True if the operation exists for live records only.
pub(super) fn is_live_only(route: &Route) -> bool {
    route.modes == Modes::LiveOnly
}

/// True if the answer waits until the change is as safe as `store.durability` says: the operation moves money, decides
/// about it, or makes something with a name or a secret.
pub(super) fn is_confirmed(route: &Route) -> bool {
    let names = [
        "/spend",
        "/wallet/deposits",
        "/wallet/deposits/confirm",
        "/wallet/transfer",
        "/wallets/transfer",
        "/escrow/create",
        "/escrow/fund",
        "/escrow/release",
        "/escrow/dispute",
        "/intents/{id}/approve",
        "/intents/{id}/deny",
        "/agents",
        "/agents/{id}/virtual-keys",
        "/wallets/create",
        "/api-keys",
        "/invitations/accept",
    ];
    // The account's own wallet is opened when it is first looked at.
    let opens = route.method == Method::GET && route.path == "/wallet";
    opens || route.method == Method::POST && names.contains(&route.path)
}

/// True if the operation makes records with a budget (decision D71).
pub(super) fn has_budget(route: &Route) -> bool {
    let names = [
        "/agents",
        "/agents/{id}/provider-keys",
        "/agents/{id}/virtual-keys",
        "/api-keys",
        "/escrow/create",
        "/escrow/dispute",
        "/escrow/fund",
        "/escrow/release",
        "/policies",
        "/policies/{id}",
        "/spend",
        "/wallet/deposits",
        "/wallet/transfer",
        "/wallets/create",
        "/wallets/transfer",
    ];
    route.method == Method::POST && names.contains(&route.path)
}

/// Whether a call with an API key counts.
pub(super) fn is_counted(route: &Route) -> bool {
    route.rate != Rate::Uncounted
}
