//! Counts and latencies of a phase, in bounded memory whatever the number of calls.

use super::kind::{AnswerClass, RequestKind};
use hdrhistogram::Histogram;
use std::collections::BTreeMap;
use std::time::Duration;

/// Longest recorded latency, in microseconds: one hour. Longer ones count as this.
const LONGEST_US: u64 = 3_600_000_000;
/// Significant digits of a recorded latency.
const DIGITS: u8 = 3;
/// Maximum number of different ends; further ones are counted together.
const ENDS_MAX: usize = 200;
/// A call that is sent this long after it was due counts as late.
pub(super) const LATE: Duration = Duration::from_millis(1);

/// End of a call.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct SampleEnd {
    /// Purpose of the call.
    pub kind: RequestKind,
    /// HTTP status; 0 if there was none.
    pub status: u16,
    /// Reason as the edge reports it; empty for an approval. Without an answer: a description of the failure.
    pub reason: String,
}

/// One call.
#[derive(Debug)]
pub(super) struct Sample {
    pub end: SampleEnd,
    /// Time from when it was due to its end.
    pub since_due: Duration,
    /// Time from when it was sent to its end.
    pub since_sent: Duration,
    /// Time from when it was sent to the first byte of the answer's body; `None` without an answer.
    pub first_byte: Option<Duration>,
    pub bytes_sent: u64,
    pub bytes_received: u64,
}

/// Recorded results.
#[derive(Debug)]
pub struct RecordedSamples {
    since_due: Histogram<u64>,
    since_sent: Histogram<u64>,
    first_byte: Histogram<u64>,
    /// Number of calls for each end.
    pub ends: BTreeMap<SampleEnd, u64>,
    /// Number of calls that were sent late.
    pub late: u64,
    /// Longest delay of a late call.
    pub latest: Duration,
    /// Number of calls that were due and never sent, since all connections were busy for too long.
    pub dropped: u64,
    /// Bytes of bodies sent.
    pub bytes_sent: u64,
    /// Bytes of bodies received.
    pub bytes_received: u64,
    /// Time until the last answer.
    pub took: Duration,
}

impl RecordedSamples {
    /// Creates an empty record; `None` if there is no memory for it.
    pub(super) fn new() -> Option<Self> {
        let histogram = || Histogram::new_with_bounds(1, LONGEST_US, DIGITS).ok();
        Some(Self {
            since_due: histogram()?,
            since_sent: histogram()?,
            first_byte: histogram()?,
            ends: BTreeMap::new(),
            late: 0,
            latest: Duration::ZERO,
            dropped: 0,
            bytes_sent: 0,
            bytes_received: 0,
            took: Duration::ZERO,
        })
    }

    pub(super) fn note(&mut self, shot: Sample) {
        let micros = |time: Duration| u64::try_from(time.as_micros()).unwrap_or(u64::MAX).max(1);
        self.since_due.saturating_record(micros(shot.since_due));
        self.since_sent.saturating_record(micros(shot.since_sent));
        if let Some(first_byte) = shot.first_byte {
            self.first_byte.saturating_record(micros(first_byte));
        }
        let lag = shot.since_due.saturating_sub(shot.since_sent);
        if lag > LATE {
            self.late += 1;
        }
        self.latest = self.latest.max(lag);
        self.bytes_sent += shot.bytes_sent;
        self.bytes_received += shot.bytes_received;
        let mut end = shot.end;
        if self.ends.len() >= ENDS_MAX && !self.ends.contains_key(&end) {
            "(others)".clone_into(&mut end.reason);
        }
        *self.ends.entry(end).or_default() += 1;
    }

    /// Calls that were due.
    pub fn calls(&self) -> u64 {
        self.answered() + self.unanswered() + self.dropped
    }

    /// Calls that got an answer.
    pub fn answered(&self) -> u64 {
        self.sum(|end| end.status != 0)
    }

    /// Returns the number of calls that were sent and got no answer.
    pub fn unanswered(&self) -> u64 {
        self.sum(|end| end.status == 0)
    }

    /// Calls that a limit denied.
    pub fn limited(&self) -> u64 {
        self.sum(|end| end.judged() == AnswerClass::Limited)
    }

    /// Returns the number of calls that ended in an unexpected way, or were never sent.
    pub fn errors(&self) -> u64 {
        self.sum(|end| end.judged() == AnswerClass::Wrong) + self.dropped
    }

    /// Answers a second.
    pub fn throughput(&self) -> f64 {
        self.answered() as f64 / self.took.as_secs_f64().max(f64::MIN_POSITIVE)
    }

    fn sum(&self, of: impl Fn(&SampleEnd) -> bool) -> u64 {
        let ends = self.ends.iter().filter(|(end, _)| of(end));
        ends.map(|(_, count)| count).sum()
    }

    /// Returns the latency since calls were due that this share of them did not exceed.
    pub fn quantile(&self, share: f64) -> Duration {
        Duration::from_micros(self.since_due.value_at_quantile(share))
    }

    /// Returns the latency since calls were sent that this share did not exceed: without the wait for a connection.
    pub fn sent_quantile(&self, share: f64) -> Duration {
        Duration::from_micros(self.since_sent.value_at_quantile(share))
    }

    /// Returns the time from sending to the first byte of the answer's body that this share of calls did not exceed.
    pub fn first_byte_quantile(&self, share: f64) -> Duration {
        Duration::from_micros(self.first_byte.value_at_quantile(share))
    }

    /// Returns the longest latency.
    pub fn longest(&self) -> Duration {
        Duration::from_micros(self.since_due.max())
    }
}

impl SampleEnd {
    /// Returns its classification.
    pub fn judged(&self) -> AnswerClass {
        match self.status {
            0 => AnswerClass::Wrong,
            status => self.kind.judge(status, &self.reason),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shot(status: u16, waited_ms: u64, took_ms: u64) -> Sample {
        Sample {
            end: SampleEnd {
                kind: RequestKind::Approved,
                status,
                reason: String::new(),
            },
            since_due: Duration::from_millis(waited_ms + took_ms),
            since_sent: Duration::from_millis(took_ms),
            first_byte: (status != 0).then(|| Duration::from_millis(took_ms / 2)),
            bytes_sent: 10,
            bytes_received: 20,
        }
    }

    #[test]
    fn a_stall_shows_in_all_the_calls_that_it_kept_waiting() {
        let mut seen = RecordedSamples::new().unwrap();
        for number in 0..100 {
            // One answer took a second, during which 50 calls were due.
            let waited = if number < 50 { 1000 - number * 20 } else { 0 };
            seen.note(shot(200, waited, 1));
        }
        assert!(seen.quantile(0.9) > Duration::from_millis(700));
        assert!(seen.sent_quantile(0.9) < Duration::from_millis(2));
        assert_eq!(
            (seen.late, seen.answered(), seen.errors(), seen.bytes_sent),
            (50, 100, 0, 1000)
        );
        assert_eq!(seen.latest, Duration::from_secs(1));
        assert!(seen.first_byte_quantile(0.99) <= seen.sent_quantile(0.99));
    }

    #[test]
    fn unanswered_and_unsent_calls_are_errors() {
        let mut seen = RecordedSamples::new().unwrap();
        seen.note(shot(200, 0, 1));
        seen.note(shot(0, 0, 1));
        seen.note(shot(502, 0, 1));
        seen.dropped = 1;
        assert_eq!((seen.calls(), seen.errors(), seen.unanswered()), (4, 3, 1));
    }
}
