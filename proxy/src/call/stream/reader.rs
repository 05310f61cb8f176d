//! Reads the provider's stream and gives the writer the parts that may pass, within three deadlines. Reading continues
//! after the caller disconnects, since the last event has the usage that the provider bills. The reader waits for it at
//! most `proxy.stream_drain_ms` and [`DRAINED_BYTES_MAX`].

use super::end::StreamEnd;
use crate::call::handoff::PieceSender;
use crate::upstream::AnswerStream;
use crate::upstream::reading_turn::{ReadingTurn, cost_of};
use bytes::Bytes;
use http::StatusCode;
use sse::StreamFilter;
use std::pin::{Pin, pin};
use std::time::Duration;
use tokio::time::{Instant, Sleep, sleep_until, timeout_at};

/// Maximum bytes read of a stream after its caller disconnected.
pub const DRAINED_BYTES_MAX: usize = 16 << 20;
/// Maximum wait for the usage after the last event.
const USAGE_AFTER_END: Duration = Duration::from_secs(2);
/// Time, and number of bytes, for which to read on after the last event. A provider should end the body at once.
const TAIL: Duration = Duration::from_secs(2);
const TAIL_BYTES_MAX: usize = 64 << 10;
/// Bytes that are still read after a deadline, as [`cost_of`] counts them, if they are there: the caller may have been
/// the slow one, and the usage may be among them. Without this bound a provider that always has more to send would let
/// no deadline end its stream.
const OVERDUE_BYTES_MAX: usize = 64 << 10;

/// Deadlines of a stream whose head was received, and its longest text.
#[derive(Debug, Clone, Copy)]
pub struct StreamLimits {
    /// `proxy.stream_idle_ms`, or the upstream's own.
    pub idle: Duration,
    /// `proxy.stream_total_ms`
    pub total: Duration,
    /// `proxy.stream_drain_ms`
    pub drain: Duration,
    /// Longest text of the answer, in bytes.
    pub text_bytes_max: u64,
}

/// Remaining time and bytes of a stream whose caller has disconnected.
#[derive(Debug)]
struct Draining {
    until: Instant,
    bytes_left: usize,
}

impl Draining {
    fn within(time: Duration) -> Self {
        Self {
            until: Instant::now() + time,
            bytes_left: DRAINED_BYTES_MAX,
        }
    }
}

/// The reader of one stream.
pub struct StreamReader {
    stream: Box<AnswerStream>,
    filter: StreamFilter,
    sender: PieceSender,
    limits: StreamLimits,
    /// Start of the current wait for the provider.
    waiting_since: Instant,
    turn: ReadingTurn,
    /// Bytes read after a deadline.
    overdue_bytes: usize,
    /// Arrival of the last event.
    last_event_at: Option<Instant>,
    draining: Option<Draining>,
    /// True if the bytes passed to the caller end with a complete event.
    is_between_events: bool,
    /// Fires at some deadline or earlier; it is set again only when it fires.
    timer: Pin<Box<Sleep>>,
}

impl StreamReader {
    /// Creates the reader of a stream.
    pub fn new(
        stream: Box<AnswerStream>,
        filter: StreamFilter,
        sender: PieceSender,
        limits: StreamLimits,
    ) -> Self {
        let now = Instant::now();
        let first = (stream.began + limits.total).min(now + limits.idle);
        Self {
            stream,
            filter,
            sender,
            limits,
            waiting_since: now,
            turn: ReadingTurn::default(),
            overdue_bytes: 0,
            last_event_at: None,
            draining: None,
            is_between_events: true,
            timer: Box::pin(sleep_until(first)),
        }
    }

    /// Returns the provider's status.
    pub const fn status(&self) -> StatusCode {
        self.stream.status
    }

    /// Returns the time since the request was sent.
    pub fn elapsed(&self) -> Duration {
        self.stream.began.elapsed()
    }

    /// Returns the filter, which has the state of the events so far.
    pub const fn filter(&self) -> &StreamFilter {
        &self.filter
    }

    /// Reads a piece, and returns the parts that may pass.
    ///
    /// # Errors
    /// The end of the stream.
    pub async fn read(&mut self) -> Result<Vec<Bytes>, StreamEnd> {
        if self.filter.text_bytes() > self.limits.text_bytes_max {
            return Err(self.or_caller_gone(StreamEnd::BrokeOff));
        }
        if self.draining.is_none() {
            self.wait_for_caller().await?;
        }
        self.waiting_since = Instant::now();
        let deadline = self.deadline();
        let is_overdue = deadline.0 <= self.waiting_since;
        if is_overdue && self.overdue_bytes >= OVERDUE_BYTES_MAX {
            return Err(self.or_caller_gone(deadline.1));
        }
        let mut out = Vec::new();
        match self.read_piece(deadline).await {
            Ok(Some(piece)) => {
                self.filter.push(&piece, &mut out);
                self.turn.count(piece.len()).await;
                if is_overdue {
                    self.overdue_bytes += cost_of(piece.len());
                }
                if let Some(draining) = &mut self.draining {
                    draining.bytes_left = draining.bytes_left.saturating_sub(piece.len());
                }
                Ok(out)
            }
            Ok(None) => {
                self.filter.close(&mut out);
                match out.is_empty() {
                    true => Err(self.or_caller_gone(self.end_of_body())),
                    false => Ok(out),
                }
            }
            Err(end) => Err(self.or_caller_gone(end)),
        }
    }

    /// Returns how a stream ended whose body has ended: a provider that stops in the middle of an answer may still
    /// close the body properly.
    fn end_of_body(&self) -> StreamEnd {
        match self.filter.is_finished() {
            true => StreamEnd::Complete,
            false => StreamEnd::BrokeOff,
        }
    }

    /// Waits until the caller has received the previous pieces or has disconnected. Nothing more is read until then.
    ///
    /// # Errors
    /// [`StreamEnd::TotalTimeout`], even if the caller becomes ready at the same time: otherwise a provider that always
    /// has more to send would let no deadline fire.
    async fn wait_for_caller(&mut self) -> Result<(), StreamEnd> {
        let until = self.stream.began + self.limits.total;
        let ready = loop {
            tokio::select! {
                biased;
                ready = self.sender.ready() => break ready,
                () = &mut self.timer => match Instant::now() < until {
                    true => self.timer.as_mut().reset(until),
                    false => return Err(StreamEnd::TotalTimeout),
                },
            }
        };
        match ready {
            Err(_gone) => self.start_draining(),
            Ok(()) if Instant::now() >= until => return Err(StreamEnd::TotalTimeout),
            Ok(()) => {}
        }
        Ok(())
    }

    /// Passes pieces to the caller.
    ///
    /// # Errors
    /// The end of the stream: everything needed was read.
    pub async fn pass(&mut self, out: Vec<Bytes>) -> Result<(), StreamEnd> {
        if self.draining.is_none() && !out.is_empty() {
            match self.sender.send(out).await {
                Ok(()) => self.is_between_events = self.filter.is_between_events(),
                Err(_gone) => self.start_draining(),
            }
        }
        match self.has_everything() {
            true => Err(self.or_caller_gone(StreamEnd::Complete)),
            false => Ok(()),
        }
    }

    /// Returns whether everything needed was read.
    fn has_everything(&mut self) -> bool {
        if self.filter.is_at_end() && self.last_event_at.is_none() {
            self.last_event_at = Some(Instant::now());
        }
        let has_all = self.filter.is_at_end() && (self.filter.has_report() || self.filter.is_full());
        has_all
            || self
                .draining
                .as_ref()
                .is_some_and(|draining| draining.bytes_left == 0)
    }

    /// Returns `end`, or [`StreamEnd::CallerGone`] if the caller has disconnected.
    pub const fn or_caller_gone(&self, end: StreamEnd) -> StreamEnd {
        match self.draining {
            Some(_) => StreamEnd::CallerGone,
            None => end,
        }
    }

    fn start_draining(&mut self) {
        self.draining = Some(Draining::within(self.limits.drain));
    }

    /// Reads the next piece, with the deadline and its end; `None` at the end of the body.
    async fn read_piece(
        &mut self,
        (mut until, mut end): (Instant, StreamEnd),
    ) -> Result<Option<Bytes>, StreamEnd> {
        if until < self.timer.deadline() {
            self.timer.as_mut().reset(until);
        }
        let watches = self.draining.is_none();
        let mut draining = None;
        // The read is never dropped and restarted: the bytes received so far would be lost.
        let mut read = pin!(self.stream.next());
        let result = loop {
            tokio::select! {
                biased;
                piece = &mut read => break piece.map_err(|_failure| StreamEnd::BrokeOff),
                () = self.sender.caller_disconnected(), if watches && draining.is_none() => {
                    let drained = draining.insert(Draining::within(self.limits.drain));
                    if drained.until < until {
                        (until, end) = (drained.until, StreamEnd::CallerGone);
                        self.timer.as_mut().reset(until);
                    }
                }
                () = &mut self.timer => match Instant::now() < until {
                    true => self.timer.as_mut().reset(until),
                    false => break Err(end),
                },
            }
        };
        if draining.is_some() {
            self.draining = draining;
        }
        result
    }

    /// Returns the deadline of reading, and the end of the stream that it causes.
    fn deadline(&self) -> (Instant, StreamEnd) {
        let total = (self.stream.began + self.limits.total, StreamEnd::TotalTimeout);
        let idle = (self.waiting_since + self.limits.idle, StreamEnd::IdleTimeout);
        let usage = self
            .last_event_at
            .map(|since| (since + USAGE_AFTER_END, StreamEnd::Complete));
        let drained = self
            .draining
            .as_ref()
            .map(|draining| (draining.until, StreamEnd::CallerGone));
        let soonest = [Some(total), Some(idle), usage, drained].into_iter().flatten();
        soonest.min_by_key(|(at, _)| *at).unwrap_or(total)
    }

    /// Passes the end of a settled stream to the caller: the retained events, `failure` and `comment`. If the provider
    /// may send more, its connection is closed first, since the caller may be slow. Otherwise the end of the body is
    /// read, so that the connection can be reused.
    pub async fn finish(self, end: StreamEnd, failure: Option<Bytes>, comment: Option<Bytes>) {
        let Self {
            stream,
            mut filter,
            mut sender,
            draining,
            is_between_events,
            ..
        } = self;
        let may_more_come = end != StreamEnd::Complete && !filter.is_at_end();
        let stream = (!may_more_come).then_some(stream);
        let mut is_caller_gone = draining.is_some();
        if !is_caller_gone {
            let is_between_events = is_between_events || filter.is_at_end();
            let mut out = filter.release();
            let ends_line = out
                .last()
                .is_none_or(|last| last.ends_with(b"\n") || last.ends_with(b"\r"));
            let after_events = failure.into_iter().chain(comment);
            let mut after_events = after_events.peekable();
            if after_events.peek().is_some() && !(is_between_events && ends_line) {
                out.push(Bytes::from_static(b"\n\n"));
            }
            out.extend(after_events);
            is_caller_gone = !out.is_empty() && sender.send(out).await.is_err();
        }
        if let Some(mut stream) = stream {
            pass_tail(&mut stream, &mut filter, &mut sender, is_caller_gone).await;
            drop(sender);
            stream.keep().await;
        }
    }
}

/// Passes the events that follow the last one, unless the caller has disconnected.
async fn pass_tail(
    stream: &mut AnswerStream,
    filter: &mut StreamFilter,
    sender: &mut PieceSender,
    mut is_caller_gone: bool,
) {
    let until = Instant::now() + TAIL;
    let mut left = TAIL_BYTES_MAX;
    loop {
        let read = timeout_at(until, pin!(stream.next())).await;
        let Ok(Ok(piece)) = read else { return };
        let mut out = Vec::new();
        match &piece {
            Some(piece) if cost_of(piece.len()) > left => return,
            Some(piece) => {
                left -= cost_of(piece.len());
                filter.push(piece, &mut out);
            }
            None => filter.close(&mut out),
        }
        is_caller_gone = is_caller_gone || !out.is_empty() && sender.send(out).await.is_err();
        if piece.is_none() {
            return;
        }
    }
}
