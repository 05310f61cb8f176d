//! Twin of `fence.lua`: a write that gives `WAIT` and `WAITAOF` something to confirm. A script, because a full store
//! refuses a plain `SET`, and earlier changes must be confirmed there, too.

use crate::script::names::{Names, inputs};
use crate::script::{Script, WhenFull};
use redis::Cmd;
use std::sync::LazyLock;

/// The script.
pub static FENCE: LazyLock<Script> = LazyLock::new(|| {
    let inputs = Names::new(FenceKeys::NAMES, &[]);
    Script::new("fence", WhenFull::Run, inputs, &[include_str!("fence.lua")])
});

inputs! {
    /// The key.
    struct FenceKeys<'a>: &'a str { fence }
}

/// Returns the command that writes the key `fence`. It carries the source, since between a change and its confirmation
/// there is no time to load the script.
pub(crate) fn write(fence: &str) -> Cmd {
    FENCE.by_source(&FenceKeys { fence }.into_values(), &[""; 0])
}
