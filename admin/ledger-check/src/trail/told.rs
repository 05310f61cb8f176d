//! What an entry of the trail says of records besides transactions.

use super::legs::{Fields, Untold, waits};
use domain::entry::Entry;
use domain::period::Period;
use std::collections::HashSet;

/// A record that an entry tells of: what is compared, what the record is called, and what both say of it.
pub(super) struct Told {
    pub(super) what: What,
    pub(super) name: String,
    pub(super) parts: Vec<String>,
}

/// A record besides transactions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum What {
    /// A settled intent.
    Intent,
    /// A deposit.
    Deposit,
    /// What became of an escrow, in the account of its payer.
    Escrow,
}

/// The actor in the payer's trail of a payee from another account, whose intent is there.
const PAYEE_ELSEWHERE: &str = "payee";
/// The word for an escrow that was made; what became of it has the word of its status.
pub(super) const MADE: &str = "made";

/// What is compared of a settled intent; agent and day are those of a spend.
pub(super) fn of_intent(kind: &str, amount: u64, spend: Option<(&str, u64)>) -> Vec<String> {
    let mut parts = vec![kind.to_owned(), format!("{amount} nanos")];
    parts.extend(
        spend
            .into_iter()
            .flat_map(|(agent, day)| [format!("by {agent}"), format!("on day {day}")]),
    );
    parts
}

/// What is compared of a deposit: how it began.
pub(super) fn of_deposit(state: &str, amount: u64, wallet: u64) -> Vec<String> {
    vec![
        state.to_owned(),
        format!("{amount} nanos"),
        format!("to wallet {wallet}"),
    ]
}

/// What is compared of a step of an escrow; its wallets where it was [`MADE`].
pub(super) fn of_escrow(step: &str, amount: u64, wallets: Option<(u64, u64)>) -> Vec<String> {
    let mut parts = vec![step.to_owned(), format!("{amount} nanos")];
    parts.extend(wallets.map(|(from, to)| format!("from wallet {from} to {to}")));
    parts
}

/// The records that an entry tells of. `noticed` are arrivals whose intent was written before their money came.
pub(super) fn records(entry: &Entry, noticed: &mut HashSet<(String, u64)>) -> Result<Vec<Told>, Untold> {
    let said = Fields(entry);
    let amount = || said.nanos("amountNanos");
    let intent = |kind: &str| {
        let agent = entry.agent.as_deref().ok_or(Untold);
        let spend = match kind {
            "spend" => Some((agent?, Period::at(entry.at_ms).day)),
            _ => None,
        };
        Ok::<Told, Untold>(Told {
            what: What::Intent,
            name: said.text("intentId")?.to_owned(),
            parts: of_intent(kind, amount()?, spend),
        })
    };
    let escrow = |step: &str| {
        let wallets = match step {
            MADE => Some((said.number("fromWalletId")?, said.number("toWalletId")?)),
            _ => None,
        };
        Ok::<Told, Untold>(Told {
            what: What::Escrow,
            name: said.number("escrowId")?.to_string(),
            parts: of_escrow(step, amount()?, wallets),
        })
    };
    match entry.kind.as_str() {
        "deposit.requested" if said.is_settled() => Ok(vec![Told {
            what: What::Deposit,
            name: said.text("transactionId")?.to_owned(),
            parts: of_deposit(said.text("state")?, amount()?, said.number("walletId")?),
        }]),
        "spend.requested" | "spend.approved" if said.is_settled() => Ok(vec![intent("spend")?]),
        "escrow.create" if said.is_settled() => Ok(vec![intent("escrow_create")?, escrow(MADE)?]),
        "escrow.fund" if said.is_settled() => Ok(vec![intent("escrow_fund")?]),
        "escrow.resolve" if said.is_settled() => Ok(vec![escrow(said.text("becomes")?)?]),
        "escrow.release" | "escrow.dispute" if said.is_settled() => {
            let mut told = vec![escrow(said.text("becomes")?)?];
            if entry.actor != PAYEE_ELSEWHERE {
                told.push(intent(&entry.kind.replace('.', "_"))?);
            }
            Ok(told)
        }
        "escrow.released" | "escrow.disputed" => arrived(entry, &said, noticed, intent),
        _ => Ok(Vec::new()),
    }
}

/// The intent of a payee in another account than the payer's. Without one, the other party did it.
fn arrived(
    entry: &Entry,
    said: &Fields<'_>,
    noticed: &mut HashSet<(String, u64)>,
    intent: impl Fn(&str) -> Result<Told, Untold>,
) -> Result<Vec<Told>, Untold> {
    if said.text("intentId").is_err() {
        return Ok(Vec::new());
    }
    let name = (entry.kind.clone(), said.number("escrowId")?);
    if waits(said) {
        // It may be told again and again that the money waits, but it is written once.
        if !noticed.insert(name) {
            return Ok(Vec::new());
        }
    } else if noticed.remove(&name) {
        return Ok(Vec::new());
    }
    let kind = match entry.kind.as_str() {
        "escrow.disputed" => "escrow_dispute",
        _ => "escrow_release",
    };
    Ok(vec![intent(kind)?])
}
