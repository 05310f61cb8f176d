//! What all wallets of an account's agents hold together (decision D16).

use crate::keys::AccountKeys;
use crate::page::Page;
use crate::{Store, StoreError};
use domain::mode::Mode;
use domain::money::Nanos;

/// Wallets added up for one answer, at most: the newest ones.
pub const WALLETS_MAX: usize = 10_000;
/// Wallets added up in one round trip.
const AT_ONCE: usize = 500;

/// The sums.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Totals {
    /// What they hold.
    pub balance: Nanos,
    /// Their deposits that are not confirmed yet.
    pub pending: Nanos,
    /// How many of them there are.
    pub wallets: u64,
    /// Whether there are others that were not added: see [`WALLETS_MAX`].
    pub partial: bool,
}

impl Totals {
    /// Adds them up, some hundreds at a time: not one moment's picture when money moves meanwhile.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn of_agents(store: &Store, account: &AccountKeys, mode: Mode) -> Result<Self, StoreError> {
        let mut sums = Self::default();
        let mut position: Option<String> = None;
        for _ in 0..WALLETS_MAX / AT_ONCE {
            let page = match &position {
                None => Page::at(0, AT_ONCE),
                Some(position) => Page::after(position, AT_ONCE),
            };
            let part = page.members(store, &account.agents(mode)).await?;
            let agents = part.records;
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
            position = part.next;
            if position.is_none() {
                return Ok(sums);
            }
        }
        sums.partial = true;
        Ok(sums)
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
