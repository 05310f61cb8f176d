//! Reseals the second factors of an account's users, including unconfirmed ones.

use super::super::context::CommandContext;
use super::{RESEAL_ATTEMPTS, RotationCounts, seal_again};
use crate::failure::CommandFailure;
use crypto::seal::{Keyring, TotpSecretOf};
use domain::mode::Mode;
use serde_json::json;
use store::keys::AccountKeys;
use store::script::change::Scope;
use store::user::script::{ChangeUser, SessionsToEnd, UserChanged};
use store::user::{StoredUser, User};

/// Reseals the second factors of all users. A user who is changed meanwhile is read again.
pub(super) async fn rotate_factors(
    context: &CommandContext,
    keyring: &Keyring,
    account: &str,
    tally: &mut RotationCounts,
) -> Result<(), CommandFailure> {
    let keys = AccountKeys::new(account);
    let scope = Scope::from_operator(account, Mode::Live);
    for listed in StoredUser::list(&context.store, &keys).await? {
        let mut known = Some(listed);
        for _ in 0..RESEAL_ATTEMPTS {
            let Some(old) = known.take() else { break };
            let (user, sealed) = sealed_again(keyring, account, &old.user, tally)?;
            if sealed == 0 {
                break;
            }
            let change = ChangeUser {
                old: &old,
                new: Some(&user),
                ending: SessionsToEnd::None,
                api_keys: &[],
                kind: "keys.rotated",
                data: json!({ "secondFactor": true }),
            };
            let changed = change.execute(&context.store, &scope).await?;
            if matches!(changed, UserChanged::Done { .. }) {
                tally.reencrypted += sealed;
                break;
            }
            known = StoredUser::find(&context.store, &keys, &old.user.email).await?;
        }
        if known.is_some() {
            let message = format!("other requests keep changing a user of {account}; rotate again");
            return Err(CommandFailure::refused("CONFLICT", message));
        }
    }
    Ok(())
}

/// Returns the user with resealed secrets, and the number of resealed ones.
fn sealed_again(
    keyring: &Keyring,
    account: &str,
    old: &User,
    tally: &mut RotationCounts,
) -> Result<(User, u64), CommandFailure> {
    let mut user = old.clone();
    let owner = TotpSecretOf {
        account,
        user: &old.id,
    };
    let mut sealed = 0;
    let confirmed = user.totp.as_mut().map(|totp| &mut totp.sealed);
    for text in confirmed.into_iter().chain(user.totp_pending.as_mut()) {
        if keyring.is_current(text) {
            tally.current += 1;
            continue;
        }
        let Ok(secret) = keyring.open(&owner, text) else {
            let found = json!({ "accountId": account, "userId": old.id });
            if !tally.unopenable.contains(&found) {
                tally.unopenable.push(found);
            }
            continue;
        };
        *text = seal_again(keyring, &owner, &secret)?;
        sealed += 1;
    }
    Ok((user, sealed))
}
