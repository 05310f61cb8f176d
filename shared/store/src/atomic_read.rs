//! Several reads of one bucket as one snapshot, in one script. Unlike a transaction, it also runs on a server that is
//! over its `maxmemory`.

use crate::read::Read;
use crate::script::script;
use crate::{Store, StoreError};
use redis::{Arg, FromRedisValue};

/// Maximum number of agents whose records are read at one moment, in one script. Of more, one part is read after the
/// other. A plan with a limit allows fewer.
pub(crate) const AGENTS_AT_ONE_MOMENT: usize = 500;

script! {
    /// Executes reads. The server refuses a write in it.
    pub static READ = "read",
    kind: Timeless,
    source: [include_str!("atomic_read/read.lua")],
    when_full: ReadOnly,
    keys: struct ReadKeys: String { reads[..] },
    args: struct ReadArgs: Vec<u8> { reads[..] },
}

impl Store {
    /// Executes reads of one bucket atomically and returns their answers in order. Lua passes at most some thousand
    /// words of one read to the server.
    ///
    /// # Errors
    /// [`StoreError`], also if a single read failed.
    pub async fn read_atomically<T: FromRedisValue>(&self, reads: &[Read]) -> Result<T, StoreError> {
        let (mut keys, mut args) = (Vec::with_capacity(reads.len()), Vec::new());
        for read in reads {
            let mut words = read.command.args_iter().filter_map(|word| match word {
                Arg::Simple(word) => Some(word),
                _ => None,
            });
            args.extend(words.next().map(<[u8]>::to_vec));
            keys.extend(words.next().map(|key| String::from_utf8_lossy(key).into_owned()));
            let words: Vec<Vec<u8>> = words.map(<[u8]>::to_vec).collect();
            args.push(words.len().to_string().into_bytes());
            args.extend(words);
        }
        let keys = ReadKeys { reads: keys }.into_values();
        let keys: Vec<&str> = keys.iter().map(String::as_str).collect();
        let args = ReadArgs { reads: args }.into_values();
        self.script(&READ, &keys, &args).await
    }
}

#[cfg(test)]
mod tests {
    use crate::sources::sources;

    /// The file with a transaction that writes, on an empty store.
    const WRITES: &str = "sanity";

    #[test]
    fn nothing_is_read_in_a_transaction() {
        let all = sources("rs");
        assert!(all.len() > 100, "only {} sources", all.len());
        let transactions = all.iter().filter(|(name, source)| {
            source.contains(concat!(".atomic", "()")) && name.strip_suffix(".rs") != Some(WRITES)
        });
        let found: Vec<&String> = transactions.map(|(name, _)| name).collect();
        assert!(
            found.is_empty(),
            "a full store refuses the reads of these: {found:?}"
        );
    }
}
