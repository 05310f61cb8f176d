//! The transit worker (`carrier` in metrics): delivers money that left one account and has not arrived in another,
//! because a process or the store stopped between the two steps (decision D28).

mod no_room;

use crate::context::WorkerContext;
use crate::metrics::Worker;
use crate::rounds::Rounds;
use domain::mode::Mode;
use futures::{StreamExt, stream};
use no_room::NoRoomAccounts;
use std::sync::Arc;
use std::time::Duration;
use store::StoreError;
use store::connection::batch::Batch;
use store::keys::{BUCKETS, Bucket};
use store::transit::Transit;
use store::transit::script::{Delivered, deliver};
use telemetry::error_chain;
use telemetry::registrar::level;
use tokio::sync::watch;
use tokio::time::Instant;

/// Pause between two rounds over all buckets.
const EVERY: Duration = Duration::from_secs(2);
/// Maximum number of buckets read concurrently.
const AT_ONCE: usize = 16;

/// Rows left after a round.
#[derive(Debug, Clone, Copy, Default)]
struct Remaining {
    /// Rows that could not be delivered.
    stuck: u64,
    /// Number of rows whose money waits for room, by mode.
    no_room: [u64; Mode::ALL.len()],
}

impl Remaining {
    fn add(mut self, other: Self) -> Self {
        self.stuck += other.stuck;
        for (sum, more) in self.no_room.iter_mut().zip(other.no_room) {
            *sum += more;
        }
        self
    }
}

/// Delivers until the server stops. Several servers, and requests, may do so concurrently: everything arrives once.
pub(super) async fn run(context: Arc<WorkerContext>, stopping: watch::Receiver<bool>) {
    let no_room_accounts = NoRoomAccounts::default();
    let mut rounds = Rounds::new(stopping, EVERY);
    while rounds.next_while_trusted(&context).await {
        let delivered = run_round(&context, &no_room_accounts).await;
        context.record(Worker::Transit, delivered);
    }
}

/// Performs one round over the reachable buckets.
async fn run_round(context: &WorkerContext, no_room_accounts: &NoRoomAccounts) -> Result<(), StoreError> {
    let batch = Batch::new(&context.store);
    let buckets = stream::iter(Bucket::all())
        .map(|bucket| batch.run(bucket, deliver_waiting(context, bucket, no_room_accounts)));
    let left = buckets.buffer_unordered(AT_ONCE);
    let left = left
        .fold(Remaining::default(), async |sum, left| {
            sum.add(left.unwrap_or_default())
        })
        .await;
    batch.end()?;
    context.metrics.transits_waiting.set(level(left.stuck));
    for (gauge, count) in context.metrics.transits_without_room.iter().zip(left.no_room) {
        gauge.set(level(count));
    }
    Ok(())
}

/// Delivers the rows of a bucket. A row that cannot be delivered does not delay the others.
async fn deliver_waiting(
    context: &WorkerContext,
    bucket: Bucket,
    no_room_accounts: &NoRoomAccounts,
) -> Result<Remaining, StoreError> {
    let now = Instant::now();
    let mut known = no_room_accounts.take(bucket);
    let waiting = Transit::waiting(&context.store, bucket, |id| known.is_due(id, now)).await?;
    known.retain(&waiting.ids);
    let mut left = waiting.ids.len() as u64;
    for (id, row) in &waiting.rows {
        let delivered = match row {
            Ok(transit) => deliver_one(context, bucket, transit)
                .await
                .map_err(|error| error_chain(&error)),
            Err(error) => Err(error_chain(error)),
        };
        match delivered {
            Ok(Some(Delivered::NoRoom)) => {
                let mode = row.as_ref().ok().and_then(Transit::mode).unwrap_or(Mode::Live);
                if known.refused(id, mode, now) {
                    tracing::info!(
                        transit = id,
                        "the receiving wallet has no room for what is in transit; it waits"
                    );
                }
            }
            Ok(Some(Delivered::Arrived)) => {
                known.forget(id);
                left = left.saturating_sub(1);
                context.metrics.transits_delivered.inc();
                tracing::info!(transit = id, "delivered what was in transit");
            }
            Ok(None) => {}
            Err(error) => {
                known.forget(id);
                context.metrics.transits_failed.inc();
                tracing::error!(transit = id, error, "a delivery failed; it is tried again");
            }
        }
    }
    let no_room = known.counts();
    no_room_accounts.keep(bucket, known);
    let stuck = left.saturating_sub(no_room.iter().sum());
    Ok(Remaining { stuck, no_room })
}

/// Delivers a row once its debit is durable, so that no failover can undo it: otherwise the money could be in both
/// accounts. `None` before that.
async fn deliver_one(
    context: &WorkerContext,
    bucket: Bucket,
    transit: &Transit,
) -> Result<Option<Delivered>, StoreError> {
    let rows = bucket.transit();
    match context.store.is_safely_there(&rows, Some(&transit.id)).await? {
        true => deliver(&context.store, transit).await.map(Some),
        false => Ok(None),
    }
}

const _: () = assert!(
    AT_ONCE <= BUCKETS as usize,
    "no more buckets at once than there are"
);
