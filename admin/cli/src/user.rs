//! `tollgate-admin user`: dashboard users. A user is identified by its e-mail address, which is unique in an account,
//! and by the account if several accounts have a user with it.

mod change;
mod help;

use self::change::UserArgs;
use super::context::CommandContext;
use super::{password, value};
use crate::failure::CommandFailure;
use crate::report::Report;
use clap::{Subcommand, ValueEnum};
use clock::now_ms;
use domain::id::IdKind;
use domain::role::Role;
use domain::timestamp::iso_from_ms;
use secrecy::SecretString;
use serde_json::json;
use store::account::script as account;
use store::account::script::{USERS_MAX, UserAdded};
use store::audit::OPERATOR;
use store::keys::AccountKeys;
use store::user::{User, last_logins};

/// `user …`
#[derive(Debug, Subcommand)]
pub(super) enum UserCommand {
    /// Create a user of an account
    Create {
        /// The account
        #[arg(long, value_name = "ID", value_parser = value::id)]
        account: String,
        /// The user's e-mail, unique in the account
        #[arg(long, value_parser = value::email)]
        email: String,
        /// The user's role
        #[arg(long)]
        role: RoleName,
        /// Read the password from standard input, one line (required)
        #[arg(long, required = true)]
        password_stdin: bool,
    },
    /// List the users of an account, newest first
    List {
        /// The account
        #[arg(long, value_name = "ID", value_parser = value::id)]
        account: String,
    },
    /// Change a user's role, from the next request on
    SetRole {
        #[command(flatten)]
        name: UserArgs,
        /// The new role of the user
        #[arg(long)]
        role: RoleName,
        /// Do not revoke the API keys that the user made, where the new role can make none
        #[arg(long)]
        keep_api_keys: bool,
    },
    /// Print a link with which a user sets a new password, once and within an hour; or set it from standard input
    ResetPassword {
        #[command(flatten)]
        name: UserArgs,
        /// Read the new password from standard input, one line
        #[arg(long)]
        password_stdin: bool,
    },
    /// Remove a user: all sessions end, API keys that the user created are revoked, and the e-mail address is free
    /// again
    Remove {
        #[command(flatten)]
        name: UserArgs,
        /// Do not revoke the API keys that the user made
        #[arg(long)]
        keep_api_keys: bool,
    },
    /// Lift the lock that ten wrong passwords put on a user's login
    Unlock(UserArgs),
    /// Take a user's second factor away, when the device and the recovery codes are lost
    DisableTotp(UserArgs),
}

#[derive(Debug, Clone, Copy, ValueEnum)]
pub(super) enum RoleName {
    /// Everything
    Owner,
    /// Everything except deposits, team and plan
    Admin,
    /// Freezes agents, decides about waiting spends and escrows
    Manager,
    /// Reads
    Viewer,
}

impl From<RoleName> for Role {
    fn from(name: RoleName) -> Self {
        match name {
            RoleName::Owner => Self::Owner,
            RoleName::Admin => Self::Admin,
            RoleName::Manager => Self::Manager,
            RoleName::Viewer => Self::Viewer,
        }
    }
}

impl UserCommand {
    pub(super) async fn run(self, context: &CommandContext) -> Result<Report, CommandFailure> {
        match self {
            Self::Create {
                account,
                email,
                role,
                password_stdin: _,
            } => create(context, &account, email, role.into()).await,
            Self::List { account } => list(context, &account).await,
            Self::SetRole {
                name,
                role,
                keep_api_keys,
            } => change::set_role(context, &name, role.into(), keep_api_keys).await,
            Self::ResetPassword {
                name,
                password_stdin: true,
            } => change::set_password(context, &name, &password::read_stdin()?).await,
            Self::ResetPassword { name, .. } => help::reset_link(context, &name).await,
            Self::Remove { name, keep_api_keys } => change::remove(context, &name, keep_api_keys).await,
            Self::Unlock(name) => help::unlock(context, &name).await,
            Self::DisableTotp(name) => change::disable_totp(context, &name).await,
        }
    }
}

async fn create(
    context: &CommandContext,
    id: &str,
    email: String,
    role: Role,
) -> Result<Report, CommandFailure> {
    context.account(id).await?;
    let user = new_user(context, email, role, &password::read_stdin()?)?;
    match account::add_user(&context.store, id, &user, OPERATOR).await? {
        UserAdded::Done => Ok(Report::new(
            format!("User {} ({role}) of {id} signs in as {}.", user.id, user.email),
            json!({ "userId": user.id, "accountId": id, "email": user.email, "role": role.as_str() }),
        )),
        UserAdded::NoAccount => Err(CommandFailure::no_account(id)),
        UserAdded::EmailTaken => Err(CommandFailure::refused(
            "CONFLICT",
            "a user of the account has that e-mail: `user reset-password` and `user set-role` change the user",
        )),
        UserAdded::TooMany => {
            let message = format!(
                "the account has the maximum of {USERS_MAX} users: remove one (`tollgate-admin user list`, `user remove`)"
            );
            Err(CommandFailure::refused("CONFLICT", message))
        }
    }
}

/// Returns a new user's record.
pub(super) fn new_user(
    context: &CommandContext,
    email: String,
    role: Role,
    password: &SecretString,
) -> Result<User, CommandFailure> {
    let created_at_ms = now_ms();
    Ok(User {
        id: IdKind::User.mint(created_at_ms)?,
        password: password::hash(context, &email, password)?,
        email,
        role,
        created_at_ms,
        totp: None,
        totp_pending: None,
        totp_begun_at_ms: None,
    })
}

async fn list(context: &CommandContext, id: &str) -> Result<Report, CommandFailure> {
    context.account(id).await?;
    let keys = AccountKeys::new(id);
    let mut users = User::list(&context.store, &keys).await?;
    users.reverse();
    let logins = last_logins(&context.store, &keys).await?;
    let last = |user: &User| logins.get(&user.id).copied().map(iso_from_ms);
    let row = |user: &User| {
        vec![
            user.id.clone(),
            user.role.to_string(),
            if user.totp.is_some() { "yes" } else { "no" }.to_owned(),
            iso_from_ms(user.created_at_ms),
            last(user).unwrap_or_else(|| "never".to_owned()),
            user.email.clone(),
        ]
    };
    let document = |user: &User| {
        json!({ "userId": user.id, "email": user.email, "role": user.role.as_str(),
            "totpEnabled": user.totp.is_some(), "createdAt": iso_from_ms(user.created_at_ms),
            "lastLoginAt": last(user) })
    };
    let columns = ["USER", "ROLE", "SECOND FACTOR", "CREATED", "LAST LOGIN", "E-MAIL"];
    Ok(Report::list(("users", &columns), &users, row, document).with("accountId", id))
}
