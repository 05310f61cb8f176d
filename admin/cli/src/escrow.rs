//! `tollgate-admin escrow`: show an escrow, and end its dispute (decision D27).

use super::context::CommandContext;
use super::table::table;
use crate::document::document;
use crate::failure::CommandFailure;
use crate::report::Report;
use clap::{Args, Subcommand, ValueEnum};
use domain::timestamp::iso_from_ms;
use serde_json::{Value, json};
use store::escrow::script::{DisputeEnded, Winner, end_dispute};
use store::escrow::{Escrow, Party};
use store::wallet::BALANCE_MAX;

/// `escrow …`
#[derive(Debug, Subcommand)]
pub(super) enum EscrowCommand {
    /// End the dispute of an escrow by paying one of its parties
    Resolve(Resolve),
    /// Show an escrow
    Show(EscrowArgs),
}

/// The escrow meant.
#[derive(Debug, Args)]
pub(super) struct EscrowArgs {
    /// Its number
    #[arg(long, value_name = "ID", value_parser = clap::value_parser!(u64).range(1..))]
    escrow: u64,
}

/// Arguments of `escrow resolve`.
#[derive(Debug, Args)]
pub(super) struct Resolve {
    #[command(flatten)]
    target: EscrowArgs,
    /// The party to be paid
    #[arg(long)]
    to: To,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum To {
    /// Refund the payer
    Payer,
    /// Release it to the payee
    Payee,
}

impl EscrowCommand {
    pub(super) async fn run(self, context: &CommandContext) -> Result<Report, CommandFailure> {
        match self {
            Self::Show(target) => Ok(show(&target.find(context).await?)),
            Self::Resolve(Resolve { target, to }) => resolve(context, &target.find(context).await?, to).await,
        }
    }
}

impl EscrowArgs {
    async fn find(&self, context: &CommandContext) -> Result<Escrow, CommandFailure> {
        let escrow = Escrow::read(&context.store, self.escrow).await?;
        escrow.ok_or_else(|| {
            CommandFailure::refused("NOT_FOUND", format!("there is no escrow {}", self.escrow))
        })
    }
}

async fn resolve(context: &CommandContext, escrow: &Escrow, to: To) -> Result<Report, CommandFailure> {
    let (winner, whose) = match to {
        To::Payer => (Winner::Payer, "went back to the payer"),
        To::Payee => (Winner::Payee, "went to the payee"),
    };
    let number = escrow.number;
    context.learn_version(&escrow.payer.account).await;
    let status = match end_dispute(&context.store, escrow, winner).await? {
        DisputeEnded::Done(status) => status.as_str(),
        DisputeEnded::WrongState(status) => {
            let message = format!("escrow {number} is {}, not disputed", status.as_str());
            return Err(CommandFailure::refused("ESCROW_WRONG_STATE", message));
        }
        DisputeEnded::TooMuch => {
            let message = format!(
                "the wallet that escrow {number} would go to cannot hold that much (at most {BALANCE_MAX} USD): its \
                 account must move money out of it first"
            );
            return Err(CommandFailure::refused("BALANCE_LIMIT", message));
        }
    };
    let (amount, currency) = (escrow.amount, &escrow.currency);
    Ok(Report::new(
        format!("Escrow {number} is {status}: {amount} {currency} {whose}."),
        json!({ "escrowId": number, "status": status }),
    ))
}

fn show(escrow: &Escrow) -> Report {
    let party =
        |party: &Party| json!({ "accountId": party.account, "owner": party.owner, "walletId": party.wallet });
    let rows = [
        ("escrow", escrow.number.to_string()),
        ("mode", escrow.mode.to_string()),
        ("status", escrow.status.as_str().to_owned()),
        ("amount", format!("{} {}", escrow.amount, escrow.currency)),
        ("payer", line(&escrow.payer)),
        ("payee", line(&escrow.payee)),
        ("conditions", escrow.conditions.clone()),
        ("dispute", escrow.dispute_reason.clone().unwrap_or_default()),
        ("created", iso_from_ms(escrow.created_at_ms)),
        ("updated", iso_from_ms(escrow.updated_at_ms)),
    ];
    let rows = rows.map(|(name, value)| vec![name.to_owned(), value]);
    // Stored as text; invalid JSON is shown unchanged.
    let conditions: Value =
        serde_json::from_str(&escrow.conditions).unwrap_or_else(|_| json!(escrow.conditions));
    Report::new(
        table(&["FIELD", "VALUE"], &rows),
        document! { "escrowId": escrow.number, "mode": escrow.mode.as_str(), "status": escrow.status.as_str(),
        "amount": escrow.amount, "amountNanos": escrow.amount.get().to_string(), "currency": escrow.currency,
        "payer": party(&escrow.payer), "payee": party(&escrow.payee), "conditions": conditions,
        "dispute_reason": escrow.dispute_reason, "createdAt": iso_from_ms(escrow.created_at_ms),
        "updatedAt": iso_from_ms(escrow.updated_at_ms) },
    )
}

fn line(party: &Party) -> String {
    format!(
        "wallet {} of {} in account {}",
        party.wallet, party.owner, party.account
    )
}
