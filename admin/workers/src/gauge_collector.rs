//! The gauge collector (`census` in metrics): counts open items of the whole store at intervals. Holds, kept holds and
//! deliveries are counted by bucket, with a bounded number of short commands in each round trip; waiting approvals are
//! counted by account, some accounts in each round.

use crate::context::WorkerContext;
use crate::metrics::Worker;
use crate::rotation::Rotation;
use crate::rounds::Rounds;
use domain::id;
use domain::intent::IntentState;
use domain::mode::Mode;
use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;
use store::keys::{AccountKeys, Bucket, DeliverySet, IntentIndex};
use store::read::Read;
use store::webhook::script::WebhookLocation;
use store::{Store, StoreError, server_clock};
use telemetry::error_chain;
use telemetry::registrar::level;
use tokio::sync::watch;
use webhooks::Webhooks;

/// Pause between two rounds.
const EVERY: Duration = Duration::from_secs(5);
/// Number of buckets counted in one round trip.
const BUCKETS_AT_ONCE: usize = 128;
/// Maximum number of ready webhooks of one bucket whose deliveries are counted.
const WEBHOOKS_PER_BUCKET: u64 = 16;
/// Number of accounts whose approvals are counted in one round.
const ACCOUNTS: usize = 1000;

/// State from one round to the next.
#[derive(Debug, Default)]
struct CollectorState {
    rotation: Rotation,
    /// Number of waiting approvals, by account; accounts without any have no entry.
    approvals: HashMap<String, u64>,
}

#[derive(Debug, Default, PartialEq, Eq)]
struct BucketSums {
    open: u64,
    kept: u64,
    /// When the oldest open hold was approved.
    oldest_ms: Option<u64>,
    /// The first deadline.
    due_ms: Option<u64>,
    deliveries: u64,
}

/// Counts until the server stops, also while the store cannot be trusted. Every server counts for its own metrics.
pub(super) async fn run(
    context: Arc<WorkerContext>,
    webhooks: Arc<Webhooks>,
    stopping: watch::Receiver<bool>,
) {
    let mut state = CollectorState::default();
    let mut rounds = Rounds::new(stopping, EVERY);
    while rounds.next().await {
        match run_round(&context, &webhooks, &mut state).await {
            Ok(()) => context.metrics.record_round(Worker::GaugeCollector),
            Err(error) => {
                context.metrics.open_items.failed.inc();
                tracing::debug!(error = %error_chain(&error), "open items were not counted");
            }
        }
    }
}

async fn run_round(
    context: &WorkerContext,
    webhooks: &Webhooks,
    state: &mut CollectorState,
) -> Result<(), StoreError> {
    let store = &context.store;
    let now_ms = server_clock::now_ms(store).await?;
    let buckets: Vec<Bucket> = Bucket::all().collect();
    let mut count = BucketSums::default();
    for some in buckets.chunks(BUCKETS_AT_ONCE) {
        count_buckets(store, some, &mut count).await?;
    }
    count_approvals(store, state).await?;
    let metrics = &context.metrics.open_items;
    let since = |at_ms: Option<u64>| {
        let ms = at_ms.map_or(0, |at_ms| now_ms.saturating_sub(at_ms));
        Duration::from_millis(ms).as_secs_f64()
    };
    metrics.holds_open.set(level(count.open));
    metrics.holds_kept.set(level(count.kept));
    metrics.oldest_hold.set(since(count.oldest_ms));
    metrics.overdue.set(since(count.due_ms));
    metrics
        .approvals
        .set(level(state.approvals.values().sum::<u64>()));
    webhooks.metrics.waiting.set(level(count.deliveries));
    Ok(())
}

async fn count_buckets(store: &Store, buckets: &[Bucket], count: &mut BucketSums) -> Result<(), StoreError> {
    let reads = buckets.iter().flat_map(|bucket| {
        [
            Read::sorted_length(*bucket, bucket.due()),
            Read::sorted_length(*bucket, bucket.kept()),
            Read::sorted(*bucket, bucket.due(), 0, 1),
            Read::sorted(*bucket, bucket.webhooks_ready(), 0, WEBHOOKS_PER_BUCKET),
        ]
    });
    let mut answers = store.many(&reads.collect::<Vec<_>>()).await?;
    let mut ready = Vec::new();
    for _ in buckets {
        count.open += answers.read::<u64>().unwrap_or(0);
        count.kept += answers.read::<u64>().unwrap_or(0);
        let first: Vec<(String, u64)> = answers.read().unwrap_or_default();
        count.record_oldest(&first);
        let webhooks: Vec<(String, u64)> = answers.read().unwrap_or_default();
        ready.extend(
            webhooks
                .iter()
                .filter_map(|(text, _)| WebhookLocation::parse(text)),
        );
    }
    let waiting = ready.iter().map(|endpoint| {
        let due = endpoint.realm.deliveries_in(&endpoint.webhook, DeliverySet::Due);
        Read::sorted_length(endpoint.realm.bucket(), due)
    });
    let mut answers = store.many(&waiting.collect::<Vec<_>>()).await?;
    for _ in &ready {
        count.deliveries += answers.read::<u64>().unwrap_or(0);
    }
    Ok(())
}

impl BucketSums {
    /// Records the first open hold of a bucket and its deadline.
    fn record_oldest(&mut self, first: &[(String, u64)]) {
        let Some((id, due_ms)) = first.first() else {
            return;
        };
        let earlier = |now: Option<u64>, found: u64| Some(now.map_or(found, |now| now.min(found)));
        self.due_ms = earlier(self.due_ms, *due_ms);
        if let Some(made_ms) = id::made_at_ms(id) {
            self.oldest_ms = earlier(self.oldest_ms, made_ms);
        }
    }
}

async fn count_approvals(store: &Store, state: &mut CollectorState) -> Result<(), StoreError> {
    state.rotation.renew(store).await?;
    let accounts = state.rotation.next(ACCOUNTS);
    let pending = IntentIndex::State(IntentState::PendingApproval.as_str());
    let reads = accounts.iter().flat_map(|account| {
        let keys = AccountKeys::new(account);
        Mode::ALL.map(|mode| Read::sorted_length(keys.bucket(), keys.in_mode(mode).intents(pending)))
    });
    let mut answers = store.many(&reads.collect::<Vec<_>>()).await?;
    for account in accounts {
        let waiting: u64 = Mode::ALL.iter().map(|_| answers.read::<u64>().unwrap_or(0)).sum();
        match waiting {
            0 => state.approvals.remove(&account),
            waiting => state.approvals.insert(account, waiting),
        };
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use domain::id::IdKind;

    #[test]
    fn the_oldest_hold_and_the_first_deadline_are_kept() {
        let mut count = BucketSums::default();
        count.record_oldest(&[]);
        assert_eq!(count, BucketSums::default());
        let id = |at_ms| IdKind::Allow.mint(at_ms).unwrap();
        for (made, due) in [(500, 900), (300, 1000), (700, 800)] {
            count.record_oldest(&[(id(made), due)]);
        }
        count.record_oldest(&[("nonsense".to_owned(), 850)]);
        assert_eq!((count.oldest_ms, count.due_ms), (Some(300), Some(800)));
    }
}
