//! Usage counters of an account: from its own record and the lengths of its indexes.

use crate::keys::Realm;
use crate::policy::watched::WatchedLimits;
use crate::{Store, StoreError};
use domain::mode::Mode;
use domain::money::Nanos;
use domain::period::Period;

/// Usage counters of an account.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
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
    /// Watched limits of the account-wide policies.
    pub limits: WatchedLimits,
}

impl AccountCounters {
    /// Reads the counters of `period`. Test mode never counts against the plan (decision D53).
    pub async fn read(store: &Store, realm: &Realm, period: Period) -> Result<Self, StoreError> {
        let mode = realm.mode();
        let mut query = redis::pipe();
        query
            .cmd("HMGET")
            .arg(realm.record())
            .arg(format!("t{}", period.month))
            .arg(format!("n{}", period.month))
            .arg(format!("{mode}_webhooks"))
            .arg(format!("{mode}_low"))
            .arg(format!("{mode}_cap"))
            .arg(format!("{mode}_day"))
            .arg(format!("{mode}_month"));
        query.cmd("ZCARD").arg(realm.keys().active_keys());
        query.cmd("ZCARD").arg(realm.agents());
        query.cmd("HLEN").arg(realm.keys().users());
        let (fields, active_keys, custom_agents, users): (Vec<Option<String>>, u64, u64, u64) =
            store.pipeline(&query).await?;
        let malformed = || StoreError::unexpected("account record");
        let fields: [Option<String>; 7] = fields.try_into().map_err(|_| malformed())?;
        let [tracked, slots, webhooks, low, cap, day, month] = fields;
        let number = |text: Option<String>| match text.filter(|text| !text.is_empty()) {
            None => Ok(None),
            Some(text) => text.parse::<u64>().map(Some).map_err(|_| malformed()),
        };
        let (tracked, slots, webhooks) = (number(tracked)?, number(slots)?, number(webhooks)?);
        let low_balance = number(low)?.map(Nanos::from_stored);
        let limits = WatchedLimits::from_fields(cap.as_deref().unwrap_or_default(), day, month);
        let limits = limits.ok_or_else(malformed)?;
        let live = |count: u64| if realm.mode() == Mode::Live { count } else { 0 };
        Ok(Self {
            tracked: Nanos::from_stored(live(tracked.unwrap_or(0))),
            cap_agents: live(slots.unwrap_or(0)),
            active_keys: live(active_keys),
            webhooks: webhooks.unwrap_or(0),
            custom_agents,
            users,
            low_balance,
            limits,
        })
    }
}
