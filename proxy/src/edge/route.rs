//! The paths of the edge and their methods (decision D39).

use crate::reply::Reply;
use crate::reply::health::ENDPOINTS;
use crate::reply::refusal::{Refusal, RefusalKind};
use http::Method;
use http::header::ALLOW;

/// What a request is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Route {
    /// `POST /v1/chat/completions`
    Chat,
    /// `GET /v1/models`
    Models,
    /// `GET /v1/models/{model}`
    Model,
    /// `GET /v1/health`
    Health,
}

/// Why a request has no route.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Wrong {
    /// No such path.
    Path,
    /// The path has this method only.
    Method(&'static str),
}

/// What stands before the name of a model in a path.
const MODEL_PREFIX: &str = "/v1/models/";

/// The name in the path of [`Route::Model`], still percent-encoded.
#[must_use]
pub fn model_of(path: &str) -> Option<&str> {
    path.strip_prefix(MODEL_PREFIX).filter(|name| !name.is_empty())
}

/// The route of a request.
///
/// # Errors
/// [`Wrong`] says what is: 404 or 405.
pub fn of(method: &Method, path: &str) -> Result<Route, Wrong> {
    let (route, allowed) = match path {
        "/v1/chat/completions" => (Route::Chat, "POST"),
        "/v1/models" => (Route::Models, "GET"),
        "/v1/health" => (Route::Health, "GET"),
        path if model_of(path).is_some() => (Route::Model, "GET"),
        _ => return Err(Wrong::Path),
    };
    if method == allowed {
        Ok(route)
    } else {
        Err(Wrong::Method(allowed))
    }
}

impl Wrong {
    /// What kind of refusal it is.
    #[must_use]
    pub const fn kind(self) -> RefusalKind {
        match self {
            Self::Path => RefusalKind::NotFound,
            Self::Method(_) => RefusalKind::MethodNotAllowed,
        }
    }

    /// The answer.
    #[must_use]
    pub fn reply(self) -> Reply {
        match self {
            Self::Path => {
                let message = format!("No such path. This service has {}.", ENDPOINTS.join(", "));
                Refusal::new(self.kind(), message).reply()
            }
            Self::Method(allowed) => {
                let message = format!("This path has the method {allowed} only.");
                let mut reply = Refusal::new(self.kind(), message).reply();
                reply.set(ALLOW, allowed);
                reply
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_and_methods() {
        assert_eq!(of(&Method::POST, "/v1/chat/completions"), Ok(Route::Chat));
        assert_eq!(of(&Method::GET, "/v1/models"), Ok(Route::Models));
        assert_eq!(of(&Method::GET, "/v1/health"), Ok(Route::Health));
        assert_eq!(of(&Method::GET, "/v1/models/gpt-4o"), Ok(Route::Model));
        assert_eq!(
            of(&Method::GET, "/v1/models/a/b"),
            Ok(Route::Model),
            "a slash in a name"
        );
        assert_eq!(
            of(&Method::DELETE, "/v1/models/gpt-4o"),
            Err(Wrong::Method("GET"))
        );
        assert_eq!(of(&Method::GET, "/v1/models/"), Err(Wrong::Path));
        assert_eq!(
            of(&Method::GET, "/v1/chat/completions"),
            Err(Wrong::Method("POST"))
        );
        assert_eq!(of(&Method::HEAD, "/v1/health"), Err(Wrong::Method("GET")));
        assert_eq!(of(&Method::POST, "/v1/completions"), Err(Wrong::Path));
        assert_eq!(of(&Method::GET, "/v1/health/"), Err(Wrong::Path));
    }
}
