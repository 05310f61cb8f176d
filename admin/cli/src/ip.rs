//! `tollgate-admin ip`: the addresses that both servers refuse (decision D11).

use super::context::CommandContext;
use super::table::table;
use super::value;
use crate::failure::CommandFailure;
use crate::report::Report;
use clap::{Args, Subcommand};
use domain::blocked::{BLOCKED_MAX, is_vast};
use domain::timestamp::iso_from_ms;
use ipnet::IpNet;
use serde_json::{Value, json};
use store::blocked::script::{BlockChange, ChangeError, Changed, change};
use store::blocked::{self, BlockedRange};

/// `ip …`
#[derive(Debug, Subcommand)]
pub(super) enum IpCommand {
    /// Refuse all requests from an address or range, within seconds and on both servers, whatever the key
    Block(Block),
    /// Answer an address or range again that was blocked
    Unblock {
        /// The address or range, as it was blocked
        #[arg(value_name = "CIDR", value_parser = value::network)]
        range: IpNet,
    },
    /// List blocked addresses
    List,
}

/// `ip block`
#[derive(Debug, Args)]
pub(super) struct Block {
    /// An address or a range, such as 203.0.113.7 or 2001:db8::/32
    #[arg(value_name = "CIDR", value_parser = value::network)]
    range: IpNet,
    /// The reason, for later readers of the list
    #[arg(long, value_name = "TEXT", value_parser = value::reason)]
    reason: Option<String>,
    /// Block even a very large range: IPv4 below /8, IPv6 below /16
    #[arg(long)]
    force: bool,
}

impl IpCommand {
    pub(super) async fn run(self, context: &CommandContext) -> Result<Report, CommandFailure> {
        match self {
            Self::Block(block) => block.run(context).await,
            Self::Unblock { range } => unblock(context, range).await,
            Self::List => {
                let list = blocked::list(&context.store).await?;
                Ok(report(None, &list))
            }
        }
    }
}

impl Block {
    async fn run(self, context: &CommandContext) -> Result<Report, CommandFailure> {
        let Self { range, reason, force } = self;
        if is_vast(range) && !force {
            let message = format!("{range} is a very large range; --force blocks it anyway");
            return Err(CommandFailure::usage(message));
        }
        let changed = match change(&context.store, range, BlockChange::Block(reason.as_deref())).await? {
            Changed::Done => true,
            Changed::AlreadySo => false,
            Changed::TooMany => {
                let message = format!(
                    "{BLOCKED_MAX} ranges are blocked, which is the maximum: unblock some, or block one range around \
                     several (`tollgate-admin ip list`)"
                );
                return Err(CommandFailure::refused("CONFLICT", message));
            }
        };
        let sentence = match changed {
            true => format!("{range} is blocked. Both servers follow within seconds."),
            false => format!("{range} was blocked before."),
        };
        let list = blocked::list(&context.store).await?;
        Ok(report(Some((sentence, changed)), &list))
    }
}

async fn unblock(context: &CommandContext, range: IpNet) -> Result<Report, CommandFailure> {
    let changed = change(&context.store, range, BlockChange::Unblock).await? == Changed::Done;
    let list = blocked::list(&context.store).await?;
    let mut sentence = match changed {
        true => format!("{range} is no longer blocked. Both servers follow within seconds."),
        false => format!("{range} was not blocked."),
    };
    if let Some(wider) = list.iter().find(|blocked| blocked.range.contains(&range)) {
        sentence = format!("{sentence} But {}, which contains it, is blocked.", wider.range);
    }
    Ok(report(Some((sentence, changed)), &list))
}

/// Returns the list, after the result of the change.
fn report(done: Option<(String, bool)>, list: &[BlockedRange]) -> Report {
    let row = |blocked: &BlockedRange| {
        vec![
            blocked.range.to_string(),
            iso_from_ms(blocked.since_ms),
            blocked.reason.clone().unwrap_or_default(),
        ]
    };
    let rows: Vec<Vec<String>> = list.iter().map(row).collect();
    let listed = match rows.is_empty() {
        true => "Nothing is blocked.".to_owned(),
        false => table(&["RANGE", "SINCE", "REASON"], &rows),
    };
    let document = |blocked: &BlockedRange| -> Value {
        json!({ "range": blocked.range.to_string(), "since": iso_from_ms(blocked.since_ms), "reason": blocked.reason })
    };
    let mut document =
        json!({ "blocked": list.iter().map(document).collect::<Vec<_>>(), "total": list.len() });
    let text = match done {
        None => listed,
        Some((sentence, changed)) => {
            document["changed"] = json!(changed);
            format!("{sentence}\n{listed}")
        }
    };
    Report::new(text, document)
}

impl From<ChangeError> for CommandFailure {
    fn from(error: ChangeError) -> Self {
        match error {
            ChangeError::Store(error) => error.into(),
            ChangeError::NoEntropy(error) => error.into(),
        }
    }
}
