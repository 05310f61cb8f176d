//! A dump of the whole store, and moments that a test knows within bounds.

use super::execute;
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

/// A range of Unix milliseconds in which something happened, both ends included.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Window {
    /// The first.
    pub from: u64,
    /// The last.
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
