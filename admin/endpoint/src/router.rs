//! From operations to the service of the management listener.

use crate::admission::Admission;
use crate::dispatch;
use crate::operation::Operation;
use crate::problem::{Code, Problem};
use axum::Router;
use axum::extract::RawPathParams;
use axum::extract::rejection::RawPathParamsRejection;
use axum::http::{Method, Request};
use axum::middleware::from_fn_with_state;
use axum::routing::{MethodFilter, MethodRouter};
use std::collections::BTreeMap;
use std::sync::Arc;

/// The paths of a service, with the operations of each.
pub struct Paths {
    admission: Arc<Admission>,
    methods: BTreeMap<String, MethodRouter>,
}

impl Paths {
    /// No paths yet. `admission` decides which requests reach an operation.
    pub const fn new(admission: Arc<Admission>) -> Self {
        Self {
            admission,
            methods: BTreeMap::new(),
        }
    }

    /// Adds operations under all their prefixes; their functions get `state`.
    pub fn mount<S: Send + Sync + 'static>(
        &mut self,
        operations: impl Iterator<Item = &'static Operation<S>>,
        state: &Arc<S>,
    ) {
        for operation in operations {
            let route = &operation.route;
            for prefix in route.prefixes() {
                let (admission, state) = (Arc::clone(&self.admission), Arc::clone(state));
                let handler = move |params: Result<RawPathParams, RawPathParamsRejection>,
                                    request: Request<_>| {
                    dispatch::run(
                        Arc::clone(&admission),
                        Arc::clone(&state),
                        operation,
                        params,
                        request,
                    )
                };
                let methods = self.methods.entry(format!("{prefix}{}", route.path)).or_default();
                *methods = std::mem::take(methods).on(filter(&route.method), handler);
            }
        }
    }

    /// Returns the service of these paths and of `pages`. Every request to it, whether it meets a route or not, gets
    /// its id, its security headers, its log line and its place in the metrics.
    pub fn into_router(self, pages: Router) -> Router {
        let mut router = Router::new();
        for (path, methods) in self.methods {
            router = router.route(&path, methods);
        }
        router
            .merge(pages)
            .method_not_allowed_fallback(async || Problem::from(Code::MethodNotAllowed).into_response())
            .fallback(async || Problem::from(Code::NotFound).into_response())
            .layer(from_fn_with_state(self.admission, dispatch::around))
    }
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
