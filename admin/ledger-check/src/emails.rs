//! E-mails: the look-up of each leads to users that are there, and each user is led to (decision D74).
//!
//! A look-up lies outside the buckets. So the check of a single account sees that its users are led to, and not what
//! leads to nobody.

mod pass;

use super::drive::BATCH;
use store::user::email::EmailOwner;

/// A user, to whom the look-up of its e-mail must lead.
struct Led {
    /// The key of the account's users.
    users: String,
    owner: EmailOwner,
    lookup: String,
}

/// Users whose look-ups are to be read.
#[derive(Default)]
pub(super) struct Emails(Vec<Led>);

impl Emails {
    /// Whether the look-ups noted so far should be read before more are.
    pub(super) const fn is_full(&self) -> bool {
        self.0.len() >= BATCH
    }
}
