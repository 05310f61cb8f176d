//! Archived intents: they must be unchanged, and are compared with transactions, escrows and counters like those in the
//! store.

use super::book::AccountMode;
use super::pass::Pass;
use super::violation::Invariant;
use store::StoreError;

impl Pass<'_> {
    /// Reads the archived intents of every account and mode for which the scan found some. An intent that is archived
    /// during the scan may be counted twice; the next pass counts it once.
    pub(super) async fn read_archived_intents(&mut self) -> Result<(), StoreError> {
        let accounts = self.accounts;
        for place in accounts.places() {
            if self.page(place).archived_intents {
                self.read_segments(place).await?;
            }
        }
        Ok(())
    }

    async fn read_segments(&mut self, place: AccountMode) -> Result<(), StoreError> {
        let (realm, archive) = (self.accounts.realm(place), self.archive);
        let segments = match archive.intent_segments(self.store, realm).await {
            Err(StoreError::UnexpectedReply(why)) => {
                let key = realm.intent_segments();
                self.wrong(Invariant::Intent, &[&key], why);
                return Ok(());
            }
            segments => segments?,
        };
        for descriptor in segments.iter() {
            let segment = match archive.intent_segment(realm, descriptor).await {
                Err(StoreError::Archive(why)) => {
                    let (path, _) = descriptor.paths(realm);
                    self.wrong(Invariant::Intent, &[&path], why);
                    continue;
                }
                segment => segment?,
            };
            self.count(segment.records().len());
            for intent in segment.records() {
                let key = realm.intent(&intent.id);
                self.decided(place, &key, intent);
            }
        }
        Ok(())
    }
}
