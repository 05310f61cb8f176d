//! The transactions that an entry of the trail records: those that its script wrote in the same step, in their order.

use domain::entry::Entry;
use serde_json::Value;
use std::collections::HashSet;
use store::transaction::{Transaction, TransactionType};

/// A transaction as an entry records it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Leg {
    pub(super) key: LegKey,
    /// Nano-USD.
    pub(super) amount: u64,
    /// Number of its wallet; `None` for a spend, whose entry has the agent.
    pub(super) wallet: Option<u64>,
    /// Owner of the wallet, if the entry has it.
    pub(super) owner: Option<String>,
    /// Whether the account's user wallet may have received it, as it does for a closed wallet.
    pub(super) or_user: bool,
    pub(super) at_ms: u64,
    /// Id of the transaction, if the entry has it.
    pub(super) id: Option<String>,
    /// Balance after it, if the entry has it.
    pub(super) balance: Option<u64>,
    /// Whether the transaction may be missing: the trail does not show whether the agent had a wallet.
    pub(super) optional: bool,
}

/// The key by which entry and transaction are matched: the type, and a name that is almost unique within it.
pub(super) type LegKey = (TransactionType, String);

/// Returns the key of a transaction.
pub(super) fn key_of(transaction: &Transaction) -> LegKey {
    let intent = || transaction.intent.clone().unwrap_or_default();
    let counterparty = transaction.tail.counterparty.as_deref().unwrap_or_default();
    let name = match transaction.kind {
        TransactionType::Deposit | TransactionType::TransferOut => transaction.id.clone(),
        TransactionType::TransferIn => received(counterparty, transaction.at_ms),
        TransactionType::Spend | TransactionType::EscrowFund => intent(),
        TransactionType::EscrowRelease | TransactionType::EscrowRefund => counterparty.to_owned(),
    };
    (transaction.kind, name)
}

/// Returns the name of money received: the entry of a transfer within an account lacks the id of its second
/// transaction.
fn received(from: &str, at_ms: u64) -> String {
    format!("{from} {at_ms}")
}

/// An entry that moves money lacks a field of its type: an earlier version wrote it, or it was edited.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct MissingField;

/// Reads the legs of entries.
#[derive(Debug, Default)]
pub(super) struct Reader {
    /// Numbers of the wallets of this account and mode, including closed ones.
    pub(super) own: HashSet<u64>,
    /// Agents that have a wallet at this entry, according to the trail.
    agents: HashSet<String>,
}

/// The fields of an entry.
pub(super) struct EntryFields<'a>(pub(super) &'a Entry);

impl<'a> EntryFields<'a> {
    pub(super) fn text(&self, name: &str) -> Result<&'a str, MissingField> {
        self.0.data.get(name).and_then(Value::as_str).ok_or(MissingField)
    }

    pub(super) fn number(&self, name: &str) -> Result<u64, MissingField> {
        self.0.data.get(name).and_then(Value::as_u64).ok_or(MissingField)
    }

    pub(super) fn nanos(&self, name: &str) -> Result<u64, MissingField> {
        self.text(name)?.parse().map_err(|_| MissingField)
    }

    /// Returns whether the operation was settled, not refused.
    pub(super) fn is_settled(&self) -> bool {
        self.text("outcome") == Ok("settled")
    }
}

impl Reader {
    pub(super) fn new(own: HashSet<u64>) -> Self {
        Self {
            own,
            agents: HashSet::new(),
        }
    }

    fn track_agent(&mut self, entry: &Entry) {
        let Some(agent) = &entry.agent else { return };
        match entry.kind.as_str() {
            "agent.created" => {
                self.agents.insert(agent.clone());
            }
            "agent.deleted" => {
                self.agents.remove(agent);
            }
            _ => {}
        }
    }

    /// Returns the transactions of an entry, in the order of their numbers.
    pub(super) fn legs(&mut self, entry: &Entry) -> Result<Vec<Leg>, MissingField> {
        self.track_agent(entry);
        let fields = EntryFields(entry);
        let leg = |kind: TransactionType, name: &str, wallet: Option<u64>| {
            Ok::<Leg, MissingField>(Leg {
                key: (kind, name.to_owned()),
                amount: fields.nanos("amountNanos")?,
                wallet,
                owner: None,
                or_user: false,
                at_ms: entry.at_ms,
                id: None,
                balance: None,
                optional: false,
            })
        };
        let escrow = || Ok::<String, MissingField>(format!("escrow:{}", fields.number("escrowId")?));
        let one = |leg: Leg| Ok(vec![leg]);
        match entry.kind.as_str() {
            "deposit.requested" if fields.is_settled() && fields.text("state")? != "confirmed" => {
                Ok(Vec::new())
            }
            "deposit.requested" if !fields.is_settled() => Ok(Vec::new()),
            "deposit.requested" | "deposit.confirmed" => one(Leg {
                balance: Some(fields.nanos("balanceNanos")?),
                ..leg(
                    TransactionType::Deposit,
                    fields.text("transactionId")?,
                    fields.number("walletId").map(Some)?,
                )?
            }),
            "transfer.requested" if fields.is_settled() => {
                let (from, to) = (fields.number("from")?, fields.number("to")?);
                let mut legs = vec![leg(
                    TransactionType::TransferOut,
                    fields.text("transactionId")?,
                    Some(from),
                )?];
                if self.own.contains(&to) {
                    let name = received(&from.to_string(), entry.at_ms);
                    legs.push(leg(TransactionType::TransferIn, &name, Some(to))?);
                }
                Ok(legs)
            }
            "transfer.received" if !waits(&fields) => {
                let name = received(&fields.number("from")?.to_string(), entry.at_ms);
                one(Leg {
                    id: Some(fields.text("transactionId")?.to_owned()),
                    or_user: true,
                    ..leg(TransactionType::TransferIn, &name, fields.number("to").map(Some)?)?
                })
            }
            "spend.requested" | "spend.approved" if fields.is_settled() => {
                let agent = entry.agent.as_deref().ok_or(MissingField)?;
                one(Leg {
                    optional: !self.agents.contains(agent),
                    owner: Some(agent.to_owned()),
                    ..leg(TransactionType::Spend, fields.text("intentId")?, None)?
                })
            }
            "escrow.fund" if fields.is_settled() => {
                let wallet = fields.number("fromWalletId")?;
                one(leg(
                    TransactionType::EscrowFund,
                    fields.text("intentId")?,
                    Some(wallet),
                )?)
            }
            "escrow.release" | "escrow.resolve" if fields.is_settled() => {
                let (kind, wallet) = match fields.text("becomes")? {
                    "refunded" => (TransactionType::EscrowRefund, fields.number("fromWalletId")?),
                    _ => (TransactionType::EscrowRelease, fields.number("toWalletId")?),
                };
                // The money of a payee in another account is in that account's trail.
                if !self.own.contains(&wallet) {
                    return Ok(Vec::new());
                }
                one(Leg {
                    or_user: true,
                    ..leg(kind, &escrow()?, Some(wallet))?
                })
            }
            "escrow.released" if !waits(&fields) => one(Leg {
                or_user: true,
                ..leg(
                    TransactionType::EscrowRelease,
                    &escrow()?,
                    fields.number("toWalletId").map(Some)?,
                )?
            }),
            _ => Ok(Vec::new()),
        }
    }
}

/// Returns whether the money of an arrival waits for room. Its credit has another entry.
pub(super) fn waits(fields: &EntryFields<'_>) -> bool {
    fields.text("credit") == Ok("waiting")
}
