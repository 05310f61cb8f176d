//! Twins of `dispatch.lua` and `dispatch_coalesced.lua`: create deliveries for the events after an account's cursor,
//! and for coalesced violations (decision D72).

use super::{Endpoint, READY, TRIM};
use crate::account::ModeField;
use crate::keys::{AccountKeys, DeliverySet};
use crate::script::change::CLOCK;
use crate::script::names::Inputs;
use crate::script::{Script, script};
use crate::webhook::delivery::{Delivery, DeliveryEvent};
use crate::{Store, StoreError};
use domain::event::EventName;
use domain::event::violations::{Coalesced, Group, Minute, Tally, Waiting};
use domain::mode::Mode;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::time::Duration;

const MADE: &str = include_str!("../made.lua");

script! {
    /// Dispatches events. Refused on a full store; the cursor waits.
    pub static DISPATCH = "webhook_dispatch",
    source: [CLOCK, READY, TRIM, MADE, include_str!("../dispatch.lua")],
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
    source: [CLOCK, READY, TRIM, MADE, include_str!("../dispatch_coalesced.lua")],
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
/// Fields of the counts that are not agent ids.
const MINUTE: &str = "/minute";
const AGENTS: &str = "/agents";

/// State of the dispatch of an account and mode.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Cursor {
    /// Count of webhooks.
    pub webhooks: u64,
    /// Incremented by every change of a webhook.
    pub version: u64,
    /// Number of the last dispatched entry.
    pub dispatched: u64,
    /// Number of events so far.
    pub events: u64,
    /// Number of the last entry, sealed or not.
    pub last: u64,
    /// Minute in which violations are counted.
    pub minute: Minute,
}

/// Deliveries for one webhook.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WebhookDeliveries {
    /// Webhook id, `wh_…`.
    pub webhook: String,
    /// Its events, in order.
    pub deliveries: Vec<DeliveryEvent>,
}

/// Arguments of both scripts.
#[derive(Debug)]
pub struct Step<'a> {
    /// Account id, `acct_…`.
    pub account: &'a str,
    /// `live` or `test`.
    pub mode: Mode,
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
    pub step: Step<'a>,
    /// Number of the last of them.
    pub last: u64,
    /// Count of their events.
    pub events: u64,
    /// Their violations.
    pub tally: &'a Tally,
}

/// Coalesced violations of an ended minute.
#[derive(Debug)]
pub struct DispatchCoalesced<'a> {
    /// Common arguments.
    pub step: Step<'a>,
    /// Whether a later entry ends the minute. Otherwise the store's clock must be past it, and every entry be
    /// dispatched.
    pub by_entry: bool,
    /// The violations.
    pub groups: &'a [Group],
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

impl Cursor {
    /// Reads the dispatch state of `account` in `mode`.
    pub async fn read(store: &Store, account: &AccountKeys, mode: Mode) -> Result<Self, StoreError> {
        let mut query = redis::pipe();
        query.atomic();
        let fields = [
            ModeField::Webhooks,
            ModeField::WebhooksVersion,
            ModeField::Dispatched,
            ModeField::Events,
            ModeField::AuditSeq,
            ModeField::Violations,
        ];
        query
            .cmd("HMGET")
            .arg(account.record())
            .arg(fields.map(|field| field.name(mode)).as_slice());
        query
            .cmd("HMGET")
            .arg(account.violations(mode))
            .arg(MINUTE)
            .arg(AGENTS);
        type Found = (Vec<Option<u64>>, (Option<u64>, Option<u64>));
        let (record, (minute, agents)): Found = store.pipeline(&query).await?;
        let number = |at: usize| record.get(at).copied().flatten();
        let waiting = number(5);
        Ok(Self {
            webhooks: number(0).unwrap_or(0),
            version: number(1).unwrap_or(0),
            dispatched: number(2).unwrap_or(0),
            events: number(3).unwrap_or(0),
            last: number(4).unwrap_or(0),
            minute: Minute {
                number: minute.unwrap_or(0).max(waiting.unwrap_or(0)),
                agents: agents.unwrap_or(0),
                waits: waiting.is_some(),
            },
        })
    }

    /// Reads the minute's counts for these violations.
    ///
    /// # Errors
    /// [`StoreError`], also for malformed counts.
    pub async fn tally(
        &self,
        store: &Store,
        (account, mode): (&AccountKeys, Mode),
        groups: &BTreeSet<Group>,
    ) -> Result<Tally, StoreError> {
        if groups.is_empty() {
            return Ok(Tally::new(self.minute, HashMap::new(), BTreeMap::new()));
        }
        let agents: BTreeSet<&str> = groups.iter().map(|group| group.agent.as_str()).collect();
        // Violations of agents beyond the bound are coalesced by reason alone.
        let reasons = groups.iter().map(|group| Group {
            agent: String::new(),
            reason: group.reason.clone(),
        });
        let all: BTreeSet<Group> = groups.iter().cloned().chain(reasons).collect();
        let texts: Vec<String> = all.iter().map(Group::text).collect();
        let agents: Vec<&str> = agents.into_iter().collect();
        let mut query = redis::pipe();
        query.atomic();
        query.cmd("HMGET").arg(account.violations(mode)).arg(&agents);
        query
            .cmd("HMGET")
            .arg(account.violations_waiting(mode))
            .arg(&texts);
        let (counts, waiting): (Vec<Option<u64>>, Vec<Option<String>>) = store.pipeline(&query).await?;
        let counted = agents.into_iter().zip(counts);
        let counted = counted.filter_map(|(agent, count)| Some((agent.to_owned(), count?)));
        let mut groups = BTreeMap::new();
        for (group, text) in all.into_iter().zip(waiting) {
            let Some(text) = text else { continue };
            let waiting = Waiting::parse(&text);
            let waiting = waiting.ok_or_else(|| StoreError::unexpected("coalesced violations"))?;
            groups.insert(group, waiting);
        }
        Ok(Tally::new(self.minute, counted.collect(), groups))
    }
}

/// Returns the `most` longest-waiting coalesced violations. A malformed one is an error.
pub async fn waiting(
    store: &Store,
    (account, mode): (&AccountKeys, Mode),
    most: usize,
) -> Result<Vec<(Group, Waiting)>, StoreError> {
    let mut range = redis::cmd("ZRANGE");
    range
        .arg(account.violations_order(mode))
        .arg(0)
        .arg(most.saturating_sub(1));
    let names: Vec<String> = store.command(&range).await?;
    if names.is_empty() {
        return Ok(Vec::new());
    }
    let mut query = redis::cmd("HMGET");
    query.arg(account.violations_waiting(mode)).arg(&names);
    let texts: Vec<Option<String>> = store.command(&query).await?;
    let unexpected_reply = || StoreError::unexpected("coalesced violations");
    let found = names.iter().zip(texts).map(|(name, text)| {
        let group = Group::parse(name).ok_or_else(unexpected_reply)?;
        let waiting = text
            .as_deref()
            .and_then(Waiting::parse)
            .ok_or_else(unexpected_reply)?;
        Ok((group, waiting))
    });
    found.collect()
}

impl From<&Waiting> for DeliveryEvent {
    /// Returns the event for violations that waited.
    fn from(waiting: &Waiting) -> Self {
        let coalesced: Coalesced = waiting.coalesced;
        Self {
            seq: waiting.last_seq,
            event: EventName::PolicyViolation,
            coalesced: Some(coalesced),
        }
    }
}

impl Step<'_> {
    fn keys(&self) -> DispatchKeys {
        let (account, mode) = (AccountKeys::new(self.account), self.mode);
        let webhook_keys = |batch: &WebhookDeliveries| -> [String; WEBHOOK_KEYS] {
            let set = |set| account.deliveries_in(mode, &batch.webhook, set);
            [
                account.webhook(mode, &batch.webhook),
                set(DeliverySet::Due),
                set(DeliverySet::Parked),
                account.deliveries(mode, &batch.webhook),
                set(DeliverySet::Delivered),
                set(DeliverySet::Failed),
            ]
        };
        DispatchKeys {
            account: account.record(),
            ready: account.bucket().webhooks_ready(),
            violations: account.violations(mode),
            waiting: account.violations_waiting(mode),
            waiting_order: account.violations_order(mode),
            webhooks: self.batches.iter().flat_map(webhook_keys).collect(),
        }
    }

    /// Returns the arguments of each webhook for `made.lua`: its member name, the count of its deliveries, their texts.
    fn webhook_args(&self) -> impl Iterator<Item = String> {
        self.batches.iter().flat_map(|batch| {
            let endpoint = Endpoint {
                account: self.account.to_owned(),
                mode: self.mode,
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
            mode: step.mode.as_str().to_owned(),
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
        let groups = self.groups.iter().map(Group::text);
        let args = DispatchCoalescedArgs {
            mode: step.mode.as_str().to_owned(),
            version: step.cursor.version.to_string(),
            dispatched: step.cursor.dispatched.to_string(),
            events: step.cursor.events.to_string(),
            minute: step.cursor.minute.number.to_string(),
            ended_by: if self.by_entry { "entry" } else { "clock" }.to_owned(),
            waiting_max: step.waiting_max.to_string(),
            history_max: step.history_max.to_string(),
            group_count: self.groups.len().to_string(),
            groups: groups.chain(step.webhook_args()).collect(),
        };
        step.execute(store, &DISPATCH_COALESCED, args).await
    }
}
