//! Summary of all agents of an account and mode: spending and balance of each, and agents that need attention. Reads at
//! most [`AGENTS_MAX`] agents; [`Survey::partial`] says whether there are more.

use crate::account::members;
use crate::atomic_read::AGENTS_AT_ONE_MOMENT;
use crate::keys::Realm;
use crate::policy::watched::WatchedLimits;
use crate::read::Read;
use crate::{Store, StoreError};
use domain::mode::Mode;
use domain::money::Nanos;
use domain::period::Period;
use std::collections::{HashMap, HashSet};

/// Maximum number of agents in a survey.
pub const AGENTS_MAX: usize = 5000;

/// An agent's part of the survey.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct AgentSummary {
    /// Agent id.
    pub id: String,
    /// The actor that froze it, if it is frozen: `user` or `operator`.
    pub frozen: Option<String>,
    /// Wallet id, if it has a wallet row.
    pub wallet: Option<String>,
    /// Display name, if it has a wallet row.
    pub name: Option<String>,
    /// Balance of the wallet.
    pub balance: Nanos,
    /// Low-balance threshold of its own policy; `None` if it has no policy of its own.
    pub own_threshold: Option<Option<Nanos>>,
    /// Watched limits of its own policy; `None` if it has no policy of its own.
    pub own_limits: Option<WatchedLimits>,
    /// Charged for calls in flight.
    pub held: Nanos,
    /// Charged today.
    pub day: Nanos,
    /// Charged this month.
    pub month: Nanos,
    /// The money that its wallet may spend in a day.
    pub spend_limit: Option<Nanos>,
    /// The money that its wallet has spent today.
    pub wallet_day: Nanos,
    /// True if it has a wallet row or a policy. An agent may also consist of keys alone.
    has_record: bool,
}

/// The newest agents of an account and mode, as read for an overview.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Survey {
    /// The agents that were read.
    pub agents: Vec<AgentSummary>,
    /// Time of each freeze, in ms since 1970.
    pub frozen_since: HashMap<String, u64>,
    /// Count of agents with a wallet row.
    pub rows: u64,
    /// True if some agents were not read.
    pub partial: bool,
    /// The account's tracked spend of the month, open holds included, at the moment at which the agents were read, or
    /// the last part of them if they are more than `AGENTS_AT_ONE_MOMENT`. `None` without agents.
    pub tracked: Option<Nanos>,
}

impl Survey {
    /// Reads the agents with a wallet row, with a provider key, frozen, or among `others`: together all that can have
    /// spent anything.
    pub async fn read(
        store: &Store,
        realm: &Realm,
        period: Period,
        others: impl Iterator<Item = String>,
    ) -> Result<Self, StoreError> {
        let last = AGENTS_MAX - 1;
        let mut query = redis::pipe();
        query.cmd("ZCARD").arg(realm.agents());
        query.cmd("ZREVRANGE").arg(realm.agents()).arg(0).arg(last);
        let frozen = realm.frozen_agents();
        query
            .cmd("ZREVRANGE")
            .arg(frozen)
            .arg(0)
            .arg(last)
            .arg("WITHSCORES");
        type Found = (u64, Vec<String>, Vec<(String, u64)>);
        let (rows, ids, frozen): Found = store.pipeline(&query).await?;
        let (keyed, all_keyed) = match realm.mode() {
            Mode::Live => members(store, &realm.keys().sealed_agents(), AGENTS_MAX).await?,
            Mode::Test => (Vec::new(), true),
        };
        let mut known = HashSet::new();
        let mut all: Vec<String> = Vec::new();
        let frozen_ids = frozen.iter().map(|(id, _)| id.clone());
        for id in ids.into_iter().chain(keyed).chain(others).chain(frozen_ids) {
            if known.insert(id.clone()) {
                all.push(id);
            }
        }
        let partial = rows > AGENTS_MAX as u64 || !all_keyed || all.len() > AGENTS_MAX;
        all.truncate(AGENTS_MAX);
        let (mut agents, mut tracked) = (Vec::with_capacity(all.len()), None);
        for ids in all.chunks(AGENTS_AT_ONE_MOMENT) {
            let (some, beside) = read_agents(store, realm, period, ids).await?;
            agents.extend(some);
            tracked = Some(beside);
        }
        Ok(Self {
            agents,
            frozen_since: frozen.into_iter().collect(),
            rows,
            partial,
            tracked,
        })
    }

    /// Returns the frozen agents that exist (decision D22). A deleted agent stays in the index, since it is frozen if
    /// it is created again.
    pub async fn frozen(&self, store: &Store, realm: &Realm) -> Result<Vec<&AgentSummary>, StoreError> {
        self.existing(store, realm, |agent| agent.frozen.is_some()).await
    }

    /// Returns the agents that exist without a wallet row, by a policy or a key alone.
    pub async fn without_wallet(
        &self,
        store: &Store,
        realm: &Realm,
    ) -> Result<Vec<&AgentSummary>, StoreError> {
        self.existing(store, realm, |agent| agent.wallet.is_none()).await
    }

    /// Returns the selected agents that exist (decision D22).
    async fn existing(
        &self,
        store: &Store,
        realm: &Realm,
        is_selected: fn(&AgentSummary) -> bool,
    ) -> Result<Vec<&AgentSummary>, StoreError> {
        let selected = self.agents.iter().filter(|agent| is_selected(agent));
        let (mut exist, doubtful): (Vec<&AgentSummary>, Vec<_>) =
            selected.partition(|agent| agent.has_record);
        if realm.mode() == Mode::Test {
            return Ok(exist);
        }
        for agents in doubtful.chunks(AGENTS_AT_ONE_MOMENT) {
            let mut query = redis::pipe();
            for agent in agents {
                query.cmd("EXISTS").arg(realm.keys().agent_keys(&agent.id));
                query
                    .cmd("SISMEMBER")
                    .arg(realm.keys().sealed_agents())
                    .arg(&agent.id);
            }
            let has: Vec<bool> = store.pipeline(&query).await?;
            let pairs = agents.iter().zip(has.chunks(2));
            exist.extend(
                pairs
                    .filter(|(_, has)| has.contains(&true))
                    .map(|(agent, _)| *agent),
            );
        }
        Ok(exist)
    }
}

const FIELDS: [&str; 11] = [
    "frozen",
    "wallet",
    "name",
    "policy_id",
    "balance",
    "held",
    "cap",
    "cap_low",
    "cap_day",
    "cap_month",
    "spend_limit",
];

/// Reads these agents, and the account's tracked spend of the month, at one moment.
async fn read_agents(
    store: &Store,
    realm: &Realm,
    period: Period,
    ids: &[String],
) -> Result<(Vec<AgentSummary>, Nanos), StoreError> {
    let (day, month) = (format!("d{}", period.day), format!("m{}", period.month));
    let (wallet_day, tracked) = (format!("w{}", period.day), format!("t{}", period.month));
    let fields: Vec<&str> = FIELDS.into_iter().chain([&*day, &*month, &*wallet_day]).collect();
    let bucket = realm.bucket();
    let of_account = Read::fields(bucket, realm.record(), &[tracked]);
    let of_agents = ids
        .iter()
        .map(|id| Read::fields(bucket, realm.agent(id), &fields));
    let reads: Vec<Read> = [of_account].into_iter().chain(of_agents).collect();
    let mut found: Vec<Vec<Option<String>>> = store.read_atomically(&reads).await?;
    let records = found.split_off(1.min(found.len()));
    let tracked = match found.into_iter().flatten().next().flatten() {
        None => Nanos::ZERO,
        Some(text) => Nanos::from_stored(
            text.parse()
                .map_err(|_| StoreError::unexpected("account record"))?,
        ),
    };
    let seen = ids.iter().zip(records);
    seen.map(|(id, fields)| AgentSummary::from_fields(id, fields))
        .collect::<Option<_>>()
        .map(|agents| (agents, tracked))
        .ok_or_else(|| StoreError::unexpected("agent record"))
}

impl AgentSummary {
    /// `None` if the fields are malformed.
    fn from_fields(id: &str, fields: Vec<Option<String>>) -> Option<Self> {
        let fields: [Option<String>; FIELDS.len() + 3] = fields.try_into().ok()?;
        let [
            frozen,
            wallet,
            name,
            policy,
            balance,
            held,
            cap,
            low,
            cap_day,
            cap_month,
            spend_limit,
            day,
            month,
            wallet_day,
        ] = fields;
        let nanos = |text: Option<String>| match text {
            None => Some(Nanos::ZERO),
            Some(text) => text.parse().ok().map(Nanos::from_stored),
        };
        let threshold = low.filter(|low| !low.is_empty());
        let threshold = match threshold {
            None => None,
            low => Some(nanos(low)?),
        };
        let own_limits = match &cap {
            None => None,
            Some(cap) => Some(WatchedLimits::from_fields(cap, cap_day, cap_month)?),
        };
        Some(Self {
            own_limits,
            id: id.to_owned(),
            frozen,
            has_record: wallet.is_some() || policy.is_some(),
            name: name.filter(|_| wallet.is_some()),
            balance: nanos(balance)?,
            own_threshold: cap.map(|_| threshold),
            held: nanos(held)?,
            day: nanos(day)?,
            month: nanos(month)?,
            spend_limit: match spend_limit {
                None => None,
                limit => Some(nanos(limit)?),
            },
            wallet_day: nanos(wallet_day)?,
            wallet,
        })
    }
}
