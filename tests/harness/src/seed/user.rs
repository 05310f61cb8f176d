//! Seeding a user who can sign in.

use super::{SeedAccount, mint};
use domain::id::IdKind;
use domain::role::Role;
use store::keys;
use store::user::User;

/// The password of every seeded user.
pub const TEST_PASSWORD: &str = "correct horse battery";
/// The argon2id hash of [`TEST_PASSWORD`], with parameters so low that a test costs no time.
const TEST_PASSWORD_HASH: &str =
    "$argon2id$v=19$m=8,t=1,p=1$dG9sbGdhdGUgaGFybmVzcw$UTMKx4LLHBAIm8gYfxKPSgSGHySmmj2alHU4eE8BEcI";

/// A seeded user.
#[derive(Debug, Clone)]
pub struct SeedUser {
    /// Account of the user.
    pub account: SeedAccount,
    /// The user's id.
    pub id: String,
    /// E-mail address for sign-ins, with [`TEST_PASSWORD`].
    pub email: String,
}

impl SeedAccount {
    /// A user of this account with the password [`TEST_PASSWORD`], written without an audit entry.
    pub async fn user(&self, role: Role) -> SeedUser {
        let id = mint(IdKind::User);
        let email = format!("{}@example.com", id.to_lowercase());
        let user = User {
            id: id.clone(),
            email: email.clone(),
            role,
            password: TEST_PASSWORD_HASH.to_owned(),
            created_at_ms: clock::now_ms(),
            totp: None,
            totp_pending: None,
            totp_begun_at_ms: None,
        };
        self.seed
            .hset(&self.keys.users(), &[(email.as_str(), &user.to_stored())])
            .await;
        let mut lookup = redis::cmd("SET");
        lookup
            .arg(keys::user_lookup(&email))
            .arg(format!("{} {id}", self.id));
        self.seed.run(&lookup).await;
        SeedUser {
            account: self.clone(),
            id,
            email,
        }
    }
}
