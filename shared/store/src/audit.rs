//! Composes the entries that scripts append to the audit log as `<seq> <at_ms> <entry>`. Scripts never build JSON,
//! since Lua loses digits of large numbers.

pub mod archive;
pub mod archive_id;
pub mod chain;
pub mod checkpoint_key;
pub mod decisions;
pub mod reseal_checkpoint_key;
pub mod seal;
pub mod statistics;
mod tally;
pub mod unreadable_lines;

pub use domain::entry::OPERATOR;

use crate::transit::ARRIVAL_ENTRIES;
use domain::entry::Entry;
use serde_json::{Value, json};

/// Entry of a new account, which another script than `change.lua` appends.
pub(crate) const ACCOUNT_CREATED: &str = "account.created";
/// The length in bytes of a line that the budget of audit entries stands for. Equals `LONG_LINE` in `change.lua`.
pub const LONG_LINE: usize = 1024;

/// Composes an audit entry without number and time, which the script adds: the event (`kind`, such as `agent.frozen`),
/// the agent, the actor and the details. `data` must not contain a secret.
pub fn entry(kind: &str, agent: Option<&str>, actor: &str, data: &Value) -> String {
    json!({ "type": kind, "agentId": agent, "actor": actor, "data": data }).to_string()
}

/// Returns the bytes of the line of entry `seq` that `change.lua` counts against the budget of audit text: those beyond
/// [`LONG_LINE`]. It counts none of the entries of calls, whose lines have little text of the caller, nor of entries
/// that another account caused.
pub fn long_text(seq: u64, line: &[u8]) -> u64 {
    let beyond = line.len().saturating_sub(LONG_LINE) as u64;
    if beyond == 0 || !is_change(line) {
        return 0;
    }
    let kind = Entry::from_line(seq, line).kind;
    match kind == ACCOUNT_CREATED || ARRIVAL_ENTRIES.contains(&kind.as_str()) {
        true => 0,
        false => beyond,
    }
}

/// Returns whether the line is that of a change, which is JSON, and not that of a call.
fn is_change(line: &[u8]) -> bool {
    let rest = line.splitn(3, |byte| *byte == b' ').nth(2);
    rest.is_some_and(|rest| rest.starts_with(b"{"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::transit::TRANSFER_RECEIVED;

    #[test]
    fn the_text_of_a_long_change_counts() {
        let line = |kind: &str, length: usize| {
            let with = |memo: usize| {
                let data = json!({ "memo": "x".repeat(memo) });
                format!("7 1700000000000 {}", entry(kind, None, "a", &data)).into_bytes()
            };
            with(length - with(0).len())
        };
        let text = |kind: &str, length: usize| long_text(7, &line(kind, length));
        assert_eq!(
            [LONG_LINE, LONG_LINE + 1, 9_000].map(|length| text("agent.updated", length)),
            [0, 1, 9_000 - LONG_LINE as u64]
        );
        assert_eq!(text(TRANSFER_RECEIVED, 9_000), 0, "of another account");
        assert_eq!(text(ACCOUNT_CREATED, 1_100), 0, "of the operator");
        assert_eq!(
            long_text(7, format!("7 1 A {}", "x".repeat(1_100)).as_bytes()),
            0,
            "of a call"
        );
        assert_eq!(long_text(7, &[b'x'; 1_100]), 0, "of nothing that a script wrote");
    }

    #[test]
    fn the_script_counts_by_the_same_length() {
        let source = include_str!("script/change.lua");
        assert!(source.contains(&format!("local LONG_LINE = {LONG_LINE}\n")));
    }
}
