//! From a request to the row of the route table that answers it.

mod body;
mod call;
mod dispatch;
mod paging;
mod receive;
mod reply;
mod request_id;
mod route;
mod run_id;
mod table;
mod wallet_name;

pub use body::{CURRENCIES, Fields, Given, OBJECT_MAX as FIELD_OBJECT_MAX, Text, missing};
pub(crate) use call::no_plan;
pub use call::{Call, IDEMPOTENCY_FIELDS, IdempotencyKey, OpenCall, require_agent_id, time};
pub use dispatch::Seen;
pub(crate) use dispatch::method_label;
pub(crate) use paging::bad_cursor;
pub use paging::{CURSOR_MAX, OFFSET_MAX, PAGE_DEFAULT, PAGE_MAX, PAGING, Paging};
pub use receive::{BODY_MAX, BodyMemory, PUBLIC_BODY_MAX};
pub use reply::{Answer, Done, Reply};
pub(crate) use request_id::generated as new_request_id;
pub use route::{Access, Base, Modes, PREFIXES, Rate, Route};
pub use run_id::require_run_id;
pub use table::{ROUTES, USER_ROUTES};
pub use wallet_name::WalletName;

use crate::dashboard;
use crate::problem::{Code, Problem};
use crate::reference;
use crate::serve::App;
use axum::Router;
use axum::extract::RawPathParams;
use axum::extract::rejection::RawPathParamsRejection;
use axum::http::{Method, Request};
use axum::middleware::from_fn_with_state;
use axum::routing::{MethodFilter, MethodRouter};
use std::collections::BTreeMap;
use std::sync::Arc;

/// The service of the management listener.
pub fn router(app: Arc<App>) -> Router {
    let mut paths: BTreeMap<String, MethodRouter> = BTreeMap::new();
    for route in ROUTES.iter().chain(USER_ROUTES) {
        for prefix in route.prefixes() {
            let app = Arc::clone(&app);
            let handler = move |params: Result<RawPathParams, RawPathParamsRejection>,
                                request: Request<_>| {
                dispatch::run(Arc::clone(&app), route, params, request)
            };
            let methods = paths.entry(format!("{prefix}{}", route.path)).or_default();
            *methods = std::mem::take(methods).on(filter(&route.method), handler);
        }
    }
    let mut router = Router::new();
    for (path, methods) in paths {
        router = router.route(&path, methods);
    }
    router
        .merge(dashboard::router(&app))
        .merge(reference::router())
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
