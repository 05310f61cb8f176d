//! Sums over the wallets of an account and mode (decision D16).

use super::Wallet;
use crate::keys::Realm;
use crate::page::PageRequest;
use crate::{Store, StoreError};
use domain::money::{Nanos, NanosSum};

/// Maximum number of wallets that are summed: the newest ones.
pub const WALLETS_MAX: usize = 10_000;
/// Wallets read in one round trip.
const AT_ONCE: usize = 500;

/// Sums over wallets of an account and mode.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct WalletTotals {
    /// Sum of balances.
    pub balance: NanosSum,
    /// Sum of pending deposits.
    pub pending: NanosSum,
    /// Count of wallets.
    pub wallets: u64,
    /// True if there are more than [`WALLETS_MAX`], which are not summed.
    pub partial: bool,
}

impl WalletTotals {
    /// Sums the wallets of the agents in chunks. The result is not of one moment while money moves.
    pub(super) async fn read_agents(store: &Store, realm: &Realm) -> Result<Self, StoreError> {
        let mut sums = Self::default();
        let mut position: Option<String> = None;
        for _ in 0..WALLETS_MAX / AT_ONCE {
            let page = match &position {
                None => PageRequest::at(0, AT_ONCE),
                Some(position) => PageRequest::after(position, AT_ONCE),
            };
            let part = page.members(store, &realm.agents()).await?;
            let agents = part.records;
            if agents.is_empty() {
                return Ok(sums);
            }
            let fields = agents
                .iter()
                .map(|agent| (realm.agent(agent), &["balance", "pending"]));
            let held: Vec<(Option<u64>, Option<u64>)> = store.each("HMGET", fields).await?;
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

    pub(super) fn add_wallet(&mut self, wallet: &Wallet) {
        self.add(Some(wallet.balance.get()), Some(wallet.pending.get()));
    }

    /// Adds a wallet; one without a balance was closed meanwhile.
    fn add(&mut self, balance: Option<u64>, pending: Option<u64>) {
        if let Some(balance) = balance {
            self.balance += Nanos::from_stored(balance);
            self.pending += Nanos::from_stored(pending.unwrap_or(0));
            self.wallets += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn full_wallets_add_up_exactly() {
        let mut sums = WalletTotals::default();
        for _ in 0..3 {
            sums.add(Some(8_999_999_999_999_999_999), Some(1));
        }
        sums.add(None, Some(5));
        assert_eq!(
            (sums.wallets, sums.balance.to_string().as_str()),
            (3, "26999999999.999999997")
        );
        assert_eq!(sums.pending.to_string(), "0.000000003");
    }
}
