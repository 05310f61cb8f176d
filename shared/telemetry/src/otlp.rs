//! Exports spans in batches from a separate task: OTLP over HTTP with binary protobuf. If the collector is unreachable,
//! only spans are lost: a batch is sent once, otherwise dropped and counted, and a series of failures is logged once.
//!
//! Implemented here, since OTLP needs one message with a few fields ([`encode`]) in one POST ([`send`]); the general
//! libraries would add a second tracing system, a second HTTP client and about thirty crates.

mod encode;
mod send;

use send::CollectorEndpoint;

use super::span::{self, ExporterMessage, Span};
use settings::TelemetrySettings;
use settings::collector::Collector;
use std::time::Duration;
use tokio::sync::{mpsc, oneshot};
use tokio::time::{Instant, timeout, timeout_at};

/// Maximum time until a span's batch is sent.
const GATHER: Duration = Duration::from_secs(1);
/// Number of requests whose spans form a batch.
const BATCH: usize = 512;
/// Longest time for a batch to reach the collector.
const SEND_WITHIN: Duration = Duration::from_secs(5);

/// Starts exporting, if a collector is configured. Must be called inside the runtime that will do it.
pub fn start(settings: &TelemetrySettings, service: &'static str) {
    let Ok(Some(collector)) = Collector::from_settings(settings) else {
        return;
    };
    let endpoint = match CollectorEndpoint::new(collector) {
        Ok(endpoint) => endpoint,
        Err(error) => return tracing::error!(%error, "spans are not exported: TLS cannot be set up"),
    };
    if let Some(queue) = span::open(settings.sample_ratio) {
        tracing::info!(collector = endpoint.authority(), "spans are exported");
        tokio::spawn(run(queue, endpoint, service));
    }
}

async fn run(mut queue: mpsc::Receiver<ExporterMessage>, endpoint: CollectorEndpoint, service: &'static str) {
    let mut failing = false;
    let mut spans = Vec::new();
    loop {
        let (open, flushed) = gather(&mut queue, &mut spans).await;
        if !spans.is_empty() {
            let count = spans.len() as u64;
            let body = encode::request(service, &spans);
            spans.clear();
            let sent = timeout(SEND_WITHIN, endpoint.post(body)).await;
            let sent = sent.unwrap_or(Err("no answer in time"));
            span::sent(count, sent.is_ok());
            if let Err(error) = sent
                && !failing
            {
                tracing::warn!(
                    collector = endpoint.authority(),
                    error,
                    "spans do not reach the collector"
                );
            }
            failing = sent.is_err();
        }
        if let Some(done) = flushed {
            let _nobody_waits = done.send(());
        }
        if !open {
            return;
        }
    }
}

/// Collects a batch. Returns whether the queue is still open, and the callers that wait for the batch.
async fn gather(
    queue: &mut mpsc::Receiver<ExporterMessage>,
    spans: &mut Vec<Span>,
) -> (bool, Option<oneshot::Sender<()>>) {
    let mut until = None;
    for _ in 0..BATCH {
        let next = match until {
            None => queue.recv().await,
            Some(until) => match timeout_at(until, queue.recv()).await {
                Ok(next) => next,
                Err(_elapsed) => return (true, None),
            },
        };
        match next {
            Some(ExporterMessage::Spans(more)) => spans.extend(more),
            Some(ExporterMessage::Flush(done)) => return (true, Some(done)),
            None => return (false, None),
        }
        until.get_or_insert_with(|| Instant::now() + GATHER);
    }
    (true, None)
}
