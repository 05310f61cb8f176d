//! `tollgate-admin holds`: charges of calls that were never settled, and their correction.

use super::context::CommandContext;
use super::value;
use crate::document::{JsonObject, document};
use crate::failure::CommandFailure;
use crate::report::Report;
use clap::{Args, Subcommand};
use domain::entry::{EndedBy, HoldOutcome};
use domain::money::Nanos;
use domain::price::CALL_COST_MAX;
use domain::timestamp::iso_from_ms;
use store::call::settle::{Settle, Settled};
use store::call::unsettled_holds;
use store::call::unsettled_holds::{HoldState, HoldWithState};
use store::server_clock;

const LIST_MAX: u64 = 10_000;

/// `holds …`
#[derive(Debug, Subcommand)]
pub(super) enum HoldsCommand {
    /// List open and kept holds
    List {
        /// Only this account's
        #[arg(long, value_name = "ID", value_parser = value::id)]
        account: Option<String>,
        /// Maximum number of holds to list
        #[arg(long, default_value_t = 1000, value_parser = clap::value_parser!(u64).range(1..=LIST_MAX))]
        limit: u64,
    },
    /// Charge the real cost of a call in place of its estimate
    Settle {
        #[command(flatten)]
        target: HoldArgs,
        /// The real cost
        #[arg(long, value_name = "USD", value_parser = value::usd, allow_negative_numbers = true)]
        actual: Nanos,
        /// Charge it even if it is above the estimate
        #[arg(long)]
        above_estimate: bool,
    },
    /// Charge nothing for a call: the provider did not serve it
    Release(HoldArgs),
}

/// The hold meant.
#[derive(Debug, Args)]
pub(super) struct HoldArgs {
    /// The decision id, allow_…
    #[arg(long, value_name = "ID", value_parser = value::id)]
    id: String,
    /// Its account, to speed up the search
    #[arg(long, value_name = "ID", value_parser = value::id)]
    account: Option<String>,
    /// Why, for the audit trail
    #[arg(long, value_name = "TEXT", value_parser = value::reason)]
    reason: Option<String>,
}

impl HoldsCommand {
    pub(super) async fn run(self, context: &CommandContext) -> Result<Report, CommandFailure> {
        match self {
            Self::List { account, limit } => list(context, account.as_deref(), limit).await,
            Self::Settle {
                target,
                actual,
                above_estimate,
            } => {
                let end = HoldEnd {
                    cost: actual,
                    above_estimate,
                    outcome: HoldOutcome::Settled,
                };
                end_hold(context, &target, end).await
            }
            Self::Release(target) => {
                let end = HoldEnd {
                    cost: Nanos::ZERO,
                    above_estimate: false,
                    outcome: HoldOutcome::Released,
                };
                end_hold(context, &target, end).await
            }
        }
    }
}

async fn list(context: &CommandContext, account: Option<&str>, limit: u64) -> Result<Report, CommandFailure> {
    if let Some(id) = account {
        context.account(id).await?;
    }
    let limit = usize::try_from(limit).unwrap_or(usize::MAX);
    let found = unsettled_holds::list(&context.store, account, limit).await?;
    let row = |found: &HoldWithState| {
        let hold = &found.hold;
        vec![
            hold.name.allow_id.clone(),
            found.state.as_str().to_owned(),
            hold.estimate.to_string(),
            hold.name.account.clone(),
            hold.name.agent.clone(),
            hold.model.clone(),
            iso_from_ms(found.at_ms),
        ]
    };
    let columns = ["HOLD", "STATE", "USD", "ACCOUNT", "AGENT", "MODEL", "DUE OR KEPT"];
    Ok(Report::list(("holds", &columns), &found, row, shown).with("truncated", found.len() == limit))
}

/// The end of a hold, as the operator requests it.
struct HoldEnd {
    cost: Nanos,
    /// The operator confirmed a cost above the estimate.
    above_estimate: bool,
    outcome: HoldOutcome,
}

async fn end_hold(
    context: &CommandContext,
    target: &HoldArgs,
    end: HoldEnd,
) -> Result<Report, CommandFailure> {
    let cost = end.cost;
    let HoldArgs { id, account, reason } = target;
    let missing = || {
        let message = format!(
            "there is no open or kept hold {id}: `tollgate-admin holds list` lists all; what became of one that ended \
             is in `decision show --id {id}`"
        );
        CommandFailure::refused("NOT_FOUND", message)
    };
    let found = unsettled_holds::find(&context.store, account.as_deref(), id)
        .await?
        .ok_or_else(missing)?;
    if found.state == HoldState::Open {
        require_overdue(context, id, found.at_ms).await?;
    }
    let hold = found.hold;
    end.require_plausible(id, hold.estimate)?;
    let settle = Settle {
        name: hold.name,
        estimate: hold.estimate,
        cost,
        outcome: end.outcome,
        extension: None,
        measured: None,
        ended_by: Some(EndedBy::Operator {
            reason: reason.clone(),
        }),
    };
    match settle.execute(&settle.name.keys(), None, &context.store).await? {
        Settled::Done => Ok(Report::new(
            format!(
                "Hold {id}: {cost} USD charged in place of the estimate of {} USD.",
                hold.estimate
            ),
            document! { "id": id, "accountId": settle.name.account, "agentId": settle.name.agent,
            "estimateUsd": hold.estimate, "actualUsd": cost, "was": found.state.as_str() },
        )),
        Settled::Missing => Err(missing()),
        Settled::Mismatch => Err(CommandFailure::refused(
            "CONFLICT",
            format!("hold {id} changed meanwhile: run the command again"),
        )),
    }
}

impl HoldEnd {
    /// Refuses a cost that is probably a mistake, such as cents for USD: one above the estimate, unless the operator
    /// confirms it; and one that no call has, whether or not it is confirmed.
    fn require_plausible(&self, id: &str, estimate: Nanos) -> Result<(), CommandFailure> {
        if self.cost <= estimate {
            return Ok(());
        }
        let (cost, above) = (
            self.cost,
            format!("above the estimate of {estimate} USD of hold {id}"),
        );
        if self.cost > CALL_COST_MAX {
            let message = format!("{cost} USD is {above}, and no call costs more than {CALL_COST_MAX} USD");
            return Err(CommandFailure::refused("VALIDATION", message));
        }
        match self.above_estimate {
            true => Ok(()),
            false => {
                let message =
                    format!("{cost} USD is {above}: if the call did cost that, add --above-estimate");
                Err(CommandFailure::refused("ABOVE_ESTIMATE", message))
            }
        }
    }
}

/// Refuses to end the hold of a call in flight: the provider's later report would be dropped.
async fn require_overdue(context: &CommandContext, id: &str, due_ms: u64) -> Result<(), CommandFailure> {
    if server_clock::now_ms(&context.store).await? >= due_ms {
        return Ok(());
    }
    let until = iso_from_ms(due_ms);
    let message = format!(
        "the call of hold {id} is in flight until {until}: its answer settles the hold, or you can settle it afterwards"
    );
    Err(CommandFailure::refused("CONFLICT", message))
}

fn shown(found: &HoldWithState) -> JsonObject {
    let hold = &found.hold;
    document! {
        "id": hold.name.allow_id, "state": found.state.as_str(), "estimateUsd": hold.estimate,
        "accountId": hold.name.account, "agentId": hold.name.agent, "runId": hold.name.run,
        "keyId": hold.key_id, "model": hold.model, "priceVersion": hold.price_version,
        "day": hold.period.day, "month": hold.period.month, "at": iso_from_ms(found.at_ms),
    }
}
