//! The transit worker (`carrier` in metrics): delivers money that left one account and did not arrive in another,
//! because a process or the store stopped between the two steps (decision D28).

use crate::base::Base;
use crate::base::next_round;
use crate::metrics::Worker;
use futures::{StreamExt, stream};
use std::sync::Arc;
use std::time::Duration;
use store::StoreError;
use store::connection::batch::Batch;
use store::keys::{BUCKETS, Bucket};
use store::transit::Transit;
use store::transit::script::deliver;
use telemetry::error_chain;
use telemetry::registrar::level;
use tokio::sync::watch;

/// Pause between two rounds over all buckets.
const EVERY: Duration = Duration::from_secs(2);
/// Buckets read at the same time.
const AT_ONCE: usize = 16;

/// Delivers until it is time to stop. Several servers may do so at once, and requests beside them: everything arrives
/// once.
pub(super) async fn run(base: Arc<Base>, mut stopping: watch::Receiver<bool>) {
    while next_round(&base, &mut stopping, EVERY).await {
        match round(&base).await {
            Ok(waiting) => {
                base.metrics.transits_waiting.set(level(waiting));
                base.metrics.round(Worker::Transit);
            }
            Err(error) => tracing::error!(error = %error_chain(&error), "round of deliveries cut off"),
        }
    }
}

/// One round over the buckets that can be reached; returns how much still waits after it.
async fn round(base: &Base) -> Result<u64, StoreError> {
    let round = Batch::new(&base.store);
    let buckets = stream::iter(Bucket::all()).map(|bucket| round.run(bucket, deliver_waiting(base, bucket)));
    let waiting = buckets.buffer_unordered(AT_ONCE);
    let waiting = waiting.fold(0, async |sum, left| sum + left.unwrap_or(0)).await;
    round.end().map(|()| waiting)
}

/// Delivers what waits in a bucket. A row that cannot be delivered does not hold up the others.
async fn deliver_waiting(base: &Base, bucket: Bucket) -> Result<u64, StoreError> {
    let (rows, mut left) = Transit::waiting(&base.store, bucket).await?;
    for row in rows {
        let id = row.as_ref().map_or("unreadable", |transit| transit.id.as_str());
        let delivered = match &row {
            Ok(transit) => deliver_one(base, bucket, transit)
                .await
                .map_err(|error| error_chain(&error)),
            Err(error) => Err(error_chain(error)),
        };
        match delivered {
            Ok(()) => {
                base.metrics.transits_delivered.inc();
                left = left.saturating_sub(1);
                tracing::info!(transit = id, "delivered what was in transit");
            }
            Err(error) => {
                base.metrics.transits_failed.inc();
                tracing::error!(transit = id, error, "a delivery failed; it is tried again");
            }
        }
    }
    Ok(left)
}

/// Delivers one, once no failover can take back that it left: otherwise the money could be in both accounts.
async fn deliver_one(base: &Base, bucket: Bucket, transit: &Transit) -> Result<(), StoreError> {
    let rows = bucket.transit();
    if base.store.is_safely_there(&rows, Some(&transit.id)).await? {
        deliver(&base.store, transit).await?;
    }
    Ok(())
}

const _: () = assert!(
    AT_ONCE <= BUCKETS as usize,
    "no more buckets at once than there are"
);
