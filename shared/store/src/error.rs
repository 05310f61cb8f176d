//! Errors of the store, classified by whether the command may have run.

use crate::authority::Lack;
use crate::clock_difference::ClockDiffers;
use crate::malformed::MalformedPlace;
use domain::budget::Budget;
use std::error::Error;
use std::sync::Arc;

/// Why a store call gave no usable answer.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// The server refused the command before running it: it is full, read-only or loading, or lacks the script.
    #[error("the store refused the command: {code}{}", .detail.as_ref().map(|detail| format!(" {detail}")).unwrap_or_default())]
    Refused {
        /// The server's error code, such as `OOM` or `READONLY`.
        code: String,
        /// The server's message behind the code.
        detail: Option<String>,
        /// The client library's error, which may spell the code in its own way.
        reply: redis::RedisError,
    },
    /// No reply in time, or a broken connection: the command may have run.
    #[error("the store did not answer")]
    NoAnswer(#[source] Option<redis::RedisError>),
    /// No connection could be made: the command was never sent.
    #[error("the store did not answer")]
    NotConnected(#[source] redis::RedisError),
    /// The server refused user and password: the command was never sent.
    #[error("the store rejected the credentials")]
    NotAdmitted(#[source] redis::RedisError),
    /// This process does not trust the server's certificate: the command was never sent.
    #[error("the store's certificate is not trusted")]
    UntrustedCertificate(#[source] redis::RedisError),
    /// A change of money cannot get the durability that `store.durability` requires.
    #[error("{}: {why}", if *.ran { "not confirmed as safe" } else { "refused" })]
    NotDurable {
        /// True if the command may have run.
        ran: bool,
        /// The missing confirmation.
        why: String,
    },
    /// The store's clock is too far off; nothing changed.
    #[error(transparent)]
    ClockDiffers(#[from] ClockDiffers),
    /// The account has reached a budget of records (decision D71); nothing changed.
    #[error("the budget of {most} {} is used up (limits.{})", .budget.noun(), .budget.as_str())]
    OverBudget {
        /// The exhausted budget.
        budget: Budget,
        /// The limit of the budget.
        most: u64,
    },
    /// The account does not exist, or has an older version than known: another ledger, or lost writes. Absent data is
    /// not conclusive; nothing changed.
    #[error("the store does not know the account, or lost writes of it")]
    LacksWrites,
    /// The store has an older version of the account than this process knows: it lost writes (decision D47). Nothing
    /// changed.
    #[error(
        "the store lost writes of account {account}; look at what is missing, then `tollgate-admin store accept --account {account}`"
    )]
    LostWrites {
        /// Account id, `acct_…`.
        account: String,
    },
    /// The caller is not allowed to make this change any more: the authority was revoked after the request arrived.
    /// Nothing changed.
    #[error("the caller may not do this any more: {0:?}")]
    NotPermitted(Lack),
    /// The server replied with data of another type than the command or the caller expects: a key or a value in it has
    /// a form that Tollgate does not write. A script may have run in part.
    #[error("the store's data is malformed{}", .place.as_ref().map(|place| format!(" ({place})")).unwrap_or_default())]
    MalformedData {
        /// The command or script that met it; `None` until the error leaves the connection.
        place: Option<MalformedPlace>,
        /// The server's reply, or the client library's error about it.
        #[source]
        source: redis::RedisError,
    },
    /// The data was written by a later release than this program's, which can neither read nor seal it.
    #[error("{0} was written by a later release: upgrade this program")]
    LaterRelease(String),
    /// A reply that the caller does not understand.
    #[error("unexpected reply: {0}")]
    UnexpectedReply(String),
    /// The start position of a page does not belong to this list; nothing was read.
    #[error("the list has no such position")]
    BadPosition,
    /// The data is archived, and the archive lacks it or has other bytes than were archived.
    #[error("{0}")]
    Archive(String),
    /// The archive did not carry out a read or a write: a time-out, a refusal, an address that is not found. It says
    /// nothing about its contents.
    #[error("{0}")]
    ArchiveUnavailable(String),
    /// The address or its options are invalid.
    #[error("{0}")]
    BadUrl(String),
}

impl StoreError {
    /// Returns [`StoreError::UnexpectedReply`]: `what` makes no sense.
    pub fn unexpected(what: impl ToString) -> Self {
        Self::UnexpectedReply(what.to_string())
    }

    const fn malformed(source: redis::RedisError) -> Self {
        Self::MalformedData { place: None, source }
    }

    /// Adds the place of malformed data, unless it is known.
    pub(crate) fn at(self, place: impl FnOnce(&redis::RedisError) -> Option<MalformedPlace>) -> Self {
        match self {
            Self::MalformedData { place: None, source } => Self::MalformedData {
                place: place(&source),
                source,
            },
            error => error,
        }
    }

    /// Returns whether the command may have run although no usable reply arrived.
    pub const fn may_have_run(&self) -> bool {
        !matches!(
            self,
            Self::Refused { .. }
                | Self::NotConnected(_)
                | Self::NotAdmitted(_)
                | Self::UntrustedCertificate(_)
                | Self::BadUrl(_)
                | Self::Archive(_)
                | Self::ArchiveUnavailable(_)
                | Self::LaterRelease(_)
                | Self::ClockDiffers(_)
                | Self::OverBudget { .. }
                | Self::LostWrites { .. }
                | Self::NotPermitted(_)
                | Self::NotDurable { ran: false, .. }
                | Self::LacksWrites
                | Self::BadPosition
        )
    }

    /// Returns the server's message about a script that failed midway: the account's data is malformed, and a retry
    /// fails, too.
    pub fn broken_script(&self) -> Option<String> {
        match self {
            Self::NoAnswer(Some(source)) | Self::MalformedData { source, .. } if source.code().is_some() => {
                is_in_script(source).then(|| source.to_string())
            }
            _ => None,
        }
    }

    /// Returns whether the server refused it for lack of memory.
    pub fn is_out_of_memory(&self) -> bool {
        matches!(self, Self::Refused { code, .. } if code == OUT_OF_MEMORY)
    }

    /// Returns whether the server did not reply, or refuses every caller: its next command is likely to fail too.
    pub fn is_server_failure(&self) -> bool {
        match self {
            Self::NotConnected(_)
            | Self::NotAdmitted(_)
            | Self::UntrustedCertificate(_)
            | Self::NoAnswer(None) => true,
            Self::NoAnswer(Some(source)) => source.is_io_error(),
            Self::Refused { code, .. } => SERVER_WIDE_REFUSALS.contains(&code.as_str()),
            _ => false,
        }
    }

    /// Turns the error of a command that was never sent into [`StoreError::NotConnected`]. On a cluster, a sent command
    /// is sent again only if the first node refused it.
    pub(super) fn unless_never_sent(self) -> Self {
        match self {
            Self::NoAnswer(Some(source)) if source.is_connection_refusal() => Self::NotConnected(source),
            error => error,
        }
    }
}

/// Precedes hash and line in the server's message about a script's failed command.
const IN_SCRIPT: &str = " script: ";

/// Error code with which a script refuses to use the store's clock (`script/clock_bound.lua`).
const CLOCK: &str = "CLOCK";

/// Error code with which a server refuses user and password.
const WRONG_PASSWORD: &str = "WRONGPASS";

/// Error code of a full server for a command that takes memory.
const OUT_OF_MEMORY: &str = "OOM";

/// Error code of a server for a command that the user has no right to; since Redis 7.2 also within a script, which had
/// run until then.
const NOT_PERMITTED: &str = "NOPERM";

/// Error codes of a refusal *before* any effect.
const REFUSALS: [&str; 13] = [
    OUT_OF_MEMORY,
    "READONLY",
    "MISCONF",
    "LOADING",
    "BUSY",
    "NOSCRIPT",
    "NOREPLICAS",
    "NOAUTH",
    NOT_PERMITTED,
    "MASTERDOWN",
    "CLUSTERDOWN",
    "CROSSSLOT",
    "TRYAGAIN",
];

/// Error codes with which a server refuses every caller.
const SERVER_WIDE_REFUSALS: [&str; 5] = ["LOADING", "BUSY", "MASTERDOWN", "CLUSTERDOWN", "READONLY"];

/// Error code with which a server refuses a command for the type of its key.
const WRONG_TYPE: &str = "WRONGTYPE";

/// Error code of a transaction that the server did not execute, since it refused one of its commands.
const ABORTED: &str = "EXECABORT";

/// Returns the code of the error and the server's message behind it. For a pipeline or an aborted transaction, which
/// are reads or ran not at all, they are those of the first command that the server refused.
fn code_and_detail(error: &redis::RedisError) -> Option<(String, Option<String>)> {
    let owned = |code: &str, detail: Option<&str>| (code.to_owned(), detail.map(str::to_owned));
    let code = error.code().filter(|code| *code != ABORTED);
    code.map(|code| owned(code, error.detail())).or_else(|| {
        let refused = error.clone().into_server_errors()?;
        let first = refused.iter().find(|(_, error)| error.code() != ABORTED);
        first.map(|(_, error)| owned(error.code(), error.details()))
    })
}

impl From<redis::RedisError> for StoreError {
    fn from(source: redis::RedisError) -> Self {
        let (code, detail) = code_and_detail(&source).unzip();
        match code.as_deref() {
            Some(CLOCK) => match ClockDiffers::parse(source.detail().unwrap_or_default()) {
                Some(differs) => Self::ClockDiffers(differs),
                None => Self::NoAnswer(Some(source)),
            },
            Some(NOT_PERMITTED) if is_in_script(&source) => Self::NoAnswer(Some(source)),
            Some(code) if REFUSALS.contains(&code) => Self::Refused {
                code: code.to_owned(),
                detail: detail.flatten(),
                reply: source,
            },
            Some(WRONG_TYPE) => Self::malformed(source),
            // Under RESP3 the library passes the server's own code on.
            Some(WRONG_PASSWORD) => Self::NotAdmitted(source),
            _ if source.kind() == redis::ErrorKind::AuthenticationFailed => Self::NotAdmitted(source),
            _ if has_untrusted_certificate(&source) => Self::UntrustedCertificate(source),
            _ if is_of_another_type(&source) => Self::malformed(source),
            _ => Self::NoAnswer(Some(source)),
        }
    }
}

/// Returns whether the server refused a command of a script.
fn is_in_script(error: &redis::RedisError) -> bool {
    error.to_string().contains(IN_SCRIPT)
}

/// Returns whether the reply arrived, and the library could not convert it into the expected type.
fn is_of_another_type(error: &redis::RedisError) -> bool {
    matches!(
        error.kind(),
        redis::ErrorKind::Parse | redis::ErrorKind::UnexpectedReturnType
    )
}

/// Returns whether a connection could not be made because of the server's certificate.
fn has_untrusted_certificate(error: &redis::RedisError) -> bool {
    // The client library wraps its causes in an `Arc`.
    let shared = error
        .source()
        .and_then(<dyn Error>::downcast_ref::<Arc<dyn Error + Send + Sync>>);
    let io = shared.and_then(|shared| shared.downcast_ref::<std::io::Error>());
    let tls = io.and_then(std::io::Error::get_ref);
    matches!(
        tls.and_then(|tls| tls.downcast_ref()),
        Some(rustls::Error::InvalidCertificate(_))
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(line: &str) -> StoreError {
        let value = redis::parse_redis_value(format!("-{line}\r\n").as_bytes());
        StoreError::from(value.and_then(redis::Value::extract_error).unwrap_err())
    }

    #[test]
    fn a_refusal_within_a_script_is_none_before_any_effect() {
        let before = said("NOPERM this user has no permissions to run the 'evalsha' command");
        assert!(!before.may_have_run(), "{before:?}");
        // Since Redis 7.2 it has the same code.
        let within = "NOPERM ACL failure in script: this user has no permissions to run the 'rpush' command script: \
                      66e8e1309426ae52733dfe62fdcf4df76412bfb8, on @user_script:9.";
        let error = said(within);
        assert!(error.may_have_run(), "{error:?}");
        assert!(
            error.broken_script().is_some_and(|said| said.contains("rpush")),
            "{error:?}"
        );
    }

    /// The client library spells some codes in its own way, and some twice.
    #[test]
    fn a_refusal_says_its_code_once_as_the_server_did() {
        for reply in [
            "OOM command not allowed when used memory > 'maxmemory'.",
            "READONLY You can't write against a read only replica.",
            "NOPERM this user has no permissions to run the 'get' command",
        ] {
            let refused = said(reply);
            assert_eq!(
                refused.to_string(),
                format!("the store refused the command: {reply}")
            );
            assert!(refused.source().is_none(), "{refused:?}");
        }
    }

    #[test]
    fn a_connection_that_could_not_be_made_says_why_and_sent_nothing() {
        let certificate = rustls::Error::InvalidCertificate(rustls::CertificateError::UnknownIssuer);
        let io = std::io::Error::new(std::io::ErrorKind::InvalidData, certificate);
        let untrusted = StoreError::from(redis::RedisError::from(io));
        assert!(
            matches!(untrusted, StoreError::UntrustedCertificate(_)),
            "{untrusted:?}"
        );
        let password = (
            redis::ErrorKind::AuthenticationFailed,
            "Password authentication failed",
        );
        let refused = StoreError::from(redis::RedisError::from(password));
        assert!(matches!(refused, StoreError::NotAdmitted(_)), "{refused:?}");
        let wrong = said("WRONGPASS invalid username-password pair");
        assert!(matches!(wrong, StoreError::NotAdmitted(_)), "{wrong:?}");
        for error in [untrusted, refused, wrong] {
            assert!(!error.may_have_run() && error.is_server_failure(), "{error:?}");
        }
        assert!(
            !matches!(
                StoreError::from(redis::RedisError::from((redis::ErrorKind::Client, "odd"))),
                StoreError::Refused { .. }
            ),
            "no code"
        );
        let wrong_type = said("WRONGTYPE Operation against a key holding the wrong kind of value");
        let not_a_number: Result<u64, _> = redis::from_redis_value(redis::Value::BulkString(b"x".to_vec()));
        let not_a_number = StoreError::from(redis::RedisError::from(not_a_number.unwrap_err()));
        for error in [wrong_type, not_a_number] {
            assert!(
                matches!(error, StoreError::MalformedData { .. }) && !error.is_server_failure(),
                "{error:?}"
            );
        }
        let torn = std::io::Error::new(std::io::ErrorKind::InvalidData, "torn");
        let other = StoreError::from(redis::RedisError::from(torn));
        assert!(matches!(other, StoreError::NoAnswer(Some(_))), "{other:?}");
    }
}
