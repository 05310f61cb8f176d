//! Twins of `api_key/*.lua`: issue and revoke API keys.

pub mod count;

use crate::api_key::{API_KEYS_MAX, ApiKey};
use crate::keys;
use crate::lookup::{ApiKeyOwner, Issue};
use crate::script::change::{AuditEvent, BUDGET, CHANGE_ATTEMPTS, Scope};
use crate::script::script;
use crate::{Store, StoreError};
use crypto::sha256_hex;
use domain::mode::Mode;
use domain::permission::Permission;
use domain::timestamp::iso_from_ms;
use ipnet::IpNet;
use secrecy::{ExposeSecret, SecretString};
use serde_json::{Value, json};

script! {
    /// Creates a key.
    pub static CREATE = "api_key_create",
    kind: Change,
    source: [BUDGET, include_str!("create.lua")],
    when_full: Refuse,
    marks: [with_budgets, confirmed],
    /// `revoked` is any key if none is to be removed.
    keys: struct CreateKeys: String { api_key, api_keys, revoked },
    /// `fields` are those of the key and their values.
    args: struct CreateArgs<'a>: &'a str { key_id, keys_max, revoked_id, fields[..] },
}

script! {
    /// Revokes a key.
    pub static REVOKE = "api_key_revoke",
    kind: Change,
    source: [include_str!("revoke.lua")],
    when_full: Run,
    keys: struct RevokeKeys: String { api_key },
}

/// Characters of a secret's random part that lists show.
const SHOWN_DIGITS: usize = 4;
/// Hex digits of a secret after its prefix.
const SECRET_DIGITS: usize = 64;

/// Arguments of a new key.
#[derive(Debug)]
pub struct NewApiKey<'a> {
    /// Account id, `acct_…`.
    pub account: &'a str,
    /// Key id, `key_…`.
    pub key_id: &'a str,
    /// Display name; may be empty.
    pub name: &'a str,
    /// Mode. The secret's prefix contains it too.
    pub mode: Mode,
    /// The secret; only its hash is stored.
    pub secret: &'a SecretString,
    /// A route may require one of them.
    pub permissions: &'a [Permission],
    /// Client addresses that may use it; empty for any.
    pub allow_ips: &'a [IpNet],
    /// Expiry, in ms since 1970.
    pub expires_at_ms: Option<u64>,
    /// Issuer in the audit log and in lists: a user's id, or `operator`.
    pub actor: &'a str,
}

/// Outcome of the script.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ApiKeyCreated {
    /// The key is active.
    Done,
    /// The account does not exist.
    NoAccount,
    /// The account has [`API_KEYS_MAX`] keys, none of them revoked.
    TooMany,
}

impl NewApiKey<'_> {
    const fn scope(&self) -> Scope<'_> {
        Scope {
            account: self.account,
            mode: self.mode,
            actor: self.actor,
        }
    }

    /// Issues the key.
    ///
    /// # Errors
    /// [`StoreError`]: the secret must then not be returned.
    pub async fn create(&self, store: &Store) -> Result<ApiKeyCreated, StoreError> {
        let secret = self.secret.expose_secret();
        let hash = sha256_hex(secret.as_bytes());
        let lookup = keys::api_key_lookup(&hash);
        let owner = ApiKeyOwner {
            account: self.account.to_owned(),
            key_id: self.key_id.to_owned(),
        };
        let shown = secret
            .get(..secret.len().saturating_sub(SECRET_DIGITS - SHOWN_DIGITS))
            .unwrap_or_default();
        let permissions = Permission::list_text(self.permissions);
        let allow_ips = self
            .allow_ips
            .iter()
            .map(IpNet::to_string)
            .collect::<Vec<_>>()
            .join(",");
        let expires = self.expires_at_ms.map(|ms| ms.to_string()).unwrap_or_default();
        let data = json!({ "keyId": self.key_id, "mode": self.mode.as_str(), "permissions": permissions,
            "allowIps": allow_ips, "expiresAt": self.expires_at_ms.map(iso_from_ms) });
        let fields = [
            "name",
            self.name,
            "shown",
            shown,
            "permissions",
            &permissions,
            "allow_ips",
            &allow_ips,
            "expires_at",
            &expires,
            "hash",
            &hash,
            "created_by",
            self.actor,
        ];
        let (scope, owner) = (self.scope(), owner.to_stored());
        let issue = Issue {
            key_id: self.key_id,
            lookup: &lookup,
            owner: &owner,
        };
        let is_written = |created: &ApiKeyCreated| *created == ApiKeyCreated::Done;
        let revoke = revoke(store, &scope, self.key_id);
        let write = self.keep(store, &data, &fields);
        issue.execute(store, write, is_written, revoke).await
    }

    /// Writes the record. Removes the oldest revoked key if the account is at its maximum.
    async fn keep(&self, store: &Store, data: &Value, fields: &[&str]) -> Result<ApiKeyCreated, StoreError> {
        let scope = self.scope();
        let (account, most) = (scope.keys(), API_KEYS_MAX.to_string());
        let mut revoked = String::new();
        for _ in 0..CHANGE_ATTEMPTS {
            let event = AuditEvent::new("api_key.created", data.clone());
            let keys = CreateKeys {
                api_key: account.api_key(self.key_id),
                api_keys: account.api_keys(),
                revoked: account.api_key(&revoked),
            };
            let args = CreateArgs {
                key_id: self.key_id,
                keys_max: &most,
                revoked_id: &revoked,
                fields: fields.to_vec(),
            };
            let mut reply = scope.execute(store, &CREATE, event, keys, args).await?;
            match reply.word()?.as_str() {
                "created" => return Ok(ApiKeyCreated::Done),
                "no_account" => return Ok(ApiKeyCreated::NoAccount),
                // Another request may meanwhile have removed that key.
                "too_many" => match ApiKey::oldest_revoked(store, &account).await? {
                    None => return Ok(ApiKeyCreated::TooMany),
                    Some(id) => revoked = id,
                },
                _ => return reply.unexpected(),
            }
        }
        Err(StoreError::unexpected("API keys that change all the time"))
    }
}

/// Revokes the API keys of both modes that the user `user` made and that are still valid: those that a change of the
/// user did not know yet, and those that an earlier change kept or was cut off before. Keys with numbers above `until`,
/// that of the newest key at the change, are left: a user who was promoted meanwhile made them. Adds the ids to
/// `revoked`, each once. Safe to retry.
pub async fn revoke_made_by(
    store: &Store,
    scope: &Scope<'_>,
    user: &str,
    until: u64,
    revoked: &mut Vec<String>,
) -> Result<(), StoreError> {
    for (number, key) in ApiKey::numbered(store, &scope.keys()).await? {
        if number > until || !key.is_left_by(user) {
            continue;
        }
        let mode = key.mode;
        revoke(store, &Scope { mode, ..*scope }, &key.id).await?;
        if !revoked.contains(&key.id) {
            revoked.push(key.id);
        }
    }
    Ok(())
}

/// Revokes the key `key_id` of the account and mode in `scope`. Returns false if it does not exist in this mode, or was
/// already revoked.
/// Safe to retry.
pub async fn revoke(store: &Store, scope: &Scope<'_>, key_id: &str) -> Result<bool, StoreError> {
    let event = AuditEvent::new("api_key.revoked", json!({ "keyId": key_id }));
    let keys = RevokeKeys {
        api_key: scope.keys().api_key(key_id),
    };
    let reply = scope.execute(store, &REVOKE, event, keys, ()).await?;
    reply.is("revoked", &["missing", "no_account"])
}
