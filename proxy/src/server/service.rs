//! The edge as a service of Pingora's server: starts everything that lives in its runtime, takes over from a running
//! process, then serves.

use super::bound::Bound;
use super::components::{EdgeComponents, EdgeInputs};
use super::descriptors::{Configured, Descriptors};
use super::drain;
use super::handover::{self, Successor};
use super::signals::Fds;
use crate::admission::RequestAdmission;
use crate::edge::app::EdgeApp;
use crate::edge::state::EdgeState;
use crate::gauges::{Exposition, Gauges};
use crate::metrics::Metrics;
use crate::ops::OpsState;
use crate::readiness::Readiness;
use crate::retry_queue::RetryQueue;
use async_trait::async_trait;
use pingora::server::{ListenFds, ShutdownWatch};
use pingora::services::listening::Service;
use pingora::services::{ServiceReadyNotifier, ServiceWithDependents};
use settings::Settings;
use std::sync::{Arc, OnceLock};
use std::time::Duration;
use store::Store;
use telemetry::registrar::Registrar;
use tokio::signal::unix::Signal;

/// Exit code of a process that could not take over.
const NOT_TAKEN_OVER: i32 = 1;
/// Interval at which a process that takes over checks its readiness.
const READY_CHECK_EVERY: Duration = Duration::from_millis(20);

/// Metrics of the process, registered before it starts.
pub struct Telemetry {
    registrar: Registrar,
    metrics: Metrics,
    pub gauges: Gauges,
}

impl Telemetry {
    /// Registers all metrics.
    pub fn new(settings: &Settings) -> prometheus::Result<Self> {
        let registrar = Registrar::new("tollgate_proxy");
        Ok(Self {
            metrics: Metrics::new(&registrar, &settings.providers())?,
            gauges: Gauges::new(&registrar)?,
            registrar,
        })
    }
}

/// The edge's listener, with everything that lives in its runtime: the store connection and the background tasks.
pub struct EdgeService {
    pub descriptors: Descriptors,
    pub configured: Configured,
    pub listener: Service<EdgeApp>,
    pub state: Arc<OnceLock<Arc<EdgeState>>>,
    pub ops_state: Arc<OnceLock<OpsState>>,
    pub inputs: Option<EdgeInputs>,
    pub telemetry: Option<Telemetry>,
    pub hangups: Option<Signal>,
    pub fds: Arc<OnceLock<Fds>>,
    /// `None` if the running process hands over its socket.
    pub bound: Option<Bound>,
    pub successor: Option<Successor>,
}

/// The components of a started edge that its service uses.
struct StartedEdge {
    readiness: Readiness,
    admission: Arc<RequestAdmission>,
    retry_queue: Arc<RetryQueue>,
    drain_within: Duration,
}

impl EdgeService {
    /// Creates the components and starts the background tasks. The store must be opened in the runtime that uses it.
    fn start(&mut self) -> Option<StartedEdge> {
        let inputs = self.inputs.take()?;
        let Telemetry {
            registrar,
            metrics,
            gauges,
        } = self.telemetry.take()?;
        let hangups = self.hangups.take()?;
        let settings = &inputs.settings;
        for warning in settings
            .drain_warning()
            .iter()
            .chain(&settings.master_key_warning())
            .chain(&settings.trusted_proxies_warning())
        {
            tracing::warn!("{warning}");
        }
        let budgets = inputs.settings.limits.budgets();
        let store = Store::from_settings(&inputs.settings.store)
            .ok()?
            .with_budgets(budgets);
        let components = EdgeComponents::new(inputs, store, Arc::new(metrics));
        self.state.get_or_init(|| Arc::new(components.edge_state()));
        self.descriptors.warn_if_below(self.configured);
        components.start_background_tasks(gauges.store.clone(), hangups);
        self.ops_state.get_or_init(|| OpsState {
            readiness: components.readiness(),
            exposition: Exposition {
                registrar,
                gauges,
                sources: components.gauge_sources(),
            },
        });
        Some(StartedEdge {
            readiness: components.readiness(),
            drain_within: Duration::from_millis(components.settings.proxy.drain_ms),
            admission: components.admission,
            retry_queue: components.retry_queue,
        })
    }

    /// In a process that takes over: waits until calls can be decided, then notifies the old process, which accepts
    /// connections until then. Both processes share the sockets, so connections made in between wait in the sockets'
    /// queue.
    async fn take_over(&mut self, started: &StartedEdge) {
        let Some(successor) = self.successor.take() else {
            return;
        };
        let deadline = tokio::time::Instant::now() + handover::READY_WITHIN;
        while !started.readiness.is_ready() {
            if tokio::time::Instant::now() > deadline {
                let reason = started.readiness.reason();
                tracing::error!(reason, "not taken over, the running process goes on");
                not_taken_over(&started.retry_queue);
            }
            tokio::time::sleep(READY_CHECK_EVERY).await;
        }
        match successor.serves() {
            Ok(()) => tracing::info!("taken over"),
            Err(error) => {
                tracing::error!(error, "not taken over, the running process goes on");
                not_taken_over(&started.retry_queue);
            }
        }
    }
}

/// Ends a process that failed to take over. It served no call, so its journal has only items taken over from others.
fn not_taken_over(retry_queue: &RetryQueue) -> ! {
    telemetry::flush();
    retry_queue.close();
    std::process::exit(NOT_TAKEN_OVER);
}

#[async_trait]
impl ServiceWithDependents for EdgeService {
    async fn start_service(
        &mut self,
        fds: Option<ListenFds>,
        shutdown: ShutdownWatch,
        listeners_per_fd: usize,
        ready: ServiceReadyNotifier,
    ) {
        let Some(started) = self.start() else {
            tracing::error!("the edge cannot start");
            return;
        };
        if let Some(fds) = &fds {
            if let Some(bound) = self.bound.take() {
                bound.give(fds);
            }
            self.fds.get_or_init(|| Fds(Arc::clone(fds)));
        }
        self.take_over(&started).await;
        let StartedEdge {
            admission,
            retry_queue,
            drain_within,
            ..
        } = started;
        tokio::spawn(drain::exit_when_drained(
            admission,
            retry_queue,
            drain_within,
            shutdown.clone(),
        ));
        self.listener
            .start_service(fds, shutdown, listeners_per_fd, ready)
            .await;
    }

    fn name(&self) -> &str {
        "edge"
    }

    fn listen_addresses(&self) -> Option<Vec<String>> {
        self.listener.listen_addresses()
    }
}
