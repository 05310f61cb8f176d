//! Virtual key records: parsed here, written by scripts.

pub mod script;
pub mod state;
pub mod stopped;

use crate::keys::AccountKeys;
use crate::page::{Page, PageRequest};
use crate::record_fields::RecordFields;
use crate::{Store, StoreError};
use std::collections::HashMap;

/// Maximum number of active keys that [`active_agents`] reads.
const ACTIVE_SHOWN: usize = 1000;

/// Public fields of a virtual key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct VirtualKeyRecord {
    /// `vk_…`
    pub key_id: String,
    /// Agent id.
    pub agent: String,
    /// Display name.
    pub name: String,
    /// Leading characters of the secret.
    pub prefix: String,
    /// False once it is revoked.
    pub active: bool,
    /// Creation time, in ms since 1970.
    pub created_at_ms: u64,
    /// Last use, in ms since 1970, to the minute: recorded when the key's rate window opens.
    pub last_used_ms: Option<u64>,
}

impl VirtualKeyRecord {
    fn from_fields(key_id: &str, active: bool, fields: &HashMap<String, String>) -> Option<Self> {
        let fields = RecordFields(fields);
        Some(Self {
            key_id: key_id.to_owned(),
            agent: fields.text("agent")?,
            name: fields.text("name")?,
            prefix: fields.text("prefix")?,
            active,
            created_at_ms: fields.number("created_at")?,
            last_used_ms: fields.optional("last_used")?,
        })
    }

    /// Lists the keys of `agent`, newest first, revoked ones included.
    pub async fn list(
        store: &Store,
        account: &AccountKeys,
        agent: &str,
        page: PageRequest<'_>,
    ) -> Result<Page<Self>, StoreError> {
        let mut part = page
            .records(store, &account.agent_keys(agent), |id| account.virtual_key(id))
            .await?;
        let records = std::mem::take(&mut part.records);
        let mut keys = Vec::with_capacity(records.len());
        if records.is_empty() {
            return Ok(part.with(keys));
        }
        let ids: Vec<&str> = records.iter().map(|(id, _)| id.as_str()).collect();
        let mut query = redis::cmd("ZMSCORE");
        query.arg(account.active_keys()).arg(&ids);
        let scores: Vec<Option<f64>> = store.command(&query).await?;
        for ((id, fields), score) in records.iter().zip(scores) {
            // Skips a key whose agent was deleted between the reads.
            if fields.is_empty() {
                continue;
            }
            let key = Self::from_fields(id, score.is_some(), fields);
            keys.push(key.ok_or_else(|| StoreError::unexpected("virtual key record"))?);
        }
        Ok(part.with(keys))
    }
}

/// Returns the agents with active keys, oldest key first, each once.
pub async fn active_agents(store: &Store, account: &AccountKeys) -> Result<Vec<String>, StoreError> {
    let mut range = redis::cmd("ZRANGE");
    range.arg(account.active_keys()).arg(0).arg(ACTIVE_SHOWN - 1);
    let ids: Vec<String> = store.command(&range).await?;
    let fields = ids.iter().map(|id| (account.virtual_key(id), "agent"));
    let holders: Vec<Option<String>> = store.each("HGET", fields).await?;
    let mut agents: Vec<String> = Vec::new();
    for agent in holders.into_iter().flatten() {
        if !agents.contains(&agent) {
            agents.push(agent);
        }
    }
    Ok(agents)
}
