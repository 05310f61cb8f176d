//! The open loop: requests are sent at a fixed rate, whatever the answers do, and a latency counts from the moment at
//! which the request was to be sent. So a stall shows in every request that it delayed (no coordinated omission).
//!
//! Threads and blocking sockets: their sleep is exact to microseconds, a runtime's timers are to milliseconds.

use crate::closed::{check, whole_answer};
use crate::outcome::{Outcome, Seen, Watched, Window, cpu_between, cpu_now};
use crate::wire::MESSAGE_BYTES_MAX;
use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::{Duration, Instant};

/// Longest wait for one answer.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(10);

/// When a connection is to send.
#[derive(Debug, Clone, Copy)]
struct Schedule {
    first: Instant,
    every: Duration,
}

/// Sends `rate` requests a second until the window ends, in turn over one connection for each of `requests`.
///
/// # Errors
/// When a watched process is gone. What the target does wrong is counted instead.
pub fn run(
    target: SocketAddr,
    requests: Vec<Vec<u8>>,
    expected: u16,
    rate: f64,
    window: Window,
    watched: &[Watched],
) -> io::Result<Outcome> {
    let gap = Duration::from_secs_f64(1.0 / rate);
    let start = Instant::now();
    let connections = u32::try_from(requests.len()).unwrap_or(u32::MAX);
    let mut next = start;
    let threads = requests.into_iter().map(|request| {
        let schedule = Schedule {
            first: next,
            every: gap * connections,
        };
        next += gap;
        std::thread::spawn(move || connection(target, &request, expected, schedule, window))
    });
    let threads: Vec<_> = threads.collect();
    sleep_until(window.begin);
    let before = cpu_now(watched)?;
    sleep_until(window.end);
    let cpu_seconds = cpu_between(&before, cpu_now(watched)?);
    let mut all = Seen::default();
    for thread in threads {
        all.add(
            thread
                .join()
                .map_err(|_| io::Error::other("a connection's thread failed"))?,
        );
    }
    Ok(all.outcome(&window, cpu_seconds))
}

fn sleep_until(at: Instant) {
    let left = at.saturating_duration_since(Instant::now());
    if !left.is_zero() {
        std::thread::sleep(left);
    }
}

fn connection(target: SocketAddr, request: &[u8], expected: u16, schedule: Schedule, window: Window) -> Seen {
    let mut seen = Seen::default();
    if let Err(error) = exchange_all(target, request, expected, schedule, window, &mut seen) {
        seen.errors.push(error.to_string());
    }
    seen
}

fn exchange_all(
    target: SocketAddr,
    request: &[u8],
    expected: u16,
    schedule: Schedule,
    window: Window,
    seen: &mut Seen,
) -> io::Result<()> {
    let mut stream = TcpStream::connect_timeout(&target, ANSWER_TIMEOUT)?;
    stream.set_nodelay(true)?;
    stream.set_read_timeout(Some(ANSWER_TIMEOUT))?;
    let mut buffer = vec![0; MESSAGE_BYTES_MAX];
    let mut intended = schedule.first;
    while intended < window.end {
        sleep_until(intended);
        let sent = Instant::now();
        check(exchange(&mut stream, request, &mut buffer)?, expected)?;
        seen.answered += 1;
        if window.holds(intended) {
            seen.latencies.push(intended.elapsed());
            seen.lateness.push(sent - intended);
        }
        intended += schedule.every;
    }
    Ok(())
}

fn exchange(stream: &mut TcpStream, request: &[u8], buffer: &mut [u8]) -> io::Result<u16> {
    stream.write_all(request)?;
    let mut filled = 0;
    loop {
        let read = stream.read(&mut buffer[filled..])?;
        if read == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        filled += read;
        if let Some(status) = whole_answer(&buffer[..filled])? {
            return Ok(status);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire;
    use std::net::TcpListener;

    /// A provider that answers one connection, and is silent for `pause` before its third answer.
    fn stalling(pause: Duration) -> SocketAddr {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let target = listener.local_addr().unwrap();
        std::thread::spawn(move || {
            let (mut stream, _) = listener.accept().unwrap();
            let request = wire::chat_request("bench", "k", "r");
            let mut buffer = vec![0; request.len()];
            for number in 1.. {
                if stream.read_exact(&mut buffer).is_err() {
                    return;
                }
                if number == 3 {
                    std::thread::sleep(pause);
                }
                stream.write_all(&wire::chat_answer()).unwrap();
            }
        });
        target
    }

    #[test]
    fn a_stall_counts_for_every_request_that_it_delayed() {
        let target = stalling(Duration::from_millis(450));
        let window = Window::after(Duration::ZERO, Duration::from_millis(600));
        let requests = vec![wire::chat_request("bench", "k", "r")];
        let found = run(target, requests, 200, 100.0, window, &[]).unwrap();
        assert_eq!(found.errors, 0, "{found:?}");
        // The requests of the 450 ms are all sent late, none is left out.
        assert!((55..=60).contains(&found.answered), "{found:?}");
        assert!(found.latency.p50_us > 100_000.0, "{found:?}");
        assert!(found.lateness.p99_us > 300_000.0, "{found:?}");
    }
}
