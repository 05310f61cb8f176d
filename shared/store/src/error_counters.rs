//! Counts of failed commands of this process, by kind. Counted where a command fails, so a successful one costs
//! nothing. Shared by all handles on the store.

use crate::StoreError;
use std::sync::atomic::{AtomicU64, Ordering};

domain::words! {
    /// Kind of failure, in the order of [`counts`].
    pub enum FailureKind {
        /// No answer within `store.timeout_ms`, or no connection within the deadline.
        Timeout = "timeout",
        /// The connection broke under the command.
        Broken = "broken",
        /// No connection could be made: no process listens, or the certificate is not trusted.
        Unreachable = "unreachable",
        /// The server refused: full, read-only, loading, not allowed, wrong password, clocks that differ.
        Refused = "refused",
        /// An error or a reply that makes no sense.
        UnexpectedReply = "nonsense",
    }
}

impl FailureKind {
    /// Returns the kind of an error; `None` for an unknown script, which is sent again.
    fn classify(error: &StoreError) -> Option<Self> {
        match error {
            StoreError::Refused { code, .. } if code == "NOSCRIPT" => None,
            StoreError::Refused { .. } | StoreError::NotAdmitted(_) | StoreError::ClockDiffers(_) => {
                Some(Self::Refused)
            }
            StoreError::UntrustedCertificate(_) => Some(Self::Unreachable),
            StoreError::NoAnswer(None) => Some(Self::Timeout),
            StoreError::NotConnected(source) if source.is_timeout() => Some(Self::Timeout),
            StoreError::NotConnected(_) => Some(Self::Unreachable),
            StoreError::NoAnswer(Some(source)) if source.is_timeout() => Some(Self::Timeout),
            StoreError::NoAnswer(Some(source)) if source.is_connection_refusal() => Some(Self::Unreachable),
            StoreError::NoAnswer(Some(source)) if source.is_connection_dropped() || source.is_io_error() => {
                Some(Self::Broken)
            }
            _ => Some(Self::UnexpectedReply),
        }
    }
}

static COUNTS: [AtomicU64; FailureKind::ALL.len()] = [const { AtomicU64::new(0) }; FailureKind::ALL.len()];

/// Counts a command that failed.
pub(super) fn count(error: &StoreError) {
    if let Some(kind) = FailureKind::classify(error) {
        COUNTS[kind as usize].fetch_add(1, Ordering::Relaxed);
    }
}

/// Returns the count of lost connections. After one, a restarted server may reply.
pub fn connections_lost() -> u64 {
    let count = |kind: FailureKind| COUNTS[kind as usize].load(Ordering::Relaxed);
    count(FailureKind::Broken) + count(FailureKind::Unreachable)
}

/// Returns the count of each kind, in the order of [`FailureKind::ALL`].
pub fn counts() -> [u64; FailureKind::ALL.len()] {
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
            detail: None,
            reply: (redis::ErrorKind::Client, "refused").into(),
        };
        for (error, kind) in [
            (StoreError::NoAnswer(None), Some(FailureKind::Timeout)),
            (io(ErrorKind::TimedOut), Some(FailureKind::Timeout)),
            (never_sent(ErrorKind::TimedOut), Some(FailureKind::Timeout)),
            (
                never_sent(ErrorKind::ConnectionRefused),
                Some(FailureKind::Unreachable),
            ),
            (io(ErrorKind::BrokenPipe), Some(FailureKind::Broken)),
            (io(ErrorKind::ConnectionRefused), Some(FailureKind::Unreachable)),
            (refused("OOM"), Some(FailureKind::Refused)),
            (
                StoreError::NotAdmitted((redis::ErrorKind::AuthenticationFailed, "no").into()),
                Some(FailureKind::Refused),
            ),
            (
                StoreError::UntrustedCertificate(std::io::Error::from(ErrorKind::InvalidData).into()),
                Some(FailureKind::Unreachable),
            ),
            (refused("NOSCRIPT"), None),
            (StoreError::unexpected("x"), Some(FailureKind::UnexpectedReply)),
        ] {
            assert_eq!(FailureKind::classify(&error), kind, "{error:?}");
        }
        for (at, kind) in FailureKind::ALL.into_iter().enumerate() {
            assert_eq!(kind as usize, at, "{kind:?}");
        }
        let before = counts();
        count(&StoreError::unexpected("x"));
        assert!(
            counts()[FailureKind::UnexpectedReply as usize] > before[FailureKind::UnexpectedReply as usize]
        );
    }
}
