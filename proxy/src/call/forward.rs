//! Step 5: the one request to the provider (specification §4.4 step 6). It takes an [`Approval`] by value, so nothing is
//! sent without one and nothing is sent twice.

use super::Stop;
use super::decide::Approval;
use super::receive::Body;
use crate::gate::Gate;
use crate::upstream::{Answer, Failure, headers};
use http::HeaderMap;
use pingora_http::RequestHeader;
use secrecy::SecretString;
use shared::domain::denial::Denial;
use shared::domain::money::Nanos;
use shared::store::script::settle::Settle;
use std::time::{Duration, Instant};

/// A call that was sent.
#[derive(Debug)]
pub struct Forwarded {
    /// Its hold, to be settled.
    pub hold: Settle,
    /// What the provider answered.
    pub answer: Result<Answer, Failure>,
    /// How long that took.
    pub took: Duration,
}

/// Sends the caller's exact bytes.
///
/// # Errors
/// 503 when the request cannot be built from the stored key; then nothing was sent and the estimate is released.
pub async fn forward(
    gate: &Gate,
    approval: Approval,
    caller: &HeaderMap,
    body: Body,
) -> Result<Forwarded, Stop> {
    let (hold, provider_key) = approval.into_parts();
    let Some(head) = request_head(gate, caller, &provider_key, body.bytes().len()) else {
        tracing::error!(
            decision.id = hold.name.allow_id,
            "the stored provider key cannot be sent"
        );
        gate.resolve_hold(Settle {
            cost: Nanos::ZERO,
            ..hold
        })
        .await;
        return Err(Stop::denied(Denial::ServiceUnavailable));
    };
    let started = Instant::now();
    let answer = gate.upstream.exchange(head, body.bytes().clone()).await;
    Ok(Forwarded {
        hold,
        answer,
        took: started.elapsed(),
    })
}

fn request_head(
    gate: &Gate,
    caller: &HeaderMap,
    key: &SecretString,
    length: usize,
) -> Option<Box<RequestHeader>> {
    let target = gate.upstream.target();
    let mut head =
        RequestHeader::build_no_case("POST", target.path.as_bytes(), Some(caller.len() + 4)).ok()?;
    headers::fill_request(&mut head, caller, &target.authority, key, length)?;
    Some(Box::new(head))
}
