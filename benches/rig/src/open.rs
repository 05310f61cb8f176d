//! The open loop: requests are due at a fixed rate, however late the answers are, and a latency counts from the moment
//! at which the request was due. So a stall shows in every request that it delayed (no coordinated omission).
//!
//! One thread sends: its sleep is exact to microseconds, while a runtime's timers are exact to milliseconds. A request
//! uses the connection that has been free for longest. While none is free the request waits, and its latency grows. One
//! runtime reads all the answers.

use crate::closed::whole_answer;
use crate::outcome::{Outcome, Samples, WatchedProcess, Window};
use crate::target::{ANSWER_TIMEOUT, Request, Target};
use crate::wire::PIECE_BYTES;
use parking_lot::Mutex;
use std::collections::VecDeque;
use std::io;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::{Duration, Instant};
use tokio::net::TcpStream;
use tokio::task::JoinSet;

/// Time after the window in which requests that are due are still sent. The target was too slow for those left then.
const BACKLOG: Duration = Duration::from_secs(1);

/// A connection, shared by the sender and its reader.
struct Line {
    stream: TcpStream,
    request: Request,
    target: Arc<Target>,
    window: Window,
    state: Mutex<OpenLoopState>,
}

#[derive(Default)]
struct OpenLoopState {
    /// Due time and sending time of the request under way.
    underway: Option<(Instant, Instant)>,
    /// No further request can be sent.
    broken: bool,
    samples: Samples,
}

/// Message of a reader to the sender.
enum ReaderEvent {
    /// A connection, by its number, has received its answer.
    Free(usize),
    /// A connection has ended with an error.
    Broken,
}

impl Line {
    fn with<T>(&self, act: impl FnOnce(&mut OpenLoopState) -> T) -> T {
        act(&mut self.state.lock())
    }

    /// Sends the request; false if the connection cannot take it.
    fn send(&self, due: Instant) -> bool {
        let sent = Instant::now();
        let usable = self.with(|state| {
            if !state.broken {
                state.underway = Some((due, sent));
            }
            !state.broken
        });
        if !usable {
            return false;
        }
        // A free connection has room for a small request.
        let written = self.stream.try_write(&self.request.http1);
        if matches!(written, Ok(written) if written == self.request.http1.len()) {
            return true;
        }
        self.with(|state| {
            state
                .samples
                .errors
                .push(format!("a request did not fit into its connection: {written:?}"));
            state.broken = true;
            state.underway.take().is_none()
        })
    }

    async fn read_all(&self, number: usize, events: &Sender<ReaderEvent>) -> io::Result<()> {
        let mut buffer = vec![0; PIECE_BYTES];
        let mut filled = 0;
        loop {
            self.stream.readable().await?;
            match self.stream.try_read(&mut buffer[filled..]) {
                Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
                Ok(read) => filled += read,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => continue,
                Err(error) => return Err(error),
            }
            if let Some(status) = whole_answer(&buffer[..filled])? {
                self.answered(status)?;
                filled = 0;
                if events.send(ReaderEvent::Free(number)).is_err() {
                    return Ok(());
                }
            }
        }
    }

    fn answered(&self, status: u16) -> io::Result<()> {
        self.with(|state| {
            let (due, sent) = state
                .underway
                .ok_or_else(|| io::Error::other("an answer without a request"))?;
            state.samples.count(status, &self.target.expected)?;
            state.underway = None;
            if self.window.holds(due) {
                state.samples.latencies.push(due.elapsed());
                state.samples.lateness.push(sent - due);
            }
            Ok(())
        })
    }
}

/// The sending thread.
struct Pacer {
    lines: Vec<Arc<Line>>,
    idle: VecDeque<usize>,
    events: Receiver<ReaderEvent>,
    /// Connections with a request under way.
    busy: usize,
    gap: Duration,
    window: Window,
}

impl Pacer {
    /// Receives events of the readers until `until` at the latest. False if none arrived.
    fn receive(&mut self, until: Instant) -> bool {
        let patience = until.saturating_duration_since(Instant::now());
        let Ok(events) = self.events.recv_timeout(patience) else {
            return false;
        };
        self.busy -= 1;
        if let ReaderEvent::Free(number) = events {
            self.idle.push_back(number);
        }
        true
    }

    /// Sends every request when it is due, and waits for the answers.
    fn run(mut self) -> Samples {
        let mut samples = Samples::default();
        let last = self.window.end + BACKLOG;
        let mut due = Instant::now();
        while due < self.window.end {
            let left = due.saturating_duration_since(Instant::now());
            if !left.is_zero() {
                std::thread::sleep(left);
            }
            while self.busy > 0 && self.receive(Instant::now()) {}
            while self.idle.is_empty() && self.busy > 0 && self.receive(last) {}
            let Some(number) = self.idle.pop_front() else {
                break;
            };
            if self.lines.get(number).is_some_and(|line| line.send(due)) {
                self.busy += 1;
            }
            due += self.gap;
            if Instant::now() >= last {
                break;
            }
        }
        self.give_up(due, &mut samples);
        let end = Instant::now() + ANSWER_TIMEOUT;
        while self.busy > 0 && self.receive(end) {}
        if self.busy > 0 {
            samples.errors.push(format!("{} answers did not come", self.busy));
        }
        samples
    }

    /// Counts the requests from `due` on as unsent, with their latencies so far.
    fn give_up(&self, mut due: Instant, samples: &mut Samples) {
        let now = Instant::now();
        while due < self.window.end {
            if self.window.holds(due) {
                samples.unsent += 1;
                samples.latencies.push(now.saturating_duration_since(due));
            }
            due += self.gap;
        }
    }
}

/// Sends `rate` requests a second until the window ends, over one connection for each of `requests`.
///
/// # Errors
/// When a watched process has ended, or a connection cannot be opened. Later errors of the target are counted.
pub async fn run(
    target: Arc<Target>,
    requests: Vec<Request>,
    rate: f64,
    window: Window,
    watched: &[WatchedProcess],
) -> io::Result<Outcome> {
    let gap = Duration::try_from_secs_f64(1.0 / rate).map_err(io::Error::other)?;
    let (say, events) = channel();
    let (mut lines, mut readers) = (Vec::new(), JoinSet::new());
    for request in requests {
        let line = Arc::new(Line {
            stream: target.connect(request.number).await?,
            request,
            target: Arc::clone(&target),
            window,
            state: Mutex::default(),
        });
        readers.spawn(reader(Arc::clone(&line), lines.len(), say.clone()));
        lines.push(line);
    }
    drop(say);
    let pacer = Pacer {
        lines: lines.clone(),
        idle: (0..lines.len()).collect(),
        events,
        busy: 0,
        gap: gap.max(Duration::from_nanos(1)),
        window,
    };
    let pacer = tokio::task::spawn_blocking(|| pacer.run());
    let cpu_seconds = window.cpu_seconds(watched).await?;
    let mut all = pacer.await?;
    readers.abort_all();
    for line in lines {
        all.add(line.with(|state| std::mem::take(&mut state.samples)));
    }
    Ok(all.outcome(&window, cpu_seconds))
}

async fn reader(line: Arc<Line>, number: usize, events: Sender<ReaderEvent>) {
    let Err(error) = line.read_all(number, &events).await else {
        return;
    };
    let was_busy = line.with(|state| {
        state.samples.errors.push(error.to_string());
        state.broken = true;
        state.underway.take().is_some()
    });
    if was_busy {
        drop(events.send(ReaderEvent::Broken));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::target::tests::plain;
    use crate::wire;
    use std::io::{Read as _, Write as _};
    use std::net::{SocketAddr, TcpListener};

    /// A provider that answers one connection, and is silent for `pause` before its third answer.
    fn stalling(pause: Duration) -> SocketAddr {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        std::thread::spawn(move || {
            let (mut stream, _) = listener.accept().unwrap();
            let (_, requests) = plain(address, &[], 1);
            let mut buffer = vec![0; requests[0].http1.len()];
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
        address
    }

    async fn paced(address: SocketAddr, expected: &[u16], rate: f64, millis: u64) -> Outcome {
        let (target, requests) = plain(address, expected, 1);
        let window = Window::after(Duration::ZERO, Duration::from_millis(millis));
        run(target, requests, rate, window, &[]).await.unwrap()
    }

    #[tokio::test]
    async fn a_stall_counts_for_every_request_that_it_delayed() {
        let found = paced(stalling(Duration::from_millis(450)), &[200], 100.0, 600).await;
        assert_eq!((found.errors, found.unsent), (0, 0), "{found:?}");
        // The requests due in the 450 ms are all sent late; none is left out.
        assert!((55..=61).contains(&found.answered), "{found:?}");
        assert!(found.latency.p50_us > 100_000.0, "{found:?}");
        assert!(found.lateness.p99_us > 300_000.0, "{found:?}");
    }

    #[tokio::test]
    async fn unsent_requests_count_too() {
        let found = paced(stalling(Duration::from_millis(1500)), &[200], 100.0, 300).await;
        assert!(found.unsent > 20 && found.errors == 0, "{found:?}");
        assert!(found.latency.p50_us > 500_000.0, "{found:?}");
    }

    #[tokio::test]
    async fn a_wrong_answer_or_none_is_an_error_and_ends_the_run() {
        let wrong = paced(stalling(Duration::ZERO), &[402], 100.0, 300).await;
        assert_eq!((wrong.answered, wrong.errors), (0, 1), "{wrong:?}");
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        std::thread::spawn(move || drop(listener.accept().unwrap().0));
        let gone = paced(address, &[200], 100.0, 300).await;
        assert!(gone.answered == 0 && gone.errors >= 1, "{gone:?}");
    }
}
