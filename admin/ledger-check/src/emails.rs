//! Checks e-mail addresses: the look-up of each contains only existing users, and each user is in the look-up of its
//! address (decision D74).
//!
//! Look-ups are outside the buckets. So the check of a single account detects users that are missing from a look-up,
//! but not look-ups with a user that does not exist.

mod pass;

use super::drive::BATCH;
use store::user::email::EmailOwner;

/// A user that the look-up of its e-mail address must contain.
struct ListedUser {
    /// The key of the account's users.
    users: String,
    owner: EmailOwner,
    lookup: String,
}

/// Users whose look-ups are to be read.
#[derive(Default)]
pub(super) struct Emails(Vec<ListedUser>);

impl Emails {
    /// Returns whether the collected look-ups should be read before more are collected.
    pub(super) const fn is_full(&self) -> bool {
        self.0.len() >= BATCH
    }
}
