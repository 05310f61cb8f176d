//! Step 6: the ledger moves to what the call really cost, before the answer ends (specification "Proxy spend ledger",
//! decisions D33 to D37).

use super::Done;
use super::forward::Forwarded;
use super::request::Wanted;
use super::tale::{Approved, Tale};
use crate::gate::Gate;
use crate::metrics::{Ended, Stage};
use crate::reply::approved::{self, Stamp};
use crate::reply::refusal::{Refusal, RefusalKind};
use crate::upstream::{Answer, Failure, usage};
use http::header::CONTENT_ENCODING;
use shared::domain::entry::How;
use shared::domain::money::Nanos;
use shared::domain::price::ServedCall;
use shared::store::script::settle::Settle;

/// What is charged in the end, and what the caller is told of it.
#[derive(Debug, PartialEq, Eq)]
struct Bill {
    cost: Nanos,
    /// The same, when the provider reported it.
    actual: Option<Nanos>,
    /// The call failed and is charged all the same.
    charged_failure: bool,
    /// What the audit log calls it.
    how: How,
}

/// Settles a call that was sent, and builds its answer.
pub async fn settle(gate: &Gate, mut tale: Tale, wanted: &Wanted, forwarded: Forwarded) -> Done {
    let Forwarded { hold, keys, answer } = forwarded;
    let took = tale.took(Stage::Upstream);
    let estimate = hold.estimate;
    let bill = bill(wanted, estimate, &answer);
    let stamp_id = hold.name.allow_id.clone();
    let settled = Settle {
        cost: bill.cost,
        how: bill.how,
        ..hold
    };
    let settlement = gate.resolve_hold(&keys, settled).await;
    tale.done(gate, Stage::Settle);
    gate.metrics.approved(estimate, bill.actual, ended(&answer), took);
    if let Err(failure) = &answer {
        gate.metrics.broke_off(failure);
    }
    let (estimated, charged) = (estimate.to_string(), bill.cost.to_string());
    tale.tell_approved(&Approved {
        id: &stamp_id,
        run: &wanted.run.id,
        model: &wanted.model,
        estimate: &estimated,
        charged: &charged,
        how: bill.how.as_str(),
        settlement,
        status: answer.as_ref().map_or(0, |answer| answer.status.as_u16()),
        took,
    });
    let mut reply = match answer {
        Ok(answer) => approved::reply(answer),
        Err(failure) => refusal_of(&failure).reply(),
    };
    Stamp {
        allow_id: &stamp_id,
        run_id: &wanted.run.id,
        estimate: &estimated,
        actual: bill.actual.map(|_| &*charged),
        charged_failure: bill.charged_failure,
    }
    .on(&mut reply);
    Done {
        reply,
        outside: tale.outside(),
    }
}

/// The ledger table of the specification.
fn bill(wanted: &Wanted, estimate: Nanos, answer: &Result<Answer, Failure>) -> Bill {
    let kept = |charged_failure| Bill {
        cost: estimate,
        actual: None,
        charged_failure,
        how: How::Estimated,
    };
    let Ok(answer) = answer else {
        return kept(true);
    };
    match answer.status {
        status if status.is_success() => match actual_cost(wanted, answer) {
            Some(cost) => Bill {
                cost,
                actual: Some(cost),
                charged_failure: false,
                how: How::Settled,
            },
            None => kept(false),
        },
        status if status.is_client_error() => Bill {
            cost: Nanos::ZERO,
            actual: None,
            charged_failure: false,
            how: How::Released,
        },
        _ => kept(true),
    }
}

fn actual_cost(wanted: &Wanted, answer: &Answer) -> Option<Nanos> {
    let encoding = answer
        .headers
        .get(CONTENT_ENCODING)
        .map(http::HeaderValue::as_bytes);
    let reported = usage::read(&answer.body, encoding)?;
    wanted.prices.actual_cost(&ServedCall {
        model: &wanted.model,
        tier_asked: wanted.service_tier.as_deref(),
        tier_reported: reported.service_tier.as_deref(),
        usage: &reported.usage,
        web_search: wanted.web_search,
    })
}

/// How the provider answered, for the metrics.
fn ended(answer: &Result<Answer, Failure>) -> Ended {
    match answer.as_ref().map(|answer| answer.status) {
        Ok(status) if status.is_success() => Ended::Success,
        Ok(status) if status.is_redirection() => Ended::Redirect,
        Ok(status) if status.is_client_error() => Ended::ClientError,
        Ok(_) => Ended::ServerError,
        Err(Failure::Timeout) => Ended::Timeout,
        Err(Failure::Unreachable(_)) => Ended::Unreachable,
    }
}

fn refusal_of(failure: &Failure) -> Refusal {
    match failure {
        Failure::Timeout => Refusal::new(
            RefusalKind::UpstreamTimeout,
            "The provider gave no whole answer in time. The estimate stays charged.",
        ),
        Failure::Unreachable(_) => Refusal::new(
            RefusalKind::UpstreamUnreachable,
            "The provider could not be reached or broke off. The estimate stays charged.",
        ),
    }
}
