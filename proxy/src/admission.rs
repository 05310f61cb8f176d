//! Admission of requests, and the count of those in flight. A process that drains ends when the count is zero.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

/// Counts requests in flight, and admits none once closed.
#[derive(Debug, Default)]
pub struct RequestAdmission {
    in_flight: AtomicUsize,
    is_draining: AtomicBool,
    is_closed: AtomicBool,
}

/// Counts a request as in flight until it is dropped, also when its task panics.
#[derive(Debug)]
pub struct RequestInFlight(Arc<RequestAdmission>);

impl Drop for RequestInFlight {
    fn drop(&mut self) {
        self.0.in_flight.fetch_sub(1, Ordering::AcqRel);
    }
}

impl RequestAdmission {
    /// Counts one more request; `None` once closed.
    pub fn enter(self: &Arc<Self>) -> Option<RequestInFlight> {
        // Sequentially consistent with `close`: a request that `in_flight` does not count finds `is_closed` set here.
        self.in_flight.fetch_add(1, Ordering::SeqCst);
        let entered = RequestInFlight(Arc::clone(self));
        (!self.is_closed.load(Ordering::SeqCst)).then_some(entered)
    }

    /// Counts the rest of an admitted request whose caller has disconnected, also once closed.
    pub fn count_detached(self: &Arc<Self>) -> RequestInFlight {
        self.in_flight.fetch_add(1, Ordering::SeqCst);
        RequestInFlight(Arc::clone(self))
    }

    /// Admits no further request. Those in flight run to completion.
    pub fn close(&self) {
        self.is_closed.store(true, Ordering::SeqCst);
    }

    /// Announces the end of this process: readiness fails, and answers close their connections.
    pub fn drain(&self) {
        self.is_draining.store(true, Ordering::Release);
    }

    /// Returns whether [`RequestAdmission::drain`] was called.
    pub fn is_draining(&self) -> bool {
        self.is_draining.load(Ordering::Acquire)
    }

    /// Returns the number of requests in flight.
    pub fn in_flight(&self) -> usize {
        self.in_flight.load(Ordering::SeqCst)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn closed_admission_admits_no_request() {
        let admission = Arc::<RequestAdmission>::default();
        let before = admission.enter();
        assert!(before.is_some() && admission.in_flight() == 1);
        admission.close();
        assert!(admission.enter().is_none());
        assert_eq!(
            admission.in_flight(),
            1,
            "only the request that was admitted before"
        );
        let detached = admission.count_detached();
        drop(before);
        assert_eq!(admission.in_flight(), 1, "the rest of the request");
        drop(detached);
        assert_eq!(admission.in_flight(), 0);
    }
}
