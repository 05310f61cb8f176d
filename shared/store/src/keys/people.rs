//! Key names for users: sessions, invitations, password resets and attempts.

use super::AccountKeys;
use sha2::{Digest, Sha256};

/// Account, user and session of a session token's hash. Expires with the session at the latest, and counts only while
/// the account has the session.
pub fn session_lookup(sha256_hex: &str) -> String {
    format!("tollgate/session/{sha256_hex}")
}

/// Account and invitation of a token's hash. Expires with the invitation.
pub fn invitation_lookup(sha256_hex: &str) -> String {
    format!("tollgate/invitation/{sha256_hex}")
}

/// Account and user of a reset token's hash. Expires with the reset.
pub fn reset_lookup(sha256_hex: &str) -> String {
    format!("tollgate/reset/{sha256_hex}")
}

domain::words! {
    /// Kind of attempt, and the key by which it is counted.
    pub enum Tries {
        /// Sign-ins that name no account, by e-mail, whether a user has it or not.
        Login = "login",
        /// Sign-ins that name an account, by e-mail and account, whether there is such a user or not.
        LoginAccount = "login-account",
        /// Sign-ins that name an account, whichever it is, by e-mail. They lock nothing; see [`Self::LoginAccount`].
        LoginNamed = "login-named",
        /// Different passwords that were right in sign-ins that name no account, by e-mail.
        RightPasswords = "right-passwords",
        /// Mark that a right password was counted, by e-mail and password hash.
        RightPassword = "right-password",
        /// Sign-ins, by the client's address.
        LoginAddress = "login-address",
        /// Links of new passwords, by the client's address.
        ResetAddress = "reset-address",
        /// Codes of a second factor together with such a link, by user.
        Reset = "reset",
        /// Links of invitations, by the client's address.
        InvitationAddress = "invitation-address",
        /// Passwords of signed-in users, by user.
        Confirm = "confirm",
    }
}

/// Recent attempts (list of times, oldest first). Expires 15 minutes after the last one.
pub fn attempts(tries: Tries, of: &str) -> String {
    let hash = hex::encode(Sha256::digest(of.as_bytes()));
    format!("tollgate/attempts/{}/{hash}", tries.as_str())
}

keys! {
    AccountKeys:
    /// The open sessions of a user (hash of session id to its record, and of `seen:<session id>` to the time of last
    /// use). Expires with the last of them.
    pub sessions(user: &str) = "/sessions/", user;
    /// When each user last signed in (hash of user id to time).
    pub last_logins() = "/last-logins";
    /// Open invitations (hash of e-mail address to `<created> <end> <JSON>`). Expires with the last of them.
    pub invitations() = "/invitations";
    /// The hash of the token with which a user's password can be set. Expires with the token.
    pub reset(user: &str) = "/reset/", user;
}
