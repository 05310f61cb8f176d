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

/// Returns the system's error behind `cause` if it reports that this machine lacks a resource for a connection.
pub(super) fn local_shortage<'a>(cause: &'a (dyn Error + 'static)) -> Option<&'a io::Error> {
    system_errors(cause).find(|error| {
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

/// Returns the system's error behind `cause`.
pub(super) fn system_error<'a>(cause: &'a (dyn Error + 'static)) -> Option<&'a io::Error> {
    system_errors(cause).next()
}

fn system_errors<'a>(cause: &'a (dyn Error + 'static)) -> impl Iterator<Item = &'a io::Error> {
    let causes = std::iter::successors(Some(cause), |&cause| cause.source());
    causes.filter_map(|cause| cause.downcast_ref::<io::Error>())
}
