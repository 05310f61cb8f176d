//! Twin of `fence.lua`: a write that gives `WAIT` and `WAITAOF` something to confirm. It is a script because a full
//! store refuses a plain `SET`, and earlier changes must also be confirmed on a full store.

use crate::script::script;
use redis::Cmd;

script! {
    /// Writes the key that a confirmation waits for.
    pub static FENCE = "fence",
    kind: Timeless,
    source: [include_str!("fence.lua")],
    when_full: Run,
    keys: struct FenceKeys<'a>: &'a str { fence },
}

/// Returns the command that writes the key `fence`. It carries the source, since between a change and its confirmation
/// there is no time to load the script.
pub(crate) fn write(fence: &str) -> Cmd {
    FENCE.by_source(&FenceKeys { fence }.into_values(), &[""; 0])
}
