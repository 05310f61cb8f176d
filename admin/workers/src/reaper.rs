//! The reaper: turns a hold that nobody settled by its deadline into a kept one. Its charge stays, and becomes visible
//! in the log, the metrics, the audit log and `tollgate-admin holds`. For a rate window that has ended, it writes the
//! record of the denials that were only counted (decision D70).

use crate::context::WorkerContext;
use crate::metrics::Worker;
use crate::rounds::Rounds;
use futures::{StreamExt, stream};
use std::sync::Arc;
use std::time::Duration;
use store::call::denial_windows;
use store::call::reap::sweep;
use store::connection::batch::Batch;
use store::keys::{BUCKETS, Bucket};
use store::read::Read;
use store::{StoreError, server_clock};
use tokio::sync::watch;

/// Pause between two sweeps over all buckets.
const EVERY: Duration = Duration::from_secs(3);
/// Maximum number of buckets swept concurrently.
const AT_ONCE: usize = 16;

/// Sweeps until the server stops. Several servers may do so concurrently: a hold is kept once.
pub(super) async fn run(context: Arc<WorkerContext>, stopping: watch::Receiver<bool>) {
    let mut rounds = Rounds::new(stopping, EVERY);
    while rounds.next_while_trusted(&context).await {
        let swept = sweep_all(&context).await;
        match &swept {
            Ok(()) => context.metrics.sweeps_done.inc(),
            Err(_) => context.metrics.sweeps_failed.inc(),
        }
        context.record(Worker::Reaper, swept);
    }
}

/// Sweeps the reachable buckets.
async fn sweep_all(context: &WorkerContext) -> Result<(), StoreError> {
    let now_ms = server_clock::now_ms(&context.store).await?;
    let batch = Batch::new(&context.store);
    let sweeps = stream::iter(Bucket::all());
    let sweeps = sweeps.map(|bucket| batch.run(bucket, sweep(&context.store, bucket, now_ms)));
    let mut sweeps = sweeps.buffer_unordered(AT_ONCE);
    while let Some(kept) = sweeps.next().await {
        for hold in kept.into_iter().flatten() {
            context.metrics.holds_kept.inc();
            tracing::warn!(
                decision.id = hold.name.allow_id,
                account.id = hold.name.account,
                agent.id = hold.name.agent,
                charged.usd = %hold.estimate,
                "a call was never settled; its estimate stays charged"
            );
        }
    }
    drop(sweeps);
    record_windows(context, &batch, now_ms).await;
    batch.end()
}

/// Records the rate windows that have ended, of the buckets that count any denials.
async fn record_windows(context: &WorkerContext, batch: &Batch<'_>, now_ms: u64) {
    let reads: Vec<Read> = Bucket::all()
        .map(|bucket| Read::hash_length(bucket, bucket.counted_denials()))
        .collect();
    let mut answers = batch.many(&reads).await;
    let counting: Vec<Bucket> = Bucket::all()
        .filter(|_| answers.read::<u64>().is_some_and(|windows| windows > 0))
        .collect();
    let sweeps = stream::iter(counting);
    let sweeps =
        sweeps.map(|bucket| batch.run(bucket, denial_windows::sweep(&context.store, bucket, now_ms)));
    let mut sweeps = sweeps.buffer_unordered(AT_ONCE);
    while sweeps.next().await.is_some() {}
}

const _: () = assert!(
    AT_ONCE <= BUCKETS as usize,
    "no more sweeps at once than there are buckets"
);
