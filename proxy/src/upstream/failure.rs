//! Why an exchange with the provider yielded no answer.

use nix::errno::Errno;
use std::error::Error;
use std::{fmt, io};

/// Why there is no answer.
#[derive(Debug)]
pub enum NoAnswer {
    /// Nothing was sent: this machine has no descriptor, memory or local port (decision D69), or the upstream has all
    /// its connections in use.
    NotSent,
    /// The provider may have processed the request.
    Failed(UpstreamFailure),
}

impl From<UpstreamFailure> for NoAnswer {
    fn from(failure: UpstreamFailure) -> Self {
        Self::Failed(failure)
    }
}

/// Why there is no answer to a request that may have been sent.
#[derive(Debug, thiserror::Error)]
pub enum UpstreamFailure {
    /// The provider was not reached, the connection broke, or the answer is cut off or malformed.
    #[error("the provider could not be reached or broke off: {0}")]
    Unreachable(BreakOff),
    /// There was no complete answer before the deadline.
    #[error("the provider gave no whole answer in time")]
    Timeout,
    /// There was no head of an answer before the deadline of a stream's head.
    #[error("the provider began no answer in time")]
    LateHead,
}

/// The point at which an exchange broke off.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BreakOff {
    /// The provider's name was never resolved.
    Resolve,
    /// No connection was made.
    Connect,
    /// The connection broke, or the provider sent something other than HTTP, before the head of the answer was read.
    Head,
    /// As [`Self::Head`], but before the body was read.
    Body,
    /// The answer is HTTP that this edge does not accept; with the reason.
    BadAnswer(&'static str),
}

impl BreakOff {
    /// Returns the label of the metric, which the log also uses.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Resolve => "resolve",
            Self::Connect => "connect",
            Self::Head => "head",
            Self::Body => "body",
            Self::BadAnswer(_) => "odd",
        }
    }
}

impl fmt::Display for BreakOff {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Resolve => f.write_str("its name does not resolve"),
            Self::BadAnswer(why) => f.write_str(why),
            stage => f.write_str(stage.as_str()),
        }
    }
}

/// Creates the failure by an answer that this edge does not accept.
pub const fn bad_answer(why: &'static str) -> UpstreamFailure {
    UpstreamFailure::Unreachable(BreakOff::BadAnswer(why))
}

/// Distinguishes a failure to connect that this machine causes from one on the way to the provider.
pub(super) fn not_connected(error: &pingora::Error) -> NoAnswer {
    match local_shortage(error.root_cause()) {
        Some(error) => {
            tracing::error!(%error, "this machine cannot connect to the provider");
            NoAnswer::NotSent
        }
        None => lost(BreakOff::Connect, error).into(),
    }
}

/// Returns the system's error behind `cause` if it reports that this machine lacks a resource for a connection.
fn local_shortage<'a>(cause: &'a (dyn Error + 'static)) -> Option<&'a io::Error> {
    let causes = std::iter::successors(Some(cause), |&cause| cause.source());
    let mut errors = causes.filter_map(|cause| cause.downcast_ref::<io::Error>());
    errors.find(|error| {
        error.raw_os_error().is_some_and(|code| {
            matches!(
                Errno::from_raw(code),
                Errno::EMFILE
                    | Errno::ENFILE
                    | Errno::ENOMEM
                    | Errno::ENOBUFS
                    | Errno::EADDRNOTAVAIL
                    | Errno::EADDRINUSE
            )
        })
    })
}

/// Logs the cause. It may quote the provider, so it is not passed on.
pub(super) fn lost(at: BreakOff, error: &pingora::Error) -> UpstreamFailure {
    tracing::warn!(upstream.stage = at.as_str(), upstream.error = ?error.etype(), "the provider could not be reached");
    UpstreamFailure::Unreachable(at)
}

#[cfg(test)]
mod tests {
    use super::*;
    use pingora::ErrorType::{ConnectError, ConnectRefused, InternalError};

    #[test]
    fn only_a_local_shortage_is_not_sent() {
        let wrapped = |code: Errno| {
            let system = io::Error::from_raw_os_error(code as i32);
            let socket = pingora::Error::because(ConnectError, "failed to create socket", system);
            pingora::Error::because(InternalError, "Fail to connect", socket)
        };
        for code in [
            Errno::EMFILE,
            Errno::ENFILE,
            Errno::ENOMEM,
            Errno::ENOBUFS,
            Errno::EADDRNOTAVAIL,
        ] {
            let failure = not_connected(&wrapped(code));
            assert!(matches!(failure, NoAnswer::NotSent), "{code}: {failure:?}");
        }
        for code in [
            Errno::ECONNREFUSED,
            Errno::ETIMEDOUT,
            Errno::ENETUNREACH,
            Errno::ECONNRESET,
        ] {
            let failure = not_connected(&wrapped(code));
            assert!(
                matches!(
                    failure,
                    NoAnswer::Failed(UpstreamFailure::Unreachable(BreakOff::Connect))
                ),
                "{code}: {failure:?}"
            );
        }
        let no_system = pingora::Error::explain(ConnectRefused, "no");
        assert!(matches!(
            not_connected(&no_system),
            NoAnswer::Failed(UpstreamFailure::Unreachable(BreakOff::Connect))
        ));
    }
}
