//! State of a request between the hooks. Small, since Pingora moves it by value.

use crate::admission::RequestInFlight;

/// State of a request between the hooks.
#[derive(Debug, Default)]
pub struct Ctx {
    /// Dropped after the answer was written and the connection returned.
    pub(super) in_flight: Option<RequestInFlight>,
}
