//! Rejections of calls before they are sent.

use crate::reply::EdgeReply;
use crate::reply::denied::Denied;
use crate::reply::refusal::{Refusal, RefusalKind};
use domain::decision::denial_kind;
use domain::denial::Denial;

/// Why a call was rejected before it was sent.
#[derive(Debug)]
pub enum Rejection {
    /// The request itself is at fault.
    Refused(Refusal),
    /// The call was denied.
    Denied(Box<Denied>),
}

impl Rejection {
    /// Creates the denial of a call that cannot be decided or sent (503).
    pub fn unavailable() -> Self {
        let denial = Denial::ServiceUnavailable;
        let kind = denial_kind(denial);
        let id = kind
            .mint(clock::now_ms())
            .unwrap_or_else(|_| kind.prefix().to_owned());
        Self::Denied(Box::new(Denied::new(denial, id)))
    }

    /// Creates the refusal of a key that does not exist, or no longer exists (401).
    pub fn unknown_key() -> Self {
        Refusal::new(
            RefusalKind::InvalidApiKey,
            "This virtual key is unknown or revoked.",
        )
        .into()
    }

    /// Builds the answer.
    pub fn reply(&self) -> EdgeReply {
        match self {
            Self::Refused(refusal) => refusal.reply(),
            Self::Denied(denied) => denied.reply(),
        }
    }
}

impl From<Refusal> for Rejection {
    fn from(refusal: Refusal) -> Self {
        Self::Refused(refusal)
    }
}

impl From<Box<Denied>> for Rejection {
    fn from(denied: Box<Denied>) -> Self {
        Self::Denied(denied)
    }
}
