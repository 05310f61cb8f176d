//! The indexes of holds: open ones by deadline, and those that the reaper kept.

use super::drive::{Job, drive};
use super::pass::Pass;
use super::violation::Invariant;
use store::call::reap::KEPT_LIFE;
use store::call::unsettled_holds::HoldState;
use store::read::Read;
use store::{StoreError, server_clock};

impl Pass<'_> {
    /// Checks that each entry of an index has its hold.
    pub(super) async fn read_hold_indexes(&mut self) -> Result<(), StoreError> {
        let (store, accounts) = (self.store, self.accounts);
        let kept_since = server_clock::now_ms(store)
            .await?
            .saturating_sub(ms(KEPT_LIFE.as_millis()));
        let indexes = accounts
            .buckets()
            .into_iter()
            .flat_map(|bucket| HoldState::ALL.map(|state| (bucket, state)));
        let jobs = indexes.map(|(bucket, state)| {
            let index = state.index(bucket);
            let read = Read::sorted(bucket, index, 0, u64::from(u32::MAX));
            Job::new([read], (bucket, state)).with_weight(20)
        });
        let mut listed = Vec::new();
        drive(store, jobs, |(bucket, state), mut answers| {
            let index = state.index(bucket);
            match answers.read::<Vec<(String, f64)>>() {
                None => self.add_violation(Invariant::Holds, &[&index], "the index is malformed"),
                Some(ids) => {
                    self.count(ids.len());
                    // Expired entries of the index of kept holds are only removed when the next hold is kept.
                    let live = ids
                        .into_iter()
                        .filter(|(_, at)| state == HoldState::Open || *at > as_score(kept_since));
                    listed.extend(live.map(|(id, _)| (bucket, state, index.clone(), id)));
                }
            }
        })
        .await?;
        let jobs = listed.into_iter().map(|(bucket, state, index, id)| {
            let key = state.record(bucket, &id);
            Job::new(
                [Read::text(bucket, &key), Read::score(bucket, &index, &id)],
                (index, key),
            )
        });
        drive(store, jobs, |(index, key), mut answers| {
            let text = answers.text();
            let still = answers.read::<Option<f64>>().flatten().is_some();
            // A hold that was resolved during the check is in neither index.
            if still && text.is_none_or(|text| text == "V") {
                self.add_violation(
                    Invariant::Holds,
                    &[&index, &key],
                    "the index names a hold that does not exist",
                );
            }
        })
        .await
    }
}

#[expect(
    clippy::cast_precision_loss,
    reason = "milliseconds of our time are exact in a double"
)]
const fn as_score(at_ms: u64) -> f64 {
    at_ms as f64
}

fn ms(millis: u128) -> u64 {
    u64::try_from(millis).unwrap_or(u64::MAX)
}
