//! The end of a process that takes no more connections: its calls finish, and what the store has not taken stays in the
//! journal.

use crate::admission::Admission;
use crate::pending::Pending;
use pingora::server::ShutdownWatch;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::{Instant, sleep, timeout};

/// How often the drain looks whether the last call is done.
const LOOK: Duration = Duration::from_millis(20);
/// How long connections that are open when the edge stops may still bring a request. Its answer says `Connection: close`,
/// so their callers turn to whoever listens then, instead of meeting a connection that dies under their request.
const CONNECTIONS: Duration = Duration::from_secs(1);
/// How long nothing may have been in flight before the process ends: the last frames of HTTP/2 leave meanwhile, and a
/// request whose head was just arriving is seen.
const QUIET: Duration = Duration::from_millis(100);
/// How long the drain waits for the retry queue, once no call is in flight; what is left is in the journal.
const PENDING: Duration = Duration::from_secs(2);
/// How long it waits for the collector to take the last spans.
const SPANS: Duration = Duration::from_secs(1);

/// Ends the process as soon as the last call is done, at the latest after `proxy.drain_ms`, and [`PENDING`] and [`SPANS`].
pub async fn exit_when_drained(
    admission: Arc<Admission>,
    pending: Arc<Pending>,
    within: Duration,
    mut shutdown: ShutdownWatch,
) {
    if shutdown.wait_for(|stopping| *stopping).await.is_err() {
        return;
    }
    admission.drain();
    let started = Instant::now();
    let deadline = started + within;
    sleep(CONNECTIONS).await;
    let mut patience = None;
    loop {
        quiet(&admission, deadline).await;
        let patience = *patience.get_or_insert_with(|| Instant::now() + PENDING);
        while !pending.is_empty() && Instant::now() < patience {
            sleep(LOOK).await;
        }
        drop(timeout(SPANS, telemetry::span::flush()).await);
        // Connections that wait for their next request may have brought one meanwhile.
        let is_late = Instant::now() >= deadline;
        if is_late || admission.in_flight() == 0 {
            admission.close();
            if is_late || admission.in_flight() == 0 {
                break;
            }
        }
    }
    let cut_off = admission.in_flight();
    if cut_off > 0 {
        tracing::warn!(
            cut_off,
            "proxy.drain_ms is over: calls are cut off, and their estimates stay charged"
        );
    }
    let took_ms = u64::try_from(started.elapsed().as_millis()).unwrap_or(u64::MAX);
    tracing::info!(pending = pending.len(), took_ms, "drained");
    telemetry::flush();
    // Until its last instant, a call that is cut off may leave something in the journal.
    if cut_off == 0 {
        pending.close();
    }
    std::process::exit(0);
}

/// Waits until nothing was in flight for [`QUIET`], at most until the deadline.
async fn quiet(admission: &Admission, deadline: Instant) {
    let mut since = Instant::now();
    while since.elapsed() < QUIET && Instant::now() < deadline {
        if admission.in_flight() > 0 {
            since = Instant::now();
        }
        sleep(LOOK).await;
    }
}
