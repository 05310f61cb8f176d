//! Twin of `witness.lua`: what another server remembers of an account.

use crate::keys::Bucket;
use crate::script::{Script, WhenFull};
use crate::versions::AccountVersion;
use crate::{Store, StoreError};
use std::sync::LazyLock;

/// Remembers how far an account has come.
pub static WITNESS: LazyLock<Script> =
    LazyLock::new(|| Script::new("witness", WhenFull::Run, &[include_str!("witness.lua")]));

/// Tells the witnesses in `bucket` that `account` has come as far as `view`.
///
/// # Errors
/// [`StoreError`]; safe to retry.
pub async fn update(
    store: &Store,
    bucket: Bucket,
    account: &str,
    view: AccountVersion,
) -> Result<(), StoreError> {
    let (generation, version) = (view.generation.to_string(), view.version.to_string());
    let args = [account, &generation, &version];
    let reply: Vec<String> = store.execute(&WITNESS, &[&bucket.witnessed()], &args).await?;
    match reply.first().map(String::as_str) {
        Some("noted" | "known") => Ok(()),
        _ => Err(StoreError::UnexpectedReply(WITNESS.name().to_owned())),
    }
}

/// What the witnesses in `bucket` remember of `account`.
///
/// # Errors
/// [`StoreError`].
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

/// Reads `<generation> <version>`.
#[must_use]
pub fn parse(text: &str) -> Option<AccountVersion> {
    let (generation, version) = text.split_once(' ')?;
    Some(AccountVersion {
        generation: generation.parse().ok()?,
        version: version.parse().ok()?,
    })
}
