//! `tollgate-admin api-key`: keys of the management API (decision D8).

use super::context::CommandContext;
use super::value;
use crate::closed_stdout;
use crate::failure::CommandFailure;
use crate::report::Report;
use clap::{Args, Subcommand, ValueEnum};
use clock::now_ms;
use crypto::api_key::Family;
use domain::id::IdKind;
use domain::mode::Mode;
use domain::permission::Permission;
use domain::timestamp::iso_from_ms;
use ipnet::IpNet;
use secrecy::ExposeSecret;
use serde_json::{Value, json};
use store::api_key::script as api_key;
use store::api_key::script::{ApiKeyCreated, NewApiKey};
use store::api_key::{API_KEYS_MAX, ApiKey};
use store::audit::OPERATOR;
use store::keys::AccountKeys;
use store::script::change::Scope;

/// `api-key …`
#[derive(Debug, Subcommand)]
pub(super) enum ApiKeyCommand {
    /// Issue a key; it is printed once and never stored in clear
    Create(Create),
    /// List the keys of an account, newest first
    List {
        /// The account
        #[arg(long, value_name = "ID", value_parser = value::id)]
        account: String,
    },
    /// Revoke a key; the next request with it is refused
    Revoke {
        /// The account
        #[arg(long, value_name = "ID", value_parser = value::id)]
        account: String,
        /// The key's id, key_…
        #[arg(long, value_name = "ID", value_parser = value::id)]
        key: String,
    },
}

/// `api-key create`
#[derive(Debug, Args)]
pub(super) struct Create {
    /// The account
    #[arg(long, value_name = "ID", value_parser = value::id)]
    account: String,
    /// live or test; records of the two modes never mix
    #[arg(long, value_parser = value::mode())]
    mode: Mode,
    /// Its display name
    #[arg(long, value_parser = value::name)]
    name: Option<String>,
    /// Its permissions: read, write, approve
    #[arg(long, value_delimiter = ',', default_value = "read,write", value_parser = value::permission())]
    permissions: Vec<Permission>,
    /// An address or a range from which it may be used (repeat for more); default: any
    #[arg(long, value_name = "CIDR", value_parser = value::network)]
    allow_ip: Vec<IpNet>,
    /// When it expires, such as 2027-01-31T00:00:00Z; default: never
    #[arg(long, value_name = "ISO", value_parser = value::future)]
    expires: Option<u64>,
    /// It starts with svc_live_… or sk_service_live_…
    #[arg(long, default_value = "svc")]
    prefix: Prefix,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum Prefix {
    #[value(name = "svc")]
    Svc,
    #[value(name = "sk_service")]
    SkService,
}

impl ApiKeyCommand {
    pub(super) async fn run(self, context: &CommandContext) -> Result<Report, CommandFailure> {
        match self {
            Self::Create(create) => create.run(context).await,
            Self::List { account } => list(context, &account).await,
            Self::Revoke { account, key } => revoke(context, &account, &key).await,
        }
    }
}

impl Create {
    async fn run(mut self, context: &CommandContext) -> Result<Report, CommandFailure> {
        closed_stdout::check()?;
        self.permissions.sort_unstable();
        self.permissions.dedup();
        let family = match self.prefix {
            Prefix::Svc => Family::Svc,
            Prefix::SkService => Family::SkService,
        };
        let secret = family.mint(self.mode)?;
        let key_id = IdKind::ApiKey.mint(now_ms())?;
        let new = NewApiKey {
            account: &self.account,
            key_id: &key_id,
            name: self.name.as_deref().unwrap_or_default(),
            mode: self.mode,
            secret: &secret,
            permissions: &self.permissions,
            allow_ips: &self.allow_ip,
            expires_at_ms: self.expires,
            actor: OPERATOR,
        };
        match new.create(&context.store).await? {
            ApiKeyCreated::Done => {}
            ApiKeyCreated::NoAccount => return Err(CommandFailure::no_account(&self.account)),
            ApiKeyCreated::TooMany => {
                let message = format!(
                    "the account has the maximum of {API_KEYS_MAX} API keys: revoke one that nobody uses \
                     (`tollgate-admin api-key list`, `api-key revoke`)"
                );
                return Err(CommandFailure::refused("CONFLICT", message));
            }
        }
        let key = secret.expose_secret();
        let permissions = Permission::list_text(&self.permissions);
        let text = format!(
            "API key {key_id} of {} ({}, {permissions}). It is shown this once:\n{key}",
            self.account, self.mode
        );
        let allow_ips: Vec<String> = self.allow_ip.iter().map(IpNet::to_string).collect();
        let permissions = Permission::words(&self.permissions);
        Ok(Report::new(
            text,
            json!({
                "keyId": key_id, "key": key, "name": self.name.as_deref().unwrap_or_default(), "accountId": self.account, "mode": self.mode.as_str(),
                "permissions": permissions, "allowIps": allow_ips, "expiresAt": self.expires.map(iso_from_ms),
            }),
        )
        .secret())
    }
}

const COLUMNS: [&str; 9] = [
    "KEY",
    "MODE",
    "STATUS",
    "PERMISSIONS",
    "CREATED",
    "LAST USED",
    "MADE BY",
    "STARTS WITH",
    "NAME",
];

async fn list(context: &CommandContext, account: &str) -> Result<Report, CommandFailure> {
    context.account(account).await?;
    let keys = ApiKey::list(&context.store, &AccountKeys::new(account)).await?;
    let now = now_ms();
    let row = |key: &ApiKey| {
        vec![
            key.id.clone(),
            key.mode.to_string(),
            key.status(now).to_owned(),
            Permission::list_text(&key.permissions),
            iso_from_ms(key.created_at_ms),
            key.last_used_ms.map_or_else(|| "never".to_owned(), iso_from_ms),
            key.created_by.clone(),
            format!("{}…", key.shown),
            key.name.clone(),
        ]
    };
    Ok(Report::list(("apiKeys", &COLUMNS), &keys, row, |key| {
        document(key, now)
    }))
}

async fn revoke(context: &CommandContext, account: &str, id: &str) -> Result<Report, CommandFailure> {
    context.account(account).await?;
    let missing = || {
        let message = format!("account {account} has no API key {id}, or it was revoked before");
        CommandFailure::refused("NOT_FOUND", message)
    };
    let keys = AccountKeys::new(account);
    let key = ApiKey::read(&context.store, &keys, id)
        .await?
        .ok_or_else(missing)?;
    let scope = Scope::from_operator(account, key.mode);
    match api_key::revoke(&context.store, &scope, id).await? {
        true => Ok(Report::new(
            format!("API key {id} is revoked; the next request with it is refused."),
            json!({ "keyId": id, "accountId": account, "status": "revoked" }),
        )),
        false => Err(missing()),
    }
}

fn document(key: &ApiKey, now: u64) -> Value {
    let permissions = Permission::words(&key.permissions);
    let allow_ips: Vec<String> = key.allow_ips.iter().map(IpNet::to_string).collect();
    json!({
        "keyId": key.id, "name": key.name, "mode": key.mode.as_str(), "status": key.status(now), "permissions": permissions,
        "allowIps": allow_ips, "prefix": key.shown, "createdAt": iso_from_ms(key.created_at_ms),
        "expiresAt": key.expires_at_ms.map(iso_from_ms), "revokedAt": key.revoked_at_ms.map(iso_from_ms),
        "lastUsedAt": key.last_used_ms.map(iso_from_ms), "createdBy": key.created_by,
    })
}
