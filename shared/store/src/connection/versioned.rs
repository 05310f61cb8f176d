//! Versioned changes: a script that changes an account is refused if the store's version is older than a known one.
//! Acknowledged versions are recorded in this process and, on a cluster, by a witness.
//!
//! An account's witness is a field in a bucket of the opposite half of the slots, usually on another master. From it a
//! new master of the account, and a process that has just started, learn the acknowledged version, so that the loss of
//! one master is detected. Best effort, within [`WITNESS_WAIT`]: an unreachable master must not delay accounts of
//! others.

use super::cluster::{SLOTS, slot_of};
use super::{Store, StoreError};
use crate::authority::{Authority, Lack};
use crate::keys::{BUCKETS, Bucket};
use crate::script::Script;
use crate::versions::AccountVersion;
use crate::versions::witness;
use redis::Value;
use std::sync::LazyLock;
use std::time::Duration;

/// Reply of a versioned script for an account that lost writes (`script/versioned.lua`).
const LOST: &[u8] = b"lost";
/// Longest wait for a witness, for reads and updates.
const WITNESS_WAIT: Duration = Duration::from_millis(100);
/// Distance of a witness's slot: half of all slots.
const APART: u16 = SLOTS / 2;

/// The witness bucket of each bucket.
static WITNESSES: LazyLock<Vec<Bucket>> = LazyLock::new(|| {
    let slot = |bucket: Bucket| slot_of(bucket.due().as_bytes());
    let mut by_slot: Vec<(u16, Bucket)> = Bucket::all().map(|bucket| (slot(bucket), bucket)).collect();
    by_slot.sort_unstable();
    let opposite = |bucket: Bucket| {
        let wanted = (slot(bucket) + APART) % SLOTS;
        let at = by_slot.partition_point(|(slot, _)| *slot < wanted) % by_slot.len();
        by_slot.get(at).map_or(bucket, |(_, found)| *found)
    };
    Bucket::all().map(opposite).collect()
});

const _: () = assert!(BUCKETS > 0, "there is a bucket to witness");

/// Returns the bucket with the witnesses of `bucket`'s accounts.
pub fn witness_of(bucket: Bucket) -> Bucket {
    WITNESSES.get(bucket.index()).copied().unwrap_or(bucket)
}

impl Store {
    /// Executes a script that changes the account whose record is its first key.
    pub(super) async fn change(
        &self,
        script: &Script,
        keys: &[&str],
        mut args: Vec<&[u8]>,
    ) -> Result<Value, StoreError> {
        let account = keys.first().and_then(|key| account_of(key)).unwrap_or_default();
        let before = self.versions.newest(account);
        let floor = [before.generation, before.version].map(|number| number.to_string());
        args.extend(floor.iter().map(String::as_bytes));
        let authority = keys.first().and_then(|record| Authority::current(record));
        let (judged, words) = authority
            .as_ref()
            .map(|authority| (authority.keys().collect::<Vec<_>>(), authority.words()))
            .unwrap_or_default();
        let keys: Vec<&str> = [keys, judged.as_slice()].concat();
        args.push(words.as_bytes());
        let answer: Value = self.execute(script, &keys, &args).await?;
        let (words, view) = versioned(answer).ok_or_else(|| StoreError::unexpected(script.name()))?;
        if words.first() == Some(&Value::BulkString(LOST.to_vec())) {
            let account = account.to_owned();
            return Err(StoreError::LostWrites { account });
        }
        self.versions.record(account, view);
        if let Some(Value::BulkString(word)) = words.first()
            && let Some(lack) = Lack::parse(word)
        {
            return Err(StoreError::NotPermitted(lack));
        }
        if view > before && self.is_cluster() {
            self.update_witness(account, view).await;
        }
        Ok(Value::Array(words))
    }

    /// Returns the newest acknowledged version of `account`: from this process and, on a cluster, its witness. Call it
    /// before reading the account: an older version in that read means lost writes.
    pub async fn floor(&self, account: &str) -> AccountVersion {
        if self.is_cluster() {
            let read = witness::read(self, witness_of(Bucket::from_account(account)), account);
            // Without a reply of the witness the version is unknown.
            if let Ok(Ok(Some(view))) = tokio::time::timeout(WITNESS_WAIT, read).await {
                self.versions.record(account, view);
            }
        }
        self.versions.newest(account)
    }

    /// Updates the witness of `account`. Best effort, within [`WITNESS_WAIT`].
    pub async fn update_witness(&self, account: &str, view: AccountVersion) {
        let update = witness::update(self, witness_of(Bucket::from_account(account)), account, view);
        match tokio::time::timeout(WITNESS_WAIT, update).await {
            Ok(Ok(())) => {}
            Ok(Err(error)) => tracing::debug!(account, %error, "the witness of an account was not updated"),
            Err(_elapsed) => tracing::debug!(account, "the witness of an account was not updated in time"),
        }
    }
}

/// Returns the account of a record's key.
fn account_of(record: &str) -> Option<&str> {
    record.split_once('/').map(|(_tag, account)| account)
}

/// Splits generation and version off the reply of a versioned script.
fn versioned(answer: Value) -> Option<(Vec<Value>, AccountVersion)> {
    let Value::Array(mut words) = answer else {
        return None;
    };
    let mut number = || redis::from_redis_value::<u64>(words.pop()?).ok();
    let (version, generation) = (number()?, number()?);
    Some((words, AccountVersion { generation, version }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_witness_is_far_away_in_the_slots() {
        for bucket in Bucket::all() {
            let [own, other] = [bucket, witness_of(bucket)].map(|bucket| slot_of(bucket.due().as_bytes()));
            let apart = (other + SLOTS - own) % SLOTS;
            // The contiguous thirds that a cluster of three masters has by default are 5461 slots each.
            assert!(
                (5462..=SLOTS - 5462).contains(&apart),
                "{bucket:?}: {own} and {other}"
            );
        }
    }

    #[test]
    fn an_answer_ends_with_generation_and_version() {
        let word = |text: &str| Value::BulkString(text.as_bytes().to_vec());
        let view = |generation, version| AccountVersion { generation, version };
        let answer = Value::Array(vec![word("done"), word("7"), word("1"), word("9")]);
        assert_eq!(
            versioned(answer),
            Some((vec![word("done"), word("7")], view(1, 9)))
        );
        for bad in [
            Value::Nil,
            Value::Array(vec![word("9")]),
            Value::Array(vec![word("done"), word("x"), word("9")]),
        ] {
            assert_eq!(versioned(bad), None);
        }
        assert_eq!(account_of("{b0001}/acct_1"), Some("acct_1"));
    }
}
