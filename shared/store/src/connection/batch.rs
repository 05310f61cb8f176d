//! Work on what many servers hold, in one go, while one of them may be away: what can be reached is worked on, and what
//! is on a server that gave no answer is put off to the next batch instead of waited for again and again.

use super::Store;
use super::scan::Node;
use crate::StoreError;
use crate::keys::Bucket;
use crate::read::{Answers, Read};
use std::collections::HashSet;
use std::sync::{Mutex, PoisonError};

/// One batch.
#[derive(Debug)]
pub struct Batch<'a> {
    store: &'a Store,
    state: Mutex<State>,
}

/// What was not reached.
#[derive(Debug, Default)]
struct State {
    away: HashSet<Node>,
    failed: Option<StoreError>,
}

impl<'a> Batch<'a> {
    /// Begins a batch on this store.
    #[must_use]
    pub fn new(store: &'a Store) -> Self {
        Self {
            store,
            state: Mutex::default(),
        }
    }

    /// Does some of the work, on what a bucket holds; `None` when that failed, or its server gave no answer in this
    /// batch.
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

    /// Whether the server of a bucket gave no answer in this batch.
    #[must_use]
    pub fn is_unreachable(&self, bucket: Bucket) -> bool {
        let away =
            |state: &mut State| !state.away.is_empty() && state.away.contains(&self.store.node_of(bucket));
        self.with(away)
    }

    /// Takes in what the server of a bucket answered with: where that was nothing, all that it holds is put off.
    pub fn note_error(&self, bucket: Bucket, error: &StoreError) {
        if error.is_of_its_server() {
            self.with(|state| state.away.insert(self.store.node_of(bucket)));
        }
    }

    /// Notes that work failed: of which bucket, where it was of one.
    pub fn failed(&self, bucket: Option<Bucket>, error: StoreError) {
        if let Some(bucket) = bucket {
            self.note_error(bucket, &error);
        }
        self.with(|state| {
            state.failed.get_or_insert(error);
        });
    }

    /// What came of work that is of no bucket, or `None` when it failed.
    pub fn note<T>(&self, done: Result<T, StoreError>) -> Option<T> {
        done.map_err(|error| self.failed(None, error)).ok()
    }

    /// Like [`Store::many`]; what could not be read has no answer, and reads as `None`.
    pub async fn many(&self, reads: &[Read]) -> Answers {
        self.store.read_in(self, reads).await
    }

    /// Whether all of it was done.
    ///
    /// # Errors
    /// The first failure.
    pub fn end(self) -> Result<(), StoreError> {
        let state = self.state.into_inner().unwrap_or_else(PoisonError::into_inner);
        state.failed.map_or(Ok(()), Err)
    }

    fn with<T>(&self, act: impl FnOnce(&mut State) -> T) -> T {
        act(&mut self.state.lock().unwrap_or_else(PoisonError::into_inner))
    }
}
