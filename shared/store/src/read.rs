//! Single reads for bulk readers: commands, and their answers in order.

use crate::keys::{AccountKeys, Bucket};
use redis::{Cmd, FromRedisValue, Value};

/// One command that only reads.
#[derive(Debug, Clone)]
pub struct Read {
    /// Bucket of its key; `None` outside the buckets.
    pub(super) bucket: Option<Bucket>,
    pub(super) command: Cmd,
}

impl Read {
    fn new(bucket: Bucket, name: &str, key: impl AsRef<str>) -> Self {
        let mut command = redis::cmd(name);
        command.arg(key.as_ref());
        Self {
            bucket: Some(bucket),
            command,
        }
    }

    fn arg(mut self, arg: impl redis::ToRedisArgs) -> Self {
        self.command.arg(arg);
        self
    }

    /// Reads the text of a key outside the buckets.
    pub fn global(key: impl AsRef<str>) -> Self {
        let mut command = redis::cmd("GET");
        command.arg(key.as_ref());
        Self {
            bucket: None,
            command,
        }
    }

    /// Reads whether a set outside the buckets has a member.
    pub fn global_member(key: impl AsRef<str>, member: &str) -> Self {
        let mut command = redis::cmd("SISMEMBER");
        command.arg(key.as_ref()).arg(member);
        Self {
            bucket: None,
            command,
        }
    }

    /// Reads a text.
    pub fn text(bucket: Bucket, key: impl AsRef<str>) -> Self {
        Self::new(bucket, "GET", key)
    }

    /// Reads all fields of a hash.
    pub fn hash(bucket: Bucket, key: impl AsRef<str>) -> Self {
        Self::new(bucket, "HGETALL", key)
    }

    /// Reads some fields of a hash.
    pub fn fields(bucket: Bucket, key: impl AsRef<str>, fields: &[impl redis::ToRedisArgs]) -> Self {
        Self::new(bucket, "HMGET", key).arg(fields)
    }

    /// Reads the same fields of the record of each account.
    pub fn for_accounts(accounts: &[String], fields: &[String]) -> Vec<Self> {
        let keys = accounts.iter().map(|account| AccountKeys::new(account));
        keys.map(|keys| Self::fields(keys.bucket(), keys.record(), fields))
            .collect()
    }

    /// Reads one field of a hash.
    pub fn field(bucket: Bucket, key: impl AsRef<str>, field: &str) -> Self {
        Self::new(bucket, "HGET", key).arg(field)
    }

    /// Reads the number of fields of a hash.
    pub fn hash_length(bucket: Bucket, key: impl AsRef<str>) -> Self {
        Self::new(bucket, "HLEN", key)
    }

    /// Reads at most `count` items of a list, from index `first` on.
    pub fn list(bucket: Bucket, key: impl AsRef<str>, first: u64, count: u64) -> Self {
        let last = (first + count).saturating_sub(1);
        Self::new(bucket, "LRANGE", key).arg(first).arg(last)
    }

    /// Reads one item of a list: index -1 is the last one.
    pub fn list_item(bucket: Bucket, key: impl AsRef<str>, index: i64) -> Self {
        Self::new(bucket, "LINDEX", key).arg(index)
    }

    /// Reads the length of a list.
    pub fn list_length(bucket: Bucket, key: impl AsRef<str>) -> Self {
        Self::new(bucket, "LLEN", key)
    }

    /// Reads at most `count` members of a sorted set with their scores, from rank `first` on.
    pub fn sorted(bucket: Bucket, key: impl AsRef<str>, first: u64, count: u64) -> Self {
        let last = (first + count).saturating_sub(1);
        Self::new(bucket, "ZRANGE", key)
            .arg(first)
            .arg(last)
            .arg("WITHSCORES")
    }

    /// Reads all members of a sorted set, lowest score first.
    pub fn members(bucket: Bucket, key: impl AsRef<str>) -> Self {
        Self::new(bucket, "ZRANGE", key).arg(0).arg(-1)
    }

    /// Reads at most `count` members of a sorted set with their scores, in a range of scores (`-inf`, `(5`, …), lowest
    /// first.
    pub fn scored(bucket: Bucket, key: impl AsRef<str>, low: &str, high: &str, count: usize) -> Self {
        let read = Self::new(bucket, "ZRANGEBYSCORE", key).arg(low).arg(high);
        read.arg("WITHSCORES").arg("LIMIT").arg(0).arg(count)
    }

    /// Reads the number of members of a sorted set.
    pub fn sorted_length(bucket: Bucket, key: impl AsRef<str>) -> Self {
        Self::new(bucket, "ZCARD", key)
    }

    /// Reads the score of a member of a sorted set.
    pub fn score(bucket: Bucket, key: impl AsRef<str>, member: &str) -> Self {
        Self::new(bucket, "ZSCORE", key).arg(member)
    }

    /// Reads the scores of some members of a sorted set.
    pub fn scores(bucket: Bucket, key: impl AsRef<str>, members: &[String]) -> Self {
        Self::new(bucket, "ZMSCORE", key).arg(members)
    }

    /// Reads the members of a set.
    pub fn set(bucket: Bucket, key: impl AsRef<str>) -> Self {
        Self::new(bucket, "SMEMBERS", key)
    }

    /// Reads whether a set has a member.
    pub fn is_member(bucket: Bucket, key: impl AsRef<str>, member: &str) -> Self {
        Self::new(bucket, "SISMEMBER", key).arg(member)
    }
}

/// Answers to reads, in their order.
#[derive(Debug)]
pub struct Answers(std::vec::IntoIter<Option<Value>>);

impl Answers {
    /// Wraps answers; `None` for those of an unreachable server.
    pub(super) fn new(values: Vec<Option<Value>>) -> Self {
        Self(values.into_iter())
    }

    /// Returns the next answer as a `T`; `None` if it is something else, such as a type error, or missing.
    pub fn read<T: FromRedisValue>(&mut self) -> Option<T> {
        let value = self.0.next()??;
        redis::from_redis_value(value).ok()
    }

    /// The next answer where it is a text.
    pub fn text(&mut self) -> Option<String> {
        self.read::<Option<String>>().flatten()
    }

    /// The next answer where it is a number.
    pub fn number(&mut self) -> Option<u64> {
        self.read::<Option<u64>>().flatten()
    }

    /// Splits off the next `count` answers.
    pub fn split(&mut self, count: usize) -> Self {
        let part: Vec<Option<Value>> = self.0.by_ref().take(count).collect();
        Self::new(part)
    }
}
