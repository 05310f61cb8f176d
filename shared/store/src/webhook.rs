//! Webhook records: parsed here, written by scripts (decision D42).

pub mod delivery;
pub mod script;

use crate::keys::Realm;
use crate::page::{Page, PageRequest};
use crate::record_fields::RecordFields;
use crate::{Store, StoreError};
use domain::event::EventName;
use std::collections::HashMap;

/// Maximum number of webhooks of an account and mode.
pub const WEBHOOKS_MAX: usize = 20;

domain::words! {
    /// Status of a webhook.
    pub enum WebhookStatus {
        /// Receives deliveries.
        Active = "active",
        /// Receives no deliveries. Events in the meantime are not delivered later either.
        Disabled = "disabled",
    }
}

/// Public fields of a webhook; never its secret.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WebhookRecord {
    /// `wh_…`
    pub id: String,
    /// URL of the receiver.
    pub url: String,
    /// Subscribed events.
    pub events: Vec<EventName>,
    /// The owner's description.
    pub description: Option<String>,
    /// A disabled webhook receives no events.
    pub status: WebhookStatus,
    /// Number of the audit entry of its creation. Only later events are delivered.
    pub since: u64,
    /// Creation time, in ms since 1970.
    pub created_at_ms: u64,
    /// Time of the last change, in ms since 1970.
    pub updated_at_ms: u64,
    /// Time of the secret's creation, in ms since 1970.
    pub secret_at_ms: u64,
}

/// The sealed secrets of a webhook.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WebhookSecrets {
    /// Field and sealed text: the secret, and the previous one if there is one.
    pub sealed: Vec<(&'static str, String)>,
}

/// Formats a list of events for a record.
pub fn events_text(events: &[EventName]) -> String {
    let words: Vec<&str> = events.iter().map(|event| event.as_str()).collect();
    words.join(" ")
}

impl WebhookRecord {
    /// Parses the fields of a record; `None` if they are malformed.
    pub fn from_fields(fields: &HashMap<String, String>) -> Option<Self> {
        let fields = RecordFields(fields);
        Some(Self {
            id: fields.text("id")?,
            url: fields.text("url")?,
            events: fields
                .get("events")?
                .split_ascii_whitespace()
                .map(EventName::parse)
                .collect::<Option<_>>()?,
            description: fields.text("description"),
            status: WebhookStatus::parse(fields.get("status")?)?,
            since: fields.number("since")?,
            created_at_ms: fields.number("created_at")?,
            updated_at_ms: fields.number("updated_at")?,
            secret_at_ms: fields.number("secret_at")?,
        })
    }

    /// Reads the webhook `id`; `None` if it does not exist.
    pub async fn read(store: &Store, realm: &Realm, id: &str) -> Result<Option<Self>, StoreError> {
        let key = realm.webhook(id);
        store.record(key, RECORD, Self::from_fields).await
    }

    /// Lists the webhooks of an account and mode, newest first.
    pub async fn list(store: &Store, realm: &Realm, page: PageRequest<'_>) -> Result<Page<Self>, StoreError> {
        let part = page
            .records(store, &realm.webhooks(), |id| realm.webhook(id))
            .await?;
        part.present(Self::from_fields)
            .ok_or_else(|| StoreError::unexpected(RECORD))
    }

    /// Reads all webhooks of an account and mode.
    pub async fn all(store: &Store, realm: &Realm) -> Result<Vec<Self>, StoreError> {
        let page = PageRequest::at(0, WEBHOOKS_MAX);
        Ok(Self::list(store, realm, page).await?.records)
    }
}

impl WebhookSecrets {
    /// Reads the sealed secrets of a webhook.
    pub async fn read(store: &Store, realm: &Realm, id: &str) -> Result<Self, StoreError> {
        const FIELDS: [&str; 2] = [SECRET, "old_secret"];
        let mut query = redis::cmd("HMGET");
        query.arg(realm.webhook(id)).arg(&FIELDS);
        let texts: Vec<Option<String>> = store.command(&query).await?;
        let named = FIELDS.into_iter().zip(texts);
        Ok(Self {
            sealed: named.filter_map(|(field, text)| Some((field, text?))).collect(),
        })
    }
}

/// Field of the sealed secret.
pub const SECRET: &str = "secret";
/// Name of a record in errors.
const RECORD: &str = "webhook record";
