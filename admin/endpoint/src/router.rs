//! From operations to the service of the management listener.

use crate::admission::Admission;
use crate::dispatch;
use crate::operation::Operation;
use crate::problem::{Code, Problem};
use axum::Router;
use axum::extract::RawPathParams;
use axum::extract::rejection::RawPathParamsRejection;
use axum::http::{Method, Request, Uri};
use axum::middleware::from_fn_with_state;
use axum::routing::{MethodFilter, MethodRouter};
use std::collections::BTreeMap;
use std::sync::Arc;

/// Prefix of the paths of OpenAI's API, which the edge serves.
const OPENAI: &str = "/v1/";

/// The paths of a service, with the operations of each.
pub struct Paths {
    admission: Arc<Admission>,
    paths: BTreeMap<String, Methods>,
}

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

    /// Returns the service of these paths and of `pages`. Adds request id, security headers, log line and metrics to
    /// every request, routed or not. `edge` is the configured URL of the edge, without `/v1`; answers to unknown paths
    /// of OpenAI's API name it.
    pub fn into_router(self, pages: Router, edge: Option<&str>) -> Router {
        let mut router = Router::new();
        let edge = of_edge(edge);
        for (path, methods) in self.paths {
            let problem = no_such_method(&methods.names);
            let refuse = move || async move { problem.into_response() };
            router = router.route(&path, methods.router.fallback(refuse));
        }
        router
            .merge(pages)
            .method_not_allowed_fallback(async || Problem::from(Code::MethodNotAllowed).into_response())
            .fallback(move |uri: Uri| {
                let problem = no_such_path(uri.path(), &edge);
                async move { problem.into_response() }
            })
            .layer(from_fn_with_state(self.admission, dispatch::around))
    }
}

fn no_such_method(names: &[&str]) -> Problem {
    let message = format!("This path has no such method; it has {}.", names.join(", "));
    Problem::new(Code::MethodNotAllowed, message)
}

/// Returns the sentence about the server of OpenAI's paths.
fn of_edge(url: Option<&str>) -> String {
    match url {
        Some(url) => format!(" Calls of agents go to the edge, at {url}/v1."),
        None => " Calls of agents go to the edge (`tollgate-proxy`).".to_owned(),
    }
}

/// The path is not repeated, since it is untrusted text. `of_edge` is added where OpenAI's paths are.
fn no_such_path(path: &str, of_edge: &str) -> Problem {
    let of_edge = if path.starts_with(OPENAI) { of_edge } else { "" };
    let message = format!("There is no such path; /reference lists those of the API.{of_edge}");
    Problem::new(Code::NotFound, message)
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
