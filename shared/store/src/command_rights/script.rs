//! The script that queries a server for the rights of its caller's user.

use crate::keys::PRICE_TABLES;
use crate::script::script;
use redis::Cmd;
use std::collections::BTreeSet;

script! {
    /// Returns the commands that the server refuses to the user of the connection.
    pub static REFUSED_COMMANDS = "refused_commands",
    kind: Timeless,
    source: [include_str!("refused.lua")],
    when_full: ReadOnly,
    args: struct RefusedCommandsArgs: String { key, commands[..] },
}

/// The command that runs the script for any server, whatever keys it holds. Every program may change the key that
/// stands for all keys.
pub(super) fn check(commands: BTreeSet<String>) -> Cmd {
    let args = RefusedCommandsArgs {
        key: PRICE_TABLES.to_owned(),
        commands: commands.into_iter().collect(),
    };
    REFUSED_COMMANDS.by_source(&[], &args.into_values())
}
