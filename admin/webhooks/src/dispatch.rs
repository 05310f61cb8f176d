//! The dispatcher: reads the sealed entries of an account after its cursor and creates the deliveries of their events,
//! each once (decision D43), and violations beyond the first ten of a minute as one (decision D72). It runs whenever
//! the account was sealed, on any server; of several concurrent ones, one succeeds. A separate worker reads archived
//! entries: an archive that does not reply delays only the events of those entries.

mod step;

use crate::Webhooks;
use domain::entry::{Entry, Sealed};
use domain::event;
use domain::event::violations::{GroupViolations, ViolationGroup};
use history::trail::Trail;
use std::collections::{BTreeSet, VecDeque};
use step::{DELIVERIES_MAX, ReadEntry, StepDeliveries, batches_of};
use store::keys::Realm;
use store::webhook::WebhookRecord;
use store::webhook::delivery::DeliveryEvent;
use store::webhook::script::WebhookLocation;
use store::webhook::script::cursor::{Cursor, waiting};
use store::webhook::script::dispatch::{
    Dispatch, DispatchCoalesced, DispatchStep, Dispatched, MinuteEnd, WebhookDeliveries,
};
use store::{StoreError, server_clock};

/// Maximum number of steps of one call; the rest is dispatched in the next round.
const STEPS_MAX: usize = 10;

/// Sources from which entries may be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EntrySource {
    /// The store only. A chain whose next entry was archived is added to the backlog.
    Store,
    /// The archive as well.
    Archive,
}

/// Dispatches the events of one account and mode.
struct Dispatcher<'a> {
    webhooks: &'a Webhooks,
    realm: &'a Realm,
    /// Entries after the cursor that were read but not dispatched.
    ahead: VecDeque<ReadEntry>,
}

/// Dispatches the events of the sealed entries of an account and mode.
///
/// # Errors
/// [`StoreError`]; the cursor shows how far it came.
pub async fn dispatch(webhooks: &Webhooks, realm: &Realm, source: EntrySource) -> Result<(), StoreError> {
    let mut dispatcher = Dispatcher {
        webhooks,
        realm,
        ahead: VecDeque::new(),
    };
    for _ in 0..STEPS_MAX {
        let cursor = Cursor::read(&webhooks.store, realm).await?;
        if cursor.webhooks == 0 {
            break;
        }
        if !dispatcher.read(cursor, source).await? {
            webhooks.backlog.push(realm.clone());
            break;
        }
        let may_go_on = match dispatcher.ahead.front() {
            Some(next) if cursor.minute.has_ended(next.entry.at_ms) => {
                dispatcher
                    .dispatch_coalesced(cursor, MinuteEnd::LaterEntry)
                    .await?
            }
            Some(_) => dispatcher.dispatch_entries(cursor).await?,
            None if dispatcher.is_coalesced_due(cursor).await? => {
                dispatcher.dispatch_coalesced(cursor, MinuteEnd::Clock).await?
            }
            None => break,
        };
        if !may_go_on {
            break;
        }
    }
    Ok(())
}

impl Dispatcher<'_> {
    /// Reads entries after the cursor, unless some are already read. Returns false if `source` lacks them. An entry
    /// that cannot be read stops the cursor: skipping it would silently lose its events.
    async fn read(&mut self, cursor: Cursor, source: EntrySource) -> Result<bool, StoreError> {
        let first = cursor.dispatched + 1;
        while self.ahead.front().is_some_and(|read| read.entry.seq != first) {
            self.ahead.pop_front();
        }
        if !self.ahead.is_empty() {
            return Ok(true);
        }
        let trail = Trail::new(&self.webhooks.store, &self.webhooks.archive, self.realm.clone());
        let sealed = match source {
            EntrySource::Store => trail.read_live(first).await?,
            EntrySource::Archive => Some(trail.read(first).await?),
        };
        let Some(sealed) = sealed else {
            return Ok(false);
        };
        self.ahead = read_all(&sealed)?;
        Ok(true)
    }

    /// Returns whether coalesced violations of a past minute wait, and no entry does.
    async fn is_coalesced_due(&self, cursor: Cursor) -> Result<bool, StoreError> {
        if !cursor.minute.waits || cursor.last != cursor.dispatched {
            return Ok(false);
        }
        let now_ms = server_clock::now_ms(&self.webhooks.store).await?;
        Ok(cursor.minute.has_ended(now_ms))
    }

    /// Dispatches as many of the read entries as fit into a step. Returns false if there is nothing more to do before
    /// the minute is over.
    async fn dispatch_entries(&mut self, cursor: Cursor) -> Result<bool, StoreError> {
        let store = &self.webhooks.store;
        let events = self.ahead.iter().flat_map(|read| &read.events);
        let groups: BTreeSet<ViolationGroup> =
            events.clone().filter_map(ViolationGroup::from_event).collect();
        let webhooks = match events.count() {
            0 => Vec::new(),
            _ => WebhookRecord::all(store, self.realm).await?,
        };
        let tally = cursor.tally(store, self.realm, &groups).await?;
        let taken = StepDeliveries::new(&self.ahead, tally, &webhooks);
        let dispatch = Dispatch {
            step: self.step(cursor, &taken.batches),
            last: taken.last,
            events: taken.events,
            tally: &taken.tally,
        };
        let done = dispatch.execute(store).await?;
        self.webhooks.metrics.coalesced(match done {
            Dispatched::Done { .. } => taken.coalesced,
            Dispatched::Changed | Dispatched::Early => 0,
        });
        Ok(self.finish(done, taken.events, taken.batches))
    }

    /// Dispatches coalesced violations, as many groups as fit into a step. Returns the same as
    /// [`Self::dispatch_entries`].
    async fn dispatch_coalesced(&self, cursor: Cursor, minute_end: MinuteEnd) -> Result<bool, StoreError> {
        let store = &self.webhooks.store;
        let webhooks = WebhookRecord::all(store, self.realm).await?;
        let most = (DELIVERIES_MAX / webhooks.len().max(1)).max(1);
        let waiting: Vec<(ViolationGroup, GroupViolations)> = waiting(store, self.realm, most).await?;
        let events: Vec<DeliveryEvent> = waiting.iter().map(|(_, waiting)| waiting.into()).collect();
        let batches = batches_of(&webhooks, &events);
        let groups: Vec<ViolationGroup> = waiting.into_iter().map(|(group, _)| group).collect();
        let dispatch = DispatchCoalesced {
            step: self.step(cursor, &batches),
            minute_end,
            groups: &groups,
        };
        let done = dispatch.execute(store).await?;
        Ok(self.finish(done, groups.len() as u64, batches))
    }

    const fn step<'s>(&'s self, cursor: Cursor, batches: &'s [WebhookDeliveries]) -> DispatchStep<'s> {
        DispatchStep {
            realm: self.realm,
            cursor,
            batches,
            waiting_max: self.webhooks.settings.waiting_max,
            history_max: self.webhooks.settings.history_max,
        }
    }

    /// Counts, logs and hints the deliveries of a step. Returns the same as [`Self::dispatch_entries`].
    fn finish(&self, done: Dispatched, events: u64, batches: Vec<WebhookDeliveries>) -> bool {
        let refused = match done {
            Dispatched::Done { refused } => refused,
            Dispatched::Changed => return true,
            Dispatched::Early => return false,
        };
        let (account, mode) = (self.realm.account(), self.realm.mode());
        let deliveries = batches.iter().map(|batch| batch.deliveries.len() as u64).sum();
        self.webhooks.metrics.dispatched(events, deliveries, refused);
        if refused > 0 {
            tracing::warn!(account, %mode, refused, "deliveries refused: too many wait for the same webhook");
        }
        self.webhooks
            .hints
            .add(batches.into_iter().map(|batch| WebhookLocation {
                realm: self.realm.clone(),
                webhook: batch.webhook,
            }));
        true
    }
}

/// Entries with their events.
fn read_all(sealed: &[Sealed]) -> Result<VecDeque<ReadEntry>, StoreError> {
    let read = |sealed: &Sealed| {
        let entry = Entry::from_json(&sealed.json);
        let entry = entry.ok_or_else(|| StoreError::unexpected("sealed entry"))?;
        let events = event::from_entry(&entry);
        Ok(ReadEntry { entry, events })
    };
    sealed.iter().map(read).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_entry_that_cannot_be_read_is_not_passed_over() {
        let sealed = Entry::from_line(7, b"7 5 nonsense").seal("genesis").unwrap();
        let broken = Sealed {
            json: "{".to_owned(),
            ..sealed.clone()
        };
        assert_eq!(read_all(std::slice::from_ref(&sealed)).unwrap().len(), 1);
        assert!(read_all(&[sealed, broken]).is_err());
    }
}
