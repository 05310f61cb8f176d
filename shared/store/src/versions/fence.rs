//! Twin of `fence.lua`: a write that makes a wait for replicas or for the disk mean something. A script, since a full
//! store refuses a plain `SET`, and what was done before must be confirmed there too.

use crate::script::{Script, WhenFull};
use redis::Cmd;
use std::sync::LazyLock;

/// The script.
pub static FENCE: LazyLock<Script> =
    LazyLock::new(|| Script::new("fence", WhenFull::Run, &[include_str!("fence.lua")]));

/// The command that writes the fence `key`. It carries the source: between a change and its confirmation there is no
/// time to be told that the server does not know the script.
pub(crate) fn write(key: &str) -> Cmd {
    FENCE.by_source(&[key], &[""; 0])
}
