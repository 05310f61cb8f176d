//! Changes of a user by the operator: role, password, second factor, removal.

use super::super::context::CommandContext;
use super::super::{password, value};
use crate::failure::CommandFailure;
use crate::report::Report;
use clap::Args;
use domain::mode::Mode;
use domain::role::Role;
use secrecy::SecretString;
use serde_json::{Value, json};
use store::api_key::ApiKey;
use store::api_key::script::revoke_made_by;
use store::keys::AccountKeys;
use store::script::change::Scope;
use store::user::email::EmailOwner;
use store::user::script::{ChangeUser, SessionsToEnd, UserChanged};
use store::user::{StoredUser, User};

/// Maximum number of attempts of a change of a user if other changes occur meanwhile.
const CHANGE_ATTEMPTS: usize = 8;

/// Arguments that name a user.
#[derive(Debug, Args)]
pub(in super::super) struct UserArgs {
    /// The user's e-mail
    #[arg(long, value_parser = value::email)]
    pub(super) email: String,
    /// The account, where several have the e-mail
    #[arg(long, value_name = "ID", value_parser = value::id)]
    pub(super) account: Option<String>,
}

/// A user and its account.
pub(super) struct FoundUser {
    pub(super) owner: EmailOwner,
    pub(super) stored: StoredUser,
}

impl FoundUser {
    /// Finds the user with this name, who must exist and, if no account is given, be unique.
    pub(super) async fn by_name(context: &CommandContext, name: &UserArgs) -> Result<Self, CommandFailure> {
        let UserArgs { email, account } = name;
        let accounts = match account {
            Some(account) => vec![account.clone()],
            None => {
                let owners = EmailOwner::all(&context.store, email).await?;
                owners.into_iter().map(|owner| owner.account).collect()
            }
        };
        let mut found = Vec::new();
        for account in accounts {
            let keys = AccountKeys::new(&account);
            if let Some(stored) = StoredUser::find(&context.store, &keys, email).await? {
                let user = stored.user.id.clone();
                let owner = EmailOwner { account, user };
                found.push(Self { owner, stored });
            }
        }
        match (found.pop(), found.as_slice()) {
            (Some(one), []) => Ok(one),
            (None, _) => Err(CommandFailure::refused(
                "NOT_FOUND",
                format!(
                    "no user has the e-mail {email}: `tollgate-admin user list` lists the users of an account"
                ),
            )),
            (Some(last), others) => {
                let accounts = others.iter().chain([&last]).map(|one| one.owner.account.as_str());
                let accounts: Vec<&str> = accounts.collect();
                let message = format!(
                    "several accounts have a user of the e-mail {email}: name one with --account ({})",
                    accounts.join(", ")
                );
                Err(CommandFailure::refused("ACCOUNT_REQUIRED", message))
            }
        }
    }

    pub(super) fn scope(&self) -> Scope<'_> {
        Scope::from_operator(&self.owner.account, Mode::Live)
    }

    /// Returns the JSON document of a command on the user, with the fields of `more`.
    pub(super) fn document(&self, more: Value) -> Value {
        let user = &self.stored.user;
        let mut document = json!({ "userId": user.id, "accountId": self.owner.account, "email": user.email });
        if let (Some(all), Value::Object(more)) = (document.as_object_mut(), more) {
            all.extend(more);
        }
        document
    }
}

/// The ids of the API keys that a user made.
async fn keys_of(context: &CommandContext, owner: &EmailOwner) -> Result<Vec<String>, CommandFailure> {
    let keys = AccountKeys::new(&owner.account);
    let made = ApiKey::made_by(&context.store, &keys, &owner.user).await?;
    Ok(made.into_iter().map(|key| key.id).collect())
}

/// The effects of a change beside the user's record, and its entry in the audit log.
struct Edit<'a> {
    ending: SessionsToEnd<'a>,
    /// API keys of the user that are revoked.
    api_keys: &'a [String],
    kind: &'a str,
    /// Details for the entry, of the user before the change.
    data: &'a (dyn Fn(&User) -> Value + Sync),
}

/// Changes a user. `change` receives the user and returns the new one (`None`: removed), or `None` if nothing is to be
/// changed; it is called again if another change occurs meanwhile. Returns the user before the change, and the number
/// of the account's newest key at it, `None` if nothing was changed.
async fn edit(
    context: &CommandContext,
    name: &UserArgs,
    edit: Edit<'_>,
    change: impl Fn(&User) -> Option<Option<User>>,
) -> Result<(FoundUser, Option<u64>), CommandFailure> {
    for _ in 0..CHANGE_ATTEMPTS {
        let found = FoundUser::by_name(context, name).await?;
        let Some(new) = change(&found.stored.user) else {
            return Ok((found, None));
        };
        let change_user = ChangeUser {
            old: &found.stored,
            new: new.as_ref(),
            ending: edit.ending,
            api_keys: edit.api_keys,
            kind: edit.kind,
            data: (edit.data)(&found.stored.user),
        };
        match change_user.execute(&context.store, &found.scope()).await? {
            UserChanged::Done { last_key } => return Ok((found, Some(last_key))),
            UserChanged::Changed => {}
            UserChanged::LastOwner => {
                let message = "the account needs an owner: assign another owner first";
                return Err(CommandFailure::refused("LAST_OWNER", message));
            }
        }
    }
    Err(CommandFailure::refused(
        "CONFLICT",
        "other requests keep changing the user; try again",
    ))
}

pub(super) async fn set_role(
    context: &CommandContext,
    name: &UserArgs,
    role: Role,
    keeps: bool,
) -> Result<Report, CommandFailure> {
    let FoundUser { owner, .. } = FoundUser::by_name(context, name).await?;
    let revokes = !role.makes_keys() && !keeps;
    // Read before the user is read again: the keys up to this one were made before the user was seen in the role.
    let last_key = ApiKey::last_number(&context.store, &AccountKeys::new(&owner.account)).await?;
    let mut revoked = match revokes {
        true => keys_of(context, &owner).await?,
        false => Vec::new(),
    };
    let how = Edit {
        ending: SessionsToEnd::None,
        api_keys: &revoked,
        kind: "user.role_changed",
        data: &|old| json!({ "from": old.role.as_str(), "to": role.as_str(), "revokedApiKeys": revoked }),
    };
    let (found, changed_at) = edit(context, name, how, |user| {
        (user.role != role).then(|| Some(User { role, ..user.clone() }))
    })
    .await?;
    if revokes {
        let until = changed_at.unwrap_or(last_key);
        revoke_made_by(&context.store, &found.scope(), &owner.user, until, &mut revoked).await?;
    }
    Ok(Report::new(
        format!(
            "User {} is {role} now, from the next call on. {} API keys are revoked.",
            found.stored.user.id,
            revoked.len()
        ),
        found.document(json!({ "role": role.as_str(), "revokedApiKeys": revoked })),
    ))
}

pub(super) async fn set_password(
    context: &CommandContext,
    name: &UserArgs,
    new: &SecretString,
) -> Result<Report, CommandFailure> {
    let password = password::hash(context, &name.email, new)?;
    let how = Edit {
        ending: SessionsToEnd::All,
        api_keys: &[],
        kind: "user.password_changed",
        data: &|_| json!({ "by": "operator" }),
    };
    let (found, _) = edit(context, name, how, |user| {
        let password = password.clone();
        Some(Some(User {
            password,
            ..user.clone()
        }))
    })
    .await?;
    Ok(Report::new(
        format!(
            "User {} has a new password; all sessions have ended.",
            found.stored.user.id
        ),
        found.document(json!({ "passwordSet": true })),
    ))
}

pub(super) async fn disable_totp(
    context: &CommandContext,
    name: &UserArgs,
) -> Result<Report, CommandFailure> {
    let how = Edit {
        ending: SessionsToEnd::All,
        api_keys: &[],
        kind: "user.totp_disabled",
        data: &|_| json!({}),
    };
    let (found, _) = edit(context, name, how, |user| {
        let (totp, totp_pending, totp_begun_at_ms) = (None, None, None);
        (user.totp.is_some() || user.totp_pending.is_some()).then(|| {
            Some(User {
                totp,
                totp_pending,
                totp_begun_at_ms,
                ..user.clone()
            })
        })
    })
    .await?;
    Ok(Report::new(
        format!("User {} signs in with the password alone.", found.stored.user.id),
        found.document(json!({ "totpEnabled": false })),
    ))
}

pub(super) async fn remove(
    context: &CommandContext,
    name: &UserArgs,
    keeps: bool,
) -> Result<Report, CommandFailure> {
    if let Some(report) = forget_missing(context, name).await? {
        return Ok(report);
    }
    let FoundUser { owner, .. } = FoundUser::by_name(context, name).await?;
    let mut made = match keeps {
        true => Vec::new(),
        false => keys_of(context, &owner).await?,
    };
    let how = Edit {
        ending: SessionsToEnd::All,
        api_keys: &made,
        kind: "user.removed",
        data: &|old| json!({ "role": old.role.as_str(), "revokedApiKeys": made }),
    };
    let (found, last_key) = edit(context, name, how, |_| Some(None)).await?;
    if let Some(until) = last_key.filter(|_| !keeps) {
        revoke_made_by(&context.store, &found.scope(), &owner.user, until, &mut made).await?;
    }
    found.owner.leave(&context.store, &name.email).await?;
    Ok(Report::new(
        format!(
            "User {} is removed; all sessions have ended, and {} API keys are revoked.",
            found.stored.user.id,
            made.len()
        ),
        found.document(json!({ "removed": true, "revokedApiKeys": made })),
    ))
}

/// Completes an interrupted removal: the account has no such user, but the look-up of the e-mail address still contains
/// it.
async fn forget_missing(context: &CommandContext, name: &UserArgs) -> Result<Option<Report>, CommandFailure> {
    let UserArgs { email, account } = name;
    let Some(account) = account else { return Ok(None) };
    let there = StoredUser::find(&context.store, &AccountKeys::new(account), email).await?;
    if there.is_some() || !EmailOwner::forget_missing(&context.store, email, account).await? {
        return Ok(None);
    }
    let document = json!({ "accountId": account, "email": email, "removed": false, "lookupRepaired": true });
    let text =
        format!("{account} has no user of that e-mail; the remains of an interrupted removal are deleted.");
    Ok(Some(Report::new(text, document)))
}
