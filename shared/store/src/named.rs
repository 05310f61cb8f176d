//! Display names of records by their ids: API keys, virtual keys, users and agents.

use crate::keys::AccountKeys;
use crate::user::User;
use crate::{Store, StoreError};
use domain::id::Kind;
use domain::mode::Mode;
use std::collections::HashMap;

/// What an id names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NamedKind {
    /// An API key, `key_…`.
    ApiKey,
    /// A virtual key, `vk_…`.
    VirtualKey,
    /// A user, `usr_…`.
    User,
    /// An agent: every other id.
    Agent,
}

impl NamedKind {
    /// Classifies an id by its form alone.
    #[must_use]
    pub fn of(id: &str) -> Self {
        let kinds = [
            (Kind::ApiKey, Self::ApiKey),
            (Kind::VirtualKey, Self::VirtualKey),
            (Kind::User, Self::User),
        ];
        let found = kinds.iter().find(|(kind, _)| kind.has_form(id));
        found.map_or(Self::Agent, |(_, kind)| *kind)
    }

    /// The API's word.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::ApiKey => "api_key",
            Self::VirtualKey => "virtual_key",
            Self::User => "user",
            Self::Agent => "agent",
        }
    }
}

/// An id with the name that people gave to its record.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Named {
    /// The id.
    pub id: String,
    /// What it is.
    pub kind: NamedKind,
    /// Display name; of a user the e-mail address.
    pub name: String,
}

impl Named {
    /// Finds the names of `ids` in `account`, in the given order; agents are those of `mode`. Leaves out what does not
    /// exist and what has no name. Reads one field for each id, and the account's users once if a user is among them.
    ///
    /// # Errors
    /// [`StoreError`], also for a malformed user.
    pub async fn find(
        store: &Store,
        account: &AccountKeys,
        mode: Mode,
        ids: &[&str],
    ) -> Result<Vec<Self>, StoreError> {
        let (users, records): (Vec<&str>, Vec<&str>) = ids
            .iter()
            .copied()
            .partition(|id| NamedKind::of(id) == NamedKind::User);
        let mut names = of_records(store, account, mode, &records).await?;
        if !users.is_empty() {
            let all = User::list(store, account).await?;
            names.extend(all.into_iter().map(|user| (user.id, user.email)));
        }
        let named = ids.iter().filter_map(|id| {
            let name = names.get(*id).filter(|name| !name.is_empty())?;
            Some(Self {
                id: (*id).to_owned(),
                kind: NamedKind::of(id),
                name: name.clone(),
            })
        });
        Ok(named.collect())
    }
}

/// The `name` fields of the records with these ids, none of which is a user's.
async fn of_records(
    store: &Store,
    account: &AccountKeys,
    mode: Mode,
    ids: &[&str],
) -> Result<HashMap<String, String>, StoreError> {
    if ids.is_empty() {
        return Ok(HashMap::new());
    }
    let mut look = redis::pipe();
    for id in ids {
        let key = match NamedKind::of(id) {
            NamedKind::ApiKey => account.api_key(id),
            NamedKind::VirtualKey => account.virtual_key(id),
            NamedKind::User | NamedKind::Agent => account.agent(mode, id),
        };
        look.cmd("HGET").arg(key).arg("name");
    }
    let names: Vec<Option<String>> = store.pipeline(&look).await?;
    let found = ids.iter().zip(names);
    Ok(found
        .filter_map(|(id, name)| Some(((*id).to_owned(), name?)))
        .collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_is_known_by_its_form_and_every_other_one_is_an_agents() {
        const ULID: &str = "01KAH3V9J80123456789ABCDEF";
        for (prefix, kind) in [
            ("key_", NamedKind::ApiKey),
            ("vk_", NamedKind::VirtualKey),
            ("usr_", NamedKind::User),
            ("agent_", NamedKind::Agent),
        ] {
            assert_eq!(NamedKind::of(&format!("{prefix}{ULID}")), kind);
        }
        for agent in ["research-bot", "key_1", "usr_", "operator"] {
            assert_eq!(NamedKind::of(agent), NamedKind::Agent);
        }
    }
}
