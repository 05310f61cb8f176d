//! Dispatches the events of chains whose next entries were archived before their dispatch, by reading them from the
//! archive. So the archiver waits for no webhook, and an archive that does not reply delays only these events.

use crate::base::Base;
use crate::base::next_round;
use futures::{StreamExt, stream};
use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;
use store::keys::Realm;
use telemetry::error_chain;
use tokio::sync::watch;
use tokio::time::Instant;
use webhooks::Webhooks;
use webhooks::dispatch::{EntrySource, dispatch};

/// Pause between two rounds.
const EVERY: Duration = Duration::from_millis(200);
/// Maximum number of chains read from the archive concurrently; each holds a segment in memory.
const AT_ONCE: usize = 4;
/// Pause before a chain that failed is tried again.
const AFTER_FAILURE: Duration = Duration::from_secs(5);

/// The worker that catches up, with its components.
pub(super) struct CatchUp {
    pub(super) base: Arc<Base>,
    pub(super) webhooks: Arc<Webhooks>,
}

/// Catches up until the server stops. Several servers may do so concurrently: each delivery is created once.
pub(super) async fn run(worker: CatchUp, mut stopping: watch::Receiver<bool>) {
    // Chains that failed, with the end of their pause.
    let mut failing: HashMap<Realm, Instant> = HashMap::new();
    while next_round(&worker.base, &mut stopping, EVERY).await {
        let behind = worker.webhooks.backlog.take();
        worker.webhooks.metrics.behind(behind.len());
        failing.retain(|chain, _| behind.contains(chain));
        let now = Instant::now();
        let rests = |chain: &Realm| failing.get(chain).is_some_and(|until| *until > now);
        let (resting, ready): (Vec<_>, Vec<_>) = behind.into_iter().partition(rests);
        for chain in resting {
            worker.webhooks.backlog.push(chain);
        }
        let catching_up = stream::iter(ready).map(async |chain| {
            let done = dispatch(&worker.webhooks, &chain, EntrySource::Archive).await;
            (chain, done)
        });
        let mut catching_up = std::pin::pin!(catching_up.buffer_unordered(AT_ONCE));
        while let Some((chain, done)) = catching_up.next().await {
            match done {
                Ok(_) => {
                    failing.remove(&chain);
                }
                Err(error) => {
                    worker.webhooks.metrics.catch_ups_failed.inc();
                    let (account, mode) = (chain.account(), chain.mode());
                    // It is retried repeatedly, but logged once.
                    let until = Instant::now() + AFTER_FAILURE;
                    if failing.insert(chain.clone(), until).is_none() {
                        tracing::error!(account, %mode, error = %error_chain(&error), "events of archived entries cannot be dispatched");
                    }
                    worker.webhooks.backlog.push(chain);
                }
            }
        }
    }
}
