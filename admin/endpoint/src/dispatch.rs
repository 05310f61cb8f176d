//! The life of one management request: request id, blocked addresses, caller, rate, permission, mode, body, handler,
//! log line.

use super::call::{Call, is_json};
use super::operation::{Handler, Operation};
use super::receive;
use super::reply::{Answer, Reply};
use super::request_id;
use super::route::{Access, Flag, Modes, Route};
use crate::admission::Admission;
use crate::caller::session::require_our_page;
use crate::caller::{Caller, Credential};
use crate::limits;
use crate::memory::Reserved;
use crate::metrics::method_label;
use crate::problem::{Code, Problem};
use axum::body::Body;
use axum::extract::rejection::RawPathParamsRejection;
use axum::extract::{RawPathParams, State};
use axum::http::header::{CONTENT_SECURITY_POLICY, CONTENT_TYPE, REFERRER_POLICY, X_CONTENT_TYPE_OPTIONS};
use axum::http::request::Parts;
use axum::http::{Extensions, HeaderMap, HeaderName, HeaderValue, Method, Request, Response, StatusCode};
use axum::middleware::Next;
use bytes::Bytes;
use connections::client_address::{UNKNOWN_ADDRESS, client_address, warn_of_untrusted_proxy};
use connections::limit::{Requests, UnderWay};
use domain::mode::Mode;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::{Duration, Instant};
use store::api_key::script::count::WindowState;
use store::blocked::BlockStatus;
use telemetry::LineAllowance;
use telemetry::span::{self, AttributeValue, Span, SpanKind};
use telemetry::trace::Trace;
use tokio::task::JoinSet;

/// Default headers of every answer, which restrict browsers as far as possible. Pages set their own policy.
const SECURITY_HEADERS: [(HeaderName, &str); 3] = [
    (
        CONTENT_SECURITY_POLICY,
        "default-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    ),
    (X_CONTENT_TYPE_OPTIONS, "nosniff"),
    (REFERRER_POLICY, "no-referrer"),
];
/// If a body takes longer, its caller is identified again. So a caller's authority is never older than this when a
/// handler begins.
const AUTHORITY_AGE_MAX: Duration = Duration::from_secs(1);
/// Label of requests without a route, in logs and metrics. Their path is untrusted text and is never logged.
const NO_ROUTE: &str = "none";

/// Lines about requests that no rate bounds.
static UNBOUNDED: LineAllowance = LineAllowance::new();

/// Returns the number of lines about strangers' requests from this address of a connection that were left out since the
/// last one; `None` if this one is left out, too.
pub fn stranger_line_due(peer: Option<IpAddr>) -> Option<u64> {
    UNBOUNDED.due(peer)
}

/// The peer of a request's connection. The listener adds it to the request.
#[derive(Debug, Clone, Copy)]
pub struct Peer(pub SocketAddr);

/// Data about a routed request that [`run`] collects for its log line and metrics in [`around`].
#[derive(Debug, Clone)]
pub struct ResponseContext {
    route: &'static str,
    caller: Option<(String, Mode)>,
    /// State of the key's rate window.
    window: Option<WindowState>,
    /// Keeps the connection's place for a known caller.
    under_way: Option<Arc<UnderWay>>,
}

impl ResponseContext {
    /// Creates the context of a request of this route whose caller is not known yet.
    pub const fn new(route: &'static str) -> Self {
        Self {
            route,
            caller: None,
            window: None,
            under_way: None,
        }
    }
}

/// Refuses blocked addresses, and adds request id, security headers, log line and metrics to every answer.
pub(super) async fn around(
    State(admission): State<Arc<Admission>>,
    request: Request<Body>,
    next: Next,
) -> Response<Body> {
    let started = Instant::now();
    let id = request_id::choose(request.headers());
    let trace = Trace::from_headers(request.headers());
    let method = request.method().clone();
    let peer = request.extensions().get::<Peer>().map(|peer| peer.0.ip());
    let client = client_of(&admission, request.extensions(), request.headers());
    let mut response = match require_unblocked(&admission, client).await {
        Ok(()) => next.run(request).await,
        Err(problem) => problem.into_response(),
    };
    let headers = response.headers_mut();
    headers.insert(request_id::X_REQUEST_ID, id.clone());
    for (name, value) in SECURITY_HEADERS {
        headers.entry(name).or_insert(HeaderValue::from_static(value));
    }
    let context = response.extensions().get::<ResponseContext>();
    let route = context.map_or(NO_ROUTE, |context| context.route);
    let caller = context.and_then(|context| context.caller.as_ref());
    let took = started.elapsed();
    admission.metrics.request(&method, route, response.status(), took);
    // No rate bounds the requests without a caller, and those that are refused for their rate.
    let due = match caller {
        None => stranger_line_due(peer),
        Some((account, _)) if response.status() == StatusCode::TOO_MANY_REQUESTS => UNBOUNDED.due(account),
        Some(_) => Some(0),
    };
    if let Some(left_out) = due {
        tracing::info!(
            http.method = method_label(&method),
            http.route = route,
            http.status = response.status().as_u16(),
            account = caller.map(|(account, _)| account.as_str()),
            mode = caller.map(|(_, mode)| mode.as_str()),
            // Nothing else of the line says who it was.
            client.address = client.filter(|_| caller.is_none()).map(tracing::field::display),
            request_id = id.to_str().unwrap_or_default(),
            duration_us = u64::try_from(took.as_micros()).unwrap_or(u64::MAX),
            left_out = (left_out > 0).then_some(left_out),
            trace.id = %trace.id,
            "request"
        );
    }
    // A trace is not exported at the request of a caller without a credential: a flood of such requests would displace
    // others.
    if caller.is_some() || !trace.by_caller {
        export(trace, method_label(&method), route, response.status(), took);
    }
    response
}

/// Exports the span of a request.
fn export(trace: Trace, method: &'static str, route: &'static str, status: StatusCode, took: Duration) {
    let Some(id) = trace.exported else { return };
    let end = clock::now_nanos();
    let text = |text: &str| AttributeValue::Text(text.to_owned());
    span::hand_over(vec![Span {
        trace: trace.id.0,
        id,
        parent: trace.parent,
        name: "request",
        kind: SpanKind::Server,
        start: end.saturating_sub(u64::try_from(took.as_nanos()).unwrap_or(u64::MAX)),
        end,
        attributes: vec![
            ("http.request.method", text(method)),
            ("http.route", text(route)),
            (
                "http.response.status_code",
                AttributeValue::Number(status.as_u16().into()),
            ),
        ],
        failed: status.is_server_error(),
    }]);
}

/// Refuses requests from blocked addresses, and all requests until the list was read.
async fn require_unblocked(admission: &Admission, client: Option<IpAddr>) -> Result<(), Problem> {
    match admission.blocked.judge_now(&admission.store, || client).await {
        BlockStatus::Free => Ok(()),
        BlockStatus::Blocked => {
            admission.metrics.blocked.inc();
            let message = "The operator of this installation has blocked your address.";
            Err(Problem::new(Code::IpBlocked, message))
        }
        BlockStatus::Unknown => {
            admission.metrics.blocked.inc();
            Err(Problem::new(Code::IpBlocked, UNKNOWN_ADDRESS))
        }
        BlockStatus::Unread => Err(Code::ServiceUnavailable.into()),
    }
}

/// Returns the client address of a request, if it is known.
fn client_of(admission: &Admission, extensions: &Extensions, headers: &HeaderMap) -> Option<IpAddr> {
    let peer = extensions.get::<Peer>()?.0.ip();
    warn_of_untrusted_proxy(peer, headers, &admission.trusted_proxies);
    client_address(peer, headers, &admission.trusted_proxies)
}

/// Serves one request of an operation.
pub(super) async fn run<S: Send + Sync + 'static>(
    admission: Arc<Admission>,
    state: Arc<S>,
    operation: &'static Operation<S>,
    params: Result<RawPathParams, RawPathParamsRejection>,
    request: Request<Body>,
) -> Response<Body> {
    let mut context = ResponseContext::new(operation.route.path);
    let metrics = admission.metrics.limited.clone();
    let outcome = answer(admission, state, operation, params, request, &mut context).await;
    if let Err(problem) = &outcome
        && let Some(budget) = problem.budget()
    {
        metrics.over_budget(budget);
    }
    let mut response = outcome.map_or_else(Problem::into_response, Reply::into_response);
    if let Some(window) = &context.window {
        limits::set_headers(window, response.headers_mut());
    }
    if let Some(under_way) = context.under_way.take() {
        response.extensions_mut().insert(under_way);
    }
    response.extensions_mut().insert(context);
    response
}

/// Admits the request, reads its body and runs its handler.
async fn answer<S: Send + Sync + 'static>(
    admission: Arc<Admission>,
    state: Arc<S>,
    operation: &'static Operation<S>,
    params: Result<RawPathParams, RawPathParamsRejection>,
    request: Request<Body>,
    context: &mut ResponseContext,
) -> Answer {
    let route = &operation.route;
    let (head, body) = request.into_parts();
    let client = client_of(&admission, &head.extensions, &head.headers);
    let mut caller = match route.access {
        Access::Public => {
            require_own_post(&admission, &head.method, &head.headers)?;
            None
        }
        Access::Key(..) | Access::Session(_) => Some(admit(&admission, route, &head, client, context).await?),
    };
    let params = params.map_err(|_| Problem::validation("The path is not valid UTF-8."))?;
    // The memory stays reserved until the handler has ended.
    let mut reserved = caller
        .as_ref()
        .map(|caller| Reserved::none(&admission.body_memory, &caller.account, &caller.actor));
    let admitted = Instant::now();
    let body = match head.method {
        Method::POST | Method::PATCH => {
            receive::read(&head.headers, body, admission.client_timeout, reserved.as_mut()).await?
        }
        _ => Bytes::new(),
    };
    if caller.is_some() && admitted.elapsed() > AUTHORITY_AGE_MAX {
        let again = Caller::identify(&admission, route.access, &head.method, &head.headers, client).await?;
        again.require(route.access)?;
        caller = Some(again);
    }
    // An answer about a change is short, and must not be refused after the change.
    let of_answer = caller
        .as_ref()
        .filter(|_| route.method == Method::GET)
        .map(|caller| Reserved::none(&admission.answer_memory, &caller.account, &caller.actor));
    let call = Call::new((admission, state), client, &params, head, body);
    if !route.has(Flag::Query) {
        call.query(&[])?;
    }
    let reply = handle(operation, call, caller, reserved).await?;
    match of_answer {
        Some(memory) => reply.counted(memory),
        None => Ok(reply),
    }
}

/// Runs the handler under the authority of the caller. `reserved` is the memory of the body.
async fn handle<S: Send + Sync + 'static>(
    operation: &'static Operation<S>,
    call: Call<S, ()>,
    caller: Option<Caller>,
    reserved: Option<Reserved>,
) -> Answer {
    let route = &operation.route;
    let authority = caller.as_ref().map(|caller| caller.authority(route.access));
    let tester = caller.as_ref().and_then(|caller| tester(route, caller));
    let answering = match (&operation.handler, caller) {
        (Handler::Known(handler), Some(caller)) => handler(call.by(caller)),
        (Handler::Open(handler), _) => handler(call),
        // The table's macro pairs handlers with access.
        (Handler::Known(_), None) => return Err(Code::Internal.into()),
    };
    let task = async move {
        let answer = match authority {
            Some(authority) => authority.scope(answering).await,
            None => answering.await,
        };
        drop(reserved);
        answer
    };
    run_handler(route, task).await.map_err(|problem| match tester {
        Some(who) => problem.in_test_mode(who),
        None => problem,
    })
}

/// Runs a handler as a separate task, so that a panic is contained. A caller who disconnects does not stop a change
/// between its steps, but ends a read: otherwise the requests in progress would not be bounded by the connections.
async fn run_handler(route: &Route, task: impl Future<Output = Answer> + Send + 'static) -> Answer {
    let ended = if route.changes() {
        tokio::spawn(task).await
    } else {
        // A set aborts its tasks when it is dropped.
        let mut read = JoinSet::new();
        read.spawn(task);
        read.join_next()
            .await
            .unwrap_or_else(|| Ok(Err(Code::Internal.into())))
    };
    ended.unwrap_or_else(|error| {
        tracing::error!(http.route = route.path, %error, "a handler failed");
        Err(Code::Internal.into())
    })
}

/// Returns the subject of the sentence about test mode, for a caller in test mode on a route whose records differ by
/// mode.
fn tester(route: &Route, caller: &Caller) -> Option<&'static str> {
    let of_mode = matches!(route.access, Access::Key(..)) && route.modes == Modes::Both;
    (of_mode && caller.mode == Mode::Test).then_some(match caller.credential {
        Credential::Key { .. } => "Your API key is",
        Credential::Session { .. } => "You are",
    })
}

/// Identifies the caller, and refuses one who is over a limit, may not call the route, or uses a mode that the route
/// lacks.
async fn admit(
    admission: &Admission,
    route: &'static Route,
    head: &Parts,
    client: Option<IpAddr>,
    context: &mut ResponseContext,
) -> Result<Caller, Problem> {
    let caller = Caller::identify(admission, route.access, &head.method, &head.headers, client).await?;
    context.caller = Some((caller.account.clone(), caller.mode));
    if let Some(requests) = head.extensions.get::<Requests>() {
        let under_way = requests.begin().ok_or(Code::ServiceUnavailable)?;
        context.under_way = Some(Arc::new(under_way));
    }
    limits::count(admission, route, &caller, &mut context.window).await?;
    caller.require(route.access)?;
    limits::require_room(admission, route, &caller)?;
    if route.modes == Modes::LiveOnly {
        caller.require_live()?;
    }
    Ok(caller)
}

/// Refuses a change without a caller, such as a login, that another site makes a browser send. A form cannot send JSON,
/// and a page that sends JSON also sends its origin.
fn require_own_post(admission: &Admission, method: &Method, headers: &HeaderMap) -> Result<(), Problem> {
    if matches!(*method, Method::GET | Method::HEAD) {
        return Ok(());
    }
    require_our_page(admission, headers)?;
    let kind = headers.get(CONTENT_TYPE);
    kind.is_some_and(is_json)
        .then_some(())
        .ok_or_else(|| Code::UnsupportedMediaType.into())
}

#[cfg(test)]
mod tests;
