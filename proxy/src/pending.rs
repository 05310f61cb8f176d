//! What the store could not take yet: settlements and voids, retried in the background until it does (decision D36).
//!
//! The queue is bounded and survives a restart: each item is appended to a [`journal`] before it waits. What does not fit
//! is dropped, which leaves the estimate charged: never less than was spent.

pub mod journal;

use crate::gate::Gate;
use futures::StreamExt;
use journal::Journal;
use serde::{Deserialize, Serialize};
use shared::domain::entry::How;
use shared::domain::money::Nanos;
use shared::store::script::hold::HoldName;
use shared::store::script::settle::Settle;
use shared::store::script::void::{Voided, void};
use std::collections::VecDeque;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;
use tokio::sync::Notify;

/// Pause after a round in which the store took nothing.
const PAUSE: Duration = Duration::from_millis(200);
/// Items in flight to the store at once.
const CONCURRENT: usize = 32;
/// Items taken from the queue in one round.
const ROUND: usize = 1024;

/// The journal is rewritten when it has this many lines for each item that may wait.
const JOURNAL_LINES_PER_ITEM: usize = 2;

/// Something that has to reach the store.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "do", rename_all = "snake_case")]
pub enum Item {
    /// Resolve a hold.
    Settle {
        /// Account, agent, run and decision id.
        name: [String; 4],
        /// Nano-USD charged.
        estimate_nanos: u64,
        /// Nano-USD to be charged.
        cost_nanos: u64,
        /// How the call ended, as the audit log calls it; a journal of an earlier version does not say.
        #[serde(default)]
        how: Option<String>,
    },
    /// Make sure that a lost authorize never charges.
    Void {
        /// Account, agent, run and decision id.
        name: [String; 4],
    },
}

fn to_words(name: HoldName) -> [String; 4] {
    [name.account, name.agent, name.run, name.allow_id]
}

fn to_name(words: &[String; 4]) -> HoldName {
    let [account, agent, run, allow_id] = words.clone();
    HoldName {
        account,
        agent,
        run,
        allow_id,
    }
}

/// How a call ended; told from its cost where the journal does not say.
fn to_how(word: Option<&str>, estimate_nanos: u64, cost_nanos: u64) -> How {
    word.and_then(How::parse).unwrap_or(match cost_nanos {
        cost if cost == estimate_nanos => How::Estimated,
        0 => How::Released,
        _ => How::Settled,
    })
}

/// The queue.
#[derive(Debug)]
pub struct Pending {
    queue: Mutex<VecDeque<Item>>,
    journal: Mutex<Journal>,
    limit: usize,
    wake: Notify,
}

impl Pending {
    /// A queue that starts with what earlier processes left behind.
    #[must_use]
    pub fn new(journal: Journal, left_behind: Vec<Item>, limit: usize) -> Self {
        let queue = Mutex::new(left_behind.into());
        Self {
            queue,
            journal: Mutex::new(journal),
            limit,
            wake: Notify::new(),
        }
    }

    /// Lets a settlement wait.
    pub fn settle(&self, settle: Settle) {
        let Settle {
            name,
            estimate,
            cost,
            how,
        } = settle;
        self.push(Item::Settle {
            name: to_words(name),
            estimate_nanos: estimate.get(),
            cost_nanos: cost.get(),
            how: Some(how.as_str().to_owned()),
        });
    }

    /// Lets a void wait.
    pub fn void(&self, name: HoldName) {
        self.push(Item::Void { name: to_words(name) });
    }

    /// Items that wait.
    pub fn len(&self) -> usize {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner).len()
    }

    /// Whether nothing waits.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Leaves nothing behind when nothing waits; otherwise the journal stays for the next process.
    pub fn close(&self) {
        if self.is_empty() {
            self.journal
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
                .remove();
        }
    }

    fn push(&self, item: Item) {
        let mut queue = self.queue.lock().unwrap_or_else(PoisonError::into_inner);
        if queue.len() >= self.limit {
            tracing::error!(?item, "the retry queue is full; the estimate stays charged");
            return;
        }
        let mut journal = self.journal.lock().unwrap_or_else(PoisonError::into_inner);
        if journal.lines() >= JOURNAL_LINES_PER_ITEM * self.limit {
            journal.clear();
            queue.iter().for_each(|item| journal.append(item));
        }
        journal.append(&item);
        queue.push_back(item);
        self.wake.notify_one();
    }

    /// Brings what waits to the store, for ever.
    pub async fn run(&self, gate: &Gate) {
        loop {
            if self.is_empty() {
                self.wake.notified().await;
            }
            if self.round(gate).await == 0 {
                tokio::time::sleep(PAUSE).await;
            }
        }
    }

    /// One round; returns how many items the store took.
    async fn round(&self, gate: &Gate) -> usize {
        let batch: Vec<Item> = {
            let queue = self.queue.lock().unwrap_or_else(PoisonError::into_inner);
            queue.iter().take(ROUND).cloned().collect()
        };
        let taken = batch.len();
        let left: Vec<Item> = futures::stream::iter(batch)
            .map(|item| async move {
                if deliver(gate, &item).await {
                    None
                } else {
                    Some(item)
                }
            })
            .buffer_unordered(CONCURRENT)
            .filter_map(std::future::ready)
            .collect()
            .await;
        let delivered = taken - left.len();
        let mut queue = self.queue.lock().unwrap_or_else(PoisonError::into_inner);
        queue.drain(..taken);
        queue.extend(left);
        if queue.is_empty() {
            self.journal
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
                .clear();
        }
        delivered
    }
}

/// Whether the store took the item. Both actions may be repeated, so an item that is delivered twice does no harm.
async fn deliver(gate: &Gate, item: &Item) -> bool {
    match item {
        Item::Settle {
            name,
            estimate_nanos,
            cost_nanos,
            how,
        } => {
            let (estimate, cost) = (
                Nanos::from_stored(*estimate_nanos),
                Nanos::from_stored(*cost_nanos),
            );
            let settle = Settle {
                name: to_name(name),
                estimate,
                cost,
                how: to_how(how.as_deref(), *estimate_nanos, *cost_nanos),
            };
            match settle.run(&gate.store).await {
                Ok(settled) => gate.metrics.settled(settled, &settle),
                Err(_) => return false,
            }
        }
        Item::Void { name } => match void(&gate.store, &to_name(name)).await {
            Ok(Voided::Refunded) => tracing::warn!(decision.id = name[3], "a lost approval was given back"),
            Ok(Voided::Barred) => {}
            Err(_) => return false,
        },
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_journal_of_an_earlier_version_is_read() {
        for (cost, how) in [
            (100, How::Estimated),
            (0, How::Released),
            (30, How::Settled),
            (170, How::Settled),
        ] {
            let line = format!(
                r#"{{"do":"settle","name":["acct_1","bot","r","allow_1"],"estimate_nanos":100,"cost_nanos":{cost}}}"#
            );
            let Item::Settle { how: said, .. } = serde_json::from_str(&line).unwrap() else {
                panic!("a settlement");
            };
            assert_eq!(to_how(said.as_deref(), 100, cost), how, "{cost}");
        }
        assert_eq!(to_how(Some("released"), 0, 0), How::Released);
        assert_eq!(to_how(None, 0, 0), How::Estimated);
    }
}
