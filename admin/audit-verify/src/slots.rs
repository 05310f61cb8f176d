//! Limits concurrent verifications on this server: each reads and hashes a whole trail.

use parking_lot::Mutex;
use std::collections::HashSet;
use std::sync::Arc;

/// Maximum number of concurrent verifications on a server.
const AT_ONCE: usize = 2;

/// The accounts whose trails are being verified.
#[derive(Debug, Default)]
pub struct Turns(Mutex<HashSet<String>>);

/// Permission to verify. Dropping it ends the verification's turn.
#[derive(Debug)]
pub struct Turn {
    turns: Arc<Turns>,
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

impl Turns {
    /// Returns a turn for `account`.
    pub fn take(self: &Arc<Self>, account: &str) -> Result<Turn, Busy> {
        let mut busy = self.0.lock();
        if busy.contains(account) {
            return Err(Busy::Account);
        }
        if busy.len() >= AT_ONCE {
            return Err(Busy::Server);
        }
        busy.insert(account.to_owned());
        Ok(Turn {
            turns: Arc::clone(self),
            account: account.to_owned(),
        })
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        let mut busy = self.turns.0.lock();
        busy.remove(&self.account);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_account_has_one_turn_and_a_server_two() {
        let turns = Arc::new(Turns::default());
        let first = turns.take("acct_1").unwrap();
        assert_eq!(turns.take("acct_1").unwrap_err(), Busy::Account);
        let second = turns.take("acct_2").unwrap();
        assert_eq!(turns.take("acct_3").unwrap_err(), Busy::Server);
        assert_eq!(turns.take("acct_2").unwrap_err(), Busy::Account);
        drop(first);
        let third = turns.take("acct_3").unwrap();
        drop((second, third));
        turns.take("acct_1").unwrap();
    }
}
