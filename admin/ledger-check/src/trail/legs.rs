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
    /// True if the account's user wallet may have received it, since the wallet is a closed one of the account.
    pub(super) or_user: bool,
    /// The transaction's counterparty, if the entry has it and it is not in the key.
    pub(super) counterparty: Option<String>,
    pub(super) at_ms: u64,
    /// Id of the transaction, if the entry has it.
    pub(super) id: Option<String>,
    /// Balance after it, if the entry has it.
    pub(super) balance: Option<u64>,
    /// True if the transaction may be missing: the trail does not show whether the agent had a wallet.
    pub(super) optional: bool,
}

/// The key by which entry and transaction are matched: the type, and a name that is almost unique within it.
pub(super) type LegKey = (TransactionType, String);

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

/// An entry that moves money lacks a field of its type: it was edited.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct MissingField;

/// Reads the legs of entries.
#[derive(Debug, Default)]
pub(super) struct LegReader {
    /// Numbers of the wallets of this account and mode, including closed ones.
    own: HashSet<u64>,
    /// Numbers of the closed ones.
    closed: HashSet<u64>,
    /// Agents that have a wallet at this entry, according to the trail.
    agents: HashSet<String>,
}

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

    /// Returns a transaction of this type and name; `wallet` is the field with the number of its wallet.
    fn leg(&self, kind: TransactionType, name: &str, wallet: Option<&str>) -> Result<Leg, MissingField> {
        Ok(Leg {
            key: (kind, name.to_owned()),
            amount: self.nanos("amountNanos")?,
            wallet: wallet.map(|field| self.number(field)).transpose()?,
            owner: None,
            or_user: false,
            counterparty: None,
            at_ms: self.0.at_ms,
            id: None,
            balance: None,
            optional: false,
        })
    }

    /// Returns the name of the money that a transfer's receiver has.
    fn received(&self) -> Result<String, MissingField> {
        Ok(received(&self.number("from")?.to_string(), self.0.at_ms))
    }

    /// Returns whether the operation was settled, not refused.
    pub(super) fn is_settled(&self) -> bool {
        self.text("outcome") == Ok("settled")
    }
}

impl LegReader {
    pub(super) fn new(own: HashSet<u64>, closed: HashSet<u64>) -> Self {
        Self {
            own,
            closed,
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
        let fields = &EntryFields(entry);
        let leg = match entry.kind.as_str() {
            "deposit.requested" if fields.is_settled() && fields.text("state")? == "confirmed" => {
                deposit(fields)?
            }
            "deposit.confirmed" => deposit(fields)?,
            "transfer.requested" if fields.is_settled() => return self.transfer(fields),
            "transfer.received" if !waits(fields) => self.arrival(fields)?,
            "spend.requested" | "spend.approved" if fields.is_settled() => self.spend(fields)?,
            "escrow.fund" if fields.is_settled() => Leg {
                counterparty: fields.number("escrowId").ok().map(escrow_name),
                ..fields.leg(
                    TransactionType::EscrowFund,
                    fields.text("intentId")?,
                    Some("fromWalletId"),
                )?
            },
            "escrow.release" | "escrow.resolve" if fields.is_settled() => {
                let (kind, wallet) = match fields.text("becomes")? {
                    "refunded" => (TransactionType::EscrowRefund, "fromWalletId"),
                    _ => (TransactionType::EscrowRelease, "toWalletId"),
                };
                // The money of a payee in another account is in that account's trail.
                if !self.own.contains(&fields.number(wallet)?) {
                    return Ok(Vec::new());
                }
                self.escrow_end(fields, kind, wallet)?
            }
            "escrow.released" if !waits(fields) => {
                self.escrow_end(fields, TransactionType::EscrowRelease, "toWalletId")?
            }
            _ => return Ok(Vec::new()),
        };
        Ok(vec![leg])
    }

    /// Returns both sides of a transfer within the account; of one to another account, the payer's.
    fn transfer(&self, fields: &EntryFields<'_>) -> Result<Vec<Leg>, MissingField> {
        let name = fields.text("transactionId")?;
        let mut legs = vec![Leg {
            counterparty: Some(fields.number("to")?.to_string()),
            ..fields.leg(TransactionType::TransferOut, name, Some("from"))?
        }];
        if self.own.contains(&fields.number("to")?) {
            legs.push(fields.leg(TransactionType::TransferIn, &fields.received()?, Some("to"))?);
        }
        Ok(legs)
    }

    fn spend(&self, fields: &EntryFields<'_>) -> Result<Leg, MissingField> {
        let agent = fields.0.agent.as_deref().ok_or(MissingField)?;
        Ok(Leg {
            optional: !self.agents.contains(agent),
            owner: Some(agent.to_owned()),
            ..fields.leg(TransactionType::Spend, fields.text("intentId")?, None)?
        })
    }

    /// Returns the receipt of a transfer from another account.
    fn arrival(&self, fields: &EntryFields<'_>) -> Result<Leg, MissingField> {
        Ok(Leg {
            id: Some(fields.text("transactionId")?.to_owned()),
            or_user: self.closed.contains(&fields.number("to")?),
            ..fields.leg(TransactionType::TransferIn, &fields.received()?, Some("to"))?
        })
    }

    /// Returns the receipt of an escrow's money; `wallet` is the field with the number of the wallet.
    fn escrow_end(
        &self,
        fields: &EntryFields<'_>,
        kind: TransactionType,
        wallet: &str,
    ) -> Result<Leg, MissingField> {
        Ok(Leg {
            or_user: self.closed.contains(&fields.number(wallet)?),
            ..fields.leg(kind, &escrow_name(fields.number("escrowId")?), Some(wallet))?
        })
    }
}

fn deposit(fields: &EntryFields<'_>) -> Result<Leg, MissingField> {
    let name = fields.text("transactionId")?;
    Ok(Leg {
        balance: Some(fields.nanos("balanceNanos")?),
        ..fields.leg(TransactionType::Deposit, name, Some("walletId"))?
    })
}

/// Returns the counterparty of an escrow's transactions.
fn escrow_name(number: u64) -> String {
    format!("escrow:{number}")
}

/// Returns whether the money of an arrival waits for room. Its credit has another entry.
pub(super) fn waits(fields: &EntryFields<'_>) -> bool {
    fields.text("credit") == Ok("waiting")
}
