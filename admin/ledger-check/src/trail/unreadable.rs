//! Trails that cannot be read to their end: malformed, from a later release, or in an archive that does not answer.

use crate::book::AccountMode;
use crate::pass::Pass;
use crate::violation::Invariant;
use history::trail::Trail;
use std::error::Error;
use store::StoreError;
use store::audit::chain::Chain;

impl Pass<'_> {
    /// Reports a trail of which a key in the store is malformed.
    pub(super) async fn malformed_trail(
        &mut self,
        account_mode: AccountMode,
        why: &dyn Error,
    ) -> Result<(), StoreError> {
        self.incomplete.insert(account_mode);
        let chain = Chain::new(self.store, self.accounts.realm(account_mode).clone());
        let key = chain.malformed_key().await?;
        let key = key.unwrap_or_else(|| chain.realm().audit());
        let detail = format!("it is malformed, so nothing was compared with the trail: {why}");
        self.add_violation(Invariant::Trail, &[&key], detail);
        Ok(())
    }

    /// Returns whether entries of a trail are archived, and the archive did not answer before: each attempt may take a
    /// minute.
    pub(super) async fn lacks_archive(
        &mut self,
        account_mode: AccountMode,
        trail: &Trail<'_>,
    ) -> Result<bool, StoreError> {
        let Some(why) = self.no_archive.clone() else {
            return Ok(false);
        };
        let is_archived = trail.is_archived(1).await?;
        if is_archived {
            self.trail_is_inconclusive(account_mode, format!("entry 1 cannot be read: {why}"));
        }
        Ok(is_archived)
    }

    /// Records why an entry cannot be read. Returns errors that say nothing about the trail.
    pub(super) fn unreadable(
        &mut self,
        account_mode: AccountMode,
        seq: u64,
        error: StoreError,
    ) -> Result<(), StoreError> {
        match error {
            // It was archived at that moment, too often.
            StoreError::UnexpectedReply(_) | StoreError::LaterRelease(_) => {
                self.trail_is_inconclusive(account_mode, format!("entry {seq} cannot be read: {error}"));
            }
            StoreError::ArchiveUnavailable(why) => {
                self.trail_is_inconclusive(account_mode, format!("entry {seq} cannot be read: {why}"));
                self.no_archive = Some(why);
            }
            StoreError::Archive(why) => self.broken(account_mode, seq, &why),
            error => return Err(error),
        }
        Ok(())
    }
}
