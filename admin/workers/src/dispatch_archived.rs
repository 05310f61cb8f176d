//! Dispatches the events of chains whose next entries were archived before their dispatch, by reading them from the
//! archive. So the archiver waits for no webhook, and an archive that does not reply delays only these events.

use crate::context::WorkerContext;
use crate::paused::PausedChains;
use crate::rounds::Rounds;
use futures::{StreamExt, stream};
use std::sync::Arc;
use std::time::Duration;
use store::keys::Realm;
use telemetry::error_chain;
use tokio::sync::watch;
use webhooks::Webhooks;
use webhooks::dispatch::{EntrySource, dispatch};

/// Pause between two rounds.
const EVERY: Duration = Duration::from_millis(200);
/// Maximum number of chains read from the archive concurrently; each holds a segment in memory.
const AT_ONCE: usize = 4;
/// Pause before a chain that failed is tried again.
const AFTER_FAILURE: Duration = Duration::from_secs(5);

/// Dispatches until the server stops. Several servers may do so concurrently: each delivery is created once.
pub(super) async fn run(
    context: Arc<WorkerContext>,
    webhooks: Arc<Webhooks>,
    stopping: watch::Receiver<bool>,
) {
    let mut paused = PausedChains::default();
    let mut rounds = Rounds::new(stopping, EVERY);
    while rounds.next_while_trusted(&context).await {
        run_round(&webhooks, &mut paused).await;
    }
}

async fn run_round(webhooks: &Webhooks, paused: &mut PausedChains) {
    let behind = webhooks.backlog.take();
    webhooks.metrics.behind(behind.len());
    paused.retain(|chain| behind.contains(chain));
    let (waiting, ready): (Vec<Realm>, Vec<Realm>) =
        behind.into_iter().partition(|chain| paused.is_paused(chain));
    for chain in waiting {
        webhooks.backlog.push(chain);
    }
    let dispatches = stream::iter(ready).map(async |chain| {
        let dispatched = dispatch(webhooks, &chain, EntrySource::Archive).await;
        (chain, dispatched)
    });
    let mut dispatches = std::pin::pin!(dispatches.buffer_unordered(AT_ONCE));
    while let Some((chain, dispatched)) = dispatches.next().await {
        match dispatched {
            Ok(()) => paused.resume(&chain),
            Err(error) => {
                webhooks.metrics.archived_failed.inc();
                // Each failure in succession pauses the chain, but only the first is logged.
                if paused.pause(chain.clone(), AFTER_FAILURE) {
                    let (account, mode) = (chain.account(), chain.mode());
                    tracing::error!(account, %mode, error = %error_chain(&error), "events of archived entries cannot be dispatched");
                }
                webhooks.backlog.push(chain);
            }
        }
    }
}
