//! What the operator changes of a user: role, password, second factor, existence.

use super::super::context::Context;
use super::super::{Failure, Report, password};
use secrecy::SecretString;
use serde_json::{Value, json};
use shared::domain::mode::Mode;
use shared::domain::role::Role;
use shared::store::audit::OPERATOR;
use shared::store::email::EmailOwner;
use shared::store::keys::AccountKeys;
use shared::store::script::change::Scope;
use shared::store::script::user::{ChangeUser, Ending, UserChanged};
use shared::store::user::{Stored, User};

/// Attempts at a change of a user whom somebody else changes at the same moment.
const ATTEMPTS: usize = 8;

/// A user and where it is.
pub(super) struct Found {
    pub(super) owner: EmailOwner,
    pub(super) stored: Stored,
}

impl Found {
    /// The user of this e-mail, who must exist.
    pub(super) async fn by_email(context: &Context, email: &str) -> Result<Self, Failure> {
        let none = || Failure::refused("NOT_FOUND", format!("no user has the e-mail {email}"));
        let owner = EmailOwner::find(&context.store, email).await?.ok_or_else(none)?;
        let keys = AccountKeys::of(&owner.account);
        let stored = Stored::find(&context.store, &keys, email)
            .await?
            .ok_or_else(none)?;
        Ok(Self { owner, stored })
    }

    pub(super) fn scope(&self) -> Scope<'_> {
        Scope {
            account: &self.owner.account,
            mode: Mode::Live,
            actor: OPERATOR,
        }
    }

    /// What every command says of the user.
    pub(super) fn document(&self, more: Value) -> Value {
        let user = &self.stored.user;
        let mut document = json!({ "userId": user.id, "accountId": self.owner.account, "email": user.email });
        if let (Some(all), Value::Object(more)) = (document.as_object_mut(), more) {
            all.extend(more);
        }
        document
    }
}

/// What is changed, and how the audit log tells it.
struct Edit<'a> {
    ending: Ending<'a>,
    kind: &'a str,
    data: Value,
}

/// Makes a change; `change` sees the user as it is, and says `None` when there is nothing to change.
async fn edit(
    context: &Context,
    email: &str,
    edit: Edit<'_>,
    change: impl Fn(&User) -> Option<Option<User>>,
) -> Result<Found, Failure> {
    for _ in 0..ATTEMPTS {
        let found = Found::by_email(context, email).await?;
        let Some(new) = change(&found.stored.user) else {
            return Ok(found);
        };
        let change = ChangeUser {
            old: &found.stored,
            new: new.as_ref(),
            ending: edit.ending,
            kind: edit.kind,
            data: edit.data.clone(),
        };
        match change.run(&context.store, &found.scope()).await? {
            UserChanged::Done => return Ok(found),
            UserChanged::Changed => {}
            UserChanged::LastOwner => {
                let message = "the account needs an owner: make somebody else one first";
                return Err(Failure::refused("LAST_OWNER", message));
            }
        }
    }
    Err(Failure::refused(
        "CONFLICT",
        "the user changes all the time; try again",
    ))
}

pub(super) async fn set_role(context: &Context, email: &str, role: Role) -> Result<Report, Failure> {
    let how = Edit {
        ending: Ending::None,
        kind: "user.role_changed",
        data: json!({ "to": role.as_str() }),
    };
    let found = edit(context, email, how, |user| {
        (user.role != role).then(|| Some(User { role, ..user.clone() }))
    })
    .await?;
    Ok(Report::new(
        format!(
            "User {} is {role} now; it binds the next call.",
            found.stored.user.id
        ),
        found.document(json!({ "role": role.as_str() })),
    ))
}

pub(super) async fn set_password(
    context: &Context,
    email: &str,
    new: &SecretString,
) -> Result<Report, Failure> {
    let password = password::hash(new)?;
    let how = Edit {
        ending: Ending::All,
        kind: "user.password_changed",
        data: json!({ "by": "operator" }),
    };
    let found = edit(context, email, how, |user| {
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

pub(super) async fn disable_totp(context: &Context, email: &str) -> Result<Report, Failure> {
    let how = Edit {
        ending: Ending::All,
        kind: "user.totp_disabled",
        data: json!({}),
    };
    let found = edit(context, email, how, |user| {
        let (totp, totp_pending) = (None, None);
        (user.totp.is_some() || user.totp_pending.is_some()).then(|| {
            Some(User {
                totp,
                totp_pending,
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

pub(super) async fn remove(context: &Context, email: &str) -> Result<Report, Failure> {
    let how = Edit {
        ending: Ending::All,
        kind: "user.removed",
        data: json!({}),
    };
    let found = edit(context, email, how, |_| Some(None)).await?;
    let owner = EmailOwner {
        account: found.owner.account.clone(),
        user: found.stored.user.id.clone(),
    };
    owner.release(&context.store, email).await?;
    Ok(Report::new(
        format!(
            "User {} is removed; all sessions have ended.",
            found.stored.user.id
        ),
        found.document(json!({ "removed": true })),
    ))
}
