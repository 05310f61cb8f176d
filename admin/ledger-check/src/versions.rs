//! Compares versions of accounts with those of their witnesses: a lower version means that the store lost writes.

use super::book::AccountMode;
use super::drive::{Job, drive};
use super::pass::Pass;
use super::violation::Invariant;
use store::StoreError;
use store::connection::witness_of;
use store::read::Read;
use store::versions::AccountVersion;
use store::versions::witness;

impl Pass<'_> {
    /// Reads the versions of the witnesses, before the accounts are read: witnesses are updated after their accounts.
    pub(super) async fn read_witnesses(&mut self) -> Result<Vec<(AccountMode, AccountVersion)>, StoreError> {
        let (store, accounts) = (self.store, self.accounts);
        if !store.is_cluster() {
            return Ok(Vec::new());
        }
        let jobs = accounts.live().map(|account_mode| {
            let (bucket, id) = (
                witness_of(accounts.realm(account_mode).bucket()),
                accounts.id(account_mode),
            );
            Job::new([Read::field(bucket, bucket.witnessed(), id)], account_mode)
        });
        let mut witnessed = Vec::new();
        drive(store, jobs, |account_mode, mut answers| {
            let text = answers.text();
            witnessed.extend(
                text.as_deref()
                    .and_then(witness::parse)
                    .map(|view| (account_mode, view)),
            );
        })
        .await?;
        Ok(witnessed)
    }

    /// Compares the witnesses' versions with the records of the accounts, which were read afterwards.
    pub(super) fn check_versions(&mut self, witnessed: Vec<(AccountMode, AccountVersion)>) {
        for (account_mode, witnessed) in witnessed {
            let record = &self.records[account_mode.account];
            let number = |name: &str| record.get(name).and_then(|text| text.parse().ok()).unwrap_or(0);
            let is = AccountVersion {
                generation: number("generation"),
                version: number("version"),
            };
            if is < witnessed {
                let key = self.accounts.realm(account_mode).record();
                let recorded = match witnessed.is_until_accepted() {
                    true => "lost writes until `store accept`".to_owned(),
                    false => format!(
                        "version {} of generation {}",
                        witnessed.version, witnessed.generation
                    ),
                };
                let detail = format!(
                    "it is at version {} of generation {}, but its witness recorded {recorded}: the store lost writes",
                    is.version, is.generation
                );
                self.add_violation(Invariant::Versions, &[&key], detail);
            }
        }
    }
}
