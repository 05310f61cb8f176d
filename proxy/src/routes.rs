//! The routes of the edge (decision D39): requests are matched with this table; health and OpenAPI list it.

use domain::measured::Endpoint;

/// Optional parts of the edge that are switched on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct OfferedRoutes {
    /// `proxy.streaming`
    pub streaming: bool,
    /// `proxy.responses`
    pub responses: bool,
    /// `proxy.embeddings`
    pub embeddings: bool,
}

/// Route of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EdgeRoute {
    /// A metered call.
    Call(Endpoint),
    /// The models that have a price.
    Models,
    /// One model that has a price.
    Model,
    /// The health of the edge: available or unavailable for decisions.
    Health,
}

/// A row of the table.
#[derive(Debug)]
pub struct RouteRow {
    /// The path; for a single model, a prefix that the model's name follows.
    pub path: &'static str,
    /// The only method of the path.
    pub method: &'static str,
    /// Operation that serves the path.
    pub route: EdgeRoute,
    /// The setting that switches it on; `None` if it always is.
    pub switch: Option<Switch>,
}

/// Setting that switches a row on.
#[derive(Debug)]
pub struct Switch {
    /// Name of the setting.
    pub setting: &'static str,
    is_on: fn(OfferedRoutes) -> bool,
}

const fn call(path: &'static str, endpoint: Endpoint, switch: Option<Switch>) -> RouteRow {
    RouteRow {
        path,
        method: "POST",
        route: EdgeRoute::Call(endpoint),
        switch,
    }
}

const fn read(path: &'static str, route: EdgeRoute) -> RouteRow {
    RouteRow {
        path,
        method: "GET",
        route,
        switch: None,
    }
}

const RESPONSES: Switch = Switch {
    setting: "proxy.responses",
    is_on: |offered| offered.responses,
};
const EMBEDDINGS: Switch = Switch {
    setting: "proxy.embeddings",
    is_on: |offered| offered.embeddings,
};

static TABLE: [RouteRow; 6] = [
    call("/v1/chat/completions", Endpoint::Chat, None),
    call("/v1/responses", Endpoint::Responses, Some(RESPONSES)),
    call("/v1/embeddings", Endpoint::Embeddings, Some(EMBEDDINGS)),
    read("/v1/models", EdgeRoute::Models),
    read("/v1/models/{model}", EdgeRoute::Model),
    read("/v1/health", EdgeRoute::Health),
];

/// Path of a model, without its name.
const MODEL_PREFIX: &str = "/v1/models/";

/// Returns the name in the path of [`EdgeRoute::Model`], still percent-encoded.
pub fn model_of(path: &str) -> Option<&str> {
    path.strip_prefix(MODEL_PREFIX).filter(|name| !name.is_empty())
}

impl OfferedRoutes {
    /// All optional parts switched on.
    pub const ALL: Self = Self {
        streaming: true,
        responses: true,
        embeddings: true,
    };

    /// Returns the rows that are switched on.
    pub fn rows(self) -> impl Iterator<Item = &'static RouteRow> {
        TABLE
            .iter()
            .filter(move |row| row.switch.as_ref().is_none_or(|switch| (switch.is_on)(self)))
    }

    /// Returns the paths that are switched on.
    pub fn paths(self) -> Vec<&'static str> {
        self.rows().map(|row| row.path).collect()
    }

    /// Finds the row of a request's path.
    pub fn find(self, path: &str) -> Option<&'static RouteRow> {
        self.rows().find(|row| match row.route {
            EdgeRoute::Model => model_of(path).is_some(),
            _ => row.path == path,
        })
    }
}
