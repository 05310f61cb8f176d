//! A batch of work on many servers, some of which may be unreachable. Once a server has not replied, the rest of the
//! batch skips work on it, so that one dead server does not cause a timeout each time.

use super::Store;
use super::scan::{Node, ReadGroup, SLOTS_AT_ONCE, groups, in_order};
use crate::StoreError;
use crate::keys::Bucket;
use crate::read::{Answers, Read};
use futures::{StreamExt, stream};
use parking_lot::Mutex;
use std::collections::HashSet;

/// A batch: its store, the servers that did not reply, and the first failure.
#[derive(Debug)]
pub struct Batch<'a> {
    store: &'a Store,
    state: Mutex<BatchFailures>,
}

/// Failures so far.
#[derive(Debug, Default)]
struct BatchFailures {
    away: HashSet<Node>,
    failed: Option<StoreError>,
}

impl<'a> Batch<'a> {
    /// Starts a batch on this store.
    pub fn new(store: &'a Store) -> Self {
        Self {
            store,
            state: Mutex::default(),
        }
    }

    /// Awaits work on a bucket's data; `None` if it failed or the bucket's server is unreachable in this batch.
    pub async fn run<T>(
        &self,
        bucket: Bucket,
        work: impl Future<Output = Result<T, StoreError>>,
    ) -> Option<T> {
        if self.is_unreachable(bucket) {
            return None;
        }
        match work.await {
            Ok(done) => Some(done),
            Err(error) => {
                self.failed(Some(bucket), error);
                None
            }
        }
    }

    /// Returns whether the bucket's server did not reply in this batch.
    pub fn is_unreachable(&self, bucket: Bucket) -> bool {
        let away = |state: &mut BatchFailures| {
            !state.away.is_empty() && state.away.contains(&self.store.node_of(bucket))
        };
        self.with(away)
    }

    /// Records an error of the bucket's server. If it gave no answer, the batch skips all that it holds.
    pub fn note_error(&self, bucket: Bucket, error: &StoreError) {
        if error.is_server_failure() {
            self.with(|state| state.away.insert(self.store.node_of(bucket)));
        }
    }

    /// Records a failure, of a bucket's work or of other work.
    pub fn failed(&self, bucket: Option<Bucket>, error: StoreError) {
        if let Some(bucket) = bucket {
            self.note_error(bucket, &error);
        }
        self.with(|state| {
            state.failed.get_or_insert(error);
        });
    }

    /// Returns the result of work that belongs to no bucket, or `None` if it failed.
    pub fn note<T>(&self, done: Result<T, StoreError>) -> Option<T> {
        done.map_err(|error| self.failed(None, error)).ok()
    }

    /// Like [`Store::many`]; reads of unreachable servers return `None`.
    pub async fn many(&self, reads: &[Read]) -> Answers {
        if !self.store.is_cluster() {
            let answers = self.note(self.store.many(reads).await);
            return answers.unwrap_or_else(|| Answers::new(vec![None; reads.len()]));
        }
        let runs = groups(reads).into_iter().map(|(bucket, group)| async move {
            let reading = self.store.together(group.iter().map(|at| &reads[*at]));
            let answers = match bucket {
                Some(bucket) => self.run(bucket, reading).await,
                None => self.note(reading.await),
            };
            answers.map(|answers| (group, answers))
        });
        let runs = stream::iter(runs).buffer_unordered(SLOTS_AT_ONCE);
        let done: Vec<Option<ReadGroup>> = runs.collect().await;
        in_order(reads.len(), done.into_iter().flatten().collect())
    }

    /// Ends the batch.
    ///
    /// # Errors
    /// The first failure.
    pub fn end(self) -> Result<(), StoreError> {
        let state = self.state.into_inner();
        state.failed.map_or(Ok(()), Err)
    }

    fn with<T>(&self, act: impl FnOnce(&mut BatchFailures) -> T) -> T {
        act(&mut self.state.lock())
    }
}
