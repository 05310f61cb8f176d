//! Twin of `witness.lua`: the copy of an account's version on another server.

use crate::keys::Bucket;
use crate::script::reply::ScriptReply;
use crate::script::script;
use crate::versions::AccountVersion;
use crate::{Store, StoreError};

script! {
    /// Records an account's version.
    pub static WITNESS = "witness",
    kind: Timeless,
    source: [include_str!("witness.lua")],
    when_full: Run,
    keys: struct WitnessKeys<'a>: &'a str { witnessed },
    args: struct WitnessArgs<'a>: &'a str { account, generation, version },
}

/// Records in `bucket` that `account` has the version `view`.
/// Safe to retry.
pub async fn update(
    store: &Store,
    bucket: Bucket,
    account: &str,
    view: AccountVersion,
) -> Result<(), StoreError> {
    let keys = WitnessKeys {
        witnessed: &bucket.witnessed(),
    };
    let args = WitnessArgs {
        account,
        generation: &view.generation.to_string(),
        version: &view.version.to_string(),
    };
    // Not `Store::reply`: it may execute a change of the account, which awaits this function.
    let words = store
        .execute(&WITNESS, &keys.into_values(), &args.into_values())
        .await?;
    let reply = ScriptReply::new(&WITNESS, words);
    reply.expect_one_of(&["noted", "known"])
}

/// Reads the version of `account` that `bucket` witnesses.
pub async fn read(
    store: &Store,
    bucket: Bucket,
    account: &str,
) -> Result<Option<AccountVersion>, StoreError> {
    let mut get = redis::cmd("HGET");
    get.arg(bucket.witnessed()).arg(account);
    let text: Option<String> = store.command(&get).await?;
    Ok(text.as_deref().and_then(parse))
}

/// Parses `<generation> <version>`.
pub fn parse(text: &str) -> Option<AccountVersion> {
    let (generation, version) = text.split_once(' ')?;
    Some(AccountVersion {
        generation: generation.parse().ok()?,
        version: version.parse().ok()?,
    })
}
