//! State that the dispatcher reads before a step: the cursor of an account and mode, and the violations that are
//! counted or wait in the current minute (decision D72).

use crate::account::ModeField;
use crate::keys::Realm;
use crate::read::Read;
use crate::{Store, StoreError};
use domain::event::violations::{GroupViolations, Minute, ViolationCounts, ViolationGroup};
use std::collections::{BTreeMap, BTreeSet, HashMap};

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

impl Cursor {
    /// Reads the dispatch state of `account` in `mode`.
    pub async fn read(store: &Store, realm: &Realm) -> Result<Self, StoreError> {
        let fields = [
            ModeField::Webhooks,
            ModeField::WebhooksVersion,
            ModeField::Dispatched,
            ModeField::Events,
            ModeField::AuditSeq,
            ModeField::Violations,
        ];
        let fields = fields.map(|field| field.name(realm.mode()));
        let reads = [
            Read::fields(realm.bucket(), realm.record(), &fields),
            Read::fields(realm.bucket(), realm.violations(), &[MINUTE, AGENTS]),
        ];
        type Found = (Vec<Option<u64>>, (Option<u64>, Option<u64>));
        let (record, (minute, agents)): Found = store.read_atomically(&reads).await?;
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
        realm: &Realm,
        groups: &BTreeSet<ViolationGroup>,
    ) -> Result<ViolationCounts, StoreError> {
        if groups.is_empty() {
            return Ok(ViolationCounts::new(self.minute, HashMap::new(), BTreeMap::new()));
        }
        let agents: BTreeSet<&str> = groups.iter().map(|group| group.agent.as_str()).collect();
        // Violations of agents beyond the bound are coalesced by reason alone.
        let reasons = groups.iter().map(|group| ViolationGroup {
            agent: String::new(),
            reason: group.reason.clone(),
        });
        let all: BTreeSet<ViolationGroup> = groups.iter().cloned().chain(reasons).collect();
        let texts: Vec<String> = all.iter().map(ViolationGroup::text).collect();
        let agents: Vec<&str> = agents.into_iter().collect();
        let reads = [
            Read::fields(realm.bucket(), realm.violations(), &agents),
            Read::fields(realm.bucket(), realm.violations_waiting(), &texts),
        ];
        let (counts, waiting): (Vec<Option<u64>>, Vec<Option<String>>) =
            store.read_atomically(&reads).await?;
        let counted = agents.into_iter().zip(counts);
        let counted = counted.filter_map(|(agent, count)| Some((agent.to_owned(), count?)));
        let mut groups = BTreeMap::new();
        for (group, text) in all.into_iter().zip(waiting) {
            let Some(text) = text else { continue };
            let waiting = GroupViolations::parse(&text);
            let waiting = waiting.ok_or_else(|| StoreError::unexpected("coalesced violations"))?;
            groups.insert(group, waiting);
        }
        Ok(ViolationCounts::new(self.minute, counted.collect(), groups))
    }
}

/// Returns the `most` longest-waiting coalesced violations. A malformed one is an error.
pub async fn waiting(
    store: &Store,
    realm: &Realm,
    most: usize,
) -> Result<Vec<(ViolationGroup, GroupViolations)>, StoreError> {
    let mut range = redis::cmd("ZRANGE");
    range
        .arg(realm.violations_order())
        .arg(0)
        .arg(most.saturating_sub(1));
    let names: Vec<String> = store.command(&range).await?;
    if names.is_empty() {
        return Ok(Vec::new());
    }
    let mut query = redis::cmd("HMGET");
    query.arg(realm.violations_waiting()).arg(&names);
    let texts: Vec<Option<String>> = store.command(&query).await?;
    let unexpected_reply = || StoreError::unexpected("coalesced violations");
    let found = names.iter().zip(texts).map(|(name, text)| {
        let group = ViolationGroup::parse(name).ok_or_else(unexpected_reply)?;
        let waiting = text
            .as_deref()
            .and_then(GroupViolations::parse)
            .ok_or_else(unexpected_reply)?;
        Ok((group, waiting))
    });
    found.collect()
}
