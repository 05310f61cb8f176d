//! Answers a request, whichever it is: the route, then the call or one of the small endpoints, then the answer's head and body.

use super::route::{self, Route};
use super::{address_filter, place, unread, write};
use crate::call::request_trace::RequestTrace;
use crate::call::{self, Done, Stop};
use crate::gate::Gate;
use crate::reply::{Reply, health, models, names};
use connections::limit::Keeper;
use pingora::ErrorType::InternalError;
use pingora::protocols::http::ServerSession;
use pingora::{Error, Result};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Answers the request. `true`: Pingora has nothing left to do for it.
///
/// # Errors
/// The answer could not be written: the connection is given up.
pub(super) async fn answer(gate: Option<&Arc<Gate>>, session: &mut ServerSession) -> Result<bool> {
    let gate = gate.ok_or_else(|| Error::new_in(InternalError))?;
    let mut keeper = place::keeper();
    let reply = reply(gate, session, &mut keeper).await;
    write::write(gate, session, reply).await.map(|()| true)
}

/// The answer, with the headers that every answer has.
async fn reply(gate: &Arc<Gate>, session: &mut ServerSession, keeper: &mut Keeper) -> Reply {
    let started = Instant::now();
    let Done { mut reply, outside } = dispatch(gate, session, keeper).await;
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

async fn dispatch(gate: &Arc<Gate>, session: &mut ServerSession, keeper: &mut Keeper) -> Done {
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
    let trace = RequestTrace::of(&head.headers);
    if route != Ok(Route::Health)
        && !address_filter::is_free(gate, session)
        && let Err(stop) = address_filter::judge(gate, session).await
    {
        return own(stop.answer(gate, &trace));
    }
    match route {
        Ok(Route::Chat) => call::chat(gate, session, keeper, trace).await,
        Ok(Route::Health) => own(health::reply(gate).await),
        Ok(Route::Models) => match call::admit(gate, session, keeper).await {
            Ok(()) => own(models::reply(
                &gate.prices.load(),
                &gate.settings.upstream.provider,
            )),
            Err(stop) => own(stop.answer(gate, &trace)),
        },
        Ok(Route::Model) => match call::admit(gate, session, keeper).await {
            Ok(()) => {
                let wanted = models::one(
                    &gate.prices.load(),
                    &gate.settings.upstream.provider,
                    route::model_of(session.req_header().uri.path()).unwrap_or_default(),
                );
                own(wanted.unwrap_or_else(|refusal| Stop::from(refusal).answer(gate, &trace)))
            }
            Err(stop) => own(stop.answer(gate, &trace)),
        },
        Err(wrong) => {
            trace.record_refusal(gate, wrong.kind());
            own(wrong.reply())
        }
    }
}

/// The caller's `X-Request-Id` when it is well-formed, else a new one (decision D5).
fn request_id(session: &ServerSession) -> String {
    let sent = session
        .get_header(names::REQUEST_ID)
        .and_then(|value| value.to_str().ok());
    match sent.filter(|id| domain::names::is_run_id(id.as_bytes())) {
        Some(id) => id.to_owned(),
        None => unread::new_request_id(),
    }
}
