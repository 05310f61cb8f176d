//! Twin of `dispatch.lua`: deliveries of the events behind an account's cursor.

use super::{Endpoint, READY, TRIM};
use crate::domain::event::EventName;
use crate::domain::mode::Mode;
use crate::store::account::ModeField;
use crate::store::delivery::Delivery;
use crate::store::keys::{AccountKeys, DeliverySet};
use crate::store::script::change::{CLOCK, nonsense};
use crate::store::script::{Script, WhenFull};
use crate::store::{Store, StoreError};
use std::sync::LazyLock;

/// The script. On a full store the cursor waits.
pub static DISPATCH: LazyLock<Script> = LazyLock::new(|| {
    let parts = [CLOCK, READY, TRIM, include_str!("dispatch.lua")];
    Script::new("webhook_dispatch", WhenFull::Refuse, &parts)
});

/// Where the dispatch of an account and mode stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Cursor {
    /// How many webhooks there are.
    pub webhooks: u64,
    /// Rises when one is registered, changed or deleted.
    pub version: u64,
    /// The last entry whose events were dispatched.
    pub dispatched: u64,
}

/// Deliveries for one webhook.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Batch {
    /// The webhook's id.
    pub webhook: String,
    /// The entries and events it is told of, in order.
    pub deliveries: Vec<(u64, EventName)>,
}

/// A row of entries to dispatch.
#[derive(Debug)]
pub struct Dispatch<'a> {
    /// The account.
    pub account: &'a str,
    /// The mode.
    pub mode: Mode,
    /// Where it stood.
    pub cursor: Cursor,
    /// The last entry of the row.
    pub last: u64,
    /// How many events follow from it.
    pub events: u64,
    /// Every webhook, also one that is told of nothing: its parked deliveries may have their turn.
    pub batches: &'a [Batch],
    /// Most deliveries that wait for one webhook.
    pub waiting_max: u64,
    /// Most finished deliveries of one webhook.
    pub history_max: u64,
}

/// What became of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Dispatched {
    /// The deliveries are made.
    Done {
        /// How many of them are not attempted, since too many wait.
        refused: u64,
    },
    /// The cursor or the webhooks are others; nothing happened, look again.
    Changed,
}

impl Cursor {
    /// Where the dispatch of `account` stands in `mode`.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn read(store: &Store, account: &AccountKeys, mode: Mode) -> Result<Self, StoreError> {
        let mut look = redis::cmd("HMGET");
        look.arg(account.record());
        for field in [
            ModeField::Webhooks,
            ModeField::WebhooksVersion,
            ModeField::Dispatched,
        ] {
            look.arg(field.of(mode));
        }
        let found: (Option<u64>, Option<u64>, Option<u64>) = store.command(&look).await?;
        Ok(Self {
            webhooks: found.0.unwrap_or(0),
            version: found.1.unwrap_or(0),
            dispatched: found.2.unwrap_or(0),
        })
    }
}

impl Dispatch<'_> {
    /// Tells the store.
    ///
    /// # Errors
    /// [`StoreError`]; it may have happened, and can be tried again from a new look.
    pub async fn run(&self, store: &Store) -> Result<Dispatched, StoreError> {
        let account = AccountKeys::of(self.account);
        let mut keys = vec![account.record(), account.bucket().webhooks_ready()];
        let mut args = vec![
            self.mode.as_str().to_owned(),
            self.cursor.version.to_string(),
            self.cursor.dispatched.to_string(),
            self.last.to_string(),
            self.events.to_string(),
            self.waiting_max.to_string(),
            self.history_max.to_string(),
        ];
        for batch in self.batches {
            let endpoint = Endpoint {
                account: self.account.to_owned(),
                mode: self.mode,
                webhook: batch.webhook.clone(),
            };
            keys.push(account.webhook(self.mode, &batch.webhook));
            keys.extend(endpoint.sets(&account, &[DeliverySet::Due, DeliverySet::Parked]));
            keys.push(account.deliveries(self.mode, &batch.webhook));
            keys.extend(endpoint.sets(&account, &[DeliverySet::Delivered, DeliverySet::Failed]));
            args.push(endpoint.member());
            args.push(batch.deliveries.len().to_string());
            let texts = batch.deliveries.iter();
            args.extend(texts.map(|(seq, event)| Delivery::text_of_new(*seq, *event)));
        }
        let keys: Vec<&str> = keys.iter().map(String::as_str).collect();
        let args: Vec<&str> = args.iter().map(String::as_str).collect();
        let reply: Vec<String> = store.script(&DISPATCH, &keys, &args).await?;
        match reply.iter().map(String::as_str).collect::<Vec<_>>().as_slice() {
            ["done", refused] => match refused.parse() {
                Ok(refused) => Ok(Dispatched::Done { refused }),
                Err(_) => nonsense(&DISPATCH),
            },
            ["moved" | "changed"] => Ok(Dispatched::Changed),
            _ => nonsense(&DISPATCH),
        }
    }
}
