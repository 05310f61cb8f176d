//! Gates on wires: hold back requests with a given content before the server, or their replies after it.

use parking_lot::Mutex;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use tokio::sync::watch;

/// Whether requests or replies wait at a gate.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum GateSide {
    /// The request: the server has not executed it.
    Request,
    /// The reply: the server has executed it, and the client has not received it.
    Reply,
}

/// A gate on one or several wires. Requests with all of its marks wait there until it opens. A request must arrive in
/// one piece, as it does if it is shorter than a segment on loopback.
#[derive(Debug, Clone)]
pub struct Gate(Arc<GateState>);

#[derive(Debug)]
struct GateState {
    side: GateSide,
    marks: Vec<String>,
    /// Matching requests that pass before the first is stopped.
    passing: AtomicUsize,
    /// Matching requests that may still be stopped.
    left: AtomicUsize,
    stopped: AtomicUsize,
    is_open: watch::Sender<bool>,
}

impl Gate {
    /// A gate for requests that contain all `marks`: the first `passing` of them pass, the next `most` wait.
    pub fn new(side: GateSide, marks: &[&str], passing: usize, most: usize) -> Self {
        Self(Arc::new(GateState {
            side,
            marks: marks.iter().map(|&mark| mark.to_owned()).collect(),
            passing: AtomicUsize::new(passing),
            left: AtomicUsize::new(most),
            stopped: AtomicUsize::default(),
            is_open: watch::Sender::default(),
        }))
    }

    /// Number of requests that were stopped, or whose replies were.
    pub fn stopped(&self) -> usize {
        self.0.stopped.load(Ordering::SeqCst)
    }

    /// Lets everything pass from now on.
    pub fn open(&self) {
        self.0.is_open.send_replace(true);
    }

    pub(super) fn is_open(&self) -> bool {
        *self.0.is_open.borrow()
    }

    pub(super) fn has_replies(&self) -> bool {
        self.0.side == GateSide::Reply
    }

    pub(super) fn note_stopped(&self) {
        self.0.stopped.fetch_add(1, Ordering::SeqCst);
    }

    pub(super) async fn wait_until_open(&self) {
        // Cannot fail: this gate owns the sender.
        let _ = self.0.is_open.subscribe().wait_for(|open| *open).await;
    }

    /// Whether this request is to wait here.
    fn stops(&self, request: &str) -> bool {
        let has = |mark: &String| request.contains(mark);
        let take = |count: &AtomicUsize| {
            let less = |count: usize| count.checked_sub(1);
            count
                .fetch_update(Ordering::SeqCst, Ordering::SeqCst, less)
                .is_ok()
        };
        !self.is_open() && self.0.marks.iter().all(has) && !take(&self.0.passing) && take(&self.0.left)
    }
}

/// The gates of a wire.
#[derive(Debug, Default)]
pub(super) struct Gates(Mutex<Vec<Gate>>);

impl Gates {
    pub(super) fn add(&self, gate: &Gate) {
        let mut gates = self.0.lock();
        gates.retain(|gate| !gate.is_open());
        gates.push(gate.clone());
    }

    /// The gate at which this request, or its reply, is to wait.
    pub(super) fn that_stops(&self, request: &[u8]) -> Option<Gate> {
        let gates = self.0.lock();
        if gates.is_empty() {
            return None;
        }
        // Search in a `str`: the standard library does it fast even in a build without optimisation.
        let request = String::from_utf8_lossy(request);
        gates.iter().find(|gate| gate.stops(&request)).cloned()
    }
}
