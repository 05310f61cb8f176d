//! Twins of `dispatch.lua` and `dispatch_coalesced.lua`: create deliveries for the events after an account's cursor,
//! and for coalesced violations (decision D72).

use super::cursor::Cursor;
use super::{READY, TRIM, WebhookLocation};
use crate::keys::{DeliverySet, Realm};
use crate::script::names::Inputs;
use crate::script::{Script, script};
use crate::webhook::delivery::{Delivery, DeliveryEvent};
use crate::{Store, StoreError};
use domain::event::EventName;
use domain::event::violations::{Coalesced, GroupViolations, ViolationCounts, ViolationGroup};
use std::time::Duration;

const MADE: &str = include_str!("../made.lua");

script! {
    /// Dispatches events. Refused on a full store; the cursor waits.
    pub static DISPATCH = "webhook_dispatch",
    kind: Timed,
    source: [READY, TRIM, MADE, include_str!("../dispatch.lua")],
    when_full: Refuse,
    /// `webhooks` are [`WEBHOOK_KEYS`] for each webhook.
    keys: struct DispatchKeys: String { account, ready, violations, waiting, waiting_order, webhooks[..] },
    /// `counts_life` is in ms. `changes` are the changed agents and groups of the tally, then the deliveries of each
    /// webhook.
    args: struct DispatchArgs: String {
        mode, version, dispatched, last, events, new_events, waiting_max, history_max, minute, minute_begun,
        minute_agents, counts_life, changed_agents, changed_groups, changes[..]
    },
}

script! {
    /// Dispatches coalesced violations. Refused on a full store; they wait.
    pub static DISPATCH_COALESCED = "webhook_dispatch_coalesced",
    kind: Timed,
    source: [READY, TRIM, MADE, include_str!("../dispatch_coalesced.lua")],
    when_full: Refuse,
    keys: DispatchKeys,
    /// `groups` are followed by the deliveries of each webhook.
    args: struct DispatchCoalescedArgs: String {
        mode, version, dispatched, events, minute, ended_by, waiting_max, history_max, group_count, groups[..]
    },
}

/// Number of keys of a webhook: its record and the sets of its deliveries, in the order of `made.lua`.
const WEBHOOK_KEYS: usize = 6;

/// Lifetime of a minute's counts. A dispatcher that pauses for longer within a minute restarts the counts.
const COUNTS_LIFE: Duration = Duration::from_secs(24 * 3600);

/// Events that one webhook receives in a step.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WebhookDeliveries {
    /// Webhook id, `wh_…`.
    pub webhook: String,
    /// Its events, in order.
    pub deliveries: Vec<DeliveryEvent>,
}

/// Arguments of both scripts.
#[derive(Debug)]
pub struct DispatchStep<'a> {
    /// Account and mode.
    pub realm: &'a Realm,
    /// Cursor as read.
    pub cursor: Cursor,
    /// All webhooks, including those without new events, since parked deliveries may become due.
    pub batches: &'a [WebhookDeliveries],
    /// Maximum number of waiting deliveries of a webhook.
    pub waiting_max: u64,
    /// Maximum number of finished deliveries of a webhook.
    pub history_max: u64,
}

/// Consecutive entries to dispatch.
#[derive(Debug)]
pub struct Dispatch<'a> {
    /// Common arguments.
    pub step: DispatchStep<'a>,
    /// Number of the last of them.
    pub last: u64,
    /// Count of their events.
    pub events: u64,
    /// Their violations.
    pub tally: &'a ViolationCounts,
}

/// Coalesced violations of an ended minute.
#[derive(Debug)]
pub struct DispatchCoalesced<'a> {
    /// Common arguments.
    pub step: DispatchStep<'a>,
    /// Reason why the minute is over.
    pub minute_end: MinuteEnd,
    /// One event is dispatched for each group.
    pub groups: &'a [ViolationGroup],
}

/// Reason why a minute is over.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MinuteEnd {
    /// The next entry to dispatch is of a later minute.
    LaterEntry,
    /// The store's clock is past it, and every entry is dispatched. The script checks both.
    Clock,
}

impl MinuteEnd {
    const fn word(self) -> &'static str {
        match self {
            Self::LaterEntry => "entry",
            Self::Clock => "clock",
        }
    }
}

/// Outcome of the script.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Dispatched {
    /// The deliveries are created.
    Done {
        /// Number of deliveries that are never attempted, since too many wait.
        refused: u64,
    },
    /// The cursor or the webhooks have changed; nothing was written. Read them again.
    Changed,
    /// The minute has not ended; nothing changed.
    Early,
}

impl From<&GroupViolations> for DeliveryEvent {
    /// Returns the event for violations that waited.
    fn from(waiting: &GroupViolations) -> Self {
        let coalesced: Coalesced = waiting.coalesced;
        Self {
            seq: waiting.last_seq,
            event: EventName::PolicyViolation,
            coalesced: Some(coalesced),
        }
    }
}

impl DispatchStep<'_> {
    fn keys(&self) -> DispatchKeys {
        let realm = self.realm;
        let webhook_keys = |batch: &WebhookDeliveries| -> [String; WEBHOOK_KEYS] {
            let set = |set| realm.deliveries_in(&batch.webhook, set);
            [
                realm.webhook(&batch.webhook),
                set(DeliverySet::Due),
                set(DeliverySet::Parked),
                realm.deliveries(&batch.webhook),
                set(DeliverySet::Delivered),
                set(DeliverySet::Failed),
            ]
        };
        DispatchKeys {
            account: realm.record(),
            ready: realm.bucket().webhooks_ready(),
            violations: realm.violations(),
            waiting: realm.violations_waiting(),
            waiting_order: realm.violations_order(),
            webhooks: self.batches.iter().flat_map(webhook_keys).collect(),
        }
    }

    /// Returns the arguments of each webhook for `made.lua`: its member name, the count of its deliveries, their texts.
    fn webhook_args(&self) -> impl Iterator<Item = String> {
        self.batches.iter().flat_map(|batch| {
            let endpoint = WebhookLocation {
                realm: self.realm.clone(),
                webhook: batch.webhook.clone(),
            };
            let head = [endpoint.member(), batch.deliveries.len().to_string()];
            head.into_iter()
                .chain(batch.deliveries.iter().map(Delivery::text_of_new))
        })
    }

    async fn execute(
        &self,
        store: &Store,
        script: &Script,
        args: impl Inputs<Value = String>,
    ) -> Result<Dispatched, StoreError> {
        let mut reply = store.reply(script, self.keys(), args).await?;
        match reply.word()?.as_str() {
            "done" => Ok(Dispatched::Done {
                refused: reply.number()?,
            }),
            "moved" | "changed" => Ok(Dispatched::Changed),
            "early" => Ok(Dispatched::Early),
            _ => reply.unexpected(),
        }
    }
}

impl Dispatch<'_> {
    /// Creates the deliveries and advances the cursor.
    ///
    /// # Errors
    /// [`StoreError`]; the script may have run. Safe to retry after reading the cursor again.
    pub async fn execute(&self, store: &Store) -> Result<Dispatched, StoreError> {
        let (step, tally) = (&self.step, self.tally);
        let (agents, groups) = (tally.changed_agents(), tally.changed_groups());
        let minute = tally.is_changed().then(|| tally.minute.number.to_string());
        let (changed_agents, changed_groups) = (agents.len().to_string(), groups.len().to_string());
        let mut changes = Vec::new();
        for (agent, count) in agents {
            changes.extend([agent.clone(), count.to_string()]);
        }
        for (group, waiting) in groups {
            let first_seq = waiting.coalesced.first_seq.to_string();
            changes.extend([group.text(), waiting.text(), first_seq]);
        }
        changes.extend(step.webhook_args());
        let args = DispatchArgs {
            mode: step.realm.mode().as_str().to_owned(),
            version: step.cursor.version.to_string(),
            dispatched: step.cursor.dispatched.to_string(),
            last: self.last.to_string(),
            events: step.cursor.events.to_string(),
            new_events: self.events.to_string(),
            waiting_max: step.waiting_max.to_string(),
            history_max: step.history_max.to_string(),
            minute: minute.unwrap_or_default(),
            minute_begun: u8::from(tally.begun).to_string(),
            minute_agents: tally.minute.agents.to_string(),
            counts_life: COUNTS_LIFE.as_millis().to_string(),
            changed_agents,
            changed_groups,
            changes,
        };
        step.execute(store, &DISPATCH, args).await
    }
}

impl DispatchCoalesced<'_> {
    /// Creates the deliveries and removes the violations.
    ///
    /// # Errors
    /// [`StoreError`]; the script may have run. Safe to retry after reading the cursor again.
    pub async fn execute(&self, store: &Store) -> Result<Dispatched, StoreError> {
        let step = &self.step;
        let groups = self.groups.iter().map(ViolationGroup::text);
        let args = DispatchCoalescedArgs {
            mode: step.realm.mode().as_str().to_owned(),
            version: step.cursor.version.to_string(),
            dispatched: step.cursor.dispatched.to_string(),
            events: step.cursor.events.to_string(),
            minute: step.cursor.minute.number.to_string(),
            ended_by: self.minute_end.word().to_owned(),
            waiting_max: step.waiting_max.to_string(),
            history_max: step.history_max.to_string(),
            group_count: self.groups.len().to_string(),
            groups: groups.chain(step.webhook_args()).collect(),
        };
        step.execute(store, &DISPATCH_COALESCED, args).await
    }
}
