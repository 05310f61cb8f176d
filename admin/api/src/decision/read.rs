//! Reads a decision: from the call's entries in the audit trail or, for a call in flight, from its hold. The operation
//! of the API and the operator's command line share it.

use super::explain::{self, Explained};
use super::recorded::RecordedEntry;
use archive::Archive;
use domain::decision::{VOIDED, hold_id};
use domain::denial_window;
use domain::entry::Entry;
use domain::id::IdKind;
use domain::mode::Mode;
use history::trail::Trail;
use store::call::denial_windows;
use store::call::unsettled_holds;
use store::keys::Realm;
use store::{Store, StoreError};

/// The decisions of an account and mode.
#[derive(Debug)]
pub struct Decisions<'a> {
    store: &'a Store,
    realm: Realm,
    trail: Trail<'a>,
}

impl<'a> Decisions<'a> {
    /// Returns the decisions of a realm.
    pub fn new(store: &'a Store, archive: &'a Archive, realm: Realm) -> Self {
        Self {
            store,
            trail: Trail::new(store, archive, realm.clone()),
            realm,
        }
    }

    /// Returns the decision `id` with its explanation; `None` if there is none.
    ///
    /// # Errors
    /// [`StoreError`]; [`StoreError::Archive`] if a required segment is missing or damaged.
    pub async fn explained(&self, id: &str) -> Result<Option<Explained>, StoreError> {
        if !IdKind::Allow.has_form(id) && !IdKind::Deny.has_form(id) {
            return Ok(None);
        }
        // The hold is read first: a call that ends between the two reads then has its entry.
        let hold = self.open_hold(id).await?;
        let mut entries = self.recorded(id).await?;
        let mut open = hold;
        if entries.is_empty() && open.is_none() {
            (entries, open) = self.window(id).await?;
        }
        if entries.is_empty() && open.is_none() {
            entries = self.lost_approval(id).await?;
        }
        let is_open = entries.is_empty();
        if let (true, Some(entry)) = (is_open, open) {
            entries.push(RecordedEntry {
                entry,
                hash: String::new(),
            });
        }
        Ok(Explained::from_entries(&entries, is_open))
    }

    /// Returns whether the entry with this number is in the archive.
    ///
    /// # Errors
    /// [`StoreError`]
    pub async fn is_archived(&self, seq: u64) -> Result<bool, StoreError> {
        self.trail.is_archived(seq).await
    }

    /// Returns the entries of the decision, oldest first.
    async fn recorded(&self, id: &str) -> Result<Vec<RecordedEntry>, StoreError> {
        let mut found: Vec<RecordedEntry> = self
            .trail
            .decision(id)
            .await?
            .iter()
            .filter_map(RecordedEntry::from_sealed)
            .collect();
        found.retain(|recorded| recorded.entry.decision_id() == id);
        Ok(found)
    }

    /// Returns the entries of an approval that did not reach the edge, which then denied the call with
    /// `service_unavailable`: the caller knows the id of the hold with the prefix of a denial.
    async fn lost_approval(&self, id: &str) -> Result<Vec<RecordedEntry>, StoreError> {
        let Some(hold_id) = hold_id(id) else {
            return Ok(Vec::new());
        };
        let found = self.recorded(&hold_id).await?;
        let is_lost = found.iter().any(|recorded| recorded.entry.kind == VOIDED);
        Ok(if is_lost { found } else { Vec::new() })
    }

    /// Returns the record of the rate window that counted the denial `id`, or for an open window the entry that its
    /// record would be if it were written now (decision D70).
    async fn window(&self, id: &str) -> Result<(Vec<RecordedEntry>, Option<Entry>), StoreError> {
        let is_live = self.realm.mode() == Mode::Live;
        let Some(record_id) = denial_window::record_of(id).filter(|_| is_live) else {
            return Ok((Vec::new(), None));
        };
        // The count is read first: a count that becomes a record between the two reads then has its entry. The id may
        // be that of the record itself.
        let account = self.realm.account();
        let mut open = denial_windows::find_open(self.store, account, &record_id).await?;
        if open.is_none() && IdKind::Deny.has_form(id) {
            open = denial_windows::find_open(self.store, account, id).await?;
        }
        let recorded = self.recorded(&record_id).await?;
        Ok((recorded, open.and_then(|counted| counted.entry())))
    }

    /// Returns the call in flight with this id, as the entry that it would have if it ended now.
    async fn open_hold(&self, id: &str) -> Result<Option<Entry>, StoreError> {
        if self.realm.mode() == Mode::Test {
            return Ok(None);
        }
        let account = self.realm.account();
        match unsettled_holds::read_open_text(self.store, account, id).await? {
            None => Ok(None),
            Some(text) => {
                explain::entry_of_hold(id, account, &text).map_err(|()| StoreError::unexpected("hold"))
            }
        }
    }
}
