//! What all wallets of an account's agents hold together (decision D16).

use crate::domain::mode::Mode;
use crate::domain::money::Nanos;
use crate::store::keys::AccountKeys;
use crate::store::{Store, StoreError};

/// Wallets added up in one round trip.
const AT_ONCE: usize = 500;

/// The sums.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Totals {
    /// What they hold.
    pub balance: Nanos,
    /// Their deposits that are not confirmed yet.
    pub pending: Nanos,
    /// How many there are.
    pub wallets: u64,
}

impl Totals {
    /// Adds them up, some hundreds at a time: not one moment's picture when money moves meanwhile.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn of_agents(store: &Store, account: &AccountKeys, mode: Mode) -> Result<Self, StoreError> {
        let mut sums = Self::default();
        let mut offset = 0;
        loop {
            let mut range = redis::cmd("ZRANGE");
            range.arg(account.agents(mode));
            range.arg(offset).arg(offset + AT_ONCE - 1);
            let agents: Vec<String> = store.command(&range).await?;
            if agents.is_empty() {
                return Ok(sums);
            }
            let mut look = redis::pipe();
            for agent in &agents {
                let record = account.agent(mode, agent);
                look.cmd("HMGET").arg(record).arg(&["balance", "pending"]);
            }
            let held: Vec<(Option<u64>, Option<u64>)> = store.pipeline(&look).await?;
            for (balance, pending) in held {
                sums.add(balance, pending);
            }
            offset += AT_ONCE;
        }
    }

    /// Adds a wallet; one without a balance was closed meanwhile.
    fn add(&mut self, balance: Option<u64>, pending: Option<u64>) {
        if let Some(balance) = balance {
            let pending = Nanos::from_stored(pending.unwrap_or(0));
            self.balance = self.balance.saturating_add(Nanos::from_stored(balance));
            self.pending = self.pending.saturating_add(pending);
            self.wallets += 1;
        }
    }
}
