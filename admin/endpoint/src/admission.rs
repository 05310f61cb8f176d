//! The state of the steps before an operation.

use crate::metrics::RequestMetrics;
use crate::receive::BodyMemory;
use arc_swap::ArcSwap;
use domain::plan::Plans;
use ipnet::IpNet;
use settings::LimitSettings;
use std::sync::Arc;
use std::time::Duration;
use store::Store;
use store::account::refused::RefusedCopy;
use store::blocked::BlockedCopy;
use store_health::StoreHealth;

/// The state of the steps that decide whether a request reaches its operation: [`dispatch`](crate::dispatch),
/// [`caller`](crate::caller) and [`limits`](crate::limits).
pub struct Admission {
    /// The store.
    pub store: Store,
    /// Whether the store may be trusted, as last checked.
    pub health: Arc<StoreHealth>,
    /// The addresses that are not answered, as last read.
    pub blocked: Arc<BlockedCopy>,
    /// The accounts that are refused what makes records, as last read.
    pub refused: Arc<RefusedCopy>,
    /// The plans in force; SIGHUP replaces them as a whole.
    pub plans: Arc<ArcSwap<Plans>>,
    /// Limits that hold for every plan (decision D71).
    pub limits: LimitSettings,
    /// Proxies whose `X-Forwarded-For` counts.
    pub trusted_proxies: Vec<IpNet>,
    /// The address of this server in links, and the origin of its pages.
    pub public_url: String,
    /// How long a session of the dashboard may pause.
    pub session_idle: Duration,
    /// The memory for request bodies.
    pub body_memory: Arc<BodyMemory>,
    /// The longest time for a request's body to arrive.
    pub client_timeout: Duration,
    /// Metrics of requests.
    pub metrics: RequestMetrics,
}
