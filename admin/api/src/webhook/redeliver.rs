//! `POST /webhooks/{id}/deliveries/{deliveryId}/redeliver`: attempts a delivery again that ended or waits for a later
//! event, for a receiver that was unavailable.

use super::gate;
use crate::state::Call;
use domain::id::IdKind;
use endpoint::doc::is;
use endpoint::{Answer, Code, Problem, Reply};
use serde::Serialize;
use store::webhook::delivery::DeliveryState;
use store::webhook::script::WebhookLocation;
use store::webhook::script::redeliver::{Redelivered, redeliver};
use utoipa::ToSchema;

/// A delivery that is attempted again.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = Redelivered)]
pub(super) struct Redelivery<'a> {
    success: bool,
    #[schema(value_type = is::DeliveryId)]
    delivery_id: &'a str,
    /// `pending`
    #[schema(value_type = is::DeliveryState)]
    status: &'static str,
}

/// `POST /webhooks/{id}/deliveries/{deliveryId}/redeliver`
///
/// # Errors
/// 404; 409 while an attempt of it is scheduled, while the webhook is disabled or too many deliveries wait; 503.
pub async fn again(call: Call) -> Answer {
    gate::require(&call)?;
    let webhook = call.record_id("id", IdKind::Webhook)?;
    let delivery = call.record_id("deliveryId", IdKind::Delivery)?;
    let waiting_max = call.state.webhooks.settings.waiting_max;
    let conflict = |message: &'static str| Err(Problem::new(Code::Conflict, message));
    match redeliver(&call.state.store, &call.scope(), webhook, delivery, waiting_max).await? {
        Redelivered::Pending => {
            let endpoint = WebhookLocation {
                realm: call.realm(),
                webhook: webhook.to_owned(),
            };
            call.state.webhooks.hints.add(std::iter::once(endpoint));
            Reply::ok(&Redelivery {
                success: true,
                delivery_id: delivery,
                status: DeliveryState::Pending.as_str(),
            })
        }
        Redelivered::Scheduled => conflict("An attempt of this delivery is scheduled or being made."),
        Redelivered::Disabled => conflict("This webhook is disabled."),
        Redelivered::Full => conflict("Too many deliveries of this webhook wait already."),
        Redelivered::Missing => {
            let message = format!("There is no delivery `{delivery}` of a webhook `{webhook}`.");
            Err(Problem::new(Code::NotFound, message))
        }
    }
}
