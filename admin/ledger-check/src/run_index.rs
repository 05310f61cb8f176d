//! The index of named runs: each run that it names as used within the life of a record has its record. A record that
//! was deleted gives the run its whole limit anew.

use super::book::AccountMode;
use super::drive::{BATCH, Job, drive};
use super::pass::Pass;
use super::transit::CLOCKS_APART_MS;
use super::violation::Invariant;
use store::call::authorize::RUN_LIFE_MS;
use store::read::Read;
use store::{StoreError, server_clock};

impl Pass<'_> {
    /// Checks that each run of an index has its record. Reads one page of one index at a time.
    pub(super) async fn read_run_indexes(&mut self) -> Result<(), StoreError> {
        for account_mode in self.accounts.account_modes() {
            let mut first = 0;
            while self.page(account_mode).has_runs {
                let read = self.read_runs_from(account_mode, first).await?;
                if read == 0 {
                    break;
                }
                first += read;
            }
        }
        Ok(())
    }

    /// Checks the runs of a page of an index, from rank `first` on. Returns their number.
    async fn read_runs_from(&mut self, account_mode: AccountMode, first: u64) -> Result<u64, StoreError> {
        let (store, realm) = (self.store, self.accounts.realm(account_mode));
        let (bucket, index) = (realm.bucket(), realm.all_runs());
        // The index entry is written together with the record's last use, and with its end that much later.
        let used_since = run_used_since(server_clock::now_ms(store).await?);
        let page = Read::sorted(bucket, &index, first, BATCH as u64);
        let runs = store.many(&[page]).await?.read::<Vec<(String, f64)>>();
        let Some(runs) = runs else {
            self.add_violation(Invariant::Counters, &[&index], "the index of runs is malformed");
            return Ok(0);
        };
        let length = runs.len() as u64;
        self.count(runs.len());
        let is_used = |score: f64| score > used_since;
        let used = runs.into_iter().filter(|(_, score)| is_used(*score));
        let jobs = used.filter_map(|(member, _)| {
            let (agent, run) = member.split_once('/')?;
            let key = realm.run(agent, run);
            let reads = [
                Read::field(bucket, &key, "first"),
                Read::score(bucket, &index, &member),
            ];
            Some(Job::new(reads, key))
        });
        drive(store, jobs, |key, mut answers| {
            let is_there = answers.text().is_some();
            let still = answers.read::<Option<f64>>().flatten();
            if !is_there && still.is_some_and(is_used) {
                self.add_violation(
                    Invariant::Counters,
                    &[&key, &index],
                    "the index names a run that has no record",
                );
            }
        })
        .await?;
        Ok(length)
    }
}

/// Returns the time in ms since 1970 after which a run that was used has its record at `now_ms`, whatever the
/// difference between the servers' clocks.
#[expect(
    clippy::cast_precision_loss,
    reason = "milliseconds of our time are exact in a double"
)]
fn run_used_since(now_ms: u64) -> f64 {
    now_ms.saturating_sub(RUN_LIFE_MS).saturating_add(CLOCKS_APART_MS) as f64
}
