//! Policy records: parsed here, written by scripts (decision D20).

pub mod script;
pub mod watched;

use crate::keys::Realm;
use crate::page::{Page, PageRequest};
use crate::record_fields::RecordFields;
use crate::{Store, StoreError};
use domain::money::Nanos;
use std::collections::HashMap;

/// A policy: an agent's own, or an account-wide one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PolicyRecord {
    /// `pol_…`
    pub id: String,
    /// Display name.
    pub name: String,
    /// Agent id; `None` for a policy of all agents without their own.
    pub agent: Option<String>,
    /// True if Cap is enforced.
    pub cap_enabled: bool,
    /// Maximum spend of one run.
    pub per_run: Option<Nanos>,
    /// Maximum spend of a UTC day.
    pub per_day: Option<Nanos>,
    /// Maximum spend of a UTC month.
    pub per_month: Option<Nanos>,
    /// Maximum amount that a single spend may take from the wallet.
    pub per_transaction: Option<Nanos>,
    /// Spends above this wait for approval.
    pub approval_threshold: Option<Nanos>,
    /// Balances below this fire an event.
    pub low_balance_threshold: Option<Nanos>,
    /// `USD` or `USDC`.
    pub currency: String,
    /// Incremented each time it is set.
    pub revision: u64,
    /// Creation time, in ms since 1970.
    pub created_at_ms: u64,
    /// Time of the last change, in ms since 1970.
    pub updated_at_ms: u64,
}

impl PolicyRecord {
    /// Parses the fields of a record; `None` if they are malformed.
    pub fn from_fields(fields: &HashMap<String, String>) -> Option<Self> {
        let fields = RecordFields(fields);
        Some(Self {
            id: fields.text("id")?,
            name: fields.text("name")?,
            agent: fields.text("agent"),
            cap_enabled: fields.get("cap")? == "1",
            per_run: fields.optional_limit("run")?,
            per_day: fields.optional_limit("day")?,
            per_month: fields.optional_limit("month")?,
            per_transaction: fields.optional_limit("transaction")?,
            approval_threshold: fields.optional_limit("approval")?,
            low_balance_threshold: fields.optional_limit("low_balance")?,
            currency: fields.text("currency")?,
            revision: fields.number("revision")?,
            created_at_ms: fields.number("created_at")?,
            updated_at_ms: fields.number("updated_at")?,
        })
    }

    /// Reads the policy `id`; `None` if it does not exist.
    pub async fn read(store: &Store, realm: &Realm, id: &str) -> Result<Option<Self>, StoreError> {
        let key = realm.policy(id);
        store.record(key, "policy record", Self::from_fields).await
    }

    /// Reads the policy of `agent`; `None` if it has no policy of its own.
    pub async fn find_by_agent(
        store: &Store,
        realm: &Realm,
        agent: &str,
    ) -> Result<Option<Self>, StoreError> {
        let mut query = redis::cmd("HGET");
        query.arg(realm.agent(agent)).arg("policy_id");
        match store.command::<Option<String>>(&query).await? {
            Some(id) => Self::read(store, realm, &id).await,
            None => Ok(None),
        }
    }

    /// Returns the ids of the account-wide policies.
    pub async fn account_wide(store: &Store, realm: &Realm) -> Result<Vec<String>, StoreError> {
        store
            .command(redis::cmd("HKEYS").arg(realm.account_policies()))
            .await
    }

    /// Lists the policies of an account and mode, newest first.
    pub async fn list(store: &Store, realm: &Realm, page: PageRequest<'_>) -> Result<Page<Self>, StoreError> {
        let part = page
            .records(store, &realm.policies(), |id| realm.policy(id))
            .await?;
        part.present(Self::from_fields)
            .ok_or_else(|| StoreError::unexpected("policy record"))
    }
}
