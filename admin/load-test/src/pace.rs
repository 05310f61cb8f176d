//! Releases calls when they are due, with a precision of some ten microseconds. The timer of the asynchronous runtime
//! has a resolution of one millisecond, which would add to every latency.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};
use tokio::sync::Semaphore;

/// Longest sleep before checking whether to stop.
const NAP: Duration = Duration::from_millis(50);

/// Releases `calls` calls one by one, `rate` per second from `start` on, by adding permits to `gate`, which is closed
/// at the end. Returns at once: a separate thread keeps the time.
///
/// # Errors
/// No thread can be created.
pub(super) fn start(
    gate: Arc<Semaphore>,
    start: Instant,
    rate: u32,
    calls: u64,
    stop: Arc<AtomicBool>,
) -> std::io::Result<()> {
    let thread = std::thread::Builder::new().name("bench-pace".to_owned());
    let body = move || {
        for number in 0..calls {
            let due = due(start, rate, number);
            loop {
                if stop.load(Ordering::Acquire) {
                    gate.close();
                    return;
                }
                let now = Instant::now();
                if now >= due {
                    break;
                }
                std::thread::sleep((due - now).min(NAP));
            }
            gate.add_permits(1);
        }
    };
    thread.spawn(body).map(drop)
}

/// Returns when call `number` (starting at 0) is due.
pub(super) fn due(start: Instant, rate: u32, number: u64) -> Instant {
    let nanos = u128::from(number) * 1_000_000_000 / u128::from(rate.max(1));
    start + Duration::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX))
}
