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
    paths: BTreeMap<String, Methods>,
}

/// The methods of a path.
#[derive(Default)]
struct Methods {
    router: MethodRouter,
    names: Vec<&'static str>,
}

impl Paths {
    /// Creates a router without paths. `admission` decides which requests reach an operation.
    pub const fn new(admission: Arc<Admission>) -> Self {
        Self {
            admission,
            paths: BTreeMap::new(),
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
                let methods = self.paths.entry(format!("{prefix}{}", route.path)).or_default();
                methods.router = std::mem::take(&mut methods.router).on(filter(&route.method), handler);
                methods.names.push(route.method.as_str());
            }
        }
    }

    /// Returns the service of these paths and of `pages`. Every request to it, whether it meets a route or not, gets
    /// its id, its security headers, its log line and its place in the metrics.
    pub fn into_router(self, pages: Router) -> Router {
        let mut router = Router::new();
        for (path, methods) in self.paths {
            let problem = no_such_method(&methods.names);
            let refuse = move || async move { problem.into_response() };
            router = router.route(&path, methods.router.fallback(refuse));
        }
        router
            .merge(pages)
            .method_not_allowed_fallback(async || Problem::from(Code::MethodNotAllowed).into_response())
            .fallback(async || no_such_path().into_response())
            .layer(from_fn_with_state(self.admission, dispatch::around))
    }
}

fn no_such_method(names: &[&str]) -> Problem {
    let message = format!("This path has no such method; it has {}.", names.join(", "));
    Problem::new(Code::MethodNotAllowed, message)
}

/// The path is not repeated, since it is untrusted text.
fn no_such_path() -> Problem {
    Problem::new(
        Code::NotFound,
        "There is no such path; /reference lists those of the API.",
    )
}

/// Returns the methods for a method of the table; a GET route also answers HEAD.
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

    #[test]
    fn a_method_that_a_path_has_not_is_answered_with_those_that_it_has() {
        let problem = no_such_method(&["POST", "GET"]);
        assert_eq!(problem.code(), Code::MethodNotAllowed);
        assert_eq!(
            problem.message(),
            "This path has no such method; it has POST, GET."
        );
    }
}
