//! What an account's own record and indexes count: what of its plan is used, and how much of other things there is.

use crate::keys::AccountKeys;
use crate::{Store, StoreError};
use domain::mode::Mode;
use domain::money::Nanos;
use domain::period::Period;

/// The account's own counters.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AccountCounters {
    /// Tracked this month, what is held included.
    pub tracked: Nanos,
    /// Agents that have one of the plan's places this month.
    pub cap_agents: u64,
    /// Active virtual keys.
    pub active_keys: u64,
    /// Webhooks of the mode.
    pub webhooks: u64,
    /// Agents with a wallet row.
    pub custom_agents: u64,
    /// Users.
    pub users: u64,
    /// Below which balance the account-wide policies report a wallet.
    pub low_balance: Option<Nanos>,
}

impl AccountCounters {
    /// Reads the counters of `period`. Nothing of test mode counts against the plan (decision D53).
    ///
    /// # Errors
    /// [`StoreError`], also for a record that makes no sense.
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
