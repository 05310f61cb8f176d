//! Queue of spans for the collector. Enqueuing never waits: the queue is bounded, and spans that do not fit are dropped
//! and counted. Without `telemetry.otlp_endpoint` there are neither a queue nor spans.

use super::registrar::raise;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};
use tokio::sync::{mpsc, oneshot};

/// Maximum number of requests whose spans wait for the collector.
pub const QUEUE: usize = 2048;

/// Kind of a span, as numbered by OTLP.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SpanKind {
    /// Internal step.
    Internal = 1,
    /// Served request.
    Server = 2,
    /// Outgoing request.
    Client = 3,
}

/// The value of an attribute.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AttributeValue {
    /// A string value of OTLP.
    Text(String),
    /// An integer value of OTLP.
    Number(i64),
}

/// One operation of a trace, for export by OTLP.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Span {
    /// Trace id, 16 bytes.
    pub trace: u128,
    /// Span id, 8 bytes.
    pub id: u64,
    /// Parent span id; 0 for none.
    pub parent: u64,
    /// Name, one of few.
    pub name: &'static str,
    /// Kind of work.
    pub kind: SpanKind,
    /// Nanoseconds since 1970.
    pub start: u64,
    /// Nanoseconds since 1970.
    pub end: u64,
    /// Attributes. Never a key, a body, or text that a person wrote.
    pub attributes: Vec<(&'static str, AttributeValue)>,
    /// True for the status `ERROR` of OpenTelemetry.
    pub failed: bool,
}

/// Item of the queue.
#[cfg_attr(
    not(feature = "otlp"),
    expect(dead_code, reason = "nobody reads the queue then")
)]
pub(super) enum ExporterMessage {
    Spans(Vec<Span>),
    /// A request to be notified once everything before it was sent or given up.
    Flush(oneshot::Sender<()>),
}

struct SpanQueue {
    queue: mpsc::Sender<ExporterMessage>,
    /// New traces whose id has lower 64 bits below this are exported.
    below: u128,
}

static SPANS: OnceLock<SpanQueue> = OnceLock::new();
static EXPORTED: AtomicU64 = AtomicU64::new(0);
static OVERFLOWED: AtomicU64 = AtomicU64::new(0);
static FAILED: AtomicU64 = AtomicU64::new(0);

/// Opens the queue; `None` if it is already open.
#[cfg_attr(
    not(feature = "otlp"),
    expect(dead_code, reason = "there is no exporter then")
)]
pub(super) fn open(ratio: f64) -> Option<mpsc::Receiver<ExporterMessage>> {
    let (queue, receiver) = mpsc::channel(QUEUE);
    let way = SpanQueue {
        queue,
        below: below(ratio),
    };
    SPANS.set(way).is_ok().then_some(receiver)
}

/// Returns the number for which the share `ratio` of all 64-bit numbers is lower.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "the ratio is from 0 to 1, so the product is from 0 to 2^64"
)]
fn below(ratio: f64) -> u128 {
    (ratio.clamp(0.0, 1.0) * 2_f64.powi(64)) as u128
}

/// Returns whether a trace is exported: by its caller's decision, otherwise for the configured share of new traces.
pub(super) fn wanted(trace: u128, by_caller: Option<bool>) -> bool {
    let Some(way) = SPANS.get() else { return false };
    by_caller.unwrap_or(trace & u128::from(u64::MAX) < way.below)
}

/// Enqueues the spans of one request.
pub fn hand_over(spans: Vec<Span>) {
    let count = spans.len() as u64;
    let taken = SPANS
        .get()
        .is_some_and(|way| way.queue.try_send(ExporterMessage::Spans(spans)).is_ok());
    if !taken {
        OVERFLOWED.fetch_add(count, Ordering::Relaxed);
    }
}

/// Waits until all spans handed over so far are sent or dropped. The caller sets a deadline.
pub async fn flush() {
    let Some(way) = SPANS.get() else { return };
    let (done, flushed) = oneshot::channel();
    if way.queue.send(ExporterMessage::Flush(done)).await.is_ok() {
        drop(flushed.await);
    }
}

/// Counts the outcome of spans that left the queue.
#[cfg_attr(
    not(feature = "otlp"),
    expect(dead_code, reason = "there is no exporter then")
)]
pub(super) fn sent(count: u64, arrived: bool) {
    let counter = if arrived { &EXPORTED } else { &FAILED };
    counter.fetch_add(count, Ordering::Relaxed);
}

crate::metrics! {
    /// Outcomes of spans, as metrics.
    #[derive(Debug, Clone)]
    pub struct SpanMetrics {
        /// Spans that the collector took.
        exported: counter("spans_exported_total"),
        /// Spans dropped: overflow (the queue was full), failed (the collector did not take them).
        dropped: counters("spans_dropped_total", "reason", ["overflow", "failed"]),
    }
}

impl SpanMetrics {
    /// Updates the counters.
    pub fn refresh(&self) {
        let counters = [&self.exported, &self.dropped[0], &self.dropped[1]];
        for (counter, count) in counters.into_iter().zip([&EXPORTED, &OVERFLOWED, &FAILED]) {
            raise(counter, count.load(Ordering::Relaxed));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_ratio_is_that_share_of_all_numbers() {
        assert_eq!(
            (below(0.0), below(1.0), below(2.0), below(-1.0)),
            (0, 1 << 64, 1 << 64, 0)
        );
        assert_eq!(below(0.25), 1 << 62);
    }

    #[test]
    fn without_a_collector_spans_are_counted_as_dropped() {
        assert!(!wanted(0, Some(true)) && !wanted(0, None));
        let before = OVERFLOWED.load(Ordering::Relaxed);
        let span = Span {
            trace: 1,
            id: 1,
            parent: 0,
            name: "x",
            kind: SpanKind::Internal,
            start: 0,
            end: 1,
            attributes: Vec::new(),
            failed: false,
        };
        hand_over(vec![span]);
        assert!(OVERFLOWED.load(Ordering::Relaxed) > before);
    }
}
