//! Checks that the store's user may run every command that the scripts of this program call (`deploy/redis/users.acl`).
//! A server ends a script at the first command that it refuses, and keeps the script's earlier writes.

pub(crate) mod script;

pub use script::REFUSED_COMMANDS;

use crate::script::{Script, all};
use crate::{Store, StoreError};
use redis::Cmd;
use std::collections::BTreeSet;
use std::sync::LazyLock;

/// A program that uses the store, by the scripts that it runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Program {
    /// The edge, which decides and settles calls.
    Edge,
    /// The management server, and the operator's command line.
    Management,
}

/// Commands that a server refuses.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct RefusedCommands {
    /// `host:port`, or the path of a socket.
    pub(crate) server: String,
    /// Their names, separated by commas.
    pub(crate) commands: String,
}

impl Program {
    /// Returns the names of the commands that its scripts call.
    pub fn commands(self) -> BTreeSet<String> {
        let scripts = match self {
            Self::Edge => all::of_edge(),
            Self::Management => all::all(),
        };
        scripts.into_iter().flat_map(Script::commands).collect()
    }

    fn check(self) -> &'static Cmd {
        static EDGE: LazyLock<Cmd> = LazyLock::new(|| script::check(Program::Edge.commands()));
        static MANAGEMENT: LazyLock<Cmd> = LazyLock::new(|| script::check(Program::Management.commands()));
        match self {
            Self::Edge => &EDGE,
            Self::Management => &MANAGEMENT,
        }
    }
}

/// Executes the script on every server that replies. Returns the answer of the first one that refuses a command.
///
/// # Errors
/// [`StoreError`] if no server replies.
pub(crate) async fn refused(store: &Store, program: Program) -> Result<Option<RefusedCommands>, StoreError> {
    let answers = store.every_node_there(program.check()).await?;
    Ok(answers.into_iter().find_map(|(server, refused)| {
        let commands: Vec<&str> = refused.split_whitespace().collect();
        (!commands.is_empty()).then(|| RefusedCommands {
            server,
            commands: commands.join(", "),
        })
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_checks_the_commands_of_its_scripts() {
        let [edge, management] = [Program::Edge, Program::Management].map(Program::commands);
        assert!(edge.contains("hset") && !edge.contains("rename"), "{edge:?}");
        assert!(edge.is_subset(&management));
        assert!(
            management.contains("rename") && management.len() > edge.len(),
            "{management:?}"
        );
    }
}
