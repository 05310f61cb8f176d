//! Answers a request: finds the route, runs the call or one of the small endpoints, then writes the answer.

use super::address_filter::peer_of;
use super::detached_stream::{DetachedStream, take_session};
use super::new_ctx::Ctx;
use super::request_scope;
use super::route;
use super::state::EdgeState;
use crate::call::prepared_reply::{PreparedReply, RunningStream};
use crate::call::rejection::Rejection;
use crate::call::request_trace::RequestTrace;
use crate::protected_request::ProtectedRequest;
use crate::reply::{EdgeReply, health, models, names};
use crate::routes::{self, EdgeRoute};
use http::{HeaderName, HeaderValue};
use pingora::ErrorType::InternalError;
use pingora::protocols::http::ServerSession;
use pingora::{Error, Result};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Number of retries so far, which the OpenAI SDKs send.
const RETRY_COUNT: HeaderName = HeaderName::from_static("x-stainless-retry-count");

/// Answers the request. Returns true, so that Pingora does not forward it. The connection writes a streamed answer
/// afterwards.
///
/// # Errors
/// The answer could not be written; the connection is closed.
pub(super) async fn answer(
    state: Option<&Arc<EdgeState>>,
    session: &mut ServerSession,
    ctx: &mut Ctx,
) -> Result<bool> {
    let no_answer = || Error::new_in(InternalError);
    let state = state.ok_or_else(no_answer)?;
    let mut protection = request_scope::protected_request();
    let (reply, stream) = reply(state, session, &mut protection).await;
    let Some(stream) = stream else {
        return state.writer.write(session, reply).await.map(|()| true);
    };
    let is_detached = request_scope::detach(Box::new(DetachedStream {
        session: take_session(session),
        state: Arc::clone(state),
        head: reply,
        stream: *stream,
        _protection: protection,
        _in_flight: ctx.in_flight.take(),
    }));
    is_detached.then_some(true).ok_or_else(no_answer)
}

/// Initial capacity of [`millis`]: enough for times below ten seconds.
const MILLIS_CHARS: usize = 8;

/// Builds the answer with the headers of every answer.
async fn reply(
    state: &EdgeState,
    session: &mut ServerSession,
    protection: &mut ProtectedRequest,
) -> (EdgeReply, Option<Box<RunningStream>>) {
    let started = Instant::now();
    let (peer, client) = (peer_of(session), state.addresses.client_of(session));
    let mut trace = RequestTrace::new(&session.req_header().headers, peer, client, &state.metrics);
    let PreparedReply {
        mut reply,
        stream,
        external_time,
    } = dispatch(state, session, protection, &mut trace).await;
    let own = started.elapsed().saturating_sub(external_time);
    state.metrics.own_time(own.as_secs_f64());
    reply.set(names::OVERHEAD_MS, &millis(own));
    if reply
        .headers
        .get(names::REQUEST_ID)
        .is_none_or(HeaderValue::is_empty)
    {
        reply.set(names::REQUEST_ID, trace.request_id());
    }
    (reply, stream)
}

/// Returns a time in milliseconds, with three decimals.
fn millis(time: Duration) -> String {
    let mut digits = itoa::Buffer::new();
    let mut text = String::with_capacity(MILLIS_CHARS);
    text.push_str(digits.format(time.as_millis()));
    text.push('.');
    // The added 1000 keeps leading zeros: three digits follow its first one.
    text.push_str(&digits.format(1000 + time.subsec_micros() % 1000)[1..]);
    text
}

/// Finds the route and runs its handler. The futures of the rare ones are boxed, since they need more space than that
/// of a call.
async fn dispatch(
    state: &EdgeState,
    session: &mut ServerSession,
    protection: &mut ProtectedRequest,
    trace: &mut RequestTrace,
) -> PreparedReply {
    let head = session.req_header();
    if head.headers.get(RETRY_COUNT).is_some_and(|count| count != "0") {
        state.metrics.announced_retry();
    }
    let route = route::of_request(state.offered, head);
    if route != Ok(EdgeRoute::Health)
        && !state.addresses.is_free(session)
        && let Err(rejection) = Box::pin(state.addresses.check(session)).await
    {
        return PreparedReply::from_rejection(&rejection, trace);
    }
    let answered = match route {
        Ok(EdgeRoute::Call(endpoint)) => {
            return state.calls.call(endpoint, session, protection, trace).await;
        }
        Ok(EdgeRoute::Health) => Ok(Box::pin(health(state)).await),
        Ok(route @ (EdgeRoute::Models | EdgeRoute::Model)) => {
            models(state, route, session, protection, trace).await
        }
        Err(no_route) => {
            trace.record_refusal(no_route.kind());
            Ok(no_route.reply(state.offered))
        }
    };
    match answered {
        Ok(reply) => PreparedReply::immediate(reply),
        Err(rejection) => PreparedReply::from_rejection(&rejection, trace),
    }
}

async fn health(state: &EdgeState) -> EdgeReply {
    let started = Instant::now();
    let can_decide = state.health.can_decide_now_shared().await && state.health.can_approve();
    health::reply(
        can_decide,
        state.offered,
        state.upstreams.default_upstream().host(),
        started.elapsed(),
    )
}

/// Answers with the list of models, or with one of them.
async fn models(
    state: &EdgeState,
    route: EdgeRoute,
    session: &ServerSession,
    protection: &mut ProtectedRequest,
    trace: &mut RequestTrace,
) -> Result<EdgeReply, Rejection> {
    state.calls.check_key_and_rate(session, protection, trace).await?;
    let prices = state.prices.get();
    match route {
        EdgeRoute::Model => {
            let name = routes::model_of(session.req_header().uri.path()).unwrap_or_default();
            Ok(models::model(&prices, &state.upstreams, name)?)
        }
        _ => Ok(models::reply(&prices, &state.upstreams)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_has_three_decimals() {
        for (micros, text) in [
            (0, "0.000"),
            (7, "0.007"),
            (1_040, "1.040"),
            (12_345_678, "12345.678"),
        ] {
            assert_eq!(millis(Duration::from_micros(micros)), text);
        }
        assert_eq!(millis(Duration::from_nanos(1_999)), "0.001");
    }
}
