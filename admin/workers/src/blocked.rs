//! Keeps the server's copy of the blocked addresses as new as [`REFRESH_EVERY`].

use crate::base::pause;
use std::sync::Arc;
use store::Store;
use store::blocked::{BlockedCopy, REFRESH_EVERY};
use tokio::sync::watch;

/// Follows the list until it is time to stop.
pub(super) async fn run(store: Store, blocked: Arc<BlockedCopy>, mut stopping: watch::Receiver<bool>) {
    loop {
        blocked.follow(&store).await;
        if !pause(&mut stopping, REFRESH_EVERY).await {
            return;
        }
    }
}
