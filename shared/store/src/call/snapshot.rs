//! Twin of `snapshot.lua`: reads in one step everything that a call or a spend of an agent would be checked against.

use crate::call::authorize::RUN_LIFE_MS;
use crate::keys::{self, IntentIndex, Realm};
use crate::script::change::{AGENT_EXISTS, LIVE_RUNS, PERIOD, unexpected_reply};
use crate::script::script;
use crate::{Store, StoreError};
use domain::budget::{Budget, Budgets};
use domain::cap::{CapPlan, CapPolicy, CapSnapshot, SpendPolicy};
use domain::mode::Mode;
use domain::money::Nanos;
use domain::spend_cap::{SpendSnapshot, WalletSnapshot};

script! {
    /// Reads the limits and counters that a call or a spend would be checked against.
    pub static SNAPSHOT = "snapshot",
    kind: Timed,
    source: [PERIOD, AGENT_EXISTS, LIVE_RUNS, include_str!("snapshot.lua")],
    when_full: ReadOnly,
    keys: struct SnapshotKeys<'a>: &'a str {
        account, agent, run, agent_keys, active_keys, rate, virtual_key, account_runs, intents, transactions
    },
    /// `run_life` is in ms; the last two are fields of the agent.
    args: struct SnapshotArgs<'a>: &'a str {
        mode, run_named, run_life, key_id, provider_key_id, provider_key_sealed
    },
}

/// Arguments of the snapshot.
#[derive(Debug, Clone, Copy)]
pub struct SnapshotQuery<'a> {
    /// Account and mode.
    pub realm: &'a Realm,
    /// Agent id.
    pub agent: &'a str,
    /// Run id, if the request names one.
    pub run: Option<&'a str>,
    /// Virtual key id, if the checks of the key are requested.
    pub key_id: Option<&'a str>,
    /// Provider; the agent's key of this provider would be used.
    pub provider: &'a str,
}

/// State that a call or spend would be checked against.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CallSnapshot {
    /// In ms since 1970, on the store's clock.
    pub at_ms: u64,
    /// Name of the account's plan.
    pub plan: String,
    /// True if the agent exists (decision D22).
    pub agent_exists: bool,
    /// True if the agent has a key for the provider.
    pub has_provider_key: bool,
    /// State of the virtual key, if one was named.
    pub key: Option<KeySnapshot>,
    /// Usage of budgets.
    pub records: Records,
    /// Counters, policies and wallet. The caller fills in the limits of the plan.
    pub spend: SpendSnapshot,
}

/// Records of the account and mode that count against its budgets (decision D71), as counted by the scripts that
/// enforce them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Records {
    /// Number of runs whose records have not ended.
    pub runs: u64,
    /// True if the named run has a record; also true if none is named.
    pub run_is_known: bool,
    /// Count of intents in the store.
    pub intents: u64,
    /// Bytes of text in intents and escrows.
    pub text_bytes: u64,
    /// Count of transactions that the account caused.
    pub transactions: u64,
}

impl Records {
    /// Returns the budget that a spend would exceed, in the order in which `spend.lua` checks.
    pub fn over_with_spend(&self, budgets: &Budgets, has_wallet: bool) -> Option<Budget> {
        let is_full = |budget: Budget, count: u64| count >= budgets.limit(budget);
        let full = [
            (Budget::Intents, is_full(Budget::Intents, self.intents)),
            (Budget::TextBytes, is_full(Budget::TextBytes, self.text_bytes)),
            (
                Budget::Transactions,
                has_wallet && is_full(Budget::Transactions, self.transactions),
            ),
            (Budget::Runs, self.is_run_too_many(budgets)),
        ];
        full.into_iter().find_map(|(budget, full)| full.then_some(budget))
    }

    /// Returns whether the named run would exceed the budget of runs.
    pub fn is_run_too_many(&self, budgets: &Budgets) -> bool {
        !self.run_is_known && self.runs >= budgets.limit(Budget::Runs)
    }
}

/// State of a virtual key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeySnapshot {
    /// Agent of the key; `None` if the key does not exist.
    pub agent: Option<String>,
    /// Number of older active keys of the account; `None` if the key is not active.
    pub older_keys: Option<u64>,
    /// Requests in the key's current minute.
    pub requests: u64,
    /// End of that minute, in ms since 1970, if a minute is open.
    pub resets_at_ms: Option<u64>,
}

/// Reply of the script, as its head describes.
type SnapshotReply = (
    Vec<i64>,
    Vec<Option<String>>,
    Vec<Option<String>>,
    Option<String>,
    Option<String>,
    Option<String>,
    Vec<u64>,
);

impl SnapshotQuery<'_> {
    /// Executes the script; `None` if the account does not exist.
    pub async fn read(&self, store: &Store) -> Result<Option<CallSnapshot>, StoreError> {
        let account = self.realm.keys();
        let key_id = self.key_id.unwrap_or_default();
        let run = self.run.unwrap_or_default();
        let keys = SnapshotKeys {
            account: &account.record(),
            agent: &self.realm.agent(self.agent),
            run: &self.realm.run(self.agent, run),
            agent_keys: &account.agent_keys(self.agent),
            active_keys: &account.active_keys(),
            rate: &account.rate(key_id),
            virtual_key: &account.virtual_key(key_id),
            account_runs: &self.realm.all_runs(),
            intents: &self.realm.intents(IntentIndex::All),
            transactions: &self.realm.transactions(),
        };
        let args = SnapshotArgs {
            mode: self.realm.mode().as_str(),
            run_named: if self.run.is_some() { "1" } else { "0" },
            run_life: &RUN_LIFE_MS.to_string(),
            key_id,
            provider_key_id: &keys::provider_key_id_field(self.provider),
            provider_key_sealed: &keys::provider_key_sealed_field(self.provider),
        };
        let reply: SnapshotReply = store
            .script(&SNAPSHOT, &keys.into_values(), &args.into_values())
            .await?;
        if reply.0.is_empty() {
            return Ok(None);
        }
        match self.parse(reply) {
            Some(seen) => Ok(Some(seen)),
            None => unexpected_reply(&SNAPSHOT),
        }
    }

    fn parse(
        &self,
        (numbers, account, agent, run_spent, requests, owner, records): SnapshotReply,
    ) -> Option<CallSnapshot> {
        let [at_ms, exists, has_provider_key, older_keys, left] = numbers.try_into().ok()?;
        let [plan, account @ ..]: [Option<String>; 9] = account.try_into().ok()?;
        let [runs, run_is_known, intents, text_bytes, transactions] = records.try_into().ok()?;
        let at_ms = u64::try_from(at_ms).ok()?;
        let key = match self.key_id {
            None => None,
            Some(_) => Some(KeySnapshot {
                agent: owner,
                older_keys: u64::try_from(older_keys).ok(),
                requests: number(requests)?,
                resets_at_ms: u64::try_from(left).ok().map(|left| at_ms + left),
            }),
        };
        Some(CallSnapshot {
            at_ms,
            plan: plan?,
            agent_exists: exists == 1,
            has_provider_key: has_provider_key == 1,
            key,
            records: Records {
                runs,
                run_is_known: self.run.is_none() || run_is_known == 1,
                intents,
                text_bytes,
                transactions,
            },
            spend: self.spend(account, agent.try_into().ok()?, run_spent)?,
        })
    }

    fn spend(
        &self,
        account: [Option<String>; 8],
        agent: [Option<String>; 15],
        run_spent: Option<String>,
    ) -> Option<SpendSnapshot> {
        let [tracked, slots, account_policy @ ..] = account;
        let [
            frozen,
            slot,
            wallet,
            balance,
            spend_limit,
            held,
            day,
            month,
            wallet_day,
            own_policy @ ..,
        ] = agent;
        // Test mode never counts against a plan (decision D53).
        let live = |text: Option<String>| text.filter(|_| self.realm.mode() == Mode::Live);
        let (policy, limits) = match own_policy {
            own @ [Some(_), ..] => policy(own)?,
            _ => policy(account_policy)?,
        };
        let wallet = match wallet {
            None => None,
            Some(_) => Some(WalletSnapshot {
                balance: nanos(balance)?,
                spend_limit: limit(spend_limit)?,
                day_spent: nanos(wallet_day)?,
            }),
        };
        Some(SpendSnapshot {
            policy,
            limits,
            plan: CapPlan::default(),
            cap: CapSnapshot {
                frozen: frozen.is_some(),
                run_spent: nanos(run_spent)?,
                day_spent: nanos(day)?,
                month_spent: nanos(month)?,
                has_slot: slot.is_some() || self.realm.mode() == Mode::Test,
                slots_used: number(live(slots))?,
                tracked_spent: nanos(live(tracked))?,
            },
            held: nanos(held)?,
            wallet,
        })
    }
}

/// Parses a policy's fields: `cap`, run, day, month, one transaction, approval.
fn policy(
    [enabled, run, day, month, transaction, approval]: [Option<String>; 6],
) -> Option<(Option<CapPolicy>, SpendPolicy)> {
    let cap = CapPolicy {
        enabled: enabled.as_deref() == Some("1"),
        per_run: limit(run)?,
        daily: limit(day)?,
        monthly: limit(month)?,
    };
    let spend = SpendPolicy {
        per_transaction: limit(transaction)?,
        approval_threshold: limit(approval)?,
        low_balance: None,
    };
    Some((enabled.is_some().then_some(cap), spend))
}

/// Parses a count; 0 if absent.
fn number(text: Option<String>) -> Option<u64> {
    text.map_or(Some(0), |text| text.parse().ok())
}

fn nanos(text: Option<String>) -> Option<Nanos> {
    number(text).map(Nanos::from_stored)
}

/// Parses a limit; absent or empty is no limit.
fn limit(text: Option<String>) -> Option<Option<Nanos>> {
    match text.filter(|text| !text.is_empty()) {
        None => Some(None),
        Some(text) => Some(Some(Nanos::new(text.parse().ok()?)?)),
    }
}
