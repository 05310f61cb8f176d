//! Twin of `provider_key/store.lua`: an agent's key for a provider, sealed.

pub mod reseal;
pub mod sealed;

use crate::keys;
use crate::script::change::{AuditEvent, BUDGET, KEPT_TEXT, Scope};
use crate::script::script;
use crate::{Store, StoreError};
use serde_json::json;

script! {
    /// Stores a provider key.
    pub static STORE = "provider_key_store",
    kind: Change,
    source: [BUDGET, KEPT_TEXT, include_str!("provider_key/store.lua")],
    when_full: Refuse,
    marks: [with_budgets],
    /// `sealed_agents` lists the agents with a provider key.
    keys: struct StoreKeys: String { agent, sealed_agents },
    /// `fields` are the key's fields and values, except its time.
    args: struct StoreArgs<'a>: &'a str { id_field, sealed_field, providers_max, agent_id, created_field, fields[..] },
}

/// Maximum number of providers that an agent has keys for.
pub const PROVIDERS_MAX: usize = 32;

/// Bytes that a provider key takes in an agent's row beside its sealed text. Equals `KEY_BYTES` in
/// `kept_text.lua`.
pub const KEY_BYTES: u64 = 400;

/// Arguments of a new provider key.
#[derive(Debug)]
pub struct NewProviderKey<'a> {
    /// Agent id.
    pub agent: &'a str,
    /// Name of the provider, such as `openai`.
    pub provider: &'a str,
    /// The key's id, `pk_…`.
    pub key_id: &'a str,
    /// The key, sealed for account, agent, provider and key id.
    pub sealed: &'a str,
    /// The key's last four characters.
    pub last4: &'a str,
}

/// Outcome of the script.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ProviderKeyStored {
    /// The next call uses it.
    Done {
        /// Time of storing, in ms since 1970.
        created_at_ms: u64,
    },
    /// The agent has keys for [`PROVIDERS_MAX`] other providers.
    TooMany,
}

impl NewProviderKey<'_> {
    /// Stores the key, replacing the agent's previous one for the provider.
    /// Safe to retry.
    pub async fn store(&self, store: &Store, scope: &Scope<'_>) -> Result<ProviderKeyStored, StoreError> {
        let realm = scope.realm();
        let keys = StoreKeys {
            agent: realm.agent(self.agent),
            sealed_agents: realm.keys().sealed_agents(),
        };
        let id = keys::provider_key_id_field(self.provider);
        let sealed = keys::provider_key_sealed_field(self.provider);
        let last4 = keys::provider_key_last4_field(self.provider);
        let fields = [
            [id.as_str(), self.key_id],
            [&sealed, self.sealed],
            [&last4, self.last4],
        ];
        let args = StoreArgs {
            id_field: &id,
            sealed_field: &sealed,
            providers_max: &PROVIDERS_MAX.to_string(),
            agent_id: self.agent,
            created_field: &keys::provider_key_created_field(self.provider),
            fields: fields.concat(),
        };
        let data = json!({ "keyId": self.key_id, "provider": self.provider });
        let event = AuditEvent::new("provider_key.stored", data).with_agent(self.agent);
        let mut reply = scope.execute(store, &STORE, event, keys, args).await?;
        match reply.word()?.as_str() {
            "stored" => Ok(ProviderKeyStored::Done {
                created_at_ms: reply.number()?,
            }),
            "too_many" => Ok(ProviderKeyStored::TooMany),
            _ => reply.unexpected(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::KEY_BYTES;

    #[test]
    fn the_scripts_count_the_same_bytes() {
        let source = include_str!("script/kept_text.lua");
        assert!(source.contains(&format!("local KEY_BYTES = {KEY_BYTES}\n")));
    }
}
