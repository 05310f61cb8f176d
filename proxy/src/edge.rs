//! The edge speaks HTTP here: one request in, one answer out, for HTTP/1.1 and HTTP/2 alike.

mod connection;
pub mod connections;
pub mod head;
pub mod opening;
pub mod origin;
pub mod route;
pub mod wire;

use crate::call::tale::Tale;
use crate::call::{self, Done, Stop};
use crate::gate::Gate;
use crate::reply::refusal::Refusal;
use crate::reply::{Reply, health, models, names};
use http::HeaderMap;
use pingora_core::apps::HttpServerOptions;
use pingora_core::protocols::http::ServerSession;
use route::Route;
use shared::clock;
use shared::domain::id::Kind;
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

/// What all connections of the edge's listener share.
pub struct Edge {
    gate: Arc<OnceLock<Arc<Gate>>>,
    options: HttpServerOptions,
}

impl std::fmt::Debug for Edge {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Edge").finish_non_exhaustive()
    }
}

impl Edge {
    /// The edge of a gate that is set before the first connection is taken.
    #[must_use]
    pub fn new(gate: Arc<OnceLock<Arc<Gate>>>) -> Self {
        let mut options = HttpServerOptions::default();
        options.h2c = true;
        options.h2_idle_timeout = Some(wire::KEEP_ALIVE);
        options.keepalive_request_limit = Some(wire::REQUESTS_MAX);
        Self { gate, options }
    }
}

/// The answer to any request, with the headers that every answer has.
async fn answer(gate: &Arc<Gate>, session: &mut ServerSession) -> Reply {
    let started = Instant::now();
    let Done { mut reply, outside } = dispatch(gate, session).await;
    let own = started.elapsed().saturating_sub(outside);
    gate.metrics.own_time(own.as_secs_f64());
    let micros = own.as_micros();
    reply.set(
        names::OVERHEAD_MS,
        &format!("{}.{:03}", micros / 1000, micros % 1000),
    );
    if !reply.headers.contains_key(names::REQUEST_ID) {
        reply.set(names::REQUEST_ID, &request_id(session));
    }
    reply
}

/// The answer to a request whose head could not be read, with the headers that every answer has.
fn unread(gate: &Gate, refusal: &Refusal) -> Reply {
    Tale::of(&HeaderMap::new()).tell_refused(gate, refusal.kind);
    let mut reply = refusal.reply();
    reply.set(names::OVERHEAD_MS, "0.000");
    reply.set(names::REQUEST_ID, &new_request_id());
    reply
}

async fn dispatch(gate: &Arc<Gate>, session: &mut ServerSession) -> Done {
    let head = session.req_header();
    if head
        .headers
        .get("x-stainless-retry-count")
        .is_some_and(|count| count != "0")
    {
        gate.metrics.announced_retry();
    }
    let own = |reply| Done {
        reply,
        outside: Duration::ZERO,
    };
    let route = route::of(&head.method, head.uri.path());
    let tale = Tale::of(&head.headers);
    if route != Ok(Route::Health)
        && !origin::is_free(gate, session)
        && let Err(stop) = origin::judge(gate, session).await
    {
        return own(stop.answer(gate, &tale));
    }
    match route {
        Ok(Route::Chat) => call::chat(gate, session, tale).await,
        Ok(Route::Health) => own(health::reply(gate).await),
        Ok(Route::Models) => match call::admit(gate, session).await {
            Ok(()) => own(models::reply(
                &gate.prices.load(),
                &gate.settings.upstream.provider,
            )),
            Err(stop) => own(stop.answer(gate, &tale)),
        },
        Ok(Route::Model) => match call::admit(gate, session).await {
            Ok(()) => {
                let wanted = models::one(
                    &gate.prices.load(),
                    &gate.settings.upstream.provider,
                    route::model_of(session.req_header().uri.path()).unwrap_or_default(),
                );
                own(wanted.unwrap_or_else(|refusal| Stop::from(refusal).answer(gate, &tale)))
            }
            Err(stop) => own(stop.answer(gate, &tale)),
        },
        Err(wrong) => {
            tale.tell_refused(gate, wrong.kind());
            own(wrong.reply())
        }
    }
}

/// The caller's `X-Request-Id` when it is well-formed, else a new one (decision D5).
fn request_id(session: &ServerSession) -> String {
    let sent = session
        .get_header(names::REQUEST_ID)
        .and_then(|value| value.to_str().ok());
    match sent.filter(|id| shared::domain::names::is_run_id(id.as_bytes())) {
        Some(id) => id.to_owned(),
        None => new_request_id(),
    }
}

fn new_request_id() -> String {
    Kind::Request.mint(clock::now_ms()).unwrap_or_default()
}
