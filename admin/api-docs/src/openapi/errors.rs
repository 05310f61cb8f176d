//! Error answers of an operation: derived from its row of the route table, and listed in its documentation.

use super::headers;
use axum::http::Method;
use domain::budget::Budget;
use endpoint::doc::Doc;
use endpoint::doc::field::{self, Field};
use endpoint::{Access, Code, Flag, Modes, Route};
use openapi::components::public;
use openapi::parts::header_reference;
use openapi::{Json, object};
use store::user::email::ACCOUNTS_MAX;

/// The errors with one status.
#[derive(Debug)]
pub(super) struct Errors {
    pub(super) status: u16,
    codes: Vec<Code>,
    error_fields: Vec<Field>,
}

/// Returns all errors of an operation, by status.
pub(super) fn collect(route: &Route, doc: &Doc) -> Vec<Errors> {
    let given = |code: &Code| doc.errors.contains(code);
    let all = Code::ALL
        .iter()
        .copied()
        .filter(|code| follows(route, doc, *code) || given(code));
    let mut errors: Vec<Errors> = Vec::new();
    for code in all {
        let status = code.status().as_u16();
        let mut error_fields = fields_of(code);
        if given(&code) {
            error_fields.extend(doc.error_fields.iter().cloned());
        }
        if doc.names_intent && follows_the_body(code) {
            let description =
                "The intent of the call; where the refusal is not stored, the id that it would have had.";
            error_fields.push(Field::optional("intent_id", field::is("IntentId"), description));
        }
        match errors.iter_mut().find(|errors| errors.status == status) {
            Some(errors) => {
                errors.codes.push(code);
                error_fields
                    .retain(|field| !errors.error_fields.iter().any(|known| known.name == field.name));
                errors.error_fields.extend(error_fields);
            }
            None => errors.push(Errors {
                status,
                codes: vec![code],
                error_fields,
            }),
        }
    }
    errors.sort_by_key(|errors| errors.status);
    errors
}

/// Returns whether the error follows from the row alone.
fn follows(route: &Route, doc: &Doc, code: Code) -> bool {
    let (by_key, by_session, is_public) = match route.access {
        Access::Key(..) => (true, true, false),
        Access::Session(_) => (false, true, false),
        Access::Public => (false, false, true),
    };
    let changes = route.method != Method::GET;
    match code.as_str() {
        "API_KEY_REQUIRED" => by_key,
        "INVALID_API_KEY" | "INSUFFICIENT_API_KEY_PERMISSIONS" => !is_public,
        "API_KEY_RATE_LIMITED" => route.access != Access::Public,
        "SESSION_REQUIRED" | "INSUFFICIENT_ROLE" => by_session,
        "CSRF_FAILED" => changes && (by_session || is_public),
        "LIVE_MODE_REQUIRED" => route.modes == Modes::LiveOnly,
        "TIER_LIMIT" => route.has(Flag::Budgeted),
        "NOT_CONFIRMED" | "NOT_DURABLE" => route.has(Flag::Confirmed),
        "IP_BLOCKED" | "SERVICE_UNAVAILABLE" | "INTERNAL" => true,
        "VALIDATION" => !is_public || doc.request_body.is_some() || !doc.query.is_empty(),
        "PAYLOAD_TOO_LARGE" | "REQUEST_TIMEOUT" => route.has_body(),
        "UNSUPPORTED_MEDIA_TYPE" => doc.request_body.is_some() || (is_public && changes),
        _ => false,
    }
}

/// Returns whether the error can only occur after the body was read.
const fn follows_the_body(code: Code) -> bool {
    !matches!(
        code,
        Code::ApiKeyRequired
            | Code::InvalidApiKey
            | Code::InsufficientPermissions
            | Code::ApiKeyRateLimited
            | Code::SessionRequired
            | Code::InsufficientRole
            | Code::CsrfFailed
            | Code::IpBlocked
            | Code::PayloadTooLarge
            | Code::RequestTimeout
            | Code::UnsupportedMediaType
    )
}

/// Returns the fields that an error of this code always has, in addition to `error` and `code`.
fn fields_of(code: Code) -> Vec<Field> {
    let plan = || Field::optional("plan", field::string().example("builder"), "The account's plan.");
    let up = || {
        let url =
            endpoint::doc::nullable(field::string().example("https://tollgate.example/plan?to=startup"));
        let name = endpoint::doc::nullable(field::string().example("startup"));
        [
            Field::optional("upgradeTo", name, "The next plan up; null on the largest."),
            Field::optional("upgradeUrl", url, "Where to get it; null on the largest."),
        ]
    };
    match code.as_str() {
        "PLAN_VIRTUAL_KEY_LIMIT" => {
            let agents = field::list(field::is("AgentId"), 10_000);
            let limit = field::string().example("10");
            let agents = Field::optional("activeKeyAgents", agents, "The agents whose keys are active.");
            let limit = Field::optional("limit", limit, "How many keys the plan allows.");
            [agents, plan(), limit].into_iter().chain(up()).collect()
        }
        "TIER_LIMIT" => {
            let kinds = field::words(Budget::ALL.map(Budget::as_str).to_vec());
            let limit = field::count(0);
            vec![
                Field::optional(
                    "budget",
                    kinds,
                    "The budget of records that is used up; not where the plan's number of agents is.",
                ),
                Field::optional("limit", limit, "How many records the budget allows."),
            ]
        }
        "ACCOUNT_REQUIRED" => {
            let properties = object([
                ("id", field::is("AccountId")),
                ("name", field::string().example("Acme")),
            ]);
            let account = object([
                ("type", "object".into()),
                ("required", vec!["id", "name"].into()),
                ("properties", properties),
            ]);
            let accounts = field::list(account, ACCOUNTS_MAX);
            let description = "The accounts for whose users the password is right.";
            vec![Field::optional("accounts", accounts, description)]
        }
        "PLAN_FEATURE" => [plan()].into_iter().chain(up()).collect(),
        _ => Vec::new(),
    }
}

impl Errors {
    /// Builds the schema of the body: `error`, `code`, and the fields that some codes add.
    pub(super) fn schema(&self) -> Json {
        let codes: Vec<&str> = self.codes.iter().map(|code| code.as_str()).collect();
        let sentence = field::string().with("description", "What went wrong, for people.");
        let codes = field::words(codes).with("description", "What went wrong, for programs.");
        let mut properties = object([("error", sentence), ("code", codes)]);
        for field in &self.error_fields {
            properties.set(field.name, field.described());
        }
        object([
            ("type", "object".into()),
            ("required", vec!["error", "code"].into()),
            ("properties", properties),
        ])
    }

    /// Returns the answer.
    pub(super) fn response(&self, route: &Route) -> Json {
        let description = self
            .codes
            .iter()
            .map(|code| format!("- `{}`: {}", code.as_str(), public(code.meaning())));
        let description: Vec<String> = description.collect();
        let mut headers = headers::of_all(route.rate);
        match self.status {
            401 => headers.set("WWW-Authenticate", header_reference("WwwAuthenticate")),
            429 => headers.set("Retry-After", header_reference("RetryAfter")),
            _ => {}
        }
        let first = self.codes.first().map_or(Code::Internal, |code| *code);
        let example = object([("error", first.message().into()), ("code", first.as_str().into())]);
        let media = object([("schema", self.schema()), ("example", example)]);
        object([
            ("description", description.join("\n").into()),
            ("headers", headers),
            ("content", object([("application/json", media)])),
        ])
    }
}

/// Moves error answers that several operations share into components, to which the operations then refer.
pub(super) fn share(operations: &mut [(&Route, Json)]) -> Json {
    let errors = |operation: &Json| -> Vec<(String, Json)> {
        let responses = operation.fields_of("responses").clone();
        responses
            .into_iter()
            .filter(|(status, _)| status.as_str() >= "400")
            .collect()
    };
    let mut counted: Vec<(String, Json, usize)> = Vec::new();
    for (status, response) in operations.iter().flat_map(|(_, operation)| errors(operation)) {
        match counted.iter_mut().find(|(_, known, _)| *known == response) {
            Some((_, _, count)) => *count += 1,
            None => counted.push((status, response, 1)),
        }
    }
    counted.retain(|(_, _, count)| *count > 1);
    let mut shared: Vec<(String, Json)> = Vec::new();
    for (status, response, _) in counted {
        let earlier = shared
            .iter()
            .filter(|(name, _)| name.starts_with(&format!("Error{status}")))
            .count();
        shared.push((format!("Error{status}_{}", earlier + 1), response));
    }
    for (_, operation) in operations {
        let Some(Json::Object(responses)) = operation.get_mut("responses") else {
            continue;
        };
        for (_, response) in responses {
            if let Some((name, _)) = shared.iter().find(|(_, known)| known == response) {
                *response = object([("$ref", format!("#/components/responses/{name}").into())]);
            }
        }
    }
    shared.into_iter().collect()
}
