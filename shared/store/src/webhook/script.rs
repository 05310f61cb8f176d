//! Twins of the scripts that manage webhooks: `webhook/{create,update,delete,test,reseal}.lua`.

pub mod cursor;
pub mod deliver;
pub mod dispatch;
pub mod redeliver;

use crate::keys::DeliverySet;
use crate::keys::Realm;
use crate::script::change::{AuditEvent, FIELDS, FieldChange, Scope, field_args};
use crate::script::script;
use crate::webhook::{WEBHOOKS_MAX, WebhookRecord};
use crate::{Store, StoreError};
use domain::event::TESTED;
use domain::mode::Mode;
use serde_json::{Map, Value, json};
use std::time::Duration;

const READY: &str = include_str!("ready.lua");
const TRIM: &str = include_str!("trim.lua");

script! {
    /// Registers a webhook.
    pub static CREATE = "webhook_create",
    kind: Change,
    source: [include_str!("create.lua")],
    when_full: Refuse,
    keys: struct CreateKeys: String { webhooks, webhook },
    /// `fields` are those of the record and their values.
    args: struct CreateArgs<'a>: &'a str { webhook_id, webhooks_max, fields[..] },
}

script! {
    /// Changes a webhook.
    pub static UPDATE = "webhook_update",
    kind: Change,
    source: [FIELDS, READY, include_str!("update.lua")],
    when_full: Refuse,
    keys: struct UpdateKeys: String { webhook, ready, due, parked },
    /// `overlap` is in ms, `judged` and `secret` are sealed texts, `changes` are for `fields.lua`.
    args: struct UpdateArgs<'a>: &'a str { member, overlap, judged, secret, changes[..] },
}

script! {
    /// Deletes a webhook.
    pub static DELETE = "webhook_delete",
    kind: Change,
    source: [include_str!("delete.lua")],
    when_full: Run,
    /// The keys from `due` to `failed`, and from `violations` on, are removed.
    keys: struct DeleteKeys: String {
        webhooks, webhook, ready, due, parked, deliveries, delivered, failed, violations, waiting, waiting_order
    },
    args: struct DeleteArgs<'a>: &'a str { webhook_id, member },
}

script! {
    /// Creates a test event.
    pub static TEST = "webhook_test",
    kind: Change,
    source: [include_str!("test.lua")],
    when_full: Refuse,
    keys: struct WebhookKey: String { webhook },
}

script! {
    /// Stores a resealed secret.
    pub static RESEAL = "webhook_reseal",
    kind: Change,
    source: [include_str!("reseal.lua")],
    when_full: Refuse,
    keys: WebhookKey,
    /// `old` and `new` are sealed texts.
    args: struct ResealArgs<'a>: &'a str { field, old, new },
}

/// Location of a webhook.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct WebhookLocation {
    /// Account and mode.
    pub realm: Realm,
    /// Webhook id, `wh_…`.
    pub webhook: String,
}

impl WebhookLocation {
    /// Returns its member name in the bucket's set of ready webhooks.
    pub fn member(&self) -> String {
        format!("{} {}", self.realm, self.webhook)
    }

    /// Parses a member name.
    pub fn parse(member: &str) -> Option<Self> {
        let mut words = member.split(' ');
        let endpoint = Self {
            realm: Realm::new(words.next()?, Mode::parse(words.next()?)?),
            webhook: words.next()?.to_owned(),
        };
        words.next().is_none().then_some(endpoint)
    }

    fn new(scope: &Scope<'_>, id: &str) -> Self {
        Self {
            realm: scope.realm(),
            webhook: id.to_owned(),
        }
    }
}

/// Outcome of a registration.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum WebhookCreated {
    /// The new record.
    Done(Box<WebhookRecord>),
    /// The account has [`WEBHOOKS_MAX`] webhooks.
    TooMany,
}

/// Outcome of a test.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Tested {
    /// The event of the audit entry with this number.
    Done {
        /// Number of the audit entry.
        seq: u64,
    },
    /// The webhook does not exist.
    Missing,
    /// A disabled webhook is not tested.
    Disabled,
}

/// Arguments of a change.
#[derive(Debug)]
pub struct Update<'a> {
    /// Webhook id, `wh_…`.
    pub id: &'a str,
    /// Fields of the record.
    pub changes: &'a [FieldChange],
    /// The stored sealed secret that the caller compared a given secret with. Another stored one is
    /// [`Updated::Changed`].
    pub judged: Option<&'a str>,
    /// A new secret, sealed.
    pub secret: Option<&'a str>,
    /// Time for which the old secret stays valid.
    pub overlap: Duration,
    /// Changed fields for the audit log.
    pub shown: Map<String, Value>,
}

/// Outcome of a change.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Updated {
    /// The changed record.
    Done(Box<WebhookRecord>),
    /// The webhook does not exist.
    Missing,
    /// The stored secret is not the judged one; nothing changed.
    Changed,
}

/// Registers the webhook `id` with these `fields`; `shown` is for the audit log and contains no secret.
///
/// # Errors
/// [`StoreError`]; the webhook may exist.
pub async fn create(
    store: &Store,
    scope: &Scope<'_>,
    id: &str,
    fields: &[(&str, &str)],
    mut shown: Map<String, Value>,
) -> Result<WebhookCreated, StoreError> {
    let realm = scope.realm();
    shown.insert("webhookId".to_owned(), id.into());
    let event = AuditEvent::new("webhook.created", shown.into());
    let keys = CreateKeys {
        webhooks: realm.webhooks(),
        webhook: realm.webhook(id),
    };
    let args = CreateArgs {
        webhook_id: id,
        webhooks_max: &WEBHOOKS_MAX.to_string(),
        fields: fields
            .iter()
            .flat_map(|(field, value)| [*field, *value])
            .collect(),
    };
    let mut reply = scope.execute(store, &CREATE, event, keys, args).await?;
    match reply.word()?.as_str() {
        "created" => reply
            .record(WebhookRecord::from_fields)
            .map(|record| WebhookCreated::Done(Box::new(record))),
        "too_many" => Ok(WebhookCreated::TooMany),
        _ => reply.unexpected(),
    }
}

impl Update<'_> {
    /// Executes the change.
    ///
    /// # Errors
    /// [`StoreError`]; the change may be made. Repeated, it adds another audit entry, and a new secret is
    /// [`Updated::Changed`]: the caller must compare again, or the new secret would become the old one, too.
    pub async fn execute(mut self, store: &Store, scope: &Scope<'_>) -> Result<Updated, StoreError> {
        let realm = scope.realm();
        let endpoint = WebhookLocation::new(scope, self.id);
        self.shown.insert("webhookId".to_owned(), self.id.into());
        let event = AuditEvent::new("webhook.updated", self.shown.into());
        let set = |set| realm.deliveries_in(self.id, set);
        let keys = UpdateKeys {
            webhook: realm.webhook(self.id),
            ready: realm.bucket().webhooks_ready(),
            due: set(DeliverySet::Due),
            parked: set(DeliverySet::Parked),
        };
        let args = UpdateArgs {
            member: &endpoint.member(),
            overlap: &self.overlap.as_millis().to_string(),
            judged: self.judged.unwrap_or_default(),
            secret: self.secret.unwrap_or_default(),
            changes: field_args(self.changes),
        };
        let mut reply = scope.execute(store, &UPDATE, event, keys, args).await?;
        match reply.word()?.as_str() {
            "updated" => reply
                .record(WebhookRecord::from_fields)
                .map(|record| Updated::Done(Box::new(record))),
            "missing" => Ok(Updated::Missing),
            "changed" => Ok(Updated::Changed),
            _ => reply.unexpected(),
        }
    }
}

/// Deletes a webhook with its deliveries; false if it does not exist.
/// Safe to retry.
pub async fn delete(store: &Store, scope: &Scope<'_>, id: &str) -> Result<bool, StoreError> {
    let realm = scope.realm();
    let endpoint = WebhookLocation::new(scope, id);
    let event = AuditEvent::new("webhook.deleted", json!({ "webhookId": id }));
    let set = |set| realm.deliveries_in(id, set);
    let keys = DeleteKeys {
        webhooks: realm.webhooks(),
        webhook: realm.webhook(id),
        ready: realm.bucket().webhooks_ready(),
        due: set(DeliverySet::Due),
        parked: set(DeliverySet::Parked),
        deliveries: realm.deliveries(id),
        delivered: set(DeliverySet::Delivered),
        failed: set(DeliverySet::Failed),
        violations: realm.violations(),
        waiting: realm.violations_waiting(),
        waiting_order: realm.violations_order(),
    };
    let args = DeleteArgs {
        webhook_id: id,
        member: &endpoint.member(),
    };
    let reply = scope.execute(store, &DELETE, event, keys, args).await?;
    reply.is("deleted", &["missing"])
}

/// Creates a test event, delivered to this webhook only.
///
/// # Errors
/// [`StoreError`]; the event may exist.
pub async fn test(store: &Store, scope: &Scope<'_>, id: &str) -> Result<Tested, StoreError> {
    let event = AuditEvent::new(TESTED, json!({ "webhookId": id }));
    let keys = WebhookKey {
        webhook: scope.realm().webhook(id),
    };
    let mut reply = scope.execute(store, &TEST, event, keys, ()).await?;
    match reply.word()?.as_str() {
        "recorded" => Ok(Tested::Done { seq: reply.number()? }),
        "missing" => Ok(Tested::Missing),
        "disabled" => Ok(Tested::Disabled),
        _ => reply.unexpected(),
    }
}

/// A secret of a webhook, sealed again.
#[derive(Debug)]
pub struct SecretReseal<'a> {
    /// Webhook id, `wh_…`.
    pub webhook: &'a str,
    /// The field with the secret.
    pub field: &'a str,
    /// Its old sealed text.
    pub old: &'a str,
    /// Its text under the newest master key.
    pub new: &'a str,
}

impl SecretReseal<'_> {
    /// Replaces the old text by the new one. Returns false if the stored secret is another one, or removed; nothing
    /// changed.
    /// Safe to retry.
    pub async fn execute(&self, store: &Store, scope: &Scope<'_>) -> Result<bool, StoreError> {
        let event = AuditEvent::new("keys.rotated", json!({ "webhookId": self.webhook }));
        let keys = WebhookKey {
            webhook: scope.realm().webhook(self.webhook),
        };
        let args = ResealArgs {
            field: self.field,
            old: self.old,
            new: self.new,
        };
        let reply = scope.execute(store, &RESEAL, event, keys, args).await?;
        reply.is("done", &["changed", "no_account"])
    }
}
