//! Composes the entries that scripts append to the audit log as `<seq> <at_ms> <entry>`. Scripts never build JSON,
//! since Lua loses digits of large numbers.

pub mod archive;
pub mod chain;
pub mod checkpoint_key;
pub mod decisions;
pub mod reseal_checkpoint_key;
pub mod seal;
pub mod statistics;
mod tally;
pub mod unreadable_lines;

pub use domain::entry::OPERATOR;

use serde_json::{Value, json};

/// Composes an audit entry without number and time, which the script adds: the event (`kind`, such as `agent.frozen`),
/// the agent, the actor and the details. `data` must not contain a secret.
pub fn entry(kind: &str, agent: Option<&str>, actor: &str, data: &Value) -> String {
    json!({ "type": kind, "agentId": agent, "actor": actor, "data": data }).to_string()
}
