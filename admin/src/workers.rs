//! What runs beside the requests: the watch on the store and on the blocked addresses, the reaper of overdue holds, the carrier of what is in transit
//! between accounts, the sealer of the audit trail, who puts signed checkpoints of it elsewhere, the archivers of what
//! grew old, the dispatcher of archived events, the deliverer of webhooks, the guard of the store's room, and the census of what is
//! open, for the metrics.

mod archiver;
mod blocked;
mod carrier;
mod catch_up;
mod census;
mod checkpointer;
mod deliverer;
mod guard;
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
use tokio::task::JoinSet;

/// Starts all workers. When `stopping` turns true each ends with its turn, and then what is returned does.
pub fn start(app: &Arc<App>, stopping: &watch::Receiver<bool>) -> JoinSet<()> {
    let mut workers = JoinSet::new();
    workers.spawn(archiver::run(Arc::clone(app), stopping.clone()));
    workers.spawn(blocked::run(Arc::clone(app), stopping.clone()));
    workers.spawn(guard::follow(Arc::clone(app), stopping.clone()));
    workers.spawn(carrier::run(Arc::clone(app), stopping.clone()));
    workers.spawn(catch_up::run(Arc::clone(app), stopping.clone()));
    workers.spawn(census::run(Arc::clone(app), stopping.clone()));
    workers.spawn(guard::run(Arc::clone(app), stopping.clone()));
    tokio::spawn(app.metrics.store.clone().follow(app.store.clone()));
    workers.spawn(checkpointer::run(Arc::clone(app), stopping.clone()));
    workers.spawn(health::run(Arc::clone(app), stopping.clone()));
    workers.spawn(intent_archiver::run(Arc::clone(app), stopping.clone()));
    workers.spawn(reaper::run(Arc::clone(app), stopping.clone()));
    workers.spawn(sealer::run(Arc::clone(app), stopping.clone()));
    workers.spawn(deliverer::run(Arc::clone(app), stopping.clone()));
    workers
}

/// Waits for a worker's next round, which is none while the store may not be trusted: what it wrote then would stand beside what
/// comes back. False when it is time to stop.
async fn next_round(app: &App, stopping: &mut watch::Receiver<bool>, every: Duration) -> bool {
    while pause(stopping, every).await {
        if app.health.is_sound(&app.store) {
            return true;
        }
    }
    false
}

/// Waits; false when it is time to stop.
async fn pause(stopping: &mut watch::Receiver<bool>, time: Duration) -> bool {
    tokio::time::timeout(time, stopping.wait_for(|stop| *stop))
        .await
        .is_err()
}
