//! A stand-in for the provider: chat completions, responses and embeddings in its exact shape with plausible usage,
//! whole and streamed, and every kind of misbehaviour on request. Newcomers and tests can try every path without a
//! provider account.
//!
//! It has no secrets and makes no decisions. It refuses virtual keys with a clear error, since they must never leave
//! the edge. Uses prices and the clock, but not the store.

mod body;
mod calls;
mod completion;
mod events;
mod instance;
mod plan;
mod reply;
mod request;
mod scenario;
mod stats;
mod stream;
mod usage;

use axum::Router;
use axum::extract::State;
use axum::routing::{any, get};
use calls::{AnswerEnd, Calls, Recorder, SentPiece};
use domain::measured::Endpoint;
use domain::price::PriceTable;
use futures::StreamExt as _;
use http::header::{AUTHORIZATION, HeaderMap};
use http::{Method, StatusCode, Uri};
use reply::BoxedReply;
use request::SandboxRequest;
use scenario::AnswerScenario;
use stats::{CallInFlight, Stats};
use std::io;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::net::TcpListener;

/// Longest delay of an answer, and longest hang: ten minutes.
pub const DELAY_MAX: Duration = Duration::from_secs(600);

/// Longest answer of the scenario `huge`, in bytes.
const HUGE_MAX: u64 = 256 << 20;
/// Maximum number of concurrent requests; further ones get 503.
const IN_FLIGHT_MAX: u64 = 20_000;
/// Maximum number of bytes of the bodies of all concurrent requests; one whose body does not fit gets 503.
const BODIES_MAX: u64 = 1 << 30;
/// After the signal to stop, calls in flight have this long.
const STOP_GRACE: Duration = Duration::from_secs(2);
/// Prefix of virtual keys, which no request may contain.
const VIRTUAL_KEY: &str = "vk_live_";
/// Status of the answer to a request with a virtual key.
const REFUSED_VIRTUAL_KEY: StatusCode = StatusCode::IM_A_TEAPOT;

struct Sandbox {
    delay: Duration,
    stats: Arc<Stats>,
    calls: Arc<Calls>,
}

/// Serves on `listener` until `stop` is done; each answer waits `delay` first.
///
/// # Errors
/// The listener fails.
pub async fn serve(
    listener: TcpListener,
    delay: Duration,
    stop: impl Future<Output = ()> + Send + 'static,
) -> io::Result<()> {
    use axum::serve::ListenerExt;
    let listener = listener.tap_io(|connection| {
        // Without this option small answers wait for the peer's acknowledgement, but are still correct.
        let _unset = connection.set_nodelay(true);
    });
    let (stopped, mut stopping) = tokio::sync::watch::channel(false);
    let signal = async move {
        stop.await;
        let _nobody = stopped.send(true);
    };
    let server = axum::serve(listener, router(delay)).with_graceful_shutdown(signal);
    tokio::select! {
        ended = async { server.await } => ended,
        () = async {
            let _gone = stopping.changed().await;
            tokio::time::sleep(STOP_GRACE).await;
        } => Ok(()),
    }
}

fn router(delay: Duration) -> Router {
    let sandbox = Sandbox {
        delay: delay.min(DELAY_MAX),
        stats: Arc::default(),
        calls: Arc::default(),
    };
    Router::new()
        .route("/v1/chat/completions", any(chat_completions))
        .route("/v1/responses", any(responses))
        .route("/v1/embeddings", any(embeddings))
        .route("/v1/models", any(models))
        .route("/sandbox/stats", get(stats))
        .route("/sandbox/calls", get(calls))
        .fallback(unknown)
        .with_state(Arc::new(sandbox))
}

/// A request as received.
struct Arrived {
    method: Method,
    uri: Uri,
    headers: HeaderMap,
    body: axum::body::Body,
}

impl From<axum::extract::Request> for Arrived {
    fn from(request: axum::extract::Request) -> Self {
        let (head, body) = request.into_parts();
        Self {
            method: head.method,
            uri: head.uri,
            headers: head.headers,
            body,
        }
    }
}

async fn chat_completions(
    State(sandbox): State<Arc<Sandbox>>,
    request: axum::extract::Request,
) -> BoxedReply {
    call(&sandbox, Endpoint::Chat, request.into()).await
}

async fn responses(State(sandbox): State<Arc<Sandbox>>, request: axum::extract::Request) -> BoxedReply {
    call(&sandbox, Endpoint::Responses, request.into()).await
}

async fn embeddings(State(sandbox): State<Arc<Sandbox>>, request: axum::extract::Request) -> BoxedReply {
    call(&sandbox, Endpoint::Embeddings, request.into()).await
}

async fn call(sandbox: &Sandbox, endpoint: Endpoint, arrived: Arrived) -> BoxedReply {
    let began = Instant::now();
    let number = sandbox.stats.count_call(endpoint);
    let Some(in_flight) = CallInFlight::enter(&sandbox.stats, IN_FLIGHT_MAX) else {
        return reply::error(503, &arrived.headers).finish(number, began);
    };
    let answer = match check(
        sandbox,
        &arrived.method,
        &arrived.uri,
        &arrived.headers,
        Method::POST,
    ) {
        Err(refusal) => refusal,
        Ok(()) => complete(sandbox, endpoint, number, arrived, in_flight).await,
    };
    answer.finish(number, began)
}

/// Reads the request, waits for the requested time, and sends the requested answer.
async fn complete(
    sandbox: &Sandbox,
    endpoint: Endpoint,
    number: u64,
    arrived: Arrived,
    mut in_flight: CallInFlight,
) -> BoxedReply {
    let headers = arrived.headers;
    let bytes = match receive(arrived.body, &headers, &mut in_flight).await {
        Ok(bytes) => bytes,
        Err(refusal) => return refusal,
    };
    let request = match SandboxRequest::read(endpoint, &bytes) {
        Ok(request) => request,
        Err(refusal) => return refusal,
    };
    drop(bytes);
    let scenario = match AnswerScenario::from_headers(&headers, &request.model, request.user.as_deref()) {
        Ok(scenario) => scenario,
        Err(message) => return reply::refusal(400, &message, Some("sandbox_unknown_scenario")),
    };
    let mut recorder = Recorder::new(&sandbox.calls, number, &request, &headers);
    let delay = sandbox.delay.saturating_add(scenario.delay()).min(DELAY_MAX);
    if !delay.is_zero() {
        tokio::time::sleep(delay).await;
    }
    if let Some(plan) = scenario.plan().filter(|_| request.stream) {
        sandbox.stats.count_stream();
        return stream::reply(request, number, plan, recorder, in_flight);
    }
    let answer = scenario.answer(&request, number, &headers);
    recorder.status(answer.status());
    if answer.status() < 300 {
        recorder.sent(SentPiece {
            usage: completion::usage(&request, &scenario.usage()),
            ..SentPiece::default()
        });
    }
    recorder.end(AnswerEnd::Whole);
    answer
}

async fn receive(
    body: axum::body::Body,
    headers: &HeaderMap,
    in_flight: &mut CallInFlight,
) -> Result<Vec<u8>, BoxedReply> {
    let refused = || reply::refusal(413, "The request body is too large or broke off.", None);
    let mut bytes = Vec::new();
    let mut pieces = body.into_data_stream();
    while let Some(piece) = pieces.next().await {
        let piece = piece.map_err(|_broke_off| refused())?;
        if bytes.len() + piece.len() > request::BODY_MAX {
            return Err(refused());
        }
        if !in_flight.receive(piece.len(), BODIES_MAX) {
            return Err(reply::error(503, headers));
        }
        bytes.extend_from_slice(&piece);
    }
    Ok(bytes)
}

async fn calls(State(sandbox): State<Arc<Sandbox>>) -> BoxedReply {
    reply::json(StatusCode::OK, sandbox.calls.document())
}

async fn models(
    State(sandbox): State<Arc<Sandbox>>,
    method: Method,
    uri: Uri,
    headers: HeaderMap,
) -> BoxedReply {
    let began = Instant::now();
    let number = sandbox.stats.count_request();
    let answer = match check(&sandbox, &method, &uri, &headers, Method::GET) {
        Err(refusal) => refusal,
        Ok(()) => reply::json(StatusCode::OK, model_list()),
    };
    answer.finish(number, began)
}

/// Returns the models of the compiled-in price table, in the provider's shape.
fn model_list() -> serde_json::Value {
    let table = PriceTable::builtin();
    let names = table.iter().flat_map(PriceTable::models);
    let models: Vec<_> = names
        .map(|name| serde_json::json!({ "id": name, "object": "model", "created": 0, "owned_by": "sandbox" }))
        .collect();
    serde_json::json!({ "object": "list", "data": models })
}

async fn stats(State(sandbox): State<Arc<Sandbox>>) -> BoxedReply {
    reply::json(StatusCode::OK, sandbox.stats.document())
}

async fn unknown(
    State(sandbox): State<Arc<Sandbox>>,
    method: Method,
    uri: Uri,
    headers: HeaderMap,
) -> BoxedReply {
    let began = Instant::now();
    let number = sandbox.stats.count_request();
    let answer = match check(&sandbox, &method, &uri, &headers, method.clone()) {
        Err(refusal) => refusal,
        Ok(()) => reply::refusal(404, &format!("Invalid URL ({method} {})", uri.path()), None),
    };
    answer.finish(number, began)
}

/// Checks the rules of every route: no virtual key, a provider key, the right method.
fn check(
    sandbox: &Sandbox,
    method: &Method,
    uri: &Uri,
    headers: &HeaderMap,
    wanted: Method,
) -> Result<(), BoxedReply> {
    if headers.keys().any(|name| name.as_str().starts_with("x-service-")) {
        sandbox.stats.count_service_headers();
    }
    let leaked = |value: &http::HeaderValue| {
        value
            .as_bytes()
            .windows(VIRTUAL_KEY.len())
            .any(|window| window == VIRTUAL_KEY.as_bytes())
    };
    if headers.values().any(leaked) {
        sandbox.stats.count_virtual_key();
        tracing::error!(
            path = uri.path(),
            "a virtual key reached the upstream: the edge must never send one"
        );
        let message =
            "This is the upstream. A virtual key must never come here: it works against Tollgate only.";
        return Err(reply::refusal(
            REFUSED_VIRTUAL_KEY.as_u16(),
            message,
            Some("virtual_key_leaked"),
        ));
    }
    let bearer = headers.get(AUTHORIZATION).and_then(|value| value.to_str().ok());
    let Some(key) = bearer
        .and_then(|text| text.strip_prefix("Bearer "))
        .filter(|key| !key.is_empty())
    else {
        sandbox.stats.count_unauthorized();
        return Err(reply::no_key());
    };
    sandbox.stats.remember_key(key);
    if *method != wanted {
        let message = format!(
            "Not allowed to {method} on {}. (HINT: Perhaps you meant to use a different HTTP method?)",
            uri.path()
        );
        return Err(reply::refusal(405, &message, Some("method_not_supported")));
    }
    Ok(())
}
