//! Usage counters of an account: from its own record and the lengths of its indexes.

use crate::keys::AccountKeys;
use crate::{Store, StoreError};
use domain::mode::Mode;
use domain::money::Nanos;
use domain::period::Period;

/// Usage counters of an account.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AccountCounters {
    /// Tracked spend of the month, open holds included.
    pub tracked: Nanos,
    /// Agents that count against the plan's limit of Cap agents this month.
    pub cap_agents: u64,
    /// Count of active virtual keys.
    pub active_keys: u64,
    /// Count of webhooks in the mode.
    pub webhooks: u64,
    /// Count of agents with a wallet row.
    pub custom_agents: u64,
    /// Count of users.
    pub users: u64,
    /// Low-balance threshold of the account-wide policies.
    pub low_balance: Option<Nanos>,
}

impl AccountCounters {
    /// Reads the counters of `period`. Test mode never counts against the plan (decision D53).
    ///
    /// # Errors
    /// [`StoreError`], also for a malformed record.
    pub async fn read(
        store: &Store,
        keys: &AccountKeys,
        mode: Mode,
        period: Period,
    ) -> Result<Self, StoreError> {
        let mut look = redis::pipe();
        look.cmd("HMGET")
            .arg(keys.record())
            .arg(format!("t{}", period.month))
            .arg(format!("n{}", period.month))
            .arg(format!("{mode}_webhooks"))
            .arg(format!("{mode}_low"));
        look.cmd("ZCARD").arg(keys.active_keys());
        look.cmd("ZCARD").arg(keys.agents(mode));
        look.cmd("HLEN").arg(keys.users());
        type Found = (
            (Option<u64>, Option<u64>, Option<u64>, Option<String>),
            u64,
            u64,
            u64,
        );
        let ((tracked, slots, webhooks, low), active_keys, custom_agents, users): Found =
            store.pipeline(&look).await?;
        let low_balance = match low.filter(|low| !low.is_empty()) {
            None => None,
            Some(low) => {
                let low = low
                    .parse()
                    .map_err(|_| StoreError::UnexpectedReply("account record".to_owned()))?;
                Some(Nanos::from_stored(low))
            }
        };
        let live = |count: u64| if mode == Mode::Live { count } else { 0 };
        Ok(Self {
            tracked: Nanos::from_stored(live(tracked.unwrap_or(0))),
            cap_agents: live(slots.unwrap_or(0)),
            active_keys: live(active_keys),
            webhooks: webhooks.unwrap_or(0),
            custom_agents,
            users,
            low_balance,
        })
    }
}
