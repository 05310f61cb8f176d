//! `tollgate-admin sandbox-upstream`: runs the stand-in for the provider until SIGTERM or SIGINT.

use super::value;
use crate::failure::CommandFailure;
use std::net::SocketAddr;
use std::time::Duration;
use tokio::net::TcpListener;
use tokio::signal::unix::{SignalKind, signal};

/// Answers the calls of the provider, whole and streamed, for any key, at no cost.
#[derive(Debug, clap::Args)]
pub(super) struct SandboxArgs {
    /// Address to listen on
    #[arg(long, value_name = "ADDR", default_value = "127.0.0.1:8090")]
    listen: SocketAddr,
    /// Wait this long before each answer; at most ten minutes
    #[arg(long, value_name = "N", default_value_t = 0, value_parser = value::delay_ms)]
    delay_ms: u64,
}

impl SandboxArgs {
    pub(super) async fn run(self) -> Result<(), CommandFailure> {
        let cannot = |error: std::io::Error| {
            CommandFailure::refused("LISTEN", format!("cannot listen on {}: {error}", self.listen))
        };
        let listener = TcpListener::bind(self.listen).await.map_err(cannot)?;
        let address = listener.local_addr().map_err(cannot)?;
        tracing::info!(listen = %address, "the sandbox upstream is ready");
        let mut stop = signal(SignalKind::terminate()).map_err(cannot)?;
        let mut hangup = signal(SignalKind::hangup()).map_err(cannot)?;
        let stopped = async move {
            loop {
                tokio::select! {
                    _ = stop.recv() => return,
                    _ = tokio::signal::ctrl_c() => return,
                    // Prices are compiled in, so there is nothing to reload; without this branch the signal would end
                    // the process.
                    _ = hangup.recv() => tracing::info!("SIGHUP: there is nothing to be read again"),
                }
            }
        };
        sandbox::serve(listener, Duration::from_millis(self.delay_ms), stopped)
            .await
            .map_err(|error| CommandFailure::refused("SERVE", format!("the sandbox upstream broke: {error}")))
    }
}
