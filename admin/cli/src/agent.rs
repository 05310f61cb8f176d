//! `tollgate-admin agent`: the operator's freeze (decision D22).

use super::context::CommandContext;
use super::value;
use crate::failure::CommandFailure;
use crate::report::Report;
use clap::{Args, Subcommand};
use domain::mode::Mode;
use serde_json::json;
use store::agent::freeze::{Freeze, Frozen, FrozenBy, set_frozen};
use store::script::change::Scope;

/// `agent …`
#[derive(Debug, Subcommand)]
pub(super) enum AgentCommand {
    /// Freeze an agent: its next call is denied, and its account cannot lift the freeze
    Freeze(AgentArgs),
    /// Make an agent active again
    Unfreeze(AgentArgs),
}

/// The agent meant.
#[derive(Debug, Args)]
pub(super) struct AgentArgs {
    /// The account
    #[arg(long, value_name = "ID", value_parser = value::id)]
    account: String,
    /// The agent
    #[arg(long, value_name = "ID", value_parser = value::agent_id, allow_hyphen_values = true)]
    agent: String,
    /// live or test
    #[arg(long, default_value = "live", value_parser = value::mode())]
    mode: Mode,
}

impl AgentCommand {
    pub(super) async fn run(self, context: &CommandContext) -> Result<Report, CommandFailure> {
        let (target, freeze, status) = match self {
            Self::Freeze(target) => (target, Freeze::By(FrozenBy::Operator), "frozen"),
            Self::Unfreeze(target) => (target, Freeze::Lift(FrozenBy::Operator), "active"),
        };
        let AgentArgs { account, agent, mode } = target;
        context.account(&account).await?;
        let scope = Scope::from_operator(&account, mode);
        let outcome = set_frozen(&context.store, &scope, &agent, freeze).await?;
        let (changed, text) = match outcome {
            Frozen::Done => (
                true,
                format!("Agent {agent} of {account} is {status} now, from the next call on."),
            ),
            Frozen::AlreadySo => (false, format!("Agent {agent} of {account} was {status} already.")),
            Frozen::NotFound => {
                let message = format!("account {account} has no agent {agent} in {mode} mode");
                return Err(CommandFailure::refused("NOT_FOUND", message));
            }
            Frozen::NotPermitted => {
                return Err(CommandFailure::refused(
                    "FORBIDDEN",
                    "the freeze cannot be lifted",
                ));
            }
        };
        Ok(Report::new(
            text,
            json!({ "accountId": account, "agentId": agent, "mode": mode.as_str(), "status": status,
                "changed": changed }),
        ))
    }
}
