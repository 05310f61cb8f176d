//! API key records: parsed here, written by scripts.

pub mod script;

use crate::keys::AccountKeys;
use crate::page::records;
use crate::{Store, StoreError};
use domain::mode::Mode;
use domain::permission::Permission;
use ipnet::IpNet;
use std::collections::HashMap;
use subtle::ConstantTimeEq as _;

/// Maximum number of API keys of an account. Revoked ones count until their places are needed.
pub const API_KEYS_MAX: usize = 1000;

/// An API key. Its secret is not stored; the look-up is named by the secret's hash.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ApiKey {
    /// `key_…`
    pub id: String,
    /// Display name; may be empty.
    pub name: String,
    /// Mode in which it may be used.
    pub mode: Mode,
    /// A route may require one of them.
    pub permissions: Vec<Permission>,
    /// Client addresses that may use it; empty for any.
    pub allow_ips: Vec<IpNet>,
    /// Leading characters of the secret, for lists.
    pub shown: String,
    /// Creation time, in ms since 1970.
    pub created_at_ms: u64,
    /// User id of its creator, or `operator`.
    pub created_by: String,
    /// Expiry, in ms since 1970; `None`: never.
    pub expires_at_ms: Option<u64>,
    /// Revocation, in ms since 1970.
    pub revoked_at_ms: Option<u64>,
    /// Last use, in ms since 1970, to the minute.
    pub last_used_ms: Option<u64>,
    /// SHA-256 of the secret, in hex.
    hash: String,
}

impl ApiKey {
    /// Parses the fields of a record; `None` if they are malformed.
    pub fn from_fields(fields: &HashMap<String, String>) -> Option<Self> {
        let get = |name: &str| fields.get(name).map(String::as_str);
        let ms = |name: &str| {
            get(name)
                .filter(|text| !text.is_empty())
                .map(str::parse)
                .transpose()
        };
        let created_at_ms = ms("created_at").ok()??;
        let ips = get("allow_ips")?.split(',').filter(|text| !text.is_empty());
        Some(Self {
            id: get("id")?.to_owned(),
            name: get("name").unwrap_or_default().to_owned(),
            mode: Mode::parse(get("mode")?)?,
            permissions: Permission::parse_list(get("permissions")?)?,
            allow_ips: ips.map(|text| text.parse().ok()).collect::<Option<_>>()?,
            shown: get("shown")?.to_owned(),
            created_at_ms,
            created_by: get("created_by")?.to_owned(),
            expires_at_ms: ms("expires_at").ok()?,
            revoked_at_ms: ms("revoked_at").ok()?,
            // The minute of the last use may have begun before the key was created.
            last_used_ms: ms("last_used").ok()?.map(|minute| created_at_ms.max(minute)),
            hash: get("hash")?.to_owned(),
        })
    }

    /// Returns whether the secret with this SHA-256, in hex, is that of the key: a look-up that was changed by hand may
    /// lead from the hash of another secret to it. Takes the same time wherever the hashes differ.
    pub fn is_of_hash(&self, sha256_hex: &str) -> bool {
        self.hash.as_bytes().ct_eq(sha256_hex.as_bytes()).into()
    }

    /// Returns `active`, `expired` or `revoked` as of `now_ms`.
    pub fn status(&self, now_ms: u64) -> &'static str {
        match (self.revoked_at_ms, self.expires_at_ms) {
            (Some(_), _) => "revoked",
            (None, Some(end)) if end <= now_ms => "expired",
            (None, _) => "active",
        }
    }

    /// Reads the key `id` of `account`; `None` if it does not exist.
    pub async fn read(store: &Store, account: &AccountKeys, id: &str) -> Result<Option<Self>, StoreError> {
        store
            .record(account.api_key(id), "API key record", Self::from_fields)
            .await
    }

    /// Counts the keys of `account` that are active at `now_ms`.
    pub async fn count_active(store: &Store, account: &AccountKeys, now_ms: u64) -> Result<u64, StoreError> {
        let mut range = redis::cmd("ZREVRANGE");
        range.arg(account.api_keys()).arg(0).arg(API_KEYS_MAX - 1);
        let ids: Vec<String> = store.command(&range).await?;
        let fields = ids
            .iter()
            .map(|id| (account.api_key(id), &["revoked_at", "expires_at"]));
        let ends: Vec<(Option<String>, Option<String>)> = store.each("HMGET", fields).await?;
        let set = |text: &Option<String>| text.as_deref().is_some_and(|text| !text.is_empty());
        let active = ends.iter().filter(|(revoked, expires)| {
            let expired = expires.as_deref().and_then(|text| text.parse::<u64>().ok());
            !set(revoked) && expired.is_none_or(|end| end > now_ms)
        });
        Ok(active.count() as u64)
    }

    /// Returns the id of the oldest revoked key of `account`.
    pub(crate) async fn oldest_revoked(
        store: &Store,
        account: &AccountKeys,
    ) -> Result<Option<String>, StoreError> {
        let mut range = redis::cmd("ZRANGE");
        range.arg(account.api_keys()).arg(0).arg(API_KEYS_MAX - 1);
        let ids: Vec<String> = store.command(&range).await?;
        let fields = ids.iter().map(|id| (account.api_key(id), "revoked_at"));
        let revoked: Vec<bool> = store.each("HEXISTS", fields).await?;
        let mut keys = ids.into_iter().zip(revoked);
        Ok(keys.find(|(_, revoked)| *revoked).map(|(id, _)| id))
    }

    /// Lists the unrevoked keys of `account` that `user` created, newest first.
    pub async fn made_by(store: &Store, account: &AccountKeys, user: &str) -> Result<Vec<Self>, StoreError> {
        let mut keys = Self::list(store, account).await?;
        keys.retain(|key| key.is_left_by(user));
        Ok(keys)
    }

    /// Returns whether `user` created it and nobody revoked it.
    fn is_left_by(&self, user: &str) -> bool {
        self.created_by == user && self.revoked_at_ms.is_none()
    }

    /// Returns the number of the newest key of `account`, virtual keys included; zero before the first.
    pub async fn last_number(store: &Store, account: &AccountKeys) -> Result<u64, StoreError> {
        let mut last = redis::cmd("HGET");
        let last: Option<u64> = store.command(last.arg(account.record()).arg("key_seq")).await?;
        Ok(last.unwrap_or(0))
    }

    /// Lists all keys of `account`, newest first.
    pub async fn list(store: &Store, account: &AccountKeys) -> Result<Vec<Self>, StoreError> {
        let keys = Self::numbered(store, account).await?;
        Ok(keys.into_iter().map(|(_, key)| key).collect())
    }

    /// Like [`ApiKey::list`], with the number of each key.
    pub async fn numbered(store: &Store, account: &AccountKeys) -> Result<Vec<(u64, Self)>, StoreError> {
        let mut range = redis::cmd("ZREVRANGE");
        range.arg(account.api_keys()).arg(0).arg(API_KEYS_MAX - 1);
        range.arg("WITHSCORES");
        let found: Vec<(String, u64)> = store.command(&range).await?;
        let (ids, numbers): (Vec<String>, Vec<u64>) = found.into_iter().unzip();
        let found = records(store, ids, |id| account.api_key(id)).await?;
        // Skips a key that was removed to make room for another.
        let there = numbers
            .into_iter()
            .zip(found)
            .filter(|(_, (_, fields))| !fields.is_empty());
        let keys = there.map(|(number, (_, fields))| Some((number, Self::from_fields(&fields)?)));
        let keys: Option<Vec<_>> = keys.collect();
        keys.ok_or_else(|| StoreError::unexpected("API key record"))
    }
}
