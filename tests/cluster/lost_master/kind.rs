//! The kinds of changes whose master is lost, and the balances after each was done once.

use ChangeKind::*;

/// Initial USD of each user wallet, and of each agent's wallet.
pub const FUNDS: u64 = 1000;
pub const AGENT_FUNDS: u64 = 100;
/// USD that a change moves, and USD that a spend moves.
pub const MOVED: u64 = 400;
pub const SPENT: u64 = 40;

/// A kind of change. All steps before it were made while the replica was in step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ChangeKind {
    Deposit,
    Confirm,
    Own,
    Spend,
    Approval,
    Denial,
    /// The operator cancels a pending deposit.
    Cancel,
    /// The wallet of the payer's agent is closed, after its money was moved.
    Close,
    OwnCreate,
    OwnFund,
    OwnRelease,
    OwnDispute,
    Transfer,
    Create,
    Fund,
    Release,
    ReleaseByPayee,
    Dispute,
    DisputeByPayee,
    /// The operator ends a dispute: the money goes back.
    Refund,
    /// The operator ends a dispute: the payee is paid.
    Award,
}

/// The party whose master is lost.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Victim {
    Payer,
    Payee,
}

const WITHIN: [ChangeKind; 12] = [
    Deposit, Confirm, Own, Spend, Approval, Denial, Cancel, Close, OwnCreate, OwnFund, OwnRelease, OwnDispute,
];
const ACROSS: [ChangeKind; 9] = [
    Transfer,
    Create,
    Fund,
    Release,
    ReleaseByPayee,
    Dispute,
    DisputeByPayee,
    Refund,
    Award,
];

/// Each kind of change with the master of each account that takes part.
pub fn rows() -> Vec<(ChangeKind, Victim)> {
    let within = WITHIN.iter().map(|kind| (*kind, Victim::Payer));
    let across = ACROSS
        .iter()
        .flat_map(|kind| [(*kind, Victim::Payer), (*kind, Victim::Payee)]);
    within.chain(across).collect()
}

/// Balances of the payer's user wallet and agent and of the payee's user wallet, and the state of the escrow, or of the
/// intent or deposit that ends without moving money. `agent` is `None` if its wallet is closed.
#[derive(Debug, PartialEq, Eq)]
pub struct Balances {
    pub user: u64,
    pub agent: Option<u64>,
    pub payee: u64,
    pub state: &'static str,
}

impl ChangeKind {
    pub fn done_once(self) -> Balances {
        let (user, agent, payee, state) = match self {
            Deposit | Confirm => (FUNDS + MOVED, AGENT_FUNDS, FUNDS, ""),
            Own => (FUNDS - MOVED, AGENT_FUNDS + MOVED, FUNDS, ""),
            Spend | Approval => (FUNDS, AGENT_FUNDS - SPENT, FUNDS, ""),
            Denial => (FUNDS, AGENT_FUNDS, FUNDS, "blocked"),
            Cancel => (FUNDS, AGENT_FUNDS, FUNDS, "cancelled"),
            Close => (FUNDS + AGENT_FUNDS, 0, FUNDS, ""),
            OwnCreate | Create => (FUNDS, AGENT_FUNDS, FUNDS, "pending"),
            OwnFund | Fund => (FUNDS - MOVED, AGENT_FUNDS, FUNDS, "funded"),
            OwnRelease => (FUNDS - MOVED, AGENT_FUNDS + MOVED, FUNDS, "released"),
            OwnDispute | Dispute | DisputeByPayee => (FUNDS - MOVED, AGENT_FUNDS, FUNDS, "disputed"),
            Transfer => (FUNDS - MOVED, AGENT_FUNDS, FUNDS + MOVED, ""),
            Release | ReleaseByPayee | Award => (FUNDS - MOVED, AGENT_FUNDS, FUNDS + MOVED, "released"),
            Refund => (FUNDS, AGENT_FUNDS, FUNDS, "refunded"),
        };
        Balances {
            user,
            agent: (self != Close).then_some(agent),
            payee,
            state,
        }
    }

    /// Returns whether the reply waits for `store.durability`. The loss of another change is noticed instead.
    pub fn is_confirmed(self) -> bool {
        self != Close
    }

    /// Returns true if the change is one of the victim's account, and so raises its version.
    pub fn changes(self, victim: Victim) -> bool {
        match victim {
            Victim::Payer => true,
            Victim::Payee => matches!(
                self,
                Transfer | Release | ReleaseByPayee | DisputeByPayee | Refund | Award
            ),
        }
    }
}
