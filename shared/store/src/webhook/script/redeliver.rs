//! Twin of `redeliver.lua`: attempts a delivery again that is finished or waits for an event.

use super::{READY, WebhookLocation};
use crate::keys::DeliverySet;
use crate::script::change::{AuditEvent, CHANGE_ATTEMPTS, Scope};
use crate::script::script;
use crate::webhook::delivery::{Deliveries, StoredDelivery, delivery_id};
use crate::{Store, StoreError};
use domain::event::EventName;
use serde_json::json;

script! {
    /// Makes a delivery due again.
    pub static REDELIVER = "webhook_redeliver",
    kind: Change,
    source: [READY, include_str!("../redeliver.lua")],
    when_full: Refuse,
    keys: struct RedeliverKeys: String { webhook, ready, due, parked, deliveries, delivered, failed },
    /// `before` and `after` are texts of the delivery.
    args: struct RedeliverArgs<'a>: &'a str { member, number, before, after, waiting_max },
}

domain::words! {
    /// Outcome of the script.
    pub enum Redelivered {
        /// Waits for its first attempt.
        Pending = "pending",
        /// An attempt is scheduled or under way; nothing changed.
        Scheduled = "scheduled",
        /// The webhook or the delivery does not exist.
        Missing = "missing",
        /// The webhook is disabled.
        Disabled = "disabled",
        /// Too many deliveries of the webhook wait.
        Full = "full",
    }
}

/// Makes the delivery `id` of the webhook due now, with all its attempts, unless it is due already or `waiting_max`
/// other deliveries wait. One that waits for an event does not wait any longer.
///
/// # Errors
/// [`StoreError`]; the script may have run.
pub async fn redeliver(
    store: &Store,
    scope: &Scope<'_>,
    webhook: &str,
    id: &str,
    waiting_max: u64,
) -> Result<Redelivered, StoreError> {
    let realm = &scope.realm();
    let is_it = |seq: u64, event: EventName| delivery_id(realm, webhook, seq, event) == id;
    let deliveries = Deliveries { realm, webhook };
    for _ in 0..CHANGE_ATTEMPTS {
        let Some(stored) = deliveries.find(store, is_it).await? else {
            return Ok(Redelivered::Missing);
        };
        if let Some(done) = attempt(store, scope, (webhook, id), stored, waiting_max).await? {
            return Ok(done);
        }
    }
    Err(StoreError::unexpected("a delivery that changes all the time"))
}

/// Executes the script once; `None` if the delivery changed since it was read.
async fn attempt(
    store: &Store,
    scope: &Scope<'_>,
    (webhook, id): (&str, &str),
    stored: StoredDelivery,
    waiting_max: u64,
) -> Result<Option<Redelivered>, StoreError> {
    let (realm, endpoint) = (scope.realm(), WebhookLocation::new(scope, webhook));
    let set = |set| realm.deliveries_in(webhook, set);
    let keys = RedeliverKeys {
        webhook: realm.webhook(webhook),
        ready: realm.bucket().webhooks_ready(),
        due: set(DeliverySet::Due),
        parked: set(DeliverySet::Parked),
        deliveries: realm.deliveries(webhook),
        delivered: set(DeliverySet::Delivered),
        failed: set(DeliverySet::Failed),
    };
    let data = json!({ "webhookId": webhook, "deliveryId": id });
    let event = AuditEvent::new("webhook.redelivered", data);
    let args = RedeliverArgs {
        member: &endpoint.member(),
        number: &stored.number,
        before: &stored.text,
        after: &stored.delivery.again().text(),
        waiting_max: &waiting_max.to_string(),
    };
    let mut reply = scope.execute(store, &REDELIVER, event, keys, args).await?;
    reply.parsed(|word| match word {
        "changed" => Some(None),
        other => Redelivered::parse(other).map(Some),
    })
}
