//! Records other than transactions, as audit entries state them.

use super::legs::{EntryFields, MissingField, waits};
use domain::entry::Entry;
use domain::period::Period;
use std::collections::HashSet;
use store::deposit::DepositState;

/// The compared values of a record.
pub(super) struct RecordInTrail {
    pub(super) kind: RecordKind,
    pub(super) name: String,
    pub(super) parts: Vec<String>,
}

/// Kind of a record other than a transaction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum RecordKind {
    /// A settled intent.
    Intent,
    Deposit,
    /// A step of an escrow, in the account of its payer.
    Escrow,
}

/// The actor in the payer's trail if the payee, from another account, acted. The intent is in the payee's account.
const PAYEE_ELSEWHERE: &str = "payee";
/// The step of an escrow that was created. Other steps have the word of the new status.
pub(super) const MADE: &str = "made";

/// Returns the compared values of a settled intent, for a spend with agent and day.
pub(super) fn of_intent(kind: &str, amount: u64, spend: Option<(&str, u64)>) -> Vec<String> {
    let mut parts = vec![kind.to_owned(), format!("{amount} nanos")];
    parts.extend(
        spend
            .into_iter()
            .flat_map(|(agent, day)| [format!("by {agent}"), format!("on day {day}")]),
    );
    parts
}

/// Returns the compared values of a deposit in its first state or in `cancelled`.
pub(super) fn of_deposit(state: &str, amount: u64, wallet: u64) -> Vec<String> {
    vec![
        state.to_owned(),
        format!("{amount} nanos"),
        format!("to wallet {wallet}"),
    ]
}

/// Returns the compared values of a step of an escrow, with its wallets for [`MADE`].
pub(super) fn of_escrow(step: &str, amount: u64, wallets: Option<(u64, u64)>) -> Vec<String> {
    let mut parts = vec![step.to_owned(), format!("{amount} nanos")];
    parts.extend(wallets.map(|(from, to)| format!("from wallet {from} to {to}")));
    parts
}

/// Returns the records that an entry states. `waiting` has the escrows whose settled intent an earlier entry stated,
/// and whose money has not arrived.
pub(super) fn stated_by(
    entry: &Entry,
    waiting: &mut HashSet<(String, u64)>,
) -> Result<Vec<RecordInTrail>, MissingField> {
    let fields = EntryFields(entry);
    let amount = || fields.nanos("amountNanos");
    let intent = |kind: &str| {
        let agent = entry.agent.as_deref().ok_or(MissingField);
        let spend = match kind {
            "spend" => Some((agent?, Period::at(entry.at_ms).day)),
            _ => None,
        };
        Ok::<RecordInTrail, MissingField>(RecordInTrail {
            kind: RecordKind::Intent,
            name: fields.text("intentId")?.to_owned(),
            parts: of_intent(kind, amount()?, spend),
        })
    };
    let escrow = |step: &str| {
        let wallets = match step {
            MADE => Some((fields.number("fromWalletId")?, fields.number("toWalletId")?)),
            _ => None,
        };
        Ok::<RecordInTrail, MissingField>(RecordInTrail {
            kind: RecordKind::Escrow,
            name: fields.number("escrowId")?.to_string(),
            parts: of_escrow(step, amount()?, wallets),
        })
    };
    match entry.kind.as_str() {
        "deposit.requested" if fields.is_settled() => Ok(vec![RecordInTrail {
            kind: RecordKind::Deposit,
            name: fields.text("transactionId")?.to_owned(),
            parts: of_deposit(fields.text("state")?, amount()?, fields.number("walletId")?),
        }]),
        "deposit.cancelled" => Ok(vec![RecordInTrail {
            kind: RecordKind::Deposit,
            name: fields.text("transactionId")?.to_owned(),
            parts: of_deposit(
                DepositState::Cancelled.as_str(),
                amount()?,
                fields.number("walletId")?,
            ),
        }]),
        "spend.requested" | "spend.approved" if fields.is_settled() => Ok(vec![intent("spend")?]),
        "escrow.create" if fields.is_settled() => Ok(vec![intent("escrow_create")?, escrow(MADE)?]),
        "escrow.fund" if fields.is_settled() => Ok(vec![intent("escrow_fund")?]),
        "escrow.resolve" if fields.is_settled() => Ok(vec![escrow(fields.text("becomes")?)?]),
        "escrow.release" | "escrow.dispute" if fields.is_settled() => {
            let mut records = vec![escrow(fields.text("becomes")?)?];
            if entry.actor != PAYEE_ELSEWHERE {
                records.push(intent(&entry.kind.replace('.', "_"))?);
            }
            Ok(records)
        }
        "escrow.released" | "escrow.disputed" => arrived(entry, &fields, waiting, intent),
        _ => Ok(Vec::new()),
    }
}

/// Returns the intent of a payee in another account than the payer's; none if the payer acted.
fn arrived(
    entry: &Entry,
    fields: &EntryFields<'_>,
    waiting: &mut HashSet<(String, u64)>,
    intent: impl Fn(&str) -> Result<RecordInTrail, MissingField>,
) -> Result<Vec<RecordInTrail>, MissingField> {
    if fields.text("intentId").is_err() {
        return Ok(Vec::new());
    }
    let name = (entry.kind.clone(), fields.number("escrowId")?);
    if waits(fields) {
        // Several entries may state that the money waits; the intent counts once.
        if !waiting.insert(name) {
            return Ok(Vec::new());
        }
    } else if waiting.remove(&name) {
        return Ok(Vec::new());
    }
    let kind = match entry.kind.as_str() {
        "escrow.disputed" => "escrow_dispute",
        _ => "escrow_release",
    };
    Ok(vec![intent(kind)?])
}
