//! The life of one call, in the order of specification §4.4. Each step is a file:
//!
//! 1. [`credential`]: the virtual key's form (401), then [`resolve`]: whose key it is (503, 401)
//! 2. [`body`]: the body, within size and time (413, 408)
//! 3. [`chat_request`]: what the body and headers ask for (400), and the estimate
//! 4. [`decide`]: key status, plan keys, rate, provider key and Cap in one store step; the only maker of an `Approval`
//! 5. [`forward`]: the one request to the provider; the only taker of an `Approval`
//! 6. [`settle`]: the ledger moves to the real cost before the answer ends
//!
//! [`request_trace`] what metrics, log and trace get of a call;
//! [`run_to_completion`] keeps a caller who disconnects from stopping steps 4 to 6.

pub mod body;
pub mod chat_request;
pub mod credential;
pub mod decide;
pub mod forward;
pub mod request_trace;
pub mod resolve;
pub mod run_to_completion;
pub mod settle;

use crate::gate::Gate;
use crate::key_owners::known_key::KnownKey;
use crate::metrics::Stage;
use crate::reply::Reply;
use crate::reply::denied::Denied;
use crate::reply::refusal::Refusal;
use body::Body;
use chat_request::Wanted;
use connections::limit::Keeper;
use credential::PresentedKey;
use domain::denial::Denial;
use domain::id::Kind;
use http::HeaderMap;
use pingora::protocols::http::ServerSession;
use request_trace::RequestTrace;
use run_to_completion::RunToCompletion;
use std::sync::Arc;
use std::time::Duration;

/// Where a call ended before it was approved.
#[derive(Debug)]
pub enum Stop {
    /// The request itself is at fault.
    Refused(Refusal),
    /// The gate said no.
    Denied(Box<Denied>),
}

/// A finished call: the answer, and the time that was not Tollgate's.
#[derive(Debug)]
pub struct Done {
    /// The answer.
    pub reply: Reply,
    /// Time spent waiting for others: the caller sending its body, the provider answering.
    pub outside: Duration,
}

impl Stop {
    /// A denial for which nothing but its reason is known.
    #[must_use]
    pub fn denied(denial: Denial) -> Self {
        let kind = if Denied::by_cap(denial) {
            Kind::Allow
        } else {
            Kind::Deny
        };
        let id = kind
            .mint(clock::now_ms())
            .unwrap_or_else(|_| kind.prefix().to_owned());
        Self::Denied(Box::new(Denied {
            message: None,
            denial,
            id,
            run_id: None,
            estimate: None,
            plan: None,
        }))
    }

    /// The answer; the reason goes to metrics, log and trace on the way. Each stop is answered once.
    #[must_use]
    pub fn answer(&self, gate: &Gate, trace: &RequestTrace) -> Reply {
        match self {
            Self::Refused(refusal) => {
                trace.record_refusal(gate, refusal.kind);
                refusal.reply()
            }
            Self::Denied(denied) => {
                trace.record_denial(gate, denied);
                denied.reply()
            }
        }
    }
}

impl From<Refusal> for Stop {
    fn from(refusal: Refusal) -> Self {
        Self::Refused(refusal)
    }
}

/// Takes a chat-completions request to its end. Whatever happens, there is an answer.
pub async fn chat(
    gate: &Arc<Gate>,
    session: &mut ServerSession,
    keeper: &mut Keeper,
    mut trace: RequestTrace,
) -> Done {
    match through_the_gate(gate, session, keeper, &mut trace).await {
        Ok(done) => done,
        Err(stop) => Done {
            reply: stop.answer(gate, &trace),
            outside: trace.outside(),
        },
    }
}

async fn through_the_gate(
    gate: &Arc<Gate>,
    session: &mut ServerSession,
    keeper: &mut Keeper,
    trace: &mut RequestTrace,
) -> Result<Done, Stop> {
    let key = credential::from_headers(&session.req_header().headers)?;
    if let Err(too_long) = body::check_declared_length(gate, session) {
        return Err(count_too_long(gate, &key, trace, too_long).await);
    }
    let known = resolve::owner(gate, &key).await?;
    trace.set_owner(&known.owner);
    trace.finish_stage(gate, Stage::Resolve);
    if !keeper.keep() {
        return Err(Stop::denied(Denial::ServiceUnavailable));
    }
    if known.was_refused_lately() && body::may_be_large(session) {
        decide::turn_away(gate, &known).await?;
    }
    let body = body::body(gate, session, &known).await;
    trace.finish_stage(gate, Stage::Receive);
    let body = match body {
        Ok(body) => body,
        Err(Stop::Refused(refusal)) => return Err(decide::count_only(gate, &known, refusal).await),
        Err(denied) => return Err(denied),
    };
    let headers = &session.req_header().headers;
    let wanted = match chat_request::understand(gate, headers, &body.bytes) {
        Ok(wanted) => wanted,
        Err(refusal) => return Err(decide::count_only(gate, &known, refusal).await),
    };
    let mut onward = forward::headers(gate, headers, body.bytes.len())?;
    trace.propagate(&mut onward);
    trace.finish_stage(gate, Stage::Read);
    let call = (Arc::clone(gate), trace.clone());
    complete(call, known, wanted, onward, body).await
}

/// Decides, forwards and settles a call, even if its caller disconnects: whether a server drops the future of a request whose
/// caller has gone is its own affair, and none of its promises.
async fn complete(
    call: (Arc<Gate>, RequestTrace),
    known: Arc<KnownKey>,
    wanted: Wanted,
    onward: HeaderMap,
    body: Body,
) -> Result<Done, Stop> {
    let ended = RunToCompletion::new(decide_and_forward(call, known, wanted, onward, body)).await;
    ended.ok_or_else(|| {
        tracing::error!("a call panicked");
        Stop::denied(Denial::ServiceUnavailable)
    })
}

/// Counts a request whose body declares itself too long, when its key is known (decision D30). It is refused for its length
/// all the same, whatever the store says (decision D63).
async fn count_too_long(gate: &Gate, key: &PresentedKey, trace: &mut RequestTrace, too_long: Stop) -> Stop {
    if let Ok(known) = resolve::owner(gate, key).await {
        trace.set_owner(&known.owner);
        drop(decide::admit(gate, &known).await);
    }
    too_long
}

/// Lets a request through that is no call, such as the list of models: key and rate are checked, nothing is charged.
///
/// # Errors
/// 401, or the denial.
pub async fn admit(gate: &Gate, session: &ServerSession, keeper: &mut Keeper) -> Result<(), Stop> {
    let key = credential::from_headers(&session.req_header().headers)?;
    let known = resolve::owner(gate, &key).await?;
    if !keeper.keep() {
        return Err(Stop::denied(Denial::ServiceUnavailable));
    }
    decide::admit(gate, &known).await
}

/// Decides, forwards, settles and records a call.
async fn decide_and_forward(
    (gate, mut trace): (Arc<Gate>, RequestTrace),
    known: Arc<KnownKey>,
    wanted: Wanted,
    onward: HeaderMap,
    body: Body,
) -> Done {
    let decided = decide::decide(&gate, &known, &wanted).await;
    trace.finish_stage(&gate, Stage::Decide);
    let forwarded = match decided {
        Ok(approval) => forward::forward(&gate, approval, onward, body).await,
        Err(stop) => Err(stop),
    };
    match forwarded {
        Ok(forwarded) => {
            trace.finish_stage(&gate, Stage::Upstream);
            settle::settle(&gate, trace, &wanted, forwarded).await
        }
        Err(stop) => Done {
            reply: stop.answer(&gate, &trace),
            outside: trace.outside(),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::{SOON, Stand, runs, served, text, timeless};
    use store::call::authorize::AUTHORIZE;
    use store::call::settle::SETTLE;
    use tokio::io::AsyncWriteExt as _;
    use tokio::time::{sleep, timeout};

    fn approving(stand: &Stand) {
        let approval = stand.approval("sk-1");
        stand.store_says(move |command| match () {
            () if runs(command, &AUTHORIZE) => Some(approval.clone()),
            () => runs(command, &SETTLE).then(|| text("settled")),
        });
    }

    fn call(stand: &Stand) -> impl Future<Output = Result<Done, Stop>> + use<> {
        let (gate, body) = (Arc::clone(&stand.gate), stand.body());
        let onward = forward::headers(&gate, &HeaderMap::new(), body.bytes.len()).unwrap();
        let trace = RequestTrace::of(&HeaderMap::new());
        complete((gate, trace), stand.known(), stand.wanted(), onward, body)
    }

    #[tokio::test]
    async fn a_call_whose_caller_leaves_is_settled() {
        let stand = Stand::new().await;
        assert!(stand.gate.watch.usable(&stand.gate).await);
        approving(&stand);
        let call = call(&stand);
        let mut waiting = Box::pin(call);
        let (request, mut provider) = tokio::select! {
            _ = &mut waiting => panic!("it waits for the provider"),
            request = stand.provider_request() => request,
        };
        assert!(request.contains("sk-1"), "{request}");
        // The one who served the caller lets go of it.
        drop(waiting);
        let usage = r#"{"usage":{"prompt_tokens":4,"completion_tokens":1}}"#;
        let answer = format!(
            "HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n{usage}",
            usage.len()
        );
        provider.write_all(answer.as_bytes()).await.unwrap();
        let settled = async {
            while stand.arguments(&SETTLE).is_empty() {
                sleep(std::time::Duration::from_millis(1)).await;
            }
        };
        timeout(SOON, settled).await.unwrap();
        // 4 tokens of 2,500 nano-USD and 1 of 10,000.
        assert_eq!(stand.arguments(&SETTLE)[0][2..], ["20000", "settled"]);
    }

    /// The runtime that it is polled in has no timer, and the first deadline panics.
    #[test]
    fn a_call_that_panics_is_answered_and_takes_nothing_with_it() {
        let (served, stand) = served();
        let timeless = timeless();
        let ended = timeless.block_on(call(&stand));
        let Err(Stop::Denied(denied)) = ended else {
            panic!("{ended:?}");
        };
        assert_eq!(denied.denial, Denial::ServiceUnavailable);
        served.block_on(async { drop(stand) });
    }
}
