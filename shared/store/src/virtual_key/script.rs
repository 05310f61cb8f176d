//! Twins of `virtual_key/*.lua`: issue and revoke virtual keys.

use crate::keys;
use crate::lookup::{Issue, VirtualKeyOwner};
use crate::script::change::{AuditEvent, BUDGET, Scope};
use crate::script::plan_limit::PlanLimit;
use crate::script::script;
use crate::{Store, StoreError};
use crypto::virtual_key::WellFormed;
use serde_json::json;

script! {
    /// Creates a key.
    pub static CREATE = "virtual_key_create",
    kind: Change,
    source: [BUDGET, include_str!("create.lua")],
    when_full: Refuse,
    marks: [with_budgets, confirmed],
    /// `active_keys` are those of the account.
    keys: struct VirtualKeyKeys: String { active_keys, agent_keys, virtual_key },
    /// `fields` are those of the key and their values.
    args: struct CreateArgs<'a>: &'a str { key_id, plan, keys_max, fields[..] },
}

script! {
    /// Revokes a key.
    pub static REVOKE = "virtual_key_revoke",
    kind: Change,
    source: [include_str!("revoke.lua")],
    when_full: Run,
    keys: VirtualKeyKeys,
    args: struct RevokeArgs<'a>: &'a str { key_id },
}

script! {
    /// Removes revoked keys.
    pub static FORGET = "virtual_key_forget",
    kind: Timeless,
    source: [include_str!("forget.lua")],
    when_full: Run,
    /// `active_keys` are those of the account.
    keys: struct ForgetKeys: String { active_keys, agent_keys, virtual_keys[..] },
    /// Ids of the keys in `virtual_keys`.
    args: struct ForgetArgs<'a>: &'a str { key_ids[..] },
}

/// Maximum number of keys that one execution removes.
const FORGOTTEN_AT_ONCE: usize = 500;

/// Arguments of a new virtual key.
pub struct NewVirtualKey<'a> {
    /// Agent id.
    pub agent: &'a str,
    /// Key id, `vk_…`.
    pub key_id: &'a str,
    /// Display name.
    pub name: &'a str,
    /// The secret; only its hash is stored.
    pub secret: WellFormed<'a>,
    /// The plan's limit of active keys.
    pub limit: PlanLimit<'a>,
}

/// Outcome of the script.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum VirtualKeyCreated {
    /// The key is active.
    Done {
        /// Creation time, in ms since 1970.
        created_at_ms: u64,
    },
    /// The account has reached the plan's limit of active keys.
    PlanLimit,
    /// The account has this other plan; nothing changed. Retry with its limit.
    OtherPlan(String),
}

impl VirtualKeyKeys {
    fn new(scope: &Scope<'_>, agent: &str, key_id: &str) -> Self {
        let realm = scope.realm();
        Self {
            active_keys: realm.keys().active_keys(),
            agent_keys: realm.keys().agent_keys(agent),
            virtual_key: realm.keys().virtual_key(key_id),
        }
    }
}

impl NewVirtualKey<'_> {
    /// Issues the key.
    ///
    /// # Errors
    /// [`StoreError`]: the secret must then not be returned.
    pub async fn create(&self, store: &Store, scope: &Scope<'_>) -> Result<VirtualKeyCreated, StoreError> {
        let hash = self.secret.hash();
        let owner = VirtualKeyOwner::new(scope.account, self.agent, self.key_id);
        let issue = Issue {
            key_id: self.key_id,
            lookup: &keys::virtual_key_lookup(&hash),
            owner: owner.as_stored(),
        };
        let is_written = |created: &VirtualKeyCreated| matches!(created, VirtualKeyCreated::Done { .. });
        let revoke = revoke(store, scope, self.agent, self.key_id);
        let write = self.write(store, scope, &hash);
        issue.execute(store, write, is_written, revoke).await
    }

    async fn write(
        &self,
        store: &Store,
        scope: &Scope<'_>,
        hash: &str,
    ) -> Result<VirtualKeyCreated, StoreError> {
        let keys = VirtualKeyKeys::new(scope, self.agent, self.key_id);
        let fields = [
            ["agent", self.agent],
            ["name", self.name],
            ["prefix", self.secret.shown()],
            ["hash", hash],
        ];
        let args = CreateArgs {
            key_id: self.key_id,
            plan: self.limit.plan,
            keys_max: &self.limit.most.map(|most| most.to_string()).unwrap_or_default(),
            fields: fields.concat(),
        };
        let data = json!({ "keyId": self.key_id, "name": self.name });
        let event = AuditEvent::new("virtual_key.created", data).with_agent(self.agent);
        let mut reply = scope.execute(store, &CREATE, event, keys, args).await?;
        match reply.word()?.as_str() {
            "created" => Ok(VirtualKeyCreated::Done {
                created_at_ms: reply.number()?,
            }),
            "plan_limit" => Ok(VirtualKeyCreated::PlanLimit),
            "other_plan" => reply.word().map(VirtualKeyCreated::OtherPlan),
            _ => reply.unexpected(),
        }
    }
}

/// Revokes the key `key_id` of `agent`. Returns false if the agent has no such active key.
/// Safe to retry.
pub async fn revoke(store: &Store, scope: &Scope<'_>, agent: &str, key_id: &str) -> Result<bool, StoreError> {
    let keys = VirtualKeyKeys::new(scope, agent, key_id);
    let args = RevokeArgs { key_id };
    let event = AuditEvent::new("virtual_key.revoked", json!({ "keyId": key_id })).with_agent(agent);
    let reply = scope.execute(store, &REVOKE, event, keys, args).await?;
    reply.is("revoked", &["missing"])
}

/// Removes the revoked ones of these keys, in chunks. Their look-ups become inert, like those of all revoked keys.
/// Safe to retry.
pub(crate) async fn forget_revoked(
    store: &Store,
    scope: &Scope<'_>,
    agent: &str,
    ids: &[String],
) -> Result<(), StoreError> {
    let realm = scope.realm();
    for ids in ids.chunks(FORGOTTEN_AT_ONCE) {
        let keys = ForgetKeys {
            active_keys: realm.keys().active_keys(),
            agent_keys: realm.keys().agent_keys(agent),
            virtual_keys: ids.iter().map(|id| realm.keys().virtual_key(id)).collect(),
        };
        let args = ForgetArgs {
            key_ids: ids.iter().map(String::as_str).collect(),
        };
        let mut reply = store.reply(&FORGET, keys, args).await?;
        if reply.word()? != "forgotten" {
            return reply.unexpected();
        }
    }
    Ok(())
}
