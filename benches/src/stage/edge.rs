//! The measured edge.

use std::ops::Deref;
use std::time::{Duration, Instant};

/// Longest wait for the end of an edge; then it is killed.
const WAIT: Duration = Duration::from_secs(20);
/// Interval between two polls.
const LOOK_AGAIN: Duration = Duration::from_millis(10);

/// An edge that receives SIGTERM when it is dropped: an instrumented one (`make pgo`) writes its profile when it ends,
/// and writes none when it is killed.
#[derive(Debug)]
pub(crate) struct Edge(pub(super) harness::Edge);

impl Deref for Edge {
    type Target = harness::Edge;

    fn deref(&self) -> &Self::Target {
        &self.0
    }
}

impl Drop for Edge {
    fn drop(&mut self) {
        self.0.term();
        let end = Instant::now() + WAIT;
        while self.0.is_running() && Instant::now() < end {
            std::thread::sleep(LOOK_AGAIN);
        }
    }
}
