//! Archived intents: they must be unchanged, and are compared with transactions, escrows and counters like those in the
//! store.
//!
//! An archive that does not answer proves nothing: it is read once in a pass, and findings that need it are then
//! inconclusive.

use super::book::AccountMode;
use super::pass::Pass;
use super::violation::Invariant;
use store::StoreError;

impl Pass<'_> {
    /// Reads the archived intents of every account and mode for which the scan found some. An intent that is archived
    /// during the scan may be counted twice; the next pass counts it once.
    pub(super) async fn read_archived_intents(&mut self) -> Result<(), StoreError> {
        let accounts = self.accounts;
        for account_mode in accounts.account_modes() {
            if self.page(account_mode).archived_intents {
                self.read_segments(account_mode).await?;
            }
        }
        Ok(())
    }

    async fn read_segments(&mut self, account_mode: AccountMode) -> Result<(), StoreError> {
        let (realm, archive) = (self.accounts.realm(account_mode), self.archive);
        if let Some(why) = self.no_archive.clone() {
            self.leave_unread(account_mode, &realm.intent_segments(), &why);
            return Ok(());
        }
        let segments = match archive.intent_segments(self.store, realm).await {
            Err(error @ (StoreError::UnexpectedReply(_) | StoreError::MalformedData { .. })) => {
                let key = realm.intent_segments();
                let detail = match error {
                    StoreError::MalformedData { source, .. } => format!("it is malformed: {source}"),
                    error => error.to_string(),
                };
                self.add_violation(Invariant::Intent, &[&key], detail);
                return Ok(());
            }
            segments => segments?,
        };
        for descriptor in segments.iter() {
            let segment = match archive.intent_segment(realm, descriptor).await {
                Err(StoreError::Archive(why)) => {
                    let (path, _) = descriptor.paths(realm);
                    self.add_violation(Invariant::Intent, &[&path], why);
                    continue;
                }
                Err(StoreError::ArchiveUnavailable(why)) => {
                    let (path, _) = descriptor.paths(realm);
                    self.leave_unread(account_mode, &path, &why);
                    self.no_archive = Some(why);
                    return Ok(());
                }
                segment => segment?,
            };
            self.count(segment.records().len());
            for intent in segment.records() {
                let key = realm.intent(&intent.id);
                self.decided(account_mode, &key, intent);
            }
        }
        Ok(())
    }

    /// Records that archived intents could not be read. One inconclusive result stands for all accounts.
    fn leave_unread(&mut self, account_mode: AccountMode, record: &str, why: &str) {
        if self.unread_intents.is_empty() {
            let reason = format!("archived intents cannot be read: {why}");
            self.add_inconclusive(Invariant::Intent, &[record], reason);
        }
        self.unread_intents.insert(account_mode);
    }
}
