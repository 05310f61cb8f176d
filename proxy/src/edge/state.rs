//! Components that the edge's hooks use. This type has no logic, and no step of a call receives all of it.

use super::address_filter::AddressFilter;
use super::write::ReplyWriter;
use crate::admission::RequestAdmission;
use crate::call::CallPipeline;
use crate::metrics::Metrics;
use crate::routes::OfferedRoutes;
use crate::store_health::EdgeStoreHealth;
use crate::tables::prices::Prices;
use crate::upstream::Upstreams;
use std::sync::Arc;

/// Components of the edge, each made once in `server/components.rs`.
pub struct EdgeState {
    /// Requests in flight.
    pub admission: Arc<RequestAdmission>,
    /// Blocked addresses.
    pub addresses: AddressFilter,
    /// Calls, and the admission of requests that are not calls.
    pub calls: Arc<CallPipeline>,
    /// Optional endpoints beyond the specification.
    pub offered: OfferedRoutes,
    /// Answers `/v1/health`.
    pub health: Arc<EdgeStoreHealth>,
    /// Answers `/v1/models`.
    pub prices: Arc<Prices>,
    /// Owners of the models. `/v1/health` also shows the host of `[upstream]`.
    pub upstreams: Arc<Upstreams>,
    /// Writes answers.
    pub writer: ReplyWriter,
    /// Times and rejections of requests.
    pub metrics: Arc<Metrics>,
}
