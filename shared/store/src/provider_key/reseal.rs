//! Twin of `reseal.lua`: rotation of the master key for one provider key.

use crate::keys;
use crate::script::change::{AuditEvent, KEPT_TEXT, Scope};
use crate::script::script;
use crate::{Store, StoreError};
use serde_json::json;

script! {
    /// Replaces an agent's sealed provider key.
    pub static RESEAL = "reseal",
    kind: Change,
    source: [KEPT_TEXT, include_str!("reseal.lua")],
    when_full: Refuse,
    keys: struct ResealKeys: String { agent },
    /// `old` and `new` are sealed texts.
    args: struct ResealArgs<'a>: &'a str { field, old, new },
}

/// A provider key, sealed again.
#[derive(Debug)]
pub struct ProviderKeyReseal<'a> {
    /// Account id, `acct_…`.
    pub account: &'a str,
    /// Agent id.
    pub agent: &'a str,
    /// Name of the provider.
    pub provider: &'a str,
    /// The provider key's id.
    pub key_id: &'a str,
    /// Its old sealed text.
    pub old: &'a str,
    /// Its text under the newest master key.
    pub new: &'a str,
    /// The actor in the audit log.
    pub actor: &'a str,
}

impl ProviderKeyReseal<'_> {
    /// Replaces the old text by the new one. Returns false if the stored key is another one, or removed; nothing
    /// changed.
    /// Safe to retry.
    pub async fn execute(&self, store: &Store) -> Result<bool, StoreError> {
        let scope = Scope::live(self.account, self.actor);
        let data = json!({ "provider": self.provider, "keyId": self.key_id });
        let event = AuditEvent::new("keys.rotated", data).with_agent(self.agent);
        let keys = ResealKeys {
            agent: scope.keys().live().agent(self.agent),
        };
        let args = ResealArgs {
            field: &keys::provider_key_sealed_field(self.provider),
            old: self.old,
            new: self.new,
        };
        let reply = scope.execute(store, &RESEAL, event, keys, args).await?;
        reply.is("done", &["changed", "no_account"])
    }
}
