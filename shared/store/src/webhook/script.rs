//! Twins of the scripts that manage webhooks: `webhook/{create,update,delete,test,reseal}.lua`.

pub mod deliver;
pub mod dispatch;
pub mod redeliver;

use crate::keys::DeliverySet;
use crate::provider_key::reseal::Resealed;
use crate::script::change::{CHANGE, Event, FIELDS, FieldChange, Scope, field_args, unexpected_reply};
use crate::script::{Script, WhenFull};
use crate::webhook::{WEBHOOKS_MAX, WebhookRecord};
use crate::{Store, StoreError};
use domain::event::TESTED;
use domain::mode::Mode;
use serde_json::{Map, Value, json};
use std::collections::HashMap;
use std::sync::LazyLock;
use std::time::Duration;

const READY: &str = include_str!("ready.lua");
const TRIM: &str = include_str!("trim.lua");

/// Registers a webhook.
pub static CREATE: LazyLock<Script> = LazyLock::new(|| {
    let parts = [CHANGE, include_str!("create.lua")];
    Script::new("webhook_create", WhenFull::Refuse, &parts)
});

/// Changes a webhook.
pub static UPDATE: LazyLock<Script> = LazyLock::new(|| {
    let parts = [CHANGE, FIELDS, READY, include_str!("update.lua")];
    Script::new("webhook_update", WhenFull::Refuse, &parts)
});

/// Deletes a webhook.
pub static DELETE: LazyLock<Script> = LazyLock::new(|| {
    let parts = [CHANGE, include_str!("delete.lua")];
    Script::new("webhook_delete", WhenFull::Run, &parts)
});

/// Creates a test event.
pub static TEST: LazyLock<Script> = LazyLock::new(|| {
    let parts = [CHANGE, include_str!("test.lua")];
    Script::new("webhook_test", WhenFull::Refuse, &parts)
});

/// Stores a resealed secret.
pub static RESEAL: LazyLock<Script> = LazyLock::new(|| {
    let parts = [CHANGE, include_str!("reseal.lua")];
    Script::new("webhook_reseal", WhenFull::Refuse, &parts)
});

/// Location of a webhook.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Endpoint {
    /// Account id, `acct_…`.
    pub account: String,
    /// `live` or `test`.
    pub mode: Mode,
    /// Webhook id, `wh_…`.
    pub webhook: String,
}

impl Endpoint {
    /// Returns its member name in the bucket's set of ready webhooks.
    #[must_use]
    pub fn member(&self) -> String {
        format!("{} {} {}", self.account, self.mode, self.webhook)
    }

    /// Parses a member name.
    #[must_use]
    pub fn parse(member: &str) -> Option<Self> {
        let mut words = member.split(' ');
        let endpoint = Self {
            account: words.next()?.to_owned(),
            mode: Mode::parse(words.next()?)?,
            webhook: words.next()?.to_owned(),
        };
        words.next().is_none().then_some(endpoint)
    }

    fn new(scope: &Scope<'_>, id: &str) -> Self {
        Self {
            account: scope.account.to_owned(),
            mode: scope.mode,
            webhook: id.to_owned(),
        }
    }

    fn sets(&self, account: &crate::keys::AccountKeys, sets: &[DeliverySet]) -> Vec<String> {
        let of = |set: &DeliverySet| account.deliveries_in(self.mode, &self.webhook, *set);
        sets.iter().map(of).collect()
    }
}

/// Outcome of a registration.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Created {
    /// The new record.
    Done(Box<WebhookRecord>),
    /// The account has [`WEBHOOKS_MAX`] of them.
    TooMany,
}

/// Outcome of a test.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Tested {
    /// The event of the audit entry with this number.
    Done {
        /// The number.
        seq: u64,
    },
    /// The webhook does not exist.
    Missing,
    /// It is disabled.
    Disabled,
}

/// Arguments of a change.
#[derive(Debug)]
pub struct Update<'a> {
    /// The webhook.
    pub id: &'a str,
    /// Fields of the record.
    pub changes: &'a [FieldChange],
    /// A new secret, sealed.
    pub secret: Option<&'a str>,
    /// How long the old secret stays valid.
    pub overlap: Duration,
    /// Changed fields for the audit log.
    pub shown: Map<String, Value>,
}

/// Registers the webhook `id` with these `fields`; `shown` is for the audit log and contains no secret.
///
/// # Errors
/// [`StoreError`]; it may have been registered.
pub async fn create(
    store: &Store,
    scope: &Scope<'_>,
    id: &str,
    fields: &[(&str, &str)],
    mut shown: Map<String, Value>,
) -> Result<Created, StoreError> {
    let account = scope.keys();
    shown.insert("webhookId".to_owned(), id.into());
    let event = Event {
        kind: "webhook.created",
        agent: None,
        data: shown.into(),
    };
    let keys = [account.webhooks(scope.mode), account.webhook(scope.mode, id)];
    let most = WEBHOOKS_MAX.to_string();
    let mut args = vec![id, most.as_str()];
    args.extend(fields.iter().flat_map(|(field, value)| [*field, *value]));
    let reply = scope.execute(store, &CREATE, event, &keys, &args).await?;
    match reply.first().map(String::as_str) {
        Some("created") => record(&CREATE, reply).map(Created::Done),
        Some("too_many") => Ok(Created::TooMany),
        _ => unexpected_reply(&CREATE),
    }
}

impl Update<'_> {
    /// Executes the change; `None` if the webhook does not exist.
    ///
    /// # Errors
    /// [`StoreError`]; safe to retry.
    pub async fn execute(
        mut self,
        store: &Store,
        scope: &Scope<'_>,
    ) -> Result<Option<Box<WebhookRecord>>, StoreError> {
        let account = scope.keys();
        let endpoint = Endpoint::new(scope, self.id);
        self.shown.insert("webhookId".to_owned(), self.id.into());
        let event = Event {
            kind: "webhook.updated",
            agent: None,
            data: self.shown.into(),
        };
        let mut keys = vec![
            account.webhook(scope.mode, self.id),
            account.bucket().webhooks_ready(),
        ];
        keys.extend(endpoint.sets(&account, &[DeliverySet::Due, DeliverySet::Parked]));
        let (member, overlap) = (endpoint.member(), self.overlap.as_millis().to_string());
        let mut args = vec![member.as_str(), &overlap, self.secret.unwrap_or_default()];
        args.extend(field_args(self.changes));
        let reply = scope.execute(store, &UPDATE, event, &keys, &args).await?;
        match reply.first().map(String::as_str) {
            Some("updated") => record(&UPDATE, reply).map(Some),
            Some("missing") => Ok(None),
            _ => unexpected_reply(&UPDATE),
        }
    }
}

/// Parses the record in a reply.
fn record(script: &Script, reply: Vec<String>) -> Result<Box<WebhookRecord>, StoreError> {
    let mut words = reply.into_iter().skip(1);
    let mut fields = HashMap::new();
    while let (Some(field), Some(value)) = (words.next(), words.next()) {
        fields.insert(field, value);
    }
    WebhookRecord::from_fields(&fields)
        .map_or_else(|| unexpected_reply(script), |record| Ok(Box::new(record)))
}

/// Deletes a webhook with its deliveries; false if it does not exist.
///
/// # Errors
/// [`StoreError`]; safe to retry.
pub async fn delete(store: &Store, scope: &Scope<'_>, id: &str) -> Result<bool, StoreError> {
    let account = scope.keys();
    let endpoint = Endpoint::new(scope, id);
    let event = Event {
        kind: "webhook.deleted",
        agent: None,
        data: json!({ "webhookId": id }),
    };
    let [due, parked, delivered, failed] =
        DeliverySet::ALL.map(|set| account.deliveries_in(scope.mode, id, set));
    let keys = [
        account.webhooks(scope.mode),
        account.webhook(scope.mode, id),
        account.bucket().webhooks_ready(),
        due,
        parked,
        account.deliveries(scope.mode, id),
        delivered,
        failed,
        account.violations(scope.mode),
        account.violations_waiting(scope.mode),
        account.violations_order(scope.mode),
    ];
    let member = endpoint.member();
    let reply = scope
        .execute(store, &DELETE, event, &keys, &[id, &member])
        .await?;
    match reply.first().map(String::as_str) {
        Some("deleted") => Ok(true),
        Some("missing") => Ok(false),
        _ => unexpected_reply(&DELETE),
    }
}

/// Creates a test event, delivered to this webhook only.
///
/// # Errors
/// [`StoreError`]; the event may have been made.
pub async fn test(store: &Store, scope: &Scope<'_>, id: &str) -> Result<Tested, StoreError> {
    let event = Event {
        kind: TESTED,
        agent: None,
        data: json!({ "webhookId": id }),
    };
    let keys = [scope.keys().webhook(scope.mode, id)];
    let reply = scope.execute(store, &TEST, event, &keys, &[]).await?;
    match reply.iter().map(String::as_str).collect::<Vec<_>>().as_slice() {
        ["recorded", seq] => match seq.parse() {
            Ok(seq) => Ok(Tested::Done { seq }),
            Err(_) => unexpected_reply(&TEST),
        },
        ["missing"] => Ok(Tested::Missing),
        ["disabled"] => Ok(Tested::Disabled),
        _ => unexpected_reply(&TEST),
    }
}

/// Replaces the sealed text `old` of a secret by `new`, sealed under another master key.
///
/// # Errors
/// [`StoreError`]; safe to retry.
pub async fn reseal(
    store: &Store,
    scope: &Scope<'_>,
    id: &str,
    field: &str,
    old: &str,
    new: &str,
) -> Result<Resealed, StoreError> {
    let event = Event {
        kind: "keys.rotated",
        agent: None,
        data: json!({ "webhookId": id }),
    };
    let keys = [scope.keys().webhook(scope.mode, id)];
    let reply = scope
        .execute(store, &RESEAL, event, &keys, &[field, old, new])
        .await?;
    match reply.first().map(String::as_str) {
        Some("done") => Ok(Resealed::Done),
        Some("changed" | "no_account") => Ok(Resealed::Changed),
        _ => unexpected_reply(&RESEAL),
    }
}
