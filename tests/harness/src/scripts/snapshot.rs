//! The whole store as a model says that it should be, and moments that a test knows within bounds.

use super::{Checked, execute};
use redis::{Cmd, Pipeline};
use std::collections::{BTreeMap, HashMap};
use std::fmt::Debug;
use store::Store;

/// All keys with type, expiry and content.
const DUMP: &str = "
local out = {}
for _, key in ipairs(redis.call('KEYS', '*')) do
  local kind = redis.call('TYPE', key)['ok']
  local items
  if kind == 'string' then items = {redis.call('GET', key)}
  elseif kind == 'hash' then items = redis.call('HGETALL', key)
  elseif kind == 'set' then items = redis.call('SMEMBERS', key)
  elseif kind == 'zset' then items = redis.call('ZRANGE', key, 0, -1, 'WITHSCORES')
  else items = redis.call('LRANGE', key, 0, -1) end
  local row = {key, kind, string.format('%d', redis.call('PEXPIRETIME', key))}
  for _, item in ipairs(items) do row[#row + 1] = item end
  out[#out + 1] = row
end
return out";

/// Everything that the store holds: rows of key, type, expiry in ms (-1 for none), and content.
///
/// # Errors
/// The store's error.
pub async fn dump(store: &Store) -> Result<Vec<Vec<String>>, String> {
    execute(store, &["EVAL", DUMP, "0"]).await
}

/// An expected key.
#[derive(Debug, Clone)]
pub struct Record<S> {
    /// When it expires.
    pub expires: Option<Window>,
    /// Its content.
    pub shape: S,
}

/// The expected content of the store, by key.
pub type Expected<S> = BTreeMap<String, Record<S>>;

/// Form in which a model writes and compares the content `S` of keys.
pub trait Content<S> {
    /// The key as the store has it.
    fn key(&self, key: &str) -> String {
        key.to_owned()
    }

    /// Whether the key contains a value that the comparison of other records finds.
    fn depends(&self, _key: &str) -> bool {
        false
    }

    /// Compares a value of this type with the expected content.
    ///
    /// # Errors
    /// Both, as a sentence.
    fn check(&mut self, shape: &S, kind: &str, items: &[String]) -> Checked;

    /// The command that writes the content.
    fn write(&self, shape: &S, key: &str) -> Cmd;
}

/// Empties the store, and writes the `expected` records into it. No version of these accounts counts as known.
///
/// # Errors
/// The store's error.
pub async fn install<S>(
    store: &Store,
    accounts: &[&str],
    expected: &Expected<S>,
    content: &impl Content<S>,
) -> Checked {
    for account in accounts {
        store.versions().forget(account);
    }
    let mut pipeline = Pipeline::new();
    pipeline.cmd("FLUSHDB");
    for (key, record) in expected {
        let key = content.key(key);
        pipeline.add_command(content.write(&record.shape, &key));
        if let Some(window) = record.expires {
            pipeline.cmd("PEXPIREAT").arg(&key).arg(window.from);
        }
    }
    let done: Result<redis::Value, _> = store.pipeline(&pipeline).await;
    done.map(drop)
        .map_err(|error| format!("not installed: {error:?}"))
}

/// Compares the whole store with the `expected` records.
///
/// # Errors
/// The first difference.
pub async fn compare<S: Debug>(
    store: &Store,
    expected: &Expected<S>,
    content: &mut impl Content<S>,
) -> Checked {
    let rows = dump(store).await?;
    let mut found: HashMap<&str, &[String]> = rows.iter().map(|row| (row[0].as_str(), &row[1..])).collect();
    let (late, early): (Vec<_>, Vec<_>) = expected.iter().partition(|(key, _)| content.depends(key));
    for (key, record) in early.into_iter().chain(late) {
        let key = content.key(key);
        let Some(row) = found.remove(key.as_str()) else {
            return Err(format!("missing: {key}, expected {:?}", record.shape));
        };
        let (expires, wanted) = (&row[1], record.expires);
        if !wanted.map_or(expires == "-1", |window| window.has(expires)) {
            return Err(format!("{key} expires at {expires}, expected {wanted:?}"));
        }
        let checked = content.check(&record.shape, &row[0], &row[2..]);
        checked.map_err(|why| format!("{key}: {why}"))?;
    }
    match found.iter().next() {
        None => Ok(()),
        Some((key, items)) => Err(format!("unexpected key {key}: {items:?}")),
    }
}

/// A range of Unix milliseconds in which something happened, both ends included.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Window {
    /// First millisecond.
    pub from: u64,
    /// Last millisecond.
    pub to: u64,
}

impl Window {
    /// A known moment.
    pub const fn at(ms: u64) -> Self {
        Self { from: ms, to: ms }
    }

    /// The same, `by` ms later.
    #[must_use]
    pub const fn later(self, by: u64) -> Self {
        Self {
            from: self.from + by,
            to: self.to + by,
        }
    }

    /// The smallest window that contains both.
    #[must_use]
    pub fn hull(self, other: Self) -> Self {
        Self {
            from: self.from.min(other.from),
            to: self.to.max(other.to),
        }
    }

    /// Returns true if the text is one of these moments.
    pub fn has(self, text: &str) -> bool {
        text.parse()
            .is_ok_and(|ms: u64| (self.from..=self.to).contains(&ms))
    }
}
