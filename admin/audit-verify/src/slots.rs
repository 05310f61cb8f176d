//! Limits concurrent verifications on this server: each reads and hashes a whole trail.

use parking_lot::Mutex;
use std::collections::HashSet;
use std::sync::Arc;

/// Maximum number of concurrent verifications on a server.
const AT_ONCE: usize = 2;

/// The accounts whose trails are being verified.
#[derive(Debug, Default)]
pub struct VerificationSlots(Mutex<HashSet<String>>);

/// Permission to verify. Dropping it frees the slot.
#[derive(Debug)]
pub struct VerificationSlot {
    slots: Arc<VerificationSlots>,
    account: String,
}

/// Why a verification cannot start.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Busy {
    /// A trail of the account is being verified.
    Account,
    /// The server already runs the maximum number of verifications.
    Server,
}

impl VerificationSlots {
    /// Takes a slot for `account`.
    pub fn take(self: &Arc<Self>, account: &str) -> Result<VerificationSlot, Busy> {
        let mut busy = self.0.lock();
        if busy.contains(account) {
            return Err(Busy::Account);
        }
        if busy.len() >= AT_ONCE {
            return Err(Busy::Server);
        }
        busy.insert(account.to_owned());
        Ok(VerificationSlot {
            slots: Arc::clone(self),
            account: account.to_owned(),
        })
    }
}

impl Drop for VerificationSlot {
    fn drop(&mut self) {
        let mut busy = self.slots.0.lock();
        busy.remove(&self.account);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_account_has_one_slot_and_a_server_two() {
        let slots = Arc::new(VerificationSlots::default());
        let first = slots.take("acct_1").unwrap();
        assert_eq!(slots.take("acct_1").unwrap_err(), Busy::Account);
        let second = slots.take("acct_2").unwrap();
        assert_eq!(slots.take("acct_3").unwrap_err(), Busy::Server);
        assert_eq!(slots.take("acct_2").unwrap_err(), Busy::Account);
        drop(first);
        let third = slots.take("acct_3").unwrap();
        drop((second, third));
        slots.take("acct_1").unwrap();
    }
}
