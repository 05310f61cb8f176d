//! Every action on money, concrete enough to be performed on the store and on the model alike.

use crate::model::{At, Limits, Place};
use store::agent::freeze::FrozenBy;
use store::idempotency::RequestIdentity;

/// The actor of all requests.
pub const ACTOR: &str = "key_1";
/// The actor of approvals.
pub const DECIDER: &str = "key_2";

#[derive(Debug, Clone)]
pub struct RequestId {
    pub at: At,
    pub id: String,
    pub spare: String,
    pub fp: String,
    pub at_ms: u64,
    /// Unique among all actions. Ids that are not derived from the key are made of it.
    pub n: u64,
}

impl RequestId {
    pub fn identity(&self) -> RequestIdentity {
        RequestIdentity {
            id: self.id.clone(),
            spare_id: self.spare.clone(),
            fingerprint: self.fp.clone(),
        }
    }

    pub fn txn(&self) -> String {
        format!("txn_{}", self.n)
    }

    pub fn arrival(&self) -> String {
        format!("txn_{}in", self.n)
    }
}

/// The plan that a spend expects, with its limits of agents a month and tracked nano-USD.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Plan {
    pub name: String,
    pub agents: Option<u64>,
    pub tracked: Option<u64>,
}

#[derive(Debug, Clone)]
pub struct Spend {
    pub request_id: RequestId,
    pub agent: String,
    pub amount: u64,
    pub run: Option<String>,
    pub plan: Option<Plan>,
    pub recipient: Option<String>,
    pub description: Option<String>,
    /// True if its text was found to contain a prompt injection.
    pub injection: bool,
}

impl Spend {
    /// The request as its intent stores it.
    pub fn request(&self) -> String {
        serde_json::json!({ "recipient": self.recipient, "runId": self.run }).to_string()
    }
}

#[derive(Debug, Clone)]
pub struct Transfer {
    pub request_id: RequestId,
    /// True with an idempotency key, so that the request leaves a record.
    pub keyed: bool,
    pub from: Place,
    pub to: Place,
    pub amount: u64,
    pub memo: Option<String>,
    pub closed: bool,
    /// The process crashes after the first step: nothing is delivered.
    pub crash: bool,
}

#[derive(Debug, Clone)]
pub struct Deposit {
    pub request_id: RequestId,
    pub keyed: bool,
    pub to: Place,
    pub amount: u64,
    pub reference: String,
    pub pending: bool,
    pub closed: bool,
}

#[derive(Debug, Clone)]
pub struct NewEscrow {
    pub request_id: RequestId,
    pub from: Place,
    pub to: Place,
    pub amount: u64,
    /// A wallet was seen closed.
    pub closed: bool,
    /// The process crashes after the first step: nothing is delivered.
    pub crash: bool,
}

/// A verdict on an escrow.
#[derive(Debug, Clone)]
pub enum Verdict {
    Release,
    Dispute(Option<String>),
}

#[derive(Debug, Clone)]
pub struct Decide {
    pub request_id: RequestId,
    pub escrow: u64,
    pub verdict: Verdict,
    pub crash: bool,
}

#[derive(Debug, Clone)]
pub enum Act {
    Spend(Spend),
    /// An approval or denial of a spend that is or was pending. `stale`: its record changed since it was read.
    Resolve {
        at: At,
        id: String,
        grant: bool,
        stale: bool,
        at_ms: u64,
        plan: Option<Plan>,
        n: u64,
    },
    Transfer(Transfer),
    Deposit(Deposit),
    Confirm {
        request_id: RequestId,
        keyed: bool,
        reference: String,
    },
    /// The operator cancels a pending deposit.
    Cancel {
        at: At,
        reference: String,
    },
    Escrow(NewEscrow),
    Fund {
        request_id: RequestId,
        escrow: u64,
    },
    Decide(Decide),
    /// The operator resolves a dispute.
    End {
        escrow: u64,
        refund: bool,
        crash: bool,
    },
    /// Delivers a row in transit, or delivers one again; with `half`, without removing it.
    Deliver {
        id: String,
        half: bool,
    },
    OpenUser {
        at: At,
    },
    Freeze {
        at: At,
        agent: String,
        by: FrozenBy,
        lift: bool,
    },
    NewAgent {
        at: At,
        agent: String,
        most: Option<u64>,
    },
    Delete {
        at: At,
        agent: String,
    },
    Policy {
        at: At,
        agent: Option<String>,
        limits: Limits,
        n: u64,
    },
    DropPolicy {
        at: At,
        id: String,
    },
}

/// The requests that are an act by themselves.
macro_rules! acts {
    ($($name:ident of $request:ident),*) => {
        $(impl From<$request> for Act {
            fn from(request: $request) -> Self {
                Self::$name(request)
            }
        })*
    };
}

acts!(Spend of Spend, Transfer of Transfer, Deposit of Deposit, Escrow of NewEscrow, Decide of Decide);

/// The request id of an act, borrowed as the act is.
macro_rules! request_id_of {
    ($act:expr) => {
        match $act {
            Act::Spend(Spend { request_id, .. })
            | Act::Transfer(Transfer { request_id, .. })
            | Act::Deposit(Deposit { request_id, .. })
            | Act::Escrow(NewEscrow { request_id, .. })
            | Act::Decide(Decide { request_id, .. })
            | Act::Confirm { request_id, .. }
            | Act::Fund { request_id, .. } => Some(request_id),
            _ => None,
        }
    };
}

impl Act {
    pub fn request_id(&self) -> Option<&RequestId> {
        request_id_of!(self)
    }

    pub fn request_id_mut(&mut self) -> Option<&mut RequestId> {
        request_id_of!(self)
    }
}
