//! Bulk reads: jobs are grouped into batches, several batches are in flight, and answers are processed in order.

use futures::{StreamExt, TryStreamExt, stream};
use store::read::{Answers, Read};
use store::{Store, StoreError};

/// Number of records read in one round trip.
pub(super) const BATCH: usize = 1000;
/// Maximum number of single values that are read at one moment. Meanwhile the server does nothing else.
const AT_ONCE_MAX: usize = 5000;
/// Maximum number of concurrent batches.
const IN_FLIGHT: usize = 3;

/// A read, and its purpose.
pub(super) struct Job<T> {
    tag: T,
    reads: Vec<Read>,
    /// Approximate number of records that are read.
    weight: usize,
}

impl<T> Job<T> {
    /// Creates a job of reads that return one record each.
    pub(super) fn new(reads: impl Into<Vec<Read>>, tag: T) -> Self {
        let reads = reads.into();
        let weight = reads.len();
        Self { tag, reads, weight }
    }

    pub(super) fn with_weight(self, weight: usize) -> Self {
        Self { weight, ..self }
    }
}

/// Executes all jobs. `fold` receives the answers to each, in the order of the jobs.
pub(super) async fn drive<T>(
    store: &Store,
    jobs: impl Iterator<Item = Job<T>>,
    mut fold: impl FnMut(T, Answers),
) -> Result<(), StoreError> {
    let mut jobs = jobs;
    let batches = std::iter::from_fn(move || {
        let mut batch = Vec::new();
        let mut weight = 0;
        while weight < BATCH {
            let Some(job) = jobs.next() else { break };
            weight += job.weight.max(1);
            batch.push(job);
        }
        (!batch.is_empty()).then_some(batch)
    });
    let reads = stream::iter(batches).map(|batch| read_batch(store, batch));
    let mut answers = reads.buffered(IN_FLIGHT);
    while let Some(batch) = answers.try_next().await? {
        for (tag, answers) in batch {
            fold(tag, answers);
        }
    }
    Ok(())
}

pub(super) async fn read_batch<T>(
    store: &Store,
    batch: Vec<Job<T>>,
) -> Result<Vec<(T, Answers)>, StoreError> {
    let mut tags = Vec::with_capacity(batch.len());
    let mut reads = Vec::new();
    for job in batch {
        tags.push((job.tag, job.reads.len()));
        reads.extend(job.reads);
    }
    let mut answers = store.many(&reads).await?;
    let each = tags.into_iter().map(|(tag, count)| (tag, answers.split(count)));
    Ok(each.collect())
}

/// Reads single values of one bucket. Returns whether all are of one moment: not if they are too many, or if a key has
/// another type.
pub(super) async fn read_values(
    store: &Store,
    reads: &[Read],
) -> Result<(Vec<Option<String>>, bool), StoreError> {
    if reads.len() <= AT_ONCE_MAX
        && let Ok(values) = store.read_atomically(reads).await
    {
        return Ok((values, true));
    }
    let mut answers = store.many(reads).await?;
    Ok((reads.iter().map(|_| answers.text()).collect(), false))
}
