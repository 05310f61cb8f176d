//! Twins of `dispatch.lua` and `dispatch_coalesced.lua`: deliveries of the events behind an account's cursor, and of
//! violations that were coalesced (decision D72).

use super::{Endpoint, READY, TRIM};
use crate::account::ModeField;
use crate::keys::{AccountKeys, DeliverySet};
use crate::script::change::{CLOCK, unexpected_reply};
use crate::script::{Script, WhenFull};
use crate::webhook::delivery::{Delivery, DeliveryEvent};
use crate::{Store, StoreError};
use domain::event::EventName;
use domain::event::violations::{Coalesced, Group, Minute, Tally, Waiting};
use domain::mode::Mode;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::LazyLock;
use std::time::Duration;

const MADE: &str = include_str!("../made.lua");

/// The script. On a full store the cursor waits.
pub static DISPATCH: LazyLock<Script> = LazyLock::new(|| {
    let parts = [CLOCK, READY, TRIM, MADE, include_str!("../dispatch.lua")];
    Script::new("webhook_dispatch", WhenFull::Refuse, &parts)
});

/// The script of coalesced violations. On a full store they wait.
pub static DISPATCH_COALESCED: LazyLock<Script> = LazyLock::new(|| {
    let parts = [
        CLOCK,
        READY,
        TRIM,
        MADE,
        include_str!("../dispatch_coalesced.lua"),
    ];
    Script::new("webhook_dispatch_coalesced", WhenFull::Refuse, &parts)
});

/// How long the counts of a minute are kept: a dispatcher that stands still for longer within one counts anew.
const COUNTS_LIFE: Duration = Duration::from_secs(24 * 3600);
/// Fields of the counts that are no agent: none is called so.
const MINUTE: &str = "/minute";
const AGENTS: &str = "/agents";

/// Where the dispatch of an account and mode stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Cursor {
    /// How many webhooks there are.
    pub webhooks: u64,
    /// Rises when one is registered, changed or deleted.
    pub version: u64,
    /// The last entry whose events were dispatched.
    pub dispatched: u64,
    /// How many events there were.
    pub events: u64,
    /// The last entry that there is, sealed or not.
    pub last: u64,
    /// The minute in which violations are counted.
    pub minute: Minute,
}

/// Deliveries for one webhook.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WebhookDeliveries {
    /// Webhook id, `wh_…`.
    pub webhook: String,
    /// What it is told, in order.
    pub deliveries: Vec<DeliveryEvent>,
}

/// What both scripts have in common: whose deliveries are made, as of when.
#[derive(Debug)]
pub struct Step<'a> {
    /// Account id, `acct_…`.
    pub account: &'a str,
    /// `live` or `test`.
    pub mode: Mode,
    /// Where it stood.
    pub cursor: Cursor,
    /// Every webhook, also one that is told of nothing: its parked deliveries may have their turn.
    pub batches: &'a [WebhookDeliveries],
    /// Most deliveries that wait for one webhook.
    pub waiting_max: u64,
    /// Most finished deliveries of one webhook.
    pub history_max: u64,
}

/// A row of entries to dispatch.
#[derive(Debug)]
pub struct Dispatch<'a> {
    /// Whose.
    pub step: Step<'a>,
    /// The last entry of the row.
    pub last: u64,
    /// How many events follow from it.
    pub events: u64,
    /// The violations in it.
    pub tally: &'a Tally,
}

/// Coalesced violations to tell of, since their minute is over.
#[derive(Debug)]
pub struct DispatchCoalesced<'a> {
    /// Whose.
    pub step: Step<'a>,
    /// Whether a later entry says so; else the store's clock must, and every entry must have been dispatched.
    pub by_entry: bool,
    /// Which.
    pub groups: &'a [Group],
}

/// Outcome of the script.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Dispatched {
    /// The deliveries are made.
    Done {
        /// How many of them are not attempted, since too many wait.
        refused: u64,
    },
    /// The cursor or the webhooks are others; nothing happened, look again.
    Changed,
    /// The minute is not over; nothing happened.
    Early,
}

impl Cursor {
    /// Where the dispatch of `account` stands in `mode`.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn read(store: &Store, account: &AccountKeys, mode: Mode) -> Result<Self, StoreError> {
        let mut look = redis::pipe();
        look.atomic();
        let fields = [
            ModeField::Webhooks,
            ModeField::WebhooksVersion,
            ModeField::Dispatched,
            ModeField::Events,
            ModeField::AuditSeq,
            ModeField::Violations,
        ];
        look.cmd("HMGET")
            .arg(account.record())
            .arg(fields.map(|field| field.name(mode)).as_slice());
        look.cmd("HMGET")
            .arg(account.violations(mode))
            .arg(MINUTE)
            .arg(AGENTS);
        type Found = (Vec<Option<u64>>, (Option<u64>, Option<u64>));
        let (record, (minute, agents)): Found = store.pipeline(&look).await?;
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

    /// The counts of the minute for violations of these.
    ///
    /// # Errors
    /// [`StoreError`], also for counts that make no sense.
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
        // Violations of agents that are not counted apart are told by their reason alone.
        let reasons = groups.iter().map(|group| Group {
            agent: String::new(),
            reason: group.reason.clone(),
        });
        let all: BTreeSet<Group> = groups.iter().cloned().chain(reasons).collect();
        let texts: Vec<String> = all.iter().map(Group::text).collect();
        let agents: Vec<&str> = agents.into_iter().collect();
        let mut look = redis::pipe();
        look.atomic();
        look.cmd("HMGET").arg(account.violations(mode)).arg(&agents);
        look.cmd("HMGET")
            .arg(account.violations_waiting(mode))
            .arg(&texts);
        let (counts, waiting): (Vec<Option<u64>>, Vec<Option<String>>) = store.pipeline(&look).await?;
        let counted = agents.into_iter().zip(counts);
        let counted = counted.filter_map(|(agent, count)| Some((agent.to_owned(), count?)));
        let mut groups = BTreeMap::new();
        for (group, text) in all.into_iter().zip(waiting) {
            let Some(text) = text else { continue };
            let waiting = Waiting::parse(&text);
            let waiting =
                waiting.ok_or_else(|| StoreError::UnexpectedReply("coalesced violations".to_owned()))?;
            groups.insert(group, waiting);
        }
        Ok(Tally::new(self.minute, counted.collect(), groups))
    }
}

/// The coalesced violations that wait longest to be told, `most` at most. One that makes no sense is an error.
///
/// # Errors
/// [`StoreError`].
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
    let mut look = redis::cmd("HMGET");
    look.arg(account.violations_waiting(mode)).arg(&names);
    let texts: Vec<Option<String>> = store.command(&look).await?;
    let unexpected_reply = || StoreError::UnexpectedReply("coalesced violations".to_owned());
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
    /// What webhooks are told of violations that waited.
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
    fn keys(&self) -> Vec<String> {
        let (account, mode) = (AccountKeys::new(self.account), self.mode);
        vec![
            account.record(),
            account.bucket().webhooks_ready(),
            account.violations(mode),
            account.violations_waiting(mode),
            account.violations_order(mode),
        ]
    }

    /// Adds the webhooks to the keys and arguments of a script and runs it.
    async fn execute(
        &self,
        store: &Store,
        script: &Script,
        mut args: Vec<String>,
    ) -> Result<Dispatched, StoreError> {
        let (account, mut keys) = (AccountKeys::new(self.account), self.keys());
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
            args.extend(batch.deliveries.iter().map(Delivery::text_of_new));
        }
        let keys: Vec<&str> = keys.iter().map(String::as_str).collect();
        let args: Vec<&str> = args.iter().map(String::as_str).collect();
        let reply: Vec<String> = store.script(script, &keys, &args).await?;
        match reply.iter().map(String::as_str).collect::<Vec<_>>().as_slice() {
            ["done", refused] => match refused.parse() {
                Ok(refused) => Ok(Dispatched::Done { refused }),
                Err(_) => unexpected_reply(script),
            },
            ["moved" | "changed"] => Ok(Dispatched::Changed),
            ["early"] => Ok(Dispatched::Early),
            _ => unexpected_reply(script),
        }
    }
}

impl Dispatch<'_> {
    /// Makes the deliveries and advances the cursor.
    ///
    /// # Errors
    /// [`StoreError`]; the script may have run. Safe to retry with a cursor read anew.
    pub async fn execute(&self, store: &Store) -> Result<Dispatched, StoreError> {
        let (step, tally) = (&self.step, self.tally);
        let (agents, groups) = (tally.changed_agents(), tally.changed_groups());
        let minute = tally.is_changed().then(|| tally.minute.number.to_string());
        let mut args = vec![
            step.mode.as_str().to_owned(),
            step.cursor.version.to_string(),
            step.cursor.dispatched.to_string(),
            self.last.to_string(),
            step.cursor.events.to_string(),
            self.events.to_string(),
            step.waiting_max.to_string(),
            step.history_max.to_string(),
            minute.unwrap_or_default(),
            u8::from(tally.begun).to_string(),
            tally.minute.agents.to_string(),
            COUNTS_LIFE.as_millis().to_string(),
            agents.len().to_string(),
            groups.len().to_string(),
        ];
        for (agent, count) in agents {
            args.extend([agent.clone(), count.to_string()]);
        }
        for (group, waiting) in groups {
            let first_seq = waiting.coalesced.first_seq.to_string();
            args.extend([group.text(), waiting.text(), first_seq]);
        }
        step.execute(store, &DISPATCH, args).await
    }
}

impl DispatchCoalesced<'_> {
    /// Makes the deliveries and forgets the violations.
    ///
    /// # Errors
    /// [`StoreError`]; the script may have run. Safe to retry with a cursor read anew.
    pub async fn execute(&self, store: &Store) -> Result<Dispatched, StoreError> {
        let step = &self.step;
        let mut args = vec![
            step.mode.as_str().to_owned(),
            step.cursor.version.to_string(),
            step.cursor.dispatched.to_string(),
            step.cursor.events.to_string(),
            step.cursor.minute.number.to_string(),
            if self.by_entry { "entry" } else { "clock" }.to_owned(),
            step.waiting_max.to_string(),
            step.history_max.to_string(),
            self.groups.len().to_string(),
        ];
        args.extend(self.groups.iter().map(Group::text));
        step.execute(store, &DISPATCH_COALESCED, args).await
    }
}
