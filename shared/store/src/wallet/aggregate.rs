//! The wallets of an account and mode together: its own, a page of its agents', and sums over all (decision D16).

use super::Wallet;
use super::totals::WalletTotals;
use crate::atomic_read::AGENTS_AT_ONE_MOMENT;
use crate::keys::{Realm, USER};
use crate::page::{Page, PageRequest};
use crate::read::Read;
use crate::{Store, StoreError};
use std::collections::HashMap;

/// Retries of a read while agents are added or removed.
const READ_ATTEMPTS: usize = 3;

/// The wallets of an account and mode.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WalletAggregate {
    /// The account's own wallet.
    pub user: Wallet,
    /// The requested page of the agents' wallets, newest first.
    pub agents: Page<Wallet>,
    /// Sums over all of them, the account's own included.
    pub totals: WalletTotals,
}

impl WalletAggregate {
    /// Reads the wallets; `user` is the account's own as it was a moment ago. All amounts are of one moment, unless
    /// there are more than `AGENTS_AT_ONE_MOMENT` agents or agents are added or removed during each attempt: then money
    /// that moves meanwhile can be in two wallets, or in none.
    ///
    /// # Errors
    /// [`StoreError`], also for a malformed record.
    pub async fn read(
        store: &Store,
        realm: &Realm,
        user: Wallet,
        page: PageRequest<'_>,
    ) -> Result<Self, StoreError> {
        for _ in 0..READ_ATTEMPTS {
            let names = AgentNames::read(store, realm).await?;
            if names.count() > AGENTS_AT_ONE_MOMENT {
                break;
            }
            let listed = page.members(store, &realm.agents()).await?;
            if let Some(wallets) = names.wallets(store, realm).await? {
                return Self::of_one_moment(wallets, listed);
            }
        }
        let agents = Wallet::list(store, realm, page).await?;
        let mut totals = WalletTotals::read_agents(store, realm).await?;
        totals.add_wallet(&user);
        Ok(Self { user, agents, totals })
    }

    fn of_one_moment(
        mut wallets: HashMap<String, Wallet>,
        mut listed: Page<String>,
    ) -> Result<Self, StoreError> {
        let mut totals = WalletTotals::default();
        wallets.values().for_each(|wallet| totals.add_wallet(wallet));
        let user = wallets
            .remove(USER)
            .ok_or_else(|| StoreError::unexpected("wallet"))?;
        let agents = std::mem::take(&mut listed.records);
        let shown = agents.iter().filter_map(|agent| wallets.remove(agent)).collect();
        Ok(Self {
            user,
            agents: listed.with(shown),
            totals,
        })
    }
}

/// The agents with a wallet, each with its score, up to one more than `AGENTS_AT_ONE_MOMENT`.
struct AgentNames(Vec<String>);

impl AgentNames {
    fn query(realm: &Realm) -> Read {
        Read::sorted(realm.bucket(), realm.agents(), 0, AGENTS_AT_ONE_MOMENT as u64 + 1)
    }

    async fn read(store: &Store, realm: &Realm) -> Result<Self, StoreError> {
        let (names,): (Vec<String>,) = store.read_atomically(&[Self::query(realm)]).await?;
        Ok(Self(names))
    }

    const fn count(&self) -> usize {
        self.0.len() / 2
    }

    /// Reads the wallets of these agents and the account's own at one moment, by owner; `None` if the agents are no
    /// longer these.
    async fn wallets(
        &self,
        store: &Store,
        realm: &Realm,
    ) -> Result<Option<HashMap<String, Wallet>>, StoreError> {
        let owners = || self.0.iter().step_by(2).map(String::as_str).chain([USER]);
        let fields = |owner| Read::fields(realm.bucket(), realm.wallet(owner), &Wallet::FIELDS);
        let reads: Vec<Read> = [Self::query(realm)]
            .into_iter()
            .chain(owners().map(fields))
            .collect();
        let mut found: Vec<Vec<Option<String>>> = store.read_atomically(&reads).await?;
        let records = found.split_off(1.min(found.len()));
        let names = found.into_iter().flatten();
        if !names.eq(self.0.iter().cloned().map(Some)) {
            return Ok(None);
        }
        let wallets = owners().zip(records).map(|(owner, values)| {
            let named = Wallet::FIELDS.into_iter().zip(values);
            let fields = named.filter_map(|(name, value)| Some((name.to_owned(), value?)));
            Some((owner.to_owned(), Wallet::from_fields(owner, &fields.collect())?))
        });
        let wallets: Option<HashMap<String, Wallet>> = wallets.collect();
        wallets.map(Some).ok_or_else(|| StoreError::unexpected("wallet"))
    }
}
