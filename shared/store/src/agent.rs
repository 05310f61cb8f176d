//! Agent records: parsed here, written by scripts.

pub mod freeze;
pub mod script;
pub mod search;
pub mod survey;

use crate::keys::{PROVIDER_KEY_ID_PREFIX, Realm, provider_key_created_field, provider_key_last4_field};
use crate::page::{Page, PageRequest};
use crate::record_fields::RecordFields;
use crate::{Store, StoreError};
use domain::mode::Mode;
use domain::money::Nanos;
use std::collections::HashMap;

/// An agent. It exists if it has a wallet row, a policy, a provider key or a virtual key (decision D22).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AgentRecord {
    /// Agent id.
    pub id: String,
    /// True if a user or the operator froze it.
    pub frozen: bool,
    /// Wallet row, if it has one.
    pub row: Option<WalletRow>,
    /// Id of its own policy, if it has one.
    pub policy_id: Option<String>,
    /// Its provider keys, oldest first.
    pub provider_keys: Vec<ProviderKeyRecord>,
}

/// The wallet row that `POST /agents` creates.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WalletRow {
    /// Wallet number, unique in the store.
    pub number: u64,
    /// Wallet id, `wal_…`.
    pub wallet: String,
    /// Display name of the agent.
    pub name: String,
    /// The owner's own word for the kind of agent.
    pub kind: String,
    /// The owner's description.
    pub description: Option<String>,
    /// Most that the wallet may spend in a UTC day.
    pub spend_limit: Option<Nanos>,
    /// Creation time, in ms since 1970.
    pub created_at_ms: u64,
    /// Time of the last change, in ms since 1970.
    pub updated_at_ms: u64,
}

/// Public fields of a stored provider key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProviderKeyRecord {
    /// `pk_…`
    pub key_id: String,
    /// Name of the provider, such as `openai`.
    pub provider: String,
    /// Last four characters of the key.
    pub last4: String,
    /// Time of storing, in ms since 1970.
    pub created_at_ms: u64,
}

impl AgentRecord {
    /// Parses the fields of the agent `id`; `None` if they are malformed.
    pub fn from_fields(id: &str, fields: &HashMap<String, String>) -> Option<Self> {
        let row = match fields.contains_key("wallet") {
            true => Some(WalletRow::from_fields(fields)?),
            false => None,
        };
        let providers = fields
            .keys()
            .filter_map(|field| field.strip_prefix(PROVIDER_KEY_ID_PREFIX));
        let keys = providers.map(|provider| ProviderKeyRecord::from_fields(provider, fields));
        let mut provider_keys: Vec<_> = keys.collect::<Option<_>>()?;
        provider_keys.sort_by(|a, b| (a.created_at_ms, &a.key_id).cmp(&(b.created_at_ms, &b.key_id)));
        Some(Self {
            id: id.to_owned(),
            frozen: fields.contains_key("frozen"),
            row,
            policy_id: fields.get("policy_id").cloned(),
            provider_keys,
        })
    }

    /// Reads the agent `id` of an account and mode; `None` if it does not exist.
    pub async fn read(store: &Store, realm: &Realm, id: &str) -> Result<Option<Self>, StoreError> {
        let mut query = redis::pipe();
        query.cmd("HGETALL").arg(realm.agent(id));
        query.cmd("EXISTS").arg(realm.keys().agent_keys(id));
        let (fields, has_keys): (HashMap<String, String>, bool) = store.pipeline(&query).await?;
        let agent = Self::from_fields(id, &fields).ok_or_else(|| StoreError::unexpected("agent record"))?;
        let has_keys = has_keys && realm.mode() == Mode::Live;
        let exists =
            agent.row.is_some() || agent.policy_id.is_some() || !agent.provider_keys.is_empty() || has_keys;
        Ok(exists.then_some(agent))
    }

    /// Lists the agents with a wallet row, newest first.
    pub async fn list(store: &Store, realm: &Realm, page: PageRequest<'_>) -> Result<Page<Self>, StoreError> {
        let part = page.records(store, &realm.agents(), |id| realm.agent(id)).await?;
        Self::with_row(part)
    }

    /// Parses agents. Skips those deleted between the two reads, which have no wallet row.
    fn with_row(part: Page<(String, HashMap<String, String>)>) -> Result<Page<Self>, StoreError> {
        let agents = part
            .records
            .iter()
            .map(|(id, fields)| Self::from_fields(id, fields));
        let mut agents: Vec<Self> = agents
            .collect::<Option<_>>()
            .ok_or_else(|| StoreError::unexpected("agent record"))?;
        agents.retain(|agent| agent.row.is_some());
        Ok(part.with(agents))
    }
}

impl WalletRow {
    fn from_fields(fields: &HashMap<String, String>) -> Option<Self> {
        let fields = RecordFields(fields);
        Some(Self {
            number: fields.number("wallet_number")?,
            wallet: fields.text("wallet")?,
            name: fields.text("name")?,
            kind: fields.text("type")?,
            description: fields.text("description"),
            spend_limit: fields.optional_limit("spend_limit")?,
            created_at_ms: fields.number("created_at")?,
            updated_at_ms: fields.number("updated_at")?,
        })
    }
}

impl ProviderKeyRecord {
    fn from_fields(provider: &str, fields: &HashMap<String, String>) -> Option<Self> {
        let created = fields.get(&provider_key_created_field(provider))?;
        Some(Self {
            key_id: fields.get(&crate::keys::provider_key_id_field(provider))?.clone(),
            provider: provider.to_owned(),
            last4: fields.get(&provider_key_last4_field(provider))?.clone(),
            created_at_ms: created.parse().ok()?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fields(pairs: &[(&str, &str)]) -> HashMap<String, String> {
        pairs
            .iter()
            .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
            .collect()
    }

    #[test]
    fn a_row_is_read_whole_or_not_at_all() {
        let all = [
            ("wallet_number", "7"),
            ("wallet", "wal_1"),
            ("name", "Böt"),
            ("type", "custom"),
            ("spend_limit", "5"),
            ("created_at", "1"),
            ("updated_at", "2"),
            ("d20777", "12"),
        ];
        let agent = AgentRecord::from_fields("bot", &fields(&all)).unwrap();
        let row = agent.row.unwrap();
        assert_eq!(
            (row.number, row.name.as_str(), row.spend_limit),
            (7, "Böt", Nanos::new(5))
        );
        assert_eq!(row.description, None);
        for missing in ["wallet_number", "name", "created_at"] {
            let rest: Vec<_> = all.iter().copied().filter(|(name, _)| *name != missing).collect();
            assert_eq!(AgentRecord::from_fields("bot", &fields(&rest)), None, "{missing}");
        }
        let counters =
            AgentRecord::from_fields("bot", &fields(&[("d20777", "12"), ("frozen", "user")])).unwrap();
        assert!(counters.row.is_none() && counters.frozen);
    }

    #[test]
    fn provider_keys_are_listed_oldest_first() {
        let all = [
            ("pk_id:openai", "pk_2"),
            ("pk_last4:openai", "wxyz"),
            ("pk_created:openai", "20"),
            ("pk_sealed:openai", "v1.x.y"),
            ("pk_id:azure", "pk_1"),
            ("pk_last4:azure", "abcd"),
            ("pk_created:azure", "10"),
            ("pk_sealed:azure", "v1.x.y"),
        ];
        let agent = AgentRecord::from_fields("bot", &fields(&all)).unwrap();
        let providers: Vec<&str> = agent
            .provider_keys
            .iter()
            .map(|key| key.provider.as_str())
            .collect();
        assert_eq!(providers, ["azure", "openai"]);
        assert!(
            !format!("{agent:?}").contains("v1.x.y"),
            "the sealed text stays in the store"
        );
    }
}
