//! Turns operations on escrows into acts.

use super::op::Op;
use super::player::{Player, prefer};
use crate::act::{Act, Decide, NewEscrow, Verdict};

impl Player {
    /// The number of an escrow, most often one in this state.
    pub fn number(&self, which: usize, status: &str) -> Option<u64> {
        let escrows = &self.model().escrows;
        let numbers: Vec<u64> = escrows.keys().copied().collect();
        prefer(&numbers, which, |number| escrows[number].status == status)
    }

    pub fn escrow(&mut self, op: Op) -> Option<Act> {
        Some(match op {
            Op::Escrow {
                from,
                to,
                amount,
                key,
                sees_closed,
            } => {
                let from = self.wallet(from)?;
                let to = self.other(&from, to)?;
                let amount = self.amount(amount, Some(&from), Some(&to));
                let closed = self.is_closed(&from) || self.is_closed(&to);
                // The script does not see whether a payee of another account is closed.
                let closed = closed && (sees_closed || to.at != from.at);
                Act::Escrow(NewEscrow {
                    request_id: self.request_id(from.at, key),
                    from,
                    to,
                    amount,
                    closed,
                    crash: false,
                })
            }
            Op::Fund { which, key } => {
                let escrow = self.number(which, "pending")?;
                let request_id = self.request_id(self.model().escrows[&escrow].at, key);
                Act::Fund { request_id, escrow }
            }
            Op::Decide {
                which,
                by_payee,
                dispute,
                key,
                crash,
            } => {
                let escrow = self.number(which, "funded")?;
                let parties = &self.model().escrows[&escrow];
                let at = if by_payee { parties.to_at } else { parties.at };
                let reason = which.is_multiple_of(3).then(|| "not as agreed".to_owned());
                let verdict = if dispute {
                    Verdict::Dispute(reason)
                } else {
                    Verdict::Release
                };
                let request_id = self.request_id(at, key);
                Act::Decide(Decide {
                    request_id,
                    escrow,
                    verdict,
                    crash,
                })
            }
            _ => return None,
        })
    }
}
