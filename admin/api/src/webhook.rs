//! `/webhooks`: receivers of the account's events (decision D42). Each mode has its own.

mod doc;

pub(crate) use doc::section;

mod deliveries;
mod gate;
mod redeliver;
mod request;

pub use deliveries::deliveries;
pub use redeliver::again;

use crate::state::{ApiState, Call};
use clock::now_ms;
use crypto::seal::WebhookSecretOf;
use domain::event::EventName;
use domain::id::IdKind;
use domain::timestamp::iso_from_ms;
use endpoint::doc::is;
use endpoint::{Answer, Code, PAGING, Problem, Reply, missing, operations};
use history::trail::Trail;
use request::WebhookRequest;
use secrecy::SecretString;
use serde::Serialize;
use std::time::Duration;
use store::StoreError;
use store::webhook::delivery::delivery_id;
use store::webhook::script as webhook;
use store::webhook::script::{Tested, Update, Updated, WebhookCreated};
use store::webhook::{SECRET, WEBHOOKS_MAX, WebhookRecord, WebhookSecrets, WebhookStatus, events_text};
use telemetry::error_chain;
use utoipa::ToSchema;
use webhooks::dispatch::{EntrySource, dispatch};

operations! {
    /// Operations on webhooks.
    ROUTES: ApiState, Management;

    POST   "/webhooks",                                        key(Write, Admin), Both, PerMinute, create;
    GET    "/webhooks",                                        key(Read, Viewer), Both, PerMinute, list, Query;
    GET    "/webhooks/{id}",                                   key(Read, Viewer), Both, PerMinute, get;
    PATCH  "/webhooks/{id}",                                   key(Write, Admin), Both, PerMinute, update;
    DELETE "/webhooks/{id}",                                   key(Write, Admin), Both, PerMinute, delete;
    POST   "/webhooks/{id}/test",                              key(Write, Admin), Both, PerMinute, test;
    GET    "/webhooks/{id}/deliveries",                        key(Read, Viewer), Both, PerMinute, deliveries, Query;
    POST   "/webhooks/{id}/deliveries/{deliveryId}/redeliver", key(Write, Admin), Both, PerMinute, again;
}

/// Attempts at a change with a secret while others change the stored one.
const CHANGE_ATTEMPTS: usize = 8;

/// Longest overlap of two secrets, a century: the store adds it to its clock in milliseconds.
const OVERLAP_HOURS_MAX: u64 = 100 * 366 * 24;

/// The record as returned, without the secret.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = Webhook)]
struct WebhookView<'a> {
    #[schema(value_type = is::WebhookId)]
    id: &'a str,
    #[schema(example = "https://hooks.example/tollgate")]
    url: &'a str,
    #[schema(value_type = Vec<is::WebhookEvent>)]
    events: Vec<&'static str>,
    #[schema(example = "Pager")]
    description: Option<&'a str>,
    #[schema(value_type = is::WebhookState)]
    status: &'static str,
    #[schema(value_type = is::Time)]
    created_at: String,
    #[schema(value_type = is::Time)]
    updated_at: String,
    /// Time at which its secret was last set. The secret itself is never shown.
    #[schema(value_type = is::Time)]
    secret_updated_at: String,
}

endpoint::answer! { WebhookAnswer<'a>, webhook: WebhookView<'a> }

/// The test event that was sent.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = WebhookTested)]
struct TestDelivery {
    success: bool,
    #[schema(value_type = is::DeliveredEvent, example = "webhook.test")]
    event: &'static str,
    #[schema(value_type = is::DeliveryId)]
    delivery_id: String,
    /// Number of the audit entry that the event follows from.
    #[schema(example = 118)]
    audit_seq: u64,
}

impl<'a> WebhookView<'a> {
    fn new(webhook: &'a WebhookRecord) -> Self {
        Self {
            id: &webhook.id,
            url: &webhook.url,
            events: webhook.events.iter().map(|event| event.as_str()).collect(),
            description: webhook.description.as_deref(),
            status: webhook.status.as_str(),
            created_at: iso_from_ms(webhook.created_at_ms),
            updated_at: iso_from_ms(webhook.updated_at_ms),
            secret_updated_at: iso_from_ms(webhook.secret_at_ms),
        }
    }
}

/// `POST /webhooks`
pub async fn create(call: Call) -> Answer {
    gate::require(&call)?;
    let request = WebhookRequest::from_new(&call.body()?)?;
    let (Some(url), Some(events), Some(secret)) = (&request.url, &request.events, &request.secret) else {
        return Err(missing("url, events or secret")); // `of_new` has required each of them
    };
    request::require_receiver(&call, url).await?;
    let id = IdKind::Webhook.mint(now_ms())?;
    let sealed = seal(&call, &id, secret)?;
    let events = events_text(events);
    let mut fields = vec![
        ("url", url.as_str()),
        ("events", &events),
        ("secret", &sealed),
        ("status", WebhookStatus::Active.as_str()),
    ];
    if let Some(Some(description)) = &request.description {
        fields.push(("description", description));
    }
    match webhook::create(
        &call.state.store,
        &call.scope(),
        &id,
        &fields,
        request.shown(true),
    )
    .await?
    {
        WebhookCreated::Done(webhook) => Reply::created(&WebhookAnswer::new(WebhookView::new(&webhook))),
        WebhookCreated::TooMany => {
            let message = format!("An account can have {WEBHOOKS_MAX} webhooks; delete one first.");
            Err(Problem::new(Code::WebhookLimit, message))
        }
    }
}

fn seal(call: &Call, id: &str, secret: &SecretString) -> Result<String, Problem> {
    Ok(call.admission.health.seal(&owner_of(call, id), secret)?)
}

fn owner_of<'a>(call: &'a Call, id: &'a str) -> WebhookSecretOf<'a> {
    WebhookSecretOf {
        account: &call.caller.account,
        mode: call.caller.mode,
        webhook: id,
    }
}

/// A given secret, compared with the stored one.
#[derive(Default)]
struct JudgedSecret {
    /// The stored sealed secret.
    stored: Option<String>,
    /// The given secret, sealed; `None` if it is the stored one. To set that again is no change: as one, it would take
    /// the place of the previous secret, which receivers still go by.
    new: Option<String>,
}

impl JudgedSecret {
    async fn new(call: &Call, id: &str, given: &SecretString) -> Result<Self, Problem> {
        let secrets = WebhookSecrets::read(&call.state.store, &call.realm(), id).await?;
        let mut sealed = secrets.sealed.into_iter();
        let stored = sealed.find_map(|(field, text)| (field == SECRET).then_some(text));
        let is_of = |stored: &String| call.state.keyring.is_of(&owner_of(call, id), stored, given);
        let new = match stored.as_ref().is_some_and(is_of) {
            true => None,
            false => Some(seal(call, id, given)?),
        };
        Ok(Self { stored, new })
    }
}

/// `GET /webhooks`
pub async fn list(call: Call) -> Answer {
    gate::require(&call)?;
    let paging = call.paging(&call.query(&PAGING)?, "webhooks")?;
    let part = WebhookRecord::list(&call.state.store, &call.realm(), paging.page()).await?;
    Reply::ok(&paging.listing(&part, WebhookView::new))
}

/// `GET /webhooks/{id}`
pub async fn get(call: Call) -> Answer {
    gate::require(&call)?;
    Reply::ok(&WebhookAnswer::new(WebhookView::new(&find_by_path(&call).await?)))
}

async fn find_by_path(call: &Call) -> Result<WebhookRecord, Problem> {
    let id = call.record_id("id", IdKind::Webhook)?;
    let webhook = WebhookRecord::read(&call.state.store, &call.realm(), id).await?;
    webhook.ok_or_else(|| none(id))
}

fn none(id: &str) -> Problem {
    Problem::new(Code::NotFound, format!("There is no webhook `{id}`."))
}

/// `PATCH /webhooks/{id}`
///
/// # Errors
/// 400, 404, 503, also if other requests or `keys rotate` change the secret again and again meanwhile.
pub async fn update(call: Call) -> Answer {
    let request = call.body().and_then(|body| WebhookRequest::from_change(&body));
    // Webhooks can be disabled on every plan.
    if !request.as_ref().is_ok_and(WebhookRequest::only_disables) {
        gate::require(&call)?;
    }
    let WebhookRecord { id, .. } = &find_by_path(&call).await?;
    let request = request?;
    if let Some(url) = &request.url {
        request::require_receiver(&call, url).await?;
    }
    let changes = request.changes();
    for _ in 0..CHANGE_ATTEMPTS {
        let secret = match &request.secret {
            Some(given) => JudgedSecret::new(&call, id, given).await?,
            None => JudgedSecret::default(),
        };
        let update = Update {
            id,
            changes: &changes,
            judged: secret.stored.as_deref(),
            secret: secret.new.as_deref(),
            overlap: overlap(call.state.webhooks.settings.secret_overlap_hours),
            shown: request.shown(secret.new.is_some()),
        };
        match update.execute(&call.state.store, &call.scope()).await? {
            Updated::Done(webhook) => return Reply::ok(&WebhookAnswer::new(WebhookView::new(&webhook))),
            Updated::Missing => return Err(none(id)),
            Updated::Changed => {}
        }
    }
    Err(Code::ServiceUnavailable.into())
}

/// Returns how long the previous secret also signs.
fn overlap(hours: u64) -> Duration {
    Duration::from_secs(hours.min(OVERLAP_HOURS_MAX).saturating_mul(3600))
}

/// `DELETE /webhooks/{id}`, on every plan.
///
/// # Errors
/// 404, 503.
pub async fn delete(call: Call) -> Answer {
    let id = call.record_id("id", IdKind::Webhook)?;
    match webhook::delete(&call.state.store, &call.scope(), id).await? {
        true => Reply::done(),
        false => Err(none(id)),
    }
}

/// `POST /webhooks/{id}/test`
///
/// # Errors
/// 404, 409 while the webhook is disabled, 503.
pub async fn test(call: Call) -> Answer {
    gate::require(&call)?;
    let id = call.record_id("id", IdKind::Webhook)?;
    match webhook::test(&call.state.store, &call.scope(), id).await? {
        Tested::Done { seq } => {
            // Dispatched immediately, so that the caller finds the delivery in the list; on failure the sealer does it.
            if let Err(error) = dispatch_now(&call).await {
                tracing::warn!(error = %error_chain(&error), "a webhook's test is dispatched later");
            }
            let event = EventName::WebhookTest;
            let delivery = delivery_id(&call.realm(), id, seq, event);
            Reply::ok(&TestDelivery {
                success: true,
                event: event.as_str(),
                delivery_id: delivery,
                audit_seq: seq,
            })
        }
        Tested::Missing => Err(none(id)),
        Tested::Disabled => Err(Problem::new(Code::Conflict, "This webhook is disabled.")),
    }
}

async fn dispatch_now(call: &Call) -> Result<(), StoreError> {
    let realm = call.realm();
    Trail::new(&call.state.store, &call.state.archive, realm.clone())
        .seal()
        .await?;
    dispatch(&call.state.webhooks, &realm, EntrySource::Store).await
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_overlap_that_is_too_long_is_cut_off() {
        assert_eq!(overlap(0), Duration::ZERO);
        assert_eq!(overlap(24), Duration::from_secs(86_400));
        let most = overlap(OVERLAP_HOURS_MAX);
        for hours in [OVERLAP_HOURS_MAX + 1, 9_000_000_000_000_000_000, u64::MAX] {
            assert_eq!(overlap(hours), most);
        }
        let until = u128::from(now_ms()) + most.as_millis();
        assert!(until < 1 << 53, "a double holds it");
    }
}
