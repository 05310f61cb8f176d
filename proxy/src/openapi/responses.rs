//! Responses of each operation by status: denials, refusals, and the provider's own answers.

use super::{headers, schemas};
use crate::reply::refusal::RefusalKind;
use crate::reply::{denied, health, models, names, refusal};
use domain::denial::{Denial, DenialStage};
use domain::measured::Endpoint;
use openapi::components::public;
use openapi::parts;
use openapi::{Components, Json, object};
use std::collections::BTreeMap;

/// Groups of paths with the same answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum PathGroup {
    Call(Endpoint),
    Models,
    Model,
    Health,
}

/// Possible answers with one status.
#[derive(Debug, Default)]
struct StatusAnswers {
    description: Vec<String>,
    denied: Vec<&'static str>,
    refused: Vec<&'static str>,
}

impl PathGroup {
    /// Returns whether the operation can answer with this denial.
    const fn is_denied(self, denial: Denial) -> bool {
        match self {
            Self::Call(_) => true,
            // Only key, rate and store are checked for these.
            Self::Models | Self::Model => {
                matches!(denial.stage(), DenialStage::BeforeCap) && !matches!(denial, Denial::NoProviderKey)
            }
            Self::Health => false,
        }
    }

    /// Returns whether the operation can answer with this refusal.
    fn is_refused(self, kind: RefusalKind) -> bool {
        let about_key = matches!(kind.status(), 401 | 403);
        let about_head = matches!(kind, RefusalKind::BadRequest | RefusalKind::HeadTooLong);
        match self {
            Self::Call(endpoint) => is_refused_call(endpoint, kind),
            Self::Models => about_head || about_key,
            Self::Model => kind == RefusalKind::ModelNotFound || about_head || about_key,
            Self::Health => about_head,
        }
    }
}

/// Returns whether a call of this endpoint can be answered with this refusal.
fn is_refused_call(endpoint: Endpoint, kind: RefusalKind) -> bool {
    match kind {
        RefusalKind::ModelNotFound => false,
        RefusalKind::MissingMessages => endpoint == Endpoint::Chat,
        // Chat completions are always on.
        RefusalKind::NotFound | RefusalKind::MissingInput => endpoint != Endpoint::Chat,
        RefusalKind::MissingTokenLimit => endpoint != Endpoint::Embeddings,
        kind => !RefusalKind::OF_NO_ROUTE.contains(&kind),
    }
}

/// Builds all responses of an operation.
pub(super) fn all(components: &mut Components, operation: PathGroup) -> Json {
    let mut statuses: BTreeMap<u16, StatusAnswers> = BTreeMap::new();
    for denial in Denial::ALL.iter().filter(|denial| operation.is_denied(**denial)) {
        let status = statuses.entry(denial.status()).or_default();
        status
            .description
            .push(format!("- `{}`: {}", denial.reason(), denial.message()));
        status.denied.push(denial.reason());
    }
    for kind in RefusalKind::ALL
        .iter()
        .filter(|kind| operation.is_refused(**kind))
    {
        let status = statuses.entry(kind.status()).or_default();
        status
            .description
            .push(format!("- `{}`: {}", kind.code(), public(kind.meaning())));
        status.refused.push(kind.code());
    }
    let mut all = vec![("200".to_owned(), success(components, operation))];
    all.extend(
        statuses
            .into_iter()
            .map(|(status, what)| (status.to_string(), error(components, operation, status, &what))),
    );
    match operation {
        PathGroup::Call(_) => {
            let description = "Any other status is the provider's own, passed through with its body, less fragments of keys.";
            all.push((
                "default".to_owned(),
                response(components, description, approved_headers(), None),
            ));
        }
        PathGroup::Health => {
            let schema = components.schema::<health::HealthBody<'_>>();
            let headers = headers::some(&[names::REQUEST_ID, names::OVERHEAD_MS]);
            let description =
                "`degraded`: the edge cannot reach its store or may not trust it, and every call is denied.";
            all.push((
                "503".to_owned(),
                response(components, description, headers, Some(schema)),
            ));
        }
        PathGroup::Models | PathGroup::Model => {}
    }
    all.sort_by(|(a, _), (b, _)| a.cmp(b));
    all.into_iter().collect()
}

fn approved_headers() -> Json {
    headers::some(&[
        names::DECISION,
        names::ALLOW_ID,
        names::RUN_ID,
        names::ESTIMATED_USD,
        names::ACTUAL_USD,
        names::SHOULD_RETRY,
        names::OVERHEAD_MS,
        names::REQUEST_ID,
    ])
}

fn success(components: &mut Components, operation: PathGroup) -> Json {
    let plain = headers::some(&[names::REQUEST_ID, names::OVERHEAD_MS]);
    match operation {
        PathGroup::Call(endpoint) => success_of_call(components, endpoint),
        PathGroup::Models => {
            let schema = components.schema::<models::ModelsBody<'_>>();
            response(components, "The models.", plain, Some(schema))
        }
        PathGroup::Model => {
            let schema = components.schema::<models::Model<'_>>();
            response(components, "The model.", plain, Some(schema))
        }
        PathGroup::Health => {
            let schema = components.schema::<health::HealthBody<'_>>();
            response(components, "Every call can be decided.", plain, Some(schema))
        }
    }
}

/// Builds the provider's answer: complete, and as a stream if the endpoint supports streams.
fn success_of_call(components: &mut Components, endpoint: Endpoint) -> Json {
    let (name, schema) = schemas::answer(endpoint);
    let whole = components.named(name, schema);
    let says = "Approved: the provider's answer, and what it cost in the headers.";
    let Some((name, schema)) = schemas::events(endpoint) else {
        return response(components, says, approved_headers(), Some(whole));
    };
    let says = format!(
        "{says} With `stream: true` its events, byte for byte and without delay, except for a usage frame that the caller did not request."
    );
    let events = components.named(name, schema);
    let mut answer = response(components, &says, approved_headers(), Some(whole));
    if let Some(content) = answer.get_mut("content") {
        content.set("text/event-stream", parts::media(components, events));
    }
    answer
}

fn error(components: &mut Components, operation: PathGroup, status: u16, what: &StatusAnswers) -> Json {
    let mut choices = Vec::new();
    let mut set = vec![names::REQUEST_ID, names::OVERHEAD_MS];
    if !what.denied.is_empty() {
        choices.push(components.schema::<denied::DenialBody<'_>>());
        set.extend([
            names::DECISION,
            names::REASON,
            names::DECISION_ID,
            names::RUN_ID,
            names::ESTIMATED_USD,
            names::SHOULD_RETRY,
        ]);
    }
    if !what.refused.is_empty() {
        choices.push(components.schema::<refusal::RefusalBody<'_>>());
    }
    let mut description = what.description.join("\n");
    if matches!(operation, PathGroup::Call(_)) {
        description.push_str("\n\nOr the provider's own answer with this status.");
        choices.push(components.named("ProviderError", schemas::provider_error()));
    }
    let schema = match <[Json; 1]>::try_from(choices) {
        Ok([one]) => one,
        Err(several) => object([("anyOf", Json::List(several))]),
    };
    let headers = headers::some(&set);
    let headers = if status == 429 {
        headers::with_retry_after(headers)
    } else {
        headers
    };
    response(components, &description, headers, Some(schema))
        .with("x-reasons", what.denied.clone())
        .with("x-codes", what.refused.clone())
}

fn response(components: &Components, description: &str, headers: Json, schema: Option<Json>) -> Json {
    let response = object([("description", description.into()), ("headers", headers)]);
    let Some(schema) = schema else {
        return response;
    };
    response.with("content", parts::json_content(components, schema))
}
