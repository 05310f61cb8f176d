//! Display names of agents, keys, policies and users, for lists whose records name only their ids.

use crate::keys::{AccountKeys, Realm};
use crate::user::User;
use crate::{Store, StoreError};
use std::collections::{HashMap, HashSet};

/// Names read in one round trip.
const CHUNK: usize = 500;

/// Names by id. Contains no entry for an object that has no name or no longer exists.
pub type Names = HashMap<String, String>;

/// Reads the names of agents. An agent without a wallet row has none.
pub async fn read_agent_names<'i>(
    store: &Store,
    realm: &Realm,
    ids: impl Iterator<Item = &'i str>,
) -> Result<Names, StoreError> {
    read(store, ids, |id| (realm.agent(id), "wallet"), |_| true).await
}

/// Reads the names of virtual keys, revoked ones included. They belong to live mode.
pub async fn read_virtual_key_names<'i>(
    store: &Store,
    account: &AccountKeys,
    ids: impl Iterator<Item = &'i str>,
) -> Result<Names, StoreError> {
    read(store, ids, |id| (account.virtual_key(id), "agent"), |_| true).await
}

/// Reads the names of API keys of a mode, revoked ones included.
pub async fn read_api_key_names<'i>(
    store: &Store,
    realm: &Realm,
    ids: impl Iterator<Item = &'i str>,
) -> Result<Names, StoreError> {
    let of_mode = |word: &str| word == realm.mode().as_str();
    read(store, ids, |id| (realm.keys().api_key(id), "mode"), of_mode).await
}

/// Reads the names of policies.
pub async fn read_policy_names<'i>(
    store: &Store,
    realm: &Realm,
    ids: impl Iterator<Item = &'i str>,
) -> Result<Names, StoreError> {
    read(store, ids, |id| (realm.policy(id), "cap"), |_| true).await
}

/// Reads the e-mail addresses of users. Reads all users of the account, if there is an id.
pub async fn read_user_names<'i>(
    store: &Store,
    account: &AccountKeys,
    ids: impl Iterator<Item = &'i str>,
) -> Result<Names, StoreError> {
    let wanted: HashSet<&str> = ids.collect();
    if wanted.is_empty() {
        return Ok(Names::new());
    }
    let users = User::list(store, account).await?;
    let found = users.into_iter().filter(|user| wanted.contains(user.id.as_str()));
    Ok(found.map(|user| (user.id, user.email)).collect())
}

/// Reads `name` of each record that has the field with a value that `fits`.
async fn read<'i>(
    store: &Store,
    ids: impl Iterator<Item = &'i str>,
    record: impl Fn(&str) -> (String, &'static str),
    fits: impl Fn(&str) -> bool,
) -> Result<Names, StoreError> {
    let unique: HashSet<&str> = ids.collect();
    let ids: Vec<&str> = unique.into_iter().collect();
    let mut names = Names::new();
    for some in ids.chunks(CHUNK) {
        let fields = some.iter().map(|id| record(id));
        let fields = fields.map(|(key, field)| (key, "name", field));
        let found: Vec<(Option<String>, Option<String>)> = store.each("HMGET", fields).await?;
        let named = some.iter().zip(found).filter_map(|(id, (name, value))| {
            value.filter(|value| fits(value))?;
            Some(((*id).to_owned(), name.filter(|name| !name.is_empty())?))
        });
        names.extend(named);
    }
    Ok(names)
}
