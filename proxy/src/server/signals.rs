//! Signals: their effects, and the work that must be done before the listeners close.

use super::{drain, handover};
use crate::edge::state::EdgeState;
use crate::retry_queue::RetryQueue;
use async_trait::async_trait;
use futures::future::{Fuse, FusedFuture as _, FutureExt as _};
use pingora::server::{ListenFds, ShutdownSignal, ShutdownSignalWatch};
use std::path::PathBuf;
use std::sync::{Arc, OnceLock};
use std::time::Duration;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::time::Instant;

/// Listens for SIGHUP, whose default action would end the process. A signal that arrives before the tables are followed
/// is delivered then.
///
/// # Errors
/// The system does not allow a signal handler.
pub fn hangups() -> std::io::Result<Signal> {
    // The handler outlives this runtime. The edge's runtime reads the signals that it recorded.
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_io()
        .build()?;
    let _context = runtime.enter();
    signal(SignalKind::hangup())
}

/// Handles signals.
pub struct SignalHandler {
    /// Set once the edge has started.
    pub state: Arc<OnceLock<Arc<EdgeState>>>,
    /// The queue whose items an immediate end must not lose.
    pub retry_queue: Arc<RetryQueue>,
    /// Set when the edge has started.
    pub fds: Arc<OnceLock<Fds>>,
    /// `proxy.upgrade_socket`
    pub upgrade_socket: PathBuf,
    /// `proxy.drain_delay_ms`
    pub drain_delay: Duration,
}

/// The listening sockets of this process.
#[derive(Clone)]
pub struct Fds(pub ListenFds);

struct Listened {
    quit: Signal,
    term: Signal,
}

impl Listened {
    fn new(retry_queue: Arc<RetryQueue>) -> std::io::Result<Self> {
        let mut interrupt = signal(SignalKind::interrupt())?;
        // A separate task, since the signal may come at any time: during a hand-over, or while calls finish and this
        // function no longer waits for signals. The task lives as long as the process.
        tokio::spawn(async move {
            if interrupt.recv().await.is_some() {
                tracing::info!("ending at once");
                drain::exit(retry_queue, false);
            }
        });
        Ok(Self {
            quit: signal(SignalKind::quit())?,
            term: signal(SignalKind::terminate())?,
        })
    }
}

#[async_trait]
impl ShutdownSignalWatch for SignalHandler {
    async fn recv(&self) -> ShutdownSignal {
        let mut signals = match Listened::new(Arc::clone(&self.retry_queue)) {
            Ok(signals) => signals,
            Err(error) => {
                tracing::error!(%error, "signal handlers cannot be installed");
                return std::future::pending().await;
            }
        };
        let mut closes: Option<Instant> = None;
        let mut handing_over = std::pin::pin!(Fuse::terminated());
        loop {
            let closing = async {
                match closes {
                    Some(at) => tokio::time::sleep_until(at).await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                _ = signals.quit.recv(), if handing_over.is_terminated() => {
                    handing_over.set(self.hand_over().fuse());
                }
                given = &mut handing_over => {
                    if given {
                        return ShutdownSignal::GracefulTerminate;
                    }
                }
                _ = signals.term.recv() => {
                    if closes.is_some() {
                        return ShutdownSignal::GracefulTerminate;
                    }
                    self.start_drain();
                    closes = Some(Instant::now() + self.drain_delay);
                }
                () = closing => return ShutdownSignal::GracefulTerminate,
            }
        }
    }
}

impl SignalHandler {
    /// Announces the end of the process to load balancers and callers: readiness fails, and each answer closes its
    /// connection.
    fn start_drain(&self) {
        let delay_ms = u64::try_from(self.drain_delay.as_millis()).unwrap_or(u64::MAX);
        tracing::info!(delay_ms, "stopping");
        if let Some(state) = self.state.get() {
            state.admission.drain();
        }
    }

    /// Hands the sockets over. Returns whether a new process serves.
    async fn hand_over(&self) -> bool {
        let (fds, socket) = (Arc::clone(&self.fds), self.upgrade_socket.clone());
        let given = tokio::task::spawn_blocking(move || match fds.get() {
            Some(Fds(fds)) => handover::hand_over(fds, &socket),
            None => Err(handover::HandoverError::NotListening),
        });
        match given.await {
            Ok(Ok(())) => {
                tracing::info!("a new process serves; calls in flight finish here");
                if let Some(state) = self.state.get() {
                    state.admission.drain();
                }
                true
            }
            Ok(Err(error)) => {
                tracing::error!(%error, "not handed over; this process goes on serving");
                false
            }
            Err(error) => {
                tracing::error!(%error, "the hand-over broke; this process goes on serving");
                false
            }
        }
    }
}
