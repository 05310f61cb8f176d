//! Releases calls when they are due, to some ten microseconds. The timer of the asynchronous runtime has a resolution
//! of a millisecond, which would be part of every latency.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};
use tokio::sync::Semaphore;

/// Longest sleep, after which it is looked whether to stop.
const NAP: Duration = Duration::from_millis(50);

/// Lets `calls` calls go, one by one, `rate` a second from `start` on. Each has a permit of `gate`, which is closed in
/// the end. Returns at once: a thread of its own keeps the time.
///
/// # Errors
/// When there can be no more threads.
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

/// When call `number` (from 0) is due.
pub(super) fn due(start: Instant, rate: u32, number: u64) -> Instant {
    let nanos = u128::from(number) * 1_000_000_000 / u128::from(rate.max(1));
    start + Duration::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX))
}
