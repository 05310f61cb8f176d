//! Finds the route of a request, and answers those that have none.

use crate::reply::EdgeReply;
use crate::reply::refusal::{Refusal, RefusalKind};
use crate::routes::{EdgeRoute, OfferedRoutes};
use http::Method;
use http::header::{ALLOW, UPGRADE};
use http::request::Parts;

/// Why a request has no route.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NoRoute {
    /// The path does not exist.
    Path,
    /// No such path, but an Azure client would form it from the address and the model.
    AzurePath,
    /// No such path, but there is one behind `/v1`.
    WithoutVersion,
    /// A path that the operator has not switched on, with the setting that would.
    SwitchedOff(&'static str),
    /// The path exists with this method only.
    Method(&'static str),
    /// The path exists with this method only, and a WebSocket was requested.
    WebSocket(&'static str),
}

/// Finds the route of a request with this head.
///
/// # Errors
/// 404, 405, or 426 for a WebSocket: after a 426 Codex continues over HTTP, after other statuses it retries for
/// seconds.
pub fn of_request(offered: OfferedRoutes, head: &Parts) -> Result<EdgeRoute, NoRoute> {
    find(offered, &head.method, head.uri.path()).map_err(|no_route| match no_route {
        NoRoute::Method(allowed) if is_websocket(head) => NoRoute::WebSocket(allowed),
        no_route => no_route,
    })
}

fn is_websocket(head: &Parts) -> bool {
    let upgrade = head.headers.get(UPGRADE);
    head.method == Method::GET
        && upgrade.is_some_and(|upgrade| upgrade.as_bytes().eq_ignore_ascii_case(b"websocket"))
}

/// Finds the route of a request with this method and path.
///
/// # Errors
/// 404 or 405.
pub fn find(offered: OfferedRoutes, method: &Method, path: &str) -> Result<EdgeRoute, NoRoute> {
    let row = offered
        .find(path)
        .ok_or_else(|| NoRoute::from_path(offered, path))?;
    match method == row.method {
        true => Ok(row.route),
        false => Err(NoRoute::Method(row.method)),
    }
}

/// Beginnings of the paths that `AzureOpenAI` calls: with `azure_endpoint` set, and with `base_url` set.
const AZURE_PREFIXES: [&str; 2] = ["/openai/", "/v1/deployments/"];

impl NoRoute {
    /// Classifies a path that is not in the table.
    fn from_path(offered: OfferedRoutes, path: &str) -> Self {
        if AZURE_PREFIXES.iter().any(|prefix| path.starts_with(prefix)) {
            Self::AzurePath
        } else if let Some(switch) = OfferedRoutes::ALL.find(path).and_then(|row| row.switch.as_ref()) {
            Self::SwitchedOff(switch.setting)
        } else if offered.find(&format!("/v1{path}")).is_some() {
            Self::WithoutVersion
        } else {
            Self::Path
        }
    }

    /// Returns the kind of the refusal.
    pub const fn kind(self) -> RefusalKind {
        match self {
            Self::Path | Self::AzurePath | Self::WithoutVersion | Self::SwitchedOff(_) => {
                RefusalKind::NotFound
            }
            Self::Method(_) => RefusalKind::MethodNotAllowed,
            Self::WebSocket(_) => RefusalKind::UpgradeRequired,
        }
    }

    /// Builds the answer.
    pub fn reply(self, offered: OfferedRoutes) -> EdgeReply {
        match self {
            Self::Path => self.not_found(offered, "No such path."),
            Self::AzurePath => self.not_found(
                offered,
                "No such path: it has the form of Azure's. Use `OpenAI` with `base_url` set to this service's address and \
                 `/v1`, in place of `AzureOpenAI`.",
            ),
            Self::WithoutVersion => self.not_found(offered, "No such path: end the `base_url` of the client with `/v1`."),
            Self::SwitchedOff(setting) => self.not_found(
                offered,
                &format!("This path is switched off here. Ask the operator to switch it on with `{setting} = true`."),
            ),
            Self::Method(allowed) => {
                let message = format!("This path has the method {allowed} only.");
                let mut reply = Refusal::new(self.kind(), message).reply();
                reply.set(ALLOW, allowed);
                reply
            }
            Self::WebSocket(allowed) => {
                let message = format!("This path has no WebSocket. Send a {allowed} request.");
                let mut reply = Refusal::new(self.kind(), message).reply();
                reply.set(ALLOW, allowed);
                // Without `Connection: upgrade`, since Pingora replaces that header.
                reply.set(UPGRADE, "HTTP/1.1");
                reply
            }
        }
    }
}

impl NoRoute {
    fn not_found(self, offered: OfferedRoutes, why: &str) -> EdgeReply {
        let message = format!("{why} This service has {}.", offered.paths().join(", "));
        Refusal::new(self.kind(), message).reply()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use domain::measured::Endpoint;

    #[test]
    fn an_enabled_operation_has_a_route() {
        let all = OfferedRoutes {
            streaming: false,
            responses: true,
            embeddings: true,
        };
        for (path, endpoint, setting) in [
            ("/v1/responses", Endpoint::Responses, "proxy.responses"),
            ("/v1/embeddings", Endpoint::Embeddings, "proxy.embeddings"),
        ] {
            let find = |offered, method: &Method| super::find(offered, method, path);
            assert_eq!(find(all, &Method::POST), Ok(EdgeRoute::Call(endpoint)));
            assert_eq!(find(all, &Method::GET), Err(NoRoute::Method("POST")));
            assert_eq!(
                find(OfferedRoutes::default(), &Method::POST),
                Err(NoRoute::SwitchedOff(setting))
            );
            assert!(all.paths().contains(&path) && !OfferedRoutes::default().paths().contains(&path));
        }
    }

    #[test]
    fn paths_and_methods_have_routes() {
        let find = |method: &Method, path: &str| super::find(OfferedRoutes::default(), method, path);
        assert_eq!(
            find(&Method::POST, "/v1/chat/completions"),
            Ok(EdgeRoute::Call(Endpoint::Chat))
        );
        assert_eq!(find(&Method::GET, "/v1/models"), Ok(EdgeRoute::Models));
        assert_eq!(find(&Method::GET, "/v1/health"), Ok(EdgeRoute::Health));
        assert_eq!(find(&Method::GET, "/v1/models/gpt-4o"), Ok(EdgeRoute::Model));
        assert_eq!(
            find(&Method::GET, "/v1/models/a/b"),
            Ok(EdgeRoute::Model),
            "a slash in a name"
        );
        assert_eq!(
            find(&Method::DELETE, "/v1/models/gpt-4o"),
            Err(NoRoute::Method("GET"))
        );
        assert_eq!(find(&Method::GET, "/v1/models/"), Err(NoRoute::Path));
        assert_eq!(
            find(&Method::GET, "/v1/chat/completions"),
            Err(NoRoute::Method("POST"))
        );
        assert_eq!(find(&Method::HEAD, "/v1/health"), Err(NoRoute::Method("GET")));
        for path in ["/v1/completions", "/v1", "/", "/v1/v1/models", "/models/"] {
            assert_eq!(find(&Method::POST, path), Err(NoRoute::Path), "{path}");
        }
        for path in ["/chat/completions", "/models", "/models/gpt-4o"] {
            assert_eq!(find(&Method::POST, path), Err(NoRoute::WithoutVersion), "{path}");
        }
        for path in [
            "/openai/deployments/gpt-4o/chat/completions",
            "/openai/responses",
            "/v1/deployments/gpt-4o/chat/completions",
        ] {
            assert_eq!(find(&Method::POST, path), Err(NoRoute::AzurePath), "{path}");
        }
        assert_eq!(
            find(&Method::GET, "/v1/models/openai/gpt-4o"),
            Ok(EdgeRoute::Model),
            "a slash in a name"
        );
        assert_eq!(find(&Method::GET, "/v1/health/"), Err(NoRoute::Path));
    }
}
