//! The end of a process that accepts no more connections: its calls finish, and undelivered items stay in the journal.
//! Items that cannot be written to the journal are logged, and the exit code reports them.

use crate::admission::RequestAdmission;
use crate::retry_queue::RetryQueue;
use crate::retry_queue::item::RetryItem;
use pingora::server::ShutdownWatch;
use std::sync::{Arc, mpsc};
use std::time::Duration;
use tokio::time::{Instant, sleep, timeout};

/// Interval of checking whether the last call has finished.
const CHECK_EVERY: Duration = Duration::from_millis(20);
/// Time during which open connections may still send a request after the edge stops. The answer has
/// `Connection: close`, so that callers reconnect to another process instead of losing a request together with their
/// connection.
const CONNECTIONS_OPEN: Duration = Duration::from_secs(1);
/// Time without a request in flight after which the process ends. Meanwhile the last frames of HTTP/2 are sent, and
/// requests whose head is arriving are detected.
const QUIET: Duration = Duration::from_millis(100);
/// Maximum time that the drain waits for the retry queue after the last call. Remaining items stay in the journal.
const PENDING_WITHIN: Duration = Duration::from_secs(2);
/// Maximum time that the drain waits for the journal's disk.
const JOURNAL_WITHIN: Duration = Duration::from_secs(1);
/// Exit code of a process that ended with items that it could neither deliver nor write to its journal.
const ITEMS_LOST: i32 = 4;
/// Maximum time that the drain waits for the export of the last spans.
const SPANS_WITHIN: Duration = Duration::from_secs(1);

/// Ends the process when the last call has finished; at the latest after `within` (`proxy.drain_ms`),
/// [`PENDING_WITHIN`] and [`SPANS_WITHIN`].
pub async fn exit_when_drained(
    admission: Arc<RequestAdmission>,
    retry_queue: Arc<RetryQueue>,
    within: Duration,
    mut shutdown: ShutdownWatch,
) {
    if shutdown.wait_for(|stopping| *stopping).await.is_err() {
        return;
    }
    admission.drain();
    let started = Instant::now();
    let deadline = started + within;
    sleep(CONNECTIONS_OPEN).await;
    let mut pending_deadline = None;
    loop {
        quiet(&admission, deadline).await;
        let pending_deadline = *pending_deadline.get_or_insert_with(|| Instant::now() + PENDING_WITHIN);
        while !retry_queue.is_empty() && Instant::now() < pending_deadline {
            sleep(CHECK_EVERY).await;
        }
        drop(timeout(SPANS_WITHIN, telemetry::span::flush()).await);
        // An idle connection may have sent another request meanwhile.
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
    tracing::info!(pending = retry_queue.len(), took_ms, "drained");
    // Otherwise a call that is cut off may queue an item until the last instant.
    exit(retry_queue, cut_off == 0);
}

/// Writes the items that the journal lacks, and removes a journal without any if it `may_close`, within
/// [`JOURNAL_WITHIN`], then ends the process.
pub fn exit(retry_queue: Arc<RetryQueue>, may_close: bool) -> ! {
    let (sender, caught_up) = mpsc::channel();
    let writing = Arc::clone(&retry_queue);
    std::thread::spawn(move || {
        let lost = writing.catch_up();
        if may_close {
            writing.close();
        }
        sender.send(lost)
    });
    let is_saved = match caught_up.recv_timeout(JOURNAL_WITHIN) {
        Ok(lost) => {
            report_lost(&lost);
            lost.is_empty()
        }
        Err(_late) => {
            tracing::error!(
                "proxy.data_dir does not answer: what the retry journal lacks is lost with this process"
            );
            report_lost(&retry_queue.only_in_memory());
            false
        }
    };
    telemetry::flush();
    std::process::exit(if is_saved { 0 } else { ITEMS_LOST });
}

/// Logs the data with which the operator can settle the holds manually.
fn report_lost(lost: &[RetryItem]) {
    for item in lost {
        let name = item.name();
        tracing::error!(
            account = name.account,
            decision.id = name.allow_id,
            actual_usd = item.cost().to_string(),
            "lost with this process; the estimate stays charged until {}",
            advice(item)
        );
    }
    if !lost.is_empty() {
        tracing::error!(
            lost = lost.len(),
            "these settlements and voids reached neither the store nor proxy.data_dir"
        );
    }
}

/// Returns the operator's command with the effect of the lost item. A call that cost nothing, and an approval whose
/// reply was lost, are given back.
fn advice(item: &RetryItem) -> String {
    let id = item.name().allow_id;
    match item {
        RetryItem::Settle {
            estimate_nanos,
            cost_nanos: 1..,
            ..
        } => {
            let cost = item.cost();
            let above = match cost.get() > *estimate_nanos {
                true => " --above-estimate",
                false => "",
            };
            format!("`tollgate-admin holds settle --id {id} --actual {cost}{above}`")
        }
        RetryItem::Settle { .. } | RetryItem::Void { .. } => {
            format!("`tollgate-admin holds release --id {id}`")
        }
    }
}

/// Waits until no request was in flight for [`QUIET`], at most until the deadline.
async fn quiet(admission: &RequestAdmission, deadline: Instant) {
    let mut since = Instant::now();
    while since.elapsed() < QUIET && Instant::now() < deadline {
        if admission.in_flight() > 0 {
            since = Instant::now();
        }
        sleep(CHECK_EVERY).await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::retry_queue::journal::tests::{item, settlement};

    #[test]
    fn the_advice_for_a_lost_item_is_the_command_that_does_the_same() {
        let released = |id: &str| format!("`tollgate-admin holds release --id {id}`");
        assert_eq!(advice(&item("allow_1")), released("allow_1"));
        let (costs, estimate) = ([0, 70, 170], 100);
        let [free, cheaper, dearer] = costs.map(|cost| {
            let mut item = settlement("allow_2");
            if let RetryItem::Settle {
                estimate_nanos,
                cost_nanos,
                ..
            } = &mut item
            {
                (*estimate_nanos, *cost_nanos) = (estimate, cost);
            }
            advice(&item)
        });
        assert_eq!(free, released("allow_2"));
        let settled = |cost| format!("`tollgate-admin holds settle --id allow_2 --actual {cost}`");
        assert_eq!(cheaper, settled("0.00000007"));
        assert_eq!(dearer, settled("0.00000017 --above-estimate"));
    }
}
