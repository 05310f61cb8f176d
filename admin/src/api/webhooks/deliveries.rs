//! `/webhooks/{id}/deliveries`: every attempt of every delivery that is kept.

use super::super::listing::Listing;
use super::{gate, of_path};
use crate::problem::Problem;
use crate::routes::{Answer, Call, Reply, page};
use serde::Serialize;
use shared::clock::iso_from_ms;
use shared::store::delivery::{Attempt, Delivery, Listed, State, Wanted, delivery_id};

/// What a delivery is failed with that was never attempted.
const REFUSED: &str = "too many deliveries are waiting";

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct View<'a> {
    id: String,
    event: &'static str,
    event_type: &'static str,
    status: &'static str,
    /// Of the last attempt.
    response_code: Option<u16>,
    /// Of the last attempt, or why there was none.
    error: Option<&'a str>,
    created_at: String,
    audit_seq: u64,
    attempts: Vec<AttemptView<'a>>,
    next_attempt_at: Option<String>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct AttemptView<'a> {
    at: String,
    duration_ms: u64,
    response_code: Option<u16>,
    error: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    response_excerpt: Option<&'a str>,
}

impl<'a> AttemptView<'a> {
    fn of(attempt: &'a Attempt) -> Self {
        Self {
            at: iso_from_ms(attempt.at_ms),
            duration_ms: attempt.took_ms,
            response_code: attempt.code,
            error: attempt.error.as_deref(),
            response_excerpt: attempt.excerpt.as_deref(),
        }
    }
}

impl<'a> View<'a> {
    fn of(id: String, listed: &'a Listed) -> Self {
        let delivery = &listed.delivery;
        let last = delivery.attempts.last();
        let (status, error) = match delivery.state {
            State::Refused => (State::Failed, Some(REFUSED)),
            state => (state, last.and_then(|attempt| attempt.error.as_deref())),
        };
        Self {
            id,
            event: delivery.event.as_str(),
            event_type: delivery.event.as_str(),
            status: status.as_str(),
            response_code: last.and_then(|attempt| attempt.code),
            error,
            created_at: iso_from_ms(delivery.created_at_ms),
            audit_seq: delivery.seq,
            attempts: delivery.attempts.iter().map(AttemptView::of).collect(),
            next_attempt_at: listed.next_at_ms.map(iso_from_ms),
        }
    }
}

/// `GET /webhooks/{id}/deliveries`
///
/// # Errors
/// 400, 404, 503.
pub async fn deliveries(call: Call) -> Answer {
    gate::require(&call)?;
    let query = call.query(&["status", "limit", "offset"])?;
    let page = page(&query)?;
    let wanted = match query.get("status").map(String::as_str) {
        None => Wanted::All,
        Some("pending") => Wanted::Pending,
        Some("delivered") => Wanted::Delivered,
        Some("failed") => Wanted::Failed,
        Some(_) => {
            return Err(Problem::validation(
                "status must be pending, delivered or failed.",
            ));
        }
    };
    let webhook = of_path(&call).await?;
    let (account, mode) = (&call.caller.account, call.caller.mode);
    let (store, keys) = (&call.app.store, call.keys());
    let (listed, total) = Delivery::list(store, &keys, mode, &webhook.id, wanted, page).await?;
    let records: Vec<View<'_>> = listed
        .iter()
        .map(|listed| {
            let Delivery { seq, event, .. } = listed.delivery;
            View::of(delivery_id(account, mode, &webhook.id, seq, event), listed)
        })
        .collect();
    Reply::ok(&Listing {
        plural: "deliveries",
        records: &records,
        total,
        page,
    })
}
