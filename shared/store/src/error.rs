//! What can go wrong with the store, sorted by the one question that matters: did the command run or not?

use domain::budget::Budget;

/// A store call that gave no usable answer.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// The server refused the command before running it: full, read-only, loading, script missing.
    #[error("the store refused the command: {code}")]
    Refused {
        /// The server's error code, such as `OOM` or `READONLY`.
        code: String,
        /// What the client library said.
        #[source]
        source: redis::RedisError,
    },
    /// No answer in time, or the connection broke: the command may have run.
    #[error("the store did not answer")]
    NoAnswer(#[source] Option<redis::RedisError>),
    /// There is no connection and none could be made: the command was never sent.
    #[error("the store did not answer")]
    NotConnected(#[source] redis::RedisError),
    /// What changes money cannot be made as safe as `store.durability` says.
    #[error("{}: {why}", if *.ran { "not confirmed as safe" } else { "refused" })]
    NotDurable {
        /// Whether the command may have run.
        ran: bool,
        /// What is missing.
        why: String,
    },
    /// The account has as many records of a kind as it may make the store keep (decision D71); nothing was changed.
    #[error("the budget of {most} {} is used up (limits.{})", .budget.noun(), .budget.as_str())]
    OverBudget {
        /// The kind.
        budget: Budget,
        /// How many it may have.
        most: u64,
    },
    /// The store does not know the account, or not as far as it was seen before: it is another ledger, or lost writes.
    /// What it lacks says nothing, and nothing was changed.
    #[error("the store does not know the account, or lost writes of it")]
    LacksWrites,
    /// The store has less of this account than this process has seen: it lost writes (decision D47). Nothing was done.
    #[error(
        "the store lost writes of account {account}; look at what is missing, then `tollgate-admin store accept --account {account}`"
    )]
    LostWrites {
        /// Account id, `acct_…`.
        account: String,
    },
    /// An answer that the caller does not understand.
    #[error("the store's answer makes no sense: {0}")]
    UnexpectedReply(String),
    /// A page was to start behind a position that the list cannot have; nothing was read.
    #[error("the list has no such position")]
    BadPosition,
    /// What was asked for has left the store, and where it went it cannot be read.
    #[error("{0}")]
    Archive(String),
    /// The address or its options are wrong.
    #[error("{0}")]
    BadUrl(String),
}

impl StoreError {
    /// Whether the command may have had an effect although no usable answer came.
    #[must_use]
    pub const fn may_have_run(&self) -> bool {
        !matches!(
            self,
            Self::Refused { .. }
                | Self::NotConnected(_)
                | Self::BadUrl(_)
                | Self::Archive(_)
                | Self::OverBudget { .. }
                | Self::LostWrites { .. }
                | Self::NotDurable { ran: false, .. }
                | Self::LacksWrites
                | Self::BadPosition
        )
    }

    /// What the server said of a script that broke off: something in the account is not what it should be, and trying
    /// again does not change that.
    #[must_use]
    pub fn broken_script(&self) -> Option<String> {
        match self {
            Self::NoAnswer(Some(source)) if source.code().is_some() => {
                let said = source.to_string();
                said.contains(IN_SCRIPT).then_some(said)
            }
            _ => None,
        }
    }

    /// Whether the server gave no answer, or none to anybody now: another command for it is likely to end as this one
    /// did.
    #[must_use]
    pub fn is_of_its_server(&self) -> bool {
        match self {
            Self::NotConnected(_) | Self::NoAnswer(None) => true,
            Self::NoAnswer(Some(source)) => source.is_io_error(),
            Self::Refused { code, .. } => NOBODY_NOW.contains(&code.as_str()),
            _ => false,
        }
    }

    /// Recognises a command that was never sent, because there was no connection to send it on and none could be made.
    /// On a cluster a command that was sent before is sent again only when the first node refused it.
    pub(super) fn unless_never_sent(self) -> Self {
        match self {
            Self::NoAnswer(Some(source)) if source.is_connection_refusal() => Self::NotConnected(source),
            error => error,
        }
    }
}

/// Stands in what the server says of a command that failed within a script, before the script's hash and the line.
const IN_SCRIPT: &str = " script: ";

/// Codes with which the server refuses a command *before* any of its effects.
const REFUSALS: [&str; 13] = [
    "OOM",
    "READONLY",
    "MISCONF",
    "LOADING",
    "BUSY",
    "NOSCRIPT",
    "NOREPLICAS",
    "NOAUTH",
    "NOPERM",
    "MASTERDOWN",
    "CLUSTERDOWN",
    "CROSSSLOT",
    "TRYAGAIN",
];

/// Those of them with which it refuses everybody.
const NOBODY_NOW: [&str; 5] = ["LOADING", "BUSY", "MASTERDOWN", "CLUSTERDOWN", "READONLY"];

impl From<redis::RedisError> for StoreError {
    fn from(source: redis::RedisError) -> Self {
        match source.code() {
            Some(code) if REFUSALS.contains(&code) => Self::Refused {
                code: code.to_owned(),
                source,
            },
            _ => Self::NoAnswer(Some(source)),
        }
    }
}
