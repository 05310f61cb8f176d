//! Invitations to an account, stored by e-mail.

pub mod script;

use crate::keys::{self, AccountKeys};
use crate::{Store, StoreError};
use domain::role::Role;
use serde::{Deserialize, Serialize};
use std::collections::HashMap;

/// Maximum number of open invitations of an account.
pub const INVITATIONS_MAX: usize = 100;

/// The part of an invitation that is stored after its times.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct InvitationBody {
    /// `inv_…`
    pub id: String,
    /// Role of the invited user.
    pub role: Role,
    /// User id of the inviter.
    pub invited_by: String,
    /// Hash of the token, to remove the look-up when the invitation is used or revoked.
    pub token_hash: String,
}

/// A stored invitation of a user to an account.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Invitation {
    /// Invited e-mail, lower case.
    pub email: String,
    /// Role, inviter and token.
    pub body: InvitationBody,
    /// Creation time, in ms since 1970.
    pub created_at_ms: u64,
    /// Expiry, in ms since 1970.
    pub expires_at_ms: u64,
    /// The stored text, for a later comparison.
    pub text: String,
}

impl Invitation {
    fn parse(email: String, text: String) -> Option<Self> {
        let mut words = text.splitn(3, ' ');
        let (created_at_ms, expires_at_ms) = (words.next()?.parse().ok()?, words.next()?.parse().ok()?);
        let body = serde_json::from_str(words.next()?).ok()?;
        Some(Self {
            email,
            body,
            created_at_ms,
            expires_at_ms,
            text,
        })
    }

    /// Lists the invitations of `account` that are open at `now_ms`, newest first.
    pub async fn list(store: &Store, account: &AccountKeys, now_ms: u64) -> Result<Vec<Self>, StoreError> {
        let texts: HashMap<String, String> = store
            .command(redis::cmd("HGETALL").arg(account.invitations()))
            .await?;
        let all = texts.into_iter().map(|(email, text)| {
            Self::parse(email, text).ok_or_else(|| StoreError::unexpected("invitation"))
        });
        let mut open: Vec<Self> = all.collect::<Result<_, _>>()?;
        open.retain(|invitation| invitation.expires_at_ms > now_ms);
        open.sort_by(|a, b| b.body.id.cmp(&a.body.id));
        Ok(open)
    }

    /// Finds the open invitation of the token with this hash, and its account.
    pub async fn find(
        store: &Store,
        token_hash: &str,
        now_ms: u64,
    ) -> Result<Option<(String, Self)>, StoreError> {
        let key = keys::invitation_lookup(token_hash);
        let parse = |text: &str| {
            let (account, id) = text.split_once(' ')?;
            Some((account.to_owned(), id.to_owned()))
        };
        let found = store.lookup(key, "invitation look-up", parse).await?;
        let Some((account, id)) = found else {
            return Ok(None);
        };
        let open = Self::list(store, &AccountKeys::new(&account), now_ms).await?;
        let found = open.into_iter().find(|invitation| invitation.body.id == id);
        Ok(found.map(|invitation| (account, invitation)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn invitations_are_read_back() {
        let body = InvitationBody {
            id: "inv_1".to_owned(),
            role: Role::Viewer,
            invited_by: "usr_1".to_owned(),
            token_hash: "ab".to_owned(),
        };
        let text = format!("5 9 {}", serde_json::to_string(&body).unwrap());
        let read = Invitation::parse("a@example.com".to_owned(), text).unwrap();
        assert_eq!((read.created_at_ms, read.expires_at_ms, read.body), (5, 9, body));
        assert_eq!(Invitation::parse(String::new(), "5 9 {}".to_owned()), None);
    }
}
