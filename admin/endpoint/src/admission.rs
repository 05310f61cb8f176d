//! The state of the steps before an operation.

use crate::large_reads::LargeReads;
use crate::memory::SharedMemory;
use crate::metrics::RequestMetrics;
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

/// State for the steps that decide whether a request reaches its operation: [`dispatch`](crate::dispatch),
/// [`caller`](crate::caller) and [`limits`](crate::limits).
pub struct Admission {
    /// Source of accounts, keys, sessions and counters.
    pub store: Store,
    /// State of the store, as last checked.
    pub health: Arc<StoreHealth>,
    /// Blocked addresses, as last read.
    pub blocked: Arc<BlockedCopy>,
    /// Accounts that may not create records, as last read.
    pub refused: Arc<RefusedCopy>,
    /// The plans in force. SIGHUP replaces them as a whole.
    pub plans: Arc<ArcSwap<Plans>>,
    /// Limits that hold for every plan (decision D71).
    pub limits: LimitSettings,
    /// Proxies whose `X-Forwarded-For` is trusted.
    pub trusted_proxies: Vec<IpNet>,
    /// URL of this server in links, and the origin of its pages.
    pub public_url: String,
    /// Maximum idle time of a dashboard session.
    pub session_idle: Duration,
    /// The memory for request bodies.
    pub body_memory: Arc<SharedMemory>,
    /// The memory for long answers to reads.
    pub answer_memory: Arc<SharedMemory>,
    /// Reads of many records.
    pub large_reads: LargeReads,
    /// The longest time for a request's body to arrive.
    pub client_timeout: Duration,
    /// Counts and times every request, by route and status.
    pub metrics: RequestMetrics,
}
