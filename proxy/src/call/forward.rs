//! Step 5: the one request to the provider (specification §4.4 step 6). It takes an [`Approval`] by value, so nothing is
//! sent without one and nothing is sent twice.

use super::Stop;
use super::body::Body;
use super::decide::{Approval, unsent};
use crate::gate::Gate;
use crate::pending::item::Origin;
use crate::upstream::{Answer, Failure, headers};
use domain::denial::Denial;
use http::HeaderMap;
use std::io;
use store::call::hold::HoldKeys;
use store::call::settle::Settle;

/// A call that was sent.
#[derive(Debug)]
pub struct Forwarded {
    /// Its hold, to be settled.
    pub hold: Settle,
    /// The keys of that.
    pub keys: HoldKeys,
    /// The ledger that it belongs to.
    pub origin: Origin,
    /// What the provider answered.
    pub answer: Result<Answer, Failure>,
}

/// The headers of the provider's request, but for the key: the caller's that are on the list of the settings.
///
/// # Errors
/// 503 when there are too many; then nothing is charged.
pub fn headers(gate: &Gate, caller: &HeaderMap, length: usize) -> Result<HeaderMap, Stop> {
    let host = &gate.upstream.target().authority;
    let onward = gate.upstream.forward_list().onward(caller, host, length);
    onward.ok_or_else(|| Stop::denied(Denial::ServiceUnavailable))
}

/// Sends the caller's exact bytes with the stored provider key.
///
/// # Errors
/// 503 when nothing could be sent: the stored key cannot be a header, this machine has no descriptor, memory or port for a
/// connection (decision D69), or the account has as many calls under way as it may. Then the estimate is released.
pub async fn forward(
    gate: &Gate,
    approval: Approval,
    mut onward: HeaderMap,
    body: Body,
) -> Result<Forwarded, Stop> {
    let (hold, keys, origin, provider_key) = approval.into_parts();
    if headers::authorize(&mut onward, &provider_key).is_none() {
        tracing::error!(
            decision.id = hold.name.allow_id,
            "the stored provider key cannot be sent"
        );
        return Err(unsent(gate, hold.name, hold.estimate, (&keys, &origin)).await);
    }
    let part = body.share.account().begin_call(gate.upstream.account_calls_max());
    let answer = match part {
        Some(_under_way) => gate.upstream.exchange(&onward, body.bytes, body.share).await,
        None => Err(Failure::NotSent(io::ErrorKind::ResourceBusy)),
    };
    match answer {
        Err(failure @ Failure::NotSent(_)) => {
            gate.metrics.broke_off(&failure);
            Err(unsent(gate, hold.name, hold.estimate, (&keys, &origin)).await)
        }
        answer => Ok(Forwarded {
            hold,
            keys,
            origin,
            answer,
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::super::decide::decide;
    use super::*;
    use crate::fixture::{ESTIMATE, Stand, runs, text};
    use store::call::authorize::AUTHORIZE;
    use store::call::settle::SETTLE;

    /// A stored key that no header can carry, such as one with a line end.
    #[tokio::test]
    async fn a_provider_key_that_is_no_header_value_sends_and_costs_nothing() {
        let stand = Stand::new().await;
        let gate = &stand.gate;
        assert!(gate.watch.usable(gate).await);
        let approval = stand.approval("sk-a\nb: c");
        stand.store_says(move |command| match () {
            () if runs(command, &AUTHORIZE) => Some(approval.clone()),
            () => runs(command, &SETTLE).then(|| text("settled")),
        });
        let approved = decide(gate, &stand.known(), &stand.wanted()).await.unwrap();
        let onward = headers(gate, &HeaderMap::new(), 2).unwrap();
        let sent = forward(gate, approved, onward, stand.body()).await;
        let Err(Stop::Denied(denied)) = sent else {
            panic!("{sent:?}");
        };
        assert_eq!(denied.denial, Denial::ServiceUnavailable);
        assert!(!stand.provider_was_called().await, "nothing is sent");
        let settled = stand.arguments(&SETTLE);
        assert_eq!(settled.len(), 1);
        assert_eq!(settled[0][1..], [ESTIMATE.to_string().as_str(), "0", "unsent"]);
    }
}
