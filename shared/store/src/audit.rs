//! What a script appends to the audit log: `<seq> <at_ms> <entry>`, the entry composed here. Scripts never build JSON,
//! since Lua would cut digits off numbers.

pub mod archive;
pub mod chain;
pub mod checkpoint_key;
pub mod decisions;
pub mod reseal_checkpoint_key;
pub mod seal;
pub mod statistics;
mod tally;

use serde_json::{Value, json};

/// Who acts through `tollgate-admin`.
pub const OPERATOR: &str = "operator";

/// An entry of the audit log without its number and time, which the script adds: what happened (`kind`, such as
/// `agent.frozen`), to which agent, by whom, and the details. `data` never holds a secret.
#[must_use]
pub fn entry(kind: &str, agent: Option<&str>, actor: &str, data: &Value) -> String {
    json!({ "type": kind, "agentId": agent, "actor": actor, "data": data }).to_string()
}
