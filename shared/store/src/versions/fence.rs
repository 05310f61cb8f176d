//! Twin of `fence.lua`: a write that gives `WAIT` and `WAITAOF` something to confirm. A script, because a full store
//! refuses a plain `SET`, and earlier changes must be confirmed there, too.

use crate::script::{Script, WhenFull};
use redis::Cmd;
use std::sync::LazyLock;

/// The script.
pub static FENCE: LazyLock<Script> =
    LazyLock::new(|| Script::new("fence", WhenFull::Run, &[include_str!("fence.lua")]));

/// Returns the command that writes the fence `key`. It carries the source, since between a change and its confirmation
/// there is no time to load the script.
pub(crate) fn write(key: &str) -> Cmd {
    FENCE.by_source(&[key], &[""; 0])
}
