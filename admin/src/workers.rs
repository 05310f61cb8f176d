//! What runs beside the requests: the watch on the store and on the blocked addresses, the reaper of overdue holds, the carrier of what is in transit
//! between accounts, the sealer of the audit trail, who puts signed checkpoints of it elsewhere, the archivers of what
//! grew old, and the deliverer of webhooks.

mod archiver;
mod blocked;
mod carrier;
mod checkpointer;
mod deliverer;
mod health;
mod intent_archiver;
mod reaper;
mod sealer;
mod turn;

pub use health::Health;

use crate::serve::App;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::watch;
use tokio::task::JoinHandle;

/// Starts all workers; they end when `stopping` turns true. Returned is the one that then has something to finish.
pub fn start(app: &Arc<App>, stopping: &watch::Receiver<bool>) -> JoinHandle<()> {
    tokio::spawn(archiver::run(Arc::clone(app), stopping.clone()));
    tokio::spawn(blocked::run(Arc::clone(app), stopping.clone()));
    tokio::spawn(carrier::run(Arc::clone(app), stopping.clone()));
    tokio::spawn(checkpointer::run(Arc::clone(app), stopping.clone()));
    tokio::spawn(health::run(Arc::clone(app), stopping.clone()));
    tokio::spawn(intent_archiver::run(Arc::clone(app), stopping.clone()));
    tokio::spawn(reaper::run(Arc::clone(app), stopping.clone()));
    tokio::spawn(sealer::run(Arc::clone(app), stopping.clone()));
    tokio::spawn(deliverer::run(Arc::clone(app), stopping.clone()))
}

/// Waits; false when it is time to stop.
async fn pause(stopping: &mut watch::Receiver<bool>, time: Duration) -> bool {
    tokio::time::timeout(time, stopping.wait_for(|stop| *stop))
        .await
        .is_err()
}
