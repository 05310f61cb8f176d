//! Runs that are paused: a spend of theirs waits for approval (decision D23).

use crate::intent::{IntentRecord, IntentTexts};
use crate::keys::Realm;
use crate::page::PageRequest;
use crate::run::{Run, RunStatus};
use crate::{Store, StoreError};
use domain::money::Nanos;
use std::collections::BTreeMap;

/// Waiting intents read in one round trip.
const PAGE: usize = 200;
/// Maximum number of their pages that are read, newest first; intents on later pages are left out.
const PAGES_MAX: usize = 5;

/// The intents for which a run waits.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct WaitingIntents {
    /// The intents, newest first.
    pub intents: Vec<String>,
    /// Time of the oldest request among them.
    pub first_ms: u64,
    /// Time of the newest request among them.
    pub last_ms: u64,
}

impl WaitingIntents {
    /// Returns the paused runs of `agent`, by their ids.
    pub async fn read_by_agent(
        store: &Store,
        realm: &Realm,
        agent: &str,
    ) -> Result<BTreeMap<String, Self>, StoreError> {
        let mut found: BTreeMap<String, Self> = BTreeMap::new();
        let mut position: Option<String> = None;
        for _ in 0..PAGES_MAX {
            let page = match &position {
                None => PageRequest::at(0, PAGE),
                Some(position) => PageRequest::after(position, PAGE),
            };
            let mut part = IntentRecord::waiting(store, realm, page, IntentTexts::Without).await?;
            part.records.retain(|record| record.agent == agent);
            for record in &part.records {
                if let Some(run) = &record.run {
                    found.entry(run.clone()).or_default().add(record);
                }
            }
            position = part.next;
            if position.is_none() {
                break;
            }
        }
        Ok(found)
    }

    /// Adds an intent. The pages come newest first.
    fn add(&mut self, record: &IntentRecord) {
        self.last_ms = self.last_ms.max(record.at_ms);
        self.first_ms = record.at_ms;
        self.intents.push(record.id.clone());
    }

    /// Returns the run `id`, which has done nothing except wait.
    pub const fn run(&self, id: String) -> Run {
        Run {
            id,
            status: RunStatus::Running,
            calls: 0,
            denied: 0,
            spent: Nanos::ZERO,
            first_ms: self.first_ms,
            last_ms: self.last_ms,
            ended_ms: None,
        }
    }
}
