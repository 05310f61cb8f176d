//! What went wrong with commands since this process started, by kind. Counted where a command fails, so a command that
//! succeeds costs nothing. One count for the process, whatever handles it has on the store.

use crate::StoreError;
use std::sync::atomic::{AtomicU64, Ordering};

/// Why a command gave no answer that could be used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Trouble {
    /// No answer within `store.timeout_ms`, or no connection within the deadline.
    Timeout,
    /// The connection broke under the command.
    Broken,
    /// No connection could be made.
    Unreachable,
    /// The server refused: full, read-only, loading, not allowed.
    Refused,
    /// An error or an answer that makes no sense.
    Nonsense,
}

impl Trouble {
    /// Every kind, in the order of [`counts`].
    pub const ALL: [Self; 5] = [
        Self::Timeout,
        Self::Broken,
        Self::Unreachable,
        Self::Refused,
        Self::Nonsense,
    ];

    /// The word of the metric.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Timeout => "timeout",
            Self::Broken => "broken",
            Self::Unreachable => "unreachable",
            Self::Refused => "refused",
            Self::Nonsense => "nonsense",
        }
    }

    /// What kind of trouble an error is; none when it is no trouble: a script that the server does not know yet is sent again.
    fn of(error: &StoreError) -> Option<Self> {
        match error {
            StoreError::Refused { code, .. } if code == "NOSCRIPT" => None,
            StoreError::Refused { .. } => Some(Self::Refused),
            StoreError::NoAnswer(None) => Some(Self::Timeout),
            StoreError::NotConnected(source) if source.is_timeout() => Some(Self::Timeout),
            StoreError::NotConnected(_) => Some(Self::Unreachable),
            StoreError::NoAnswer(Some(source)) if source.is_timeout() => Some(Self::Timeout),
            StoreError::NoAnswer(Some(source)) if source.is_connection_refusal() => Some(Self::Unreachable),
            StoreError::NoAnswer(Some(source)) if source.is_connection_dropped() || source.is_io_error() => {
                Some(Self::Broken)
            }
            _ => Some(Self::Nonsense),
        }
    }
}

static COUNTS: [AtomicU64; Trouble::ALL.len()] = [const { AtomicU64::new(0) }; Trouble::ALL.len()];

/// Counts a command that failed.
pub(super) fn count(error: &StoreError) {
    if let Some(trouble) = Trouble::of(error) {
        COUNTS[trouble as usize].fetch_add(1, Ordering::Relaxed);
    }
}

/// How often the way to the server was lost: behind it, one that started again may answer next.
#[must_use]
pub fn cuts() -> u64 {
    let count = |trouble: Trouble| COUNTS[trouble as usize].load(Ordering::Relaxed);
    count(Trouble::Broken) + count(Trouble::Unreachable)
}

/// How often each kind of trouble was met, in the order of [`Trouble::ALL`].
#[must_use]
pub fn counts() -> [u64; Trouble::ALL.len()] {
    COUNTS.each_ref().map(|count| count.load(Ordering::Relaxed))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::ErrorKind;

    #[test]
    fn each_error_has_its_kind() {
        let io = |kind: ErrorKind| StoreError::NoAnswer(Some(std::io::Error::from(kind).into()));
        let never_sent = |kind: ErrorKind| StoreError::NotConnected(std::io::Error::from(kind).into());
        let refused = |code: &str| StoreError::Refused {
            code: code.to_owned(),
            source: (redis::ErrorKind::Client, "refused").into(),
        };
        for (error, trouble) in [
            (StoreError::NoAnswer(None), Some(Trouble::Timeout)),
            (io(ErrorKind::TimedOut), Some(Trouble::Timeout)),
            (never_sent(ErrorKind::TimedOut), Some(Trouble::Timeout)),
            (
                never_sent(ErrorKind::ConnectionRefused),
                Some(Trouble::Unreachable),
            ),
            (io(ErrorKind::BrokenPipe), Some(Trouble::Broken)),
            (io(ErrorKind::ConnectionRefused), Some(Trouble::Unreachable)),
            (refused("OOM"), Some(Trouble::Refused)),
            (refused("NOSCRIPT"), None),
            (StoreError::Nonsense("x".to_owned()), Some(Trouble::Nonsense)),
        ] {
            assert_eq!(Trouble::of(&error), trouble, "{error:?}");
        }
        for (at, trouble) in Trouble::ALL.into_iter().enumerate() {
            assert_eq!(trouble as usize, at, "{trouble:?}");
        }
        let before = counts();
        count(&StoreError::Nonsense("x".to_owned()));
        assert!(counts()[Trouble::Nonsense as usize] > before[Trouble::Nonsense as usize]);
    }
}
