//! `GET /installation`: the address of the edge, and the names under which provider keys are stored.

mod doc;

pub(crate) use doc::section;

use crate::state::{ApiState, Call};
use endpoint::{Answer, Reply, operations};
use serde::Serialize;
use utoipa::ToSchema;

operations! {
    /// Operations on the installation.
    ROUTES: ApiState, Management;

    GET "/installation", key(Read, Viewer), Both, PerMinute, get;
}

#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = Installation)]
struct Installation<'a> {
    success: bool,
    /// URL of the edge for agents, without `/v1`.
    #[schema(example = "https://edge.tollgate.example")]
    edge_url: &'a str,
    /// The provider for models that no named upstream serves.
    #[schema(example = "openai")]
    provider: &'a str,
    /// The names under which provider keys are stored, `provider` first.
    providers: Vec<Provider<'a>>,
}

#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = NamedProvider)]
struct Provider<'a> {
    #[schema(example = "openai")]
    name: &'a str,
    /// Required prefix of its keys; empty if any is allowed.
    #[schema(example = "sk-")]
    key_prefix: &'a str,
}

/// `GET /installation`
///
/// # Errors
/// No specific errors.
pub async fn get(call: Call) -> Answer {
    let edge = &call.state.edge;
    let named = |name| Provider {
        name,
        key_prefix: edge.providers.key_prefix(name),
    };
    Reply::ok(&Installation {
        success: true,
        edge_url: &edge.url,
        provider: edge.providers.default_name(),
        providers: edge.providers.names().map(named).collect(),
    })
}
