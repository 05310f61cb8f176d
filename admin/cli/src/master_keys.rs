//! `tollgate-admin keys rotate`: reseals every provider key, webhook secret, second factor and the checkpoint key under
//! the newest master key.

mod factors;

use super::audit;
use super::context::CommandContext;
use crate::failure::CommandFailure;
use crate::report::Report;
use clap::Subcommand;
use crypto::seal::{Keyring, SealOwner, SealedFor, WebhookSecretOf};
use domain::mode::Mode;
use factors::rotate_factors;
use secrecy::SecretString;
use serde_json::{Value, json};
use store::account::Account;
use store::audit::OPERATOR;
use store::audit::checkpoint_key;
use store::audit::checkpoint_key::Rotated;
use store::keys::Realm;
use store::provider_key::reseal::ProviderKeyReseal;
use store::provider_key::sealed::SealedKey;
use store::script::change::Scope;
use store::webhook::script as webhook;
use store::webhook::{WebhookRecord, WebhookSecrets};

/// Maximum number of attempts for a key that is replaced concurrently.
const RESEAL_ATTEMPTS: usize = 3;

/// `keys …`
#[derive(Debug, Subcommand)]
pub(super) enum KeysCommand {
    /// Seal every stored secret again, under the newest master key
    Rotate,
}

#[derive(Default)]
struct RotationCounts {
    reencrypted: u64,
    current: u64,
    unopenable: Vec<Value>,
}

impl KeysCommand {
    pub(super) async fn run(self, context: &CommandContext) -> Result<Report, CommandFailure> {
        let Self::Rotate = self;
        let keyring = context.settings.keyring()?;
        let mut tally = RotationCounts::default();
        for account in Account::ids(&context.store).await? {
            for agent in Account::sealed_agents(&context.store, &account).await? {
                rotate_agent(context, &keyring, &account, &agent, &mut tally).await?;
            }
            for mode in Mode::ALL {
                rotate_webhooks(context, &keyring, &Realm::new(&account, mode), &mut tally).await?;
            }
            rotate_factors(context, &keyring, &account, &mut tally).await?;
        }
        let RotationCounts {
            reencrypted,
            current,
            unopenable,
        } = tally;
        let rotated = checkpoint_key::rotate(&context.store, &keyring)
            .await
            .map_err(audit::no_key)?;
        let (word, sentence) = match rotated {
            Rotated::Done => ("reencrypted", "The key of checkpoints was sealed again."),
            Rotated::Current => ("current", "The key of checkpoints was current."),
            Rotated::Unopenable => (
                "unopenable",
                "The key of checkpoints does not open with the configured master keys.",
            ),
        };
        let mut text = format!("Sealed {reencrypted} secret(s) again; {current} were current. {sentence}");
        for key in &unopenable {
            text = format!("{text}\nDoes not open with the configured master keys: {key}");
        }
        let failed = !unopenable.is_empty() || rotated == Rotated::Unopenable;
        let document = json!({ "reencrypted": reencrypted, "current": current, "unopenable": unopenable,
            "checkpointKey": word });
        let report = Report::new(text, document);
        Ok(if failed { report.incomplete() } else { report })
    }
}

/// Reseals the keys of one agent. A key that is replaced meanwhile is read again.
async fn rotate_agent(
    context: &CommandContext,
    keyring: &Keyring,
    account: &str,
    agent: &str,
    tally: &mut RotationCounts,
) -> Result<(), CommandFailure> {
    for _ in 0..RESEAL_ATTEMPTS {
        let mut changed = false;
        let mut current = 0;
        let mut unopenable = Vec::new();
        for key in SealedKey::list_by_agent(&context.store, account, agent).await? {
            if keyring.is_current(&key.sealed) {
                current += 1;
                continue;
            }
            match rotate_key(context, keyring, account, agent, &key).await? {
                Some(true) => tally.reencrypted += 1,
                Some(false) => changed = true,
                None => unopenable.push(json!({ "accountId": account, "agentId": agent,
                    "provider": key.provider, "keyId": key.key_id })),
            }
        }
        if !changed {
            tally.current += current;
            tally.unopenable.extend(unopenable);
            return Ok(());
        }
    }
    let message =
        format!("other requests keep changing the provider keys of agent {agent} of {account}; rotate again");
    Err(CommandFailure::refused("CONFLICT", message))
}

/// Reseals one key. Returns false if it is another one by now; `None` if it does not open.
async fn rotate_key(
    context: &CommandContext,
    keyring: &Keyring,
    account: &str,
    agent: &str,
    key: &SealedKey,
) -> Result<Option<bool>, CommandFailure> {
    let owner = SealedFor {
        account,
        agent,
        provider: &key.provider,
        key_id: &key.key_id,
    };
    let Ok(secret) = keyring.open(&owner, &key.sealed) else {
        return Ok(None);
    };
    let new = seal_again(keyring, &owner, &secret)?;
    let reseal = ProviderKeyReseal {
        account,
        agent,
        provider: &key.provider,
        key_id: &key.key_id,
        old: &key.sealed,
        new: &new,
        actor: OPERATOR,
    };
    Ok(Some(reseal.execute(&context.store).await?))
}

fn seal_again(
    keyring: &Keyring,
    owner: &impl SealOwner,
    secret: &SecretString,
) -> Result<String, CommandFailure> {
    let sealed = keyring.seal(owner, secret);
    sealed.map_err(|error| CommandFailure::refused("SEAL", error.to_string()))
}

/// Reseals the secrets of an account's webhooks. One that is replaced or deleted meanwhile is already sealed under the
/// newest key, or gone.
async fn rotate_webhooks(
    context: &CommandContext,
    keyring: &Keyring,
    realm: &Realm,
    tally: &mut RotationCounts,
) -> Result<(), CommandFailure> {
    let store = &context.store;
    let scope = Scope::from_operator(realm.account(), realm.mode());
    for WebhookRecord { id, .. } in WebhookRecord::all(store, realm).await? {
        let owner = WebhookSecretOf {
            account: realm.account(),
            mode: realm.mode(),
            webhook: &id,
        };
        for _ in 0..RESEAL_ATTEMPTS {
            let mut changed = false;
            for (field, old) in WebhookSecrets::read(store, realm, &id).await?.sealed {
                if keyring.is_current(&old) {
                    continue;
                }
                let Ok(secret) = keyring.open(&owner, &old) else {
                    tally
                        .unopenable
                        .push(json!({ "accountId": realm.account(), "webhookId": id, "field": field }));
                    continue;
                };
                let new = seal_again(keyring, &owner, &secret)?;
                let reseal = webhook::SecretReseal {
                    webhook: &id,
                    field,
                    old: &old,
                    new: &new,
                };
                match reseal.execute(store, &scope).await? {
                    true => tally.reencrypted += 1,
                    false => changed = true,
                }
            }
            if !changed {
                break;
            }
        }
    }
    Ok(())
}
