//! Streams in a steady state: about as many begin as end, at moments spread evenly. So the time to the first event is
//! that of a stream that begins while all the others are running.
//!
//! Each connection has a stream open nearly all the time: its starts are one period apart, which is a little longer
//! than a stream. The first streams begin within the ramp and are shorter, so that they end at moments spread over a
//! whole period; those that would outlast the window are shorter, too. As in the [open loop](crate::open), one thread
//! sleeps and sends, and a start that the previous stream delayed counts from the moment at which it was due.

use crate::outcome::{Outcome, Samples, WatchedProcess, Window};
use crate::stream_wire::{Received, STREAM_EVENTS, StreamSpec};
use crate::target::Target;
use crate::wire::{self, Broken};
use parking_lot::Mutex;
use std::io;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::net::TcpStream;
use tokio::task::JoinSet;

/// Time between two starts of a connection, in intervals between events: a stream and a pause.
pub const PERIOD_EVENTS: u64 = STREAM_EVENTS + STREAM_EVENTS / 20;
/// Shortest pause between the end of a stream and the next start of its connection, in intervals between events.
const PAUSE_EVENTS: u64 = 5;
/// Fraction of the warm-up within which the first streams begin.
const RAMP: f64 = 0.7;
/// Time after the window in which the streams that are open at its end finish.
const RUN_OUT: Duration = Duration::from_secs(1);
/// Longest wait for their end beyond [`RUN_OUT`].
const PATIENCE: Duration = Duration::from_secs(20);
/// Interval between two polls for their end.
const LOOK_AGAIN: Duration = Duration::from_millis(20);
/// Size of the read buffer.
const READ_BYTES: usize = 8 << 10;
/// Fractional part of the golden ratio. Start number i is shifted from its even place by the fraction of i times this
/// number, so that starts meet every phase of other periodic work.
const SPREAD: f64 = 0.618_033_988_749_895;

/// Requests of the connections.
#[derive(Debug, Clone)]
pub struct Caller {
    /// `Host`
    pub host: String,
    /// The virtual keys; connections take turns over them. Key number i calls in the run `bench-i`.
    pub keys: Vec<String>,
    /// Size of the request's body.
    pub body_bytes: usize,
    /// Time between two events.
    pub every: Duration,
}

impl Caller {
    fn request(&self, number: usize, events: u64) -> Vec<u8> {
        let key = number % self.keys.len().max(1);
        let spec = StreamSpec {
            every_us: u64::try_from(self.every.as_micros()).unwrap_or(u64::MAX),
            events,
        };
        let name = self.keys.get(key).map(String::as_str).unwrap_or_default();
        let body = spec.body(self.body_bytes);
        wire::chat_request(&self.host, name, &format!("bench-{key}"), &body)
    }
}

/// Start times and lengths of the streams of each connection.
#[derive(Debug, Clone, Copy)]
struct Schedule {
    began: Instant,
    ramp: Duration,
    window: Window,
    every: Duration,
    connections: usize,
}

impl Schedule {
    /// Returns the part of `of` that the place of a connection among all takes up.
    fn part(&self, of: Duration, place: f64) -> Duration {
        of.mul_f64(place / self.connections.max(1) as f64)
    }

    /// Returns when start number `round` of connection `number` is due.
    fn due(&self, round: u32, number: usize) -> Instant {
        let place = number as f64 + (number as f64 * SPREAD).fract();
        match round.checked_sub(1) {
            None => self.began + self.part(self.ramp, place),
            Some(round) => {
                let period = self.every.mul_f64(PERIOD_EVENTS as f64);
                // The connections that start last in the ramp have the most time until their next start.
                self.began + self.ramp + period * round + self.part(period, place + 1.0)
            }
        }
    }

    /// Returns the number of events of the stream that is due then: a whole stream if there is time for it.
    fn events(&self, round: u32, number: usize) -> u64 {
        let due = self.due(round, number);
        let last = self.window.end + self.part(RUN_OUT, number as f64);
        let until = (self.due(round + 1, number) - self.every.mul_f64(PAUSE_EVENTS as f64)).min(last);
        let room = until.saturating_duration_since(due).as_secs_f64() / self.every.as_secs_f64();
        (room as u64).clamp(1, STREAM_EVENTS)
    }
}

/// A connection, shared by the sender and its reader.
struct Line {
    stream: TcpStream,
    window: Window,
    state: Mutex<StreamsState>,
}

#[derive(Default)]
struct StreamsState {
    /// Start of the latency of the open stream, and its events; `None` between two streams.
    open: Option<(Instant, u64)>,
    /// A stream that became due before the last one ended: its due time, request and events. While one waits, others
    /// that become due are left out and counted as unsent.
    waiting: Option<(Instant, Vec<u8>, u64)>,
    /// No further request can be sent.
    broken: bool,
    samples: Samples,
}

impl Line {
    fn with<T>(&self, act: impl FnOnce(&mut StreamsState) -> T) -> T {
        act(&mut self.state.lock())
    }

    /// Begins a stream that is due, or leaves it to the reader if the previous stream is still open.
    fn begin(&self, due: Instant, request: Vec<u8>, events: u64) {
        self.with(|state| {
            if state.broken {
                return;
            }
            if state.waiting.is_some() {
                state.samples.unsent += u64::from(self.window.holds(due));
                return;
            }
            if state.open.is_some() {
                state.waiting = Some((due, request, events));
                return;
            }
            let now = Instant::now();
            if self.window.holds(due) {
                state.samples.lateness.push(now.saturating_duration_since(due));
            }
            // The delay of the sender is not the target's.
            self.send(state, now, &request, events);
        });
    }

    /// Sends a request and counts the latency of its stream from `since`.
    fn send(&self, state: &mut StreamsState, since: Instant, request: &[u8], events: u64) {
        state.open = Some((since, events));
        // A connection between two streams has room for a small request.
        let written = self.stream.try_write(request);
        if !matches!(written, Ok(written) if written == request.len()) {
            let line = format!("a request did not fit into its connection: {written:?}");
            state.samples.errors.push(line);
            (state.broken, state.open) = (true, None);
        }
    }

    async fn read_all(&self) -> io::Result<()> {
        let mut buffer = [0; READ_BYTES];
        let mut received = Received::default();
        loop {
            self.stream.readable().await?;
            match self.stream.try_read(&mut buffer) {
                Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
                Ok(read) => self.received(&mut received, &buffer[..read])?,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                Err(error) => return Err(error),
            }
        }
    }

    /// Records the time to the first event, the events within the window, and the end of a stream.
    fn received(&self, received: &mut Received, bytes: &[u8]) -> io::Result<()> {
        let now = Instant::now();
        let before = received.events;
        received
            .read(bytes)
            .map_err(|Broken(what)| io::Error::new(io::ErrorKind::InvalidData, what))?;
        self.with(|state| {
            let (since, events) = state
                .open
                .ok_or_else(|| io::Error::other("an answer without a request"))?;
            if before == 0 && received.events > 0 && self.window.holds(since) {
                state.samples.latencies.push(now - since);
            }
            if self.window.holds(now) {
                state.samples.events += received.events - before;
            }
            if !received.has_ended {
                return Ok(());
            }
            let found = std::mem::take(received).events;
            if found != events {
                return Err(io::Error::other(format!("{found} events of {events}")));
            }
            state.samples.count(200, &[200])?;
            state.open = None;
            if let Some((due, request, events)) = state.waiting.take() {
                self.send(state, due, &request, events);
            }
            Ok(())
        })
    }

    fn is_done(&self) -> bool {
        self.with(|state| state.broken || state.open.is_none())
    }
}

/// Begins every stream when it is due, until the window ends.
fn begin_all(lines: &[Arc<Line>], caller: &Caller, schedule: Schedule) {
    for round in 0.. {
        for (number, line) in lines.iter().enumerate() {
            let due = schedule.due(round, number);
            let events = schedule.events(round, number);
            let request = caller.request(number, events);
            if due >= schedule.window.end {
                return;
            }
            std::thread::sleep(due.saturating_duration_since(Instant::now()));
            line.begin(due, request, events);
        }
    }
}

/// Keeps a stream open on each of `connections`, nearly all the time, until the window ends. The latencies are times to
/// the first event.
///
/// # Errors
/// When a watched process has ended, or a connection cannot be opened. Later errors of the target are counted.
pub async fn run(
    target: Arc<Target>,
    caller: Caller,
    connections: usize,
    (warm_up, length): (Duration, Duration),
    watched: &[WatchedProcess],
) -> io::Result<Outcome> {
    let mut streams = Vec::new();
    for number in 0..connections {
        streams.push(target.connect(number).await?);
    }
    let window = Window::after(warm_up, length);
    let (mut lines, mut readers) = (Vec::new(), JoinSet::new());
    for stream in streams {
        let state = Mutex::default();
        let line = Arc::new(Line {
            stream,
            window,
            state,
        });
        readers.spawn(reader(Arc::clone(&line)));
        lines.push(line);
    }
    let schedule = Schedule {
        began: Instant::now(),
        ramp: warm_up.mul_f64(RAMP),
        window,
        every: caller.every,
        connections,
    };
    let all = lines.clone();
    let sender = tokio::task::spawn_blocking(move || begin_all(&all, &caller, schedule));
    let cpu_seconds = window.cpu_seconds(watched).await?;
    sender.await?;
    let end = window.end + RUN_OUT + PATIENCE;
    while Instant::now() < end && !lines.iter().all(|line| line.is_done()) {
        tokio::time::sleep(LOOK_AGAIN).await;
    }
    readers.abort_all();
    let mut samples = Samples::default();
    for line in lines {
        samples.add(line.with(|state| {
            if state.open.take().is_some() {
                state.samples.errors.push("a stream did not end".to_owned());
            }
            std::mem::take(&mut state.samples)
        }));
    }
    Ok(samples.outcome(&window, cpu_seconds))
}

async fn reader(line: Arc<Line>) {
    if let Err(error) = line.read_all().await {
        line.with(|state| {
            state.samples.errors.push(error.to_string());
            (state.broken, state.open) = (true, None);
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::target::tests::plain;
    use tokio::net::TcpListener;

    fn schedule(connections: usize) -> Schedule {
        Schedule {
            began: Instant::now(),
            ramp: Duration::from_secs(2),
            window: Window::after(Duration::from_secs(3), Duration::from_secs(40)),
            every: Duration::from_millis(50),
            connections,
        }
    }

    #[test]
    fn starts_are_spread_over_a_period_and_streams_fit_between_them() {
        let schedule = schedule(1000);
        let period = schedule.every.mul_f64(PERIOD_EVENTS as f64);
        let dues: Vec<Instant> = (1..3)
            .flat_map(|round| (0..1000).map(move |number| (round, number)))
            .map(|(round, number)| schedule.due(round, number))
            .collect();
        let even = period / 1000;
        for pair in dues.windows(2) {
            assert!(pair[0] < pair[1] && pair[1] - pair[0] <= even * 2);
        }
        for (round, number) in [(0, 0), (0, 500), (0, 999), (1, 0), (1, 999), (2, 7)] {
            let events = schedule.events(round, number);
            let until = schedule.due(round, number) + schedule.every.mul_f64(events as f64);
            assert!(until < schedule.due(round + 1, number), "{round} {number}");
        }
        assert!(schedule.events(0, 10) < 50, "it ends soon, for the next to begin");
        assert_eq!(schedule.events(1, 10), STREAM_EVENTS);
    }

    #[test]
    fn no_stream_goes_on_long_beyond_the_window() {
        let schedule = schedule(1000);
        for number in [0, 400, 999] {
            let last = (0..).take_while(|round| schedule.due(*round, number) < schedule.window.end);
            let last = last.last().unwrap();
            let length = schedule.every.mul_f64(schedule.events(last, number) as f64);
            assert!(schedule.due(last, number) + length <= schedule.window.end + RUN_OUT + schedule.every);
        }
    }

    fn caller() -> Caller {
        Caller {
            host: "bench".to_owned(),
            keys: vec!["a".to_owned(), "b".to_owned()],
            body_bytes: 1024,
            every: Duration::from_micros(500),
        }
    }

    #[tokio::test]
    async fn streams_are_begun_and_read_to_their_end() {
        let upstream = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let (target, _) = plain(upstream.local_addr().unwrap(), &[200], 0);
        tokio::spawn(crate::upstream::serve(upstream, None));
        let times = (Duration::from_millis(100), Duration::from_millis(500));
        let found = run(target, caller(), 8, times, &[]).await.unwrap();
        assert_eq!((found.errors, found.first_error.as_deref()), (0, None));
        assert!(
            found.answered_in_all > 8 && found.latency.p50_us > 0.0,
            "{found:?}"
        );
    }

    #[tokio::test]
    async fn a_wrong_answer_and_a_stream_that_breaks_off_are_errors() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        tokio::spawn(async move {
            use tokio::io::{AsyncReadExt, AsyncWriteExt};
            let answers = [wire::chat_answer(), crate::stream_wire::stream_head()];
            for answer in answers {
                let (mut stream, _) = listener.accept().await.unwrap();
                tokio::spawn(async move {
                    assert!(stream.read(&mut [0; 4096]).await.unwrap() > 1024);
                    stream.write_all(&answer).await.unwrap();
                });
            }
        });
        let (target, _) = plain(address, &[200], 0);
        let times = (Duration::from_millis(20), Duration::from_millis(50));
        let found = run(target, caller(), 2, times, &[]).await.unwrap();
        assert_eq!((found.errors, found.answered_in_all), (2, 0), "{found:?}");
    }
}
