//! Compares versions of accounts with those of their witnesses: a lower version means that the store lost writes.

use super::book::AccountMode;
use super::drive::{Job, drive};
use super::pass::Pass;
use super::violation::Invariant;
use domain::mode::Mode;
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
        let lives = accounts.places().filter(|place| place.mode == Mode::Live);
        let jobs = lives.map(|place| {
            let (bucket, id) = (witness_of(accounts.realm(place).bucket()), accounts.id(place));
            Job::new([Read::field(bucket, bucket.witnessed(), id)], place)
        });
        let mut witnessed = Vec::new();
        drive(store, jobs, |place, mut answers| {
            let text = answers.text();
            witnessed.extend(text.as_deref().and_then(witness::parse).map(|view| (place, view)));
        })
        .await?;
        Ok(witnessed)
    }

    /// Compares the witnesses' versions with the records of the accounts, which were read afterwards.
    pub(super) fn check_versions(&mut self, witnessed: Vec<(AccountMode, AccountVersion)>) {
        for (place, witnessed) in witnessed {
            let record = &self.records[place.account];
            let number = |name: &str| record.get(name).and_then(|text| text.parse().ok()).unwrap_or(0);
            let is = AccountVersion {
                generation: number("generation"),
                version: number("version"),
            };
            if is < witnessed {
                let key = self.accounts.realm(place).record();
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
                self.wrong(Invariant::Versions, &[&key], detail);
            }
        }
    }
}
