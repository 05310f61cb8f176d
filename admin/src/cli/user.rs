//! `tollgate-admin user`: people who sign in to the dashboard.

use super::context::Context;
use super::{Failure, Report, password, value};
use clap::{Subcommand, ValueEnum};
use secrecy::SecretString;
use serde_json::json;
use shared::clock::now_ms;
use shared::domain::id::Kind;
use shared::domain::role::Role;
use shared::store::audit::OPERATOR;
use shared::store::script::account::{self, UserAdded};
use shared::store::user::User as Record;

/// `user …`
#[derive(Debug, Subcommand)]
pub(super) enum User {
    /// Create a user of an account
    Create {
        /// The account
        #[arg(long, value_name = "ID", value_parser = value::id)]
        account: String,
        /// The user's e-mail, unique in this installation
        #[arg(long, value_parser = value::email)]
        email: String,
        /// What the user may do
        #[arg(long)]
        role: RoleName,
        /// Read the password from standard input, one line (required: there is no other way to give it)
        #[arg(long, required = true)]
        password_stdin: bool,
    },
}

#[derive(Debug, Clone, Copy, ValueEnum)]
pub(super) enum RoleName {
    /// Everything, team, plan and API keys included
    Owner,
    /// All but team, plan and API keys
    Admin,
    /// Reads, releases, disputes, freezes and unfreezes
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

impl User {
    pub(super) async fn run(self, context: &Context) -> Result<Report, Failure> {
        let Self::Create {
            account: id,
            email,
            role,
            password_stdin: _,
        } = self;
        context.account(&id).await?;
        let user = new_user(email, role.into(), &password::read_stdin()?)?;
        match account::add_user(&context.store, &id, &user, OPERATOR).await? {
            UserAdded::Done => Ok(Report::new(
                format!(
                    "User {} ({}) of {id} signs in as {}.",
                    user.id,
                    user.role.as_str(),
                    user.email
                ),
                json!({ "userId": user.id, "accountId": id, "email": user.email, "role": user.role.as_str() }),
            )),
            UserAdded::NoAccount => Err(Failure::no_account(&id)),
            UserAdded::EmailTaken => Err(Failure::refused(
                "CONFLICT",
                "another user of this installation has that e-mail",
            )),
            UserAdded::TooMany => Err(Failure::refused(
                "CONFLICT",
                "the account has as many users as it can have",
            )),
        }
    }
}

/// A new user's record.
pub(super) fn new_user(email: String, role: Role, password: &SecretString) -> Result<Record, Failure> {
    let created_at_ms = now_ms();
    Ok(Record {
        id: Kind::User.mint(created_at_ms)?,
        email,
        role,
        password: password::hash(password)?,
        created_at_ms,
        totp: None,
        totp_pending: None,
    })
}
