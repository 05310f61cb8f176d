//! Several reads of one bucket as one snapshot, in one script. Unlike a transaction, it also runs on a server that is
//! over its `maxmemory`.

use crate::read::Read;
use crate::script::script;
use crate::{Store, StoreError};
use redis::{Arg, FromRedisValue};

script! {
    /// Executes reads. The server refuses a write in it.
    pub static READ = "read",
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
    pub(crate) async fn read_atomically<T: FromRedisValue>(&self, reads: &[Read]) -> Result<T, StoreError> {
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
    use std::path::{Path, PathBuf};

    /// A transaction that writes, on an empty store.
    const WRITES: &str = "sanity";

    fn sources(folder: &Path, found: &mut Vec<PathBuf>) {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                sources(&path, found);
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                found.push(path);
            }
        }
    }

    #[test]
    fn nothing_is_read_in_a_transaction() {
        let mut found = Vec::new();
        sources(&Path::new(env!("CARGO_MANIFEST_DIR")).join("src"), &mut found);
        assert!(found.len() > 100, "only {} sources", found.len());
        found.retain(|path| {
            let source = std::fs::read_to_string(path).unwrap();
            source.contains(concat!(".atomic", "()")) && path.file_stem().is_none_or(|stem| stem != WRITES)
        });
        assert!(
            found.is_empty(),
            "a full store refuses the reads of these: {found:?}"
        );
    }
}
