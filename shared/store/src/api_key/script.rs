//! Twins of `api_key/*.lua`: issue and revoke API keys.

pub mod count;

use crate::api_key::{API_KEYS_MAX, ApiKey};
use crate::keys;
use crate::lookup::script::keep;
use crate::lookup::{self, ApiKeyOwner};
use crate::script::change::{ATTEMPTS, BUDGET, CHANGE, Event, Scope, unexpected_reply};
use crate::script::{Script, WhenFull};
use crate::{Store, StoreError};
use crypto::sha256_hex;
use domain::mode::Mode;
use domain::permission::Permission;
use domain::timestamp::iso_from_ms;
use ipnet::IpNet;
use secrecy::{ExposeSecret, SecretString};
use serde_json::{Value, json};
use std::sync::LazyLock;

/// Creates a key.
pub static CREATE: LazyLock<Script> = LazyLock::new(|| {
    Script::new(
        "api_key_create",
        WhenFull::Refuse,
        &[CHANGE, BUDGET, include_str!("create.lua")],
    )
    .with_budgets()
    .of_names()
});

/// Revokes a key.
pub static REVOKE: LazyLock<Script> = LazyLock::new(|| {
    Script::new(
        "api_key_revoke",
        WhenFull::Run,
        &[CHANGE, include_str!("revoke.lua")],
    )
});

/// Characters of the random part that lists show.
const SHOWN_DIGITS: usize = 4;
/// Hex digits after the prefix of a key.
const SECRET_DIGITS: usize = 64;

/// A key to be issued.
#[derive(Debug)]
pub struct NewApiKey<'a> {
    /// Whose it is.
    pub account: &'a str,
    /// Its id, `key_…`.
    pub key_id: &'a str,
    /// What people call it; may be empty.
    pub name: &'a str,
    /// Its mode; the secret's prefix says the same.
    pub mode: Mode,
    /// The secret; only its hash is stored.
    pub secret: &'a SecretString,
    /// What it may do.
    pub permissions: &'a [Permission],
    /// Where it may be used from; empty means from anywhere.
    pub allow_ips: &'a [IpNet],
    /// When it ends.
    pub expires_at_ms: Option<u64>,
    /// Who issues it, as the audit log and lists name them: a user's id, or `operator`.
    pub actor: &'a str,
}

/// What became of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Created {
    /// It works from now on.
    Done,
    /// There is no such account.
    NoAccount,
    /// The account has as many keys as it can have, and none of them is revoked.
    TooMany,
}

/// What became of a revocation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Revoked {
    /// The key no longer works.
    Done,
    /// There is no such key in this mode, or it was revoked before.
    Missing,
}

impl NewApiKey<'_> {
    /// Issues the key. The look-up is announced first, and made to last and confirmed at the end: a crash in between leaves a
    /// key whose secret nobody was shown, and whose look-up expires.
    ///
    /// # Errors
    /// [`StoreError`]: the secret must then not be shown. A key that is there all the same is revoked, if that can be done.
    pub async fn create(&self, store: &Store) -> Result<Created, StoreError> {
        let issued = self.issue(store).await;
        let may_be_there = !matches!(issued, Ok(_) | Err(StoreError::OverBudget { .. }));
        if may_be_there && let Err(error) = revoke(store, &self.scope(), self.key_id).await {
            tracing::warn!(key = self.key_id, %error, "a key whose secret nobody was shown may be listed");
        }
        issued
    }

    const fn scope(&self) -> Scope<'_> {
        Scope {
            account: self.account,
            mode: self.mode,
            actor: self.actor,
        }
    }

    async fn issue(&self, store: &Store) -> Result<Created, StoreError> {
        let secret = self.secret.expose_secret();
        let hash = sha256_hex(secret.as_bytes());
        let lookup = keys::api_key_lookup(&hash);
        let owner = ApiKeyOwner {
            account: self.account.to_owned(),
            key_id: self.key_id.to_owned(),
        };
        if !lookup::announce(store, &lookup, &owner.to_stored()).await? {
            return Err(StoreError::UnexpectedReply(
                "a new API key that is known already".to_owned(),
            ));
        }
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
        let created = self.keep(store, &data, &fields).await;
        match &created {
            Ok(Created::Done) => keep(store, &lookup, &owner.to_stored()).await?,
            // Nothing was made that it could lead to.
            Ok(_) | Err(StoreError::OverBudget { .. }) => {
                let _: i64 = store.command(redis::cmd("DEL").arg(&lookup)).await?;
            }
            Err(_) => {}
        }
        created
    }

    /// Writes the record. Where the account has as many keys as it can have, the oldest revoked one goes.
    async fn keep(&self, store: &Store, data: &Value, fields: &[&str]) -> Result<Created, StoreError> {
        let scope = self.scope();
        let (account, most) = (scope.keys(), API_KEYS_MAX.to_string());
        let mut revoked = String::new();
        for _ in 0..ATTEMPTS {
            let event = Event {
                kind: "api_key.created",
                agent: None,
                data: data.clone(),
            };
            let keys = [
                account.api_key(self.key_id),
                account.api_keys(),
                account.api_key(&revoked),
            ];
            let args = [&[self.key_id, &most, &revoked], fields].concat();
            let reply = scope.execute(store, &CREATE, event, &keys, &args).await?;
            match reply.first().map(String::as_str) {
                Some("created") => return Ok(Created::Done),
                Some("no_account") => return Ok(Created::NoAccount),
                // The one that was seen may have made room for another key meanwhile.
                Some("too_many") => match ApiKey::oldest_revoked(store, &account).await? {
                    None => return Ok(Created::TooMany),
                    Some(id) => revoked = id,
                },
                _ => return unexpected_reply(&CREATE),
            }
        }
        Err(StoreError::UnexpectedReply(
            "API keys that change all the time".to_owned(),
        ))
    }
}

/// Revokes the key `key_id` of the account and mode in `scope`.
///
/// # Errors
/// [`StoreError`]; it may be repeated.
pub async fn revoke(store: &Store, scope: &Scope<'_>, key_id: &str) -> Result<Revoked, StoreError> {
    let event = Event {
        kind: "api_key.revoked",
        agent: None,
        data: json!({ "keyId": key_id }),
    };
    let reply = scope
        .execute(store, &REVOKE, event, &[scope.keys().api_key(key_id)], &[])
        .await?;
    match reply.first().map(String::as_str) {
        Some("revoked") => Ok(Revoked::Done),
        Some("missing" | "no_account") => Ok(Revoked::Missing),
        _ => unexpected_reply(&REVOKE),
    }
}
