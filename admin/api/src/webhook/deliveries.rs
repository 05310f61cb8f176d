//! `/webhooks/{id}/deliveries`: every attempt of every delivery that is kept.

use super::{find_by_path, gate};
use crate::state::Call;
use domain::timestamp::iso_from_ms;
use endpoint::doc::is;
use endpoint::{Answer, Problem, Reply};
use serde::Serialize;
use store::webhook::delivery::{
    Attempt, Deliveries, Delivery, DeliveryFilter, DeliveryState, ListedDelivery, delivery_id,
};
use utoipa::ToSchema;

/// Error of a delivery that was never attempted.
const REFUSED: &str = "too many deliveries are waiting";

#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = Delivery)]
pub(super) struct DeliveryView<'a> {
    #[schema(value_type = is::DeliveryId)]
    id: String,
    #[schema(value_type = is::DeliveredEvent)]
    event: &'static str,
    /// Equal to `event`.
    #[schema(value_type = is::DeliveredEvent)]
    event_type: &'static str,
    #[schema(value_type = is::DeliveryState)]
    status: &'static str,
    /// Of the last attempt.
    #[schema(value_type = Option<i32>, example = 200)]
    response_code: Option<u16>,
    /// Error of the last attempt, or why there was none.
    #[schema(example = json!(null))]
    error: Option<&'a str>,
    #[schema(value_type = is::Time)]
    created_at: String,
    /// Number of the audit entry that the event follows from.
    #[schema(example = 118)]
    audit_seq: u64,
    attempts: Vec<AttemptView<'a>>,
    #[schema(value_type = Option<is::Time>)]
    next_attempt_at: Option<String>,
}

#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = DeliveryAttempt)]
struct AttemptView<'a> {
    #[schema(value_type = is::Time)]
    at: String,
    #[schema(example = 38)]
    duration_ms: u64,
    /// Null without an answer.
    #[schema(value_type = Option<i32>, example = 200)]
    response_code: Option<u16>,
    #[schema(example = json!(null))]
    error: Option<&'a str>,
    /// The first bytes of the answer's body, at most 256, as one printable line. Absent without a body, and for all
    /// attempts but the last.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = String, required = false, example = "internal error")]
    response_excerpt: Option<&'a str>,
}

impl<'a> AttemptView<'a> {
    fn new(attempt: &'a Attempt) -> Self {
        Self {
            at: iso_from_ms(attempt.at_ms),
            duration_ms: attempt.took_ms,
            response_code: attempt.code,
            error: attempt.error.as_deref(),
            response_excerpt: attempt.excerpt.as_deref(),
        }
    }
}

impl<'a> DeliveryView<'a> {
    fn new(id: String, listed: &'a ListedDelivery) -> Self {
        let delivery = &listed.delivery;
        let last = delivery.attempts.last();
        let (status, error) = match delivery.state {
            DeliveryState::Refused => (DeliveryState::Failed, Some(REFUSED)),
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
            attempts: delivery.attempts.iter().map(AttemptView::new).collect(),
            next_attempt_at: listed.next_at_ms.map(iso_from_ms),
        }
    }
}

/// `GET /webhooks/{id}/deliveries`
pub async fn deliveries(call: Call) -> Answer {
    gate::require(&call)?;
    let query = call.list_query(&["status"])?;
    let paging = call.paging(&query, "deliveries")?;
    let wanted = match query.get("status") {
        None => DeliveryFilter::All,
        Some("pending") => DeliveryFilter::Pending,
        Some("delivered") => DeliveryFilter::Delivered,
        Some("failed") => DeliveryFilter::Failed,
        Some(_) => {
            return Err(Problem::validation(
                "status must be pending, delivered or failed.",
            ));
        }
    };
    let webhook = find_by_path(&call).await?;
    let (store, realm) = (&call.state.store, &call.realm());
    let deliveries = Deliveries {
        realm,
        webhook: &webhook.id,
    };
    let part = deliveries.list(store, wanted, paging.page()).await?;
    Reply::ok(&paging.listing(&part, |listed| {
        let Delivery { seq, event, .. } = listed.delivery;
        DeliveryView::new(delivery_id(realm, &webhook.id, seq, event), listed)
    }))
}
