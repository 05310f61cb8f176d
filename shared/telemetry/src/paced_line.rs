//! A log line that many requests can cause at once: at most one a second, with the number of those that were left out.

use parking_lot::Mutex;
use std::time::{Duration, Instant};

/// Pause between two lines.
const LINE_EVERY: Duration = Duration::from_secs(1);

/// The pace of one log line. Each place that logs has its own.
#[derive(Debug, Default)]
pub struct PacedLine(Mutex<Pace>);

#[derive(Debug, Default)]
struct Pace {
    last: Option<Instant>,
    left_out: u64,
}

impl PacedLine {
    /// Creates the pace of a line that has not been logged yet.
    pub const fn new() -> Self {
        Self(Mutex::new(Pace {
            last: None,
            left_out: 0,
        }))
    }

    /// Returns the number of lines that were left out since the last one; `None` if this one is left out, too.
    pub fn due(&self) -> Option<u64> {
        self.due_at(Instant::now())
    }

    fn due_at(&self, now: Instant) -> Option<u64> {
        let mut pace = self.0.lock();
        if pace
            .last
            .is_some_and(|last| now.saturating_duration_since(last) < LINE_EVERY)
        {
            pace.left_out += 1;
            return None;
        }
        pace.last = Some(now);
        Some(std::mem::take(&mut pace.left_out))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_line_a_second_counts_the_others() {
        let (line, start) = (PacedLine::new(), Instant::now());
        let at = |millis| line.due_at(start + Duration::from_millis(millis));
        assert_eq!(at(0), Some(0), "the first at once");
        assert_eq!([at(0), at(1), at(999)], [None; 3]);
        assert_eq!(at(1000), Some(3));
        assert_eq!(at(1999), None);
        assert_eq!(at(60_000), Some(1));
        assert_eq!(at(61_000), Some(0));
    }
}
