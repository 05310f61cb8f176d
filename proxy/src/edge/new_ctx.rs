//! State of a request between the hooks. Small, since Pingora moves it by value.

use super::head::Head;
use crate::gate::InFlight;
use std::any::Any;
use std::sync::Arc;

/// State of a request between the hooks.
#[derive(Debug, Default)]
pub struct Ctx {
    /// The heads of its connection; none over HTTP/2.
    pub(super) head: Option<Arc<Head>>,
    /// Held until the answer is written and the connection given back.
    pub(super) in_flight: Option<InFlight>,
}

impl Ctx {
    /// Takes what [`super::connection`] attached to the request.
    pub(super) fn attach(&mut self, connection: Box<dyn Any + Send + Sync>) {
        self.head = connection.downcast().ok().map(|head| *head);
    }
}
