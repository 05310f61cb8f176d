//! Keeps the server's copy of the blocked addresses as new as [`REFRESH_EVERY`].

use super::pause;
use crate::serve::App;
use std::sync::Arc;
use store::blocked::REFRESH_EVERY;
use tokio::sync::watch;

/// Follows the list until it is time to stop.
pub(super) async fn run(app: Arc<App>, mut stopping: watch::Receiver<bool>) {
    loop {
        app.blocked.follow(&app.store).await;
        if !pause(&mut stopping, REFRESH_EVERY).await {
            return;
        }
    }
}
