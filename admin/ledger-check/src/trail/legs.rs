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
    /// Number of its wallet; none of a spend, whose entry says the agent.
    pub(super) wallet: Option<u64>,
    /// Owner of the wallet, where the entry says it.
    pub(super) owner: Option<String>,
    /// Whether the account's user wallet may have got it: money for a wallet that is closed goes there.
    pub(super) or_user: bool,
    pub(super) at_ms: u64,
    /// Id of the transaction, where the entry says it.
    pub(super) id: Option<String>,
    /// Balance after it, where the entry says it.
    pub(super) balance: Option<u64>,
    /// The trail does not tell whether a wallet moved: there may be no such transaction.
    pub(super) optional: bool,
}

/// The key by which entry and transaction are matched: the type, and a name that hardly any two of the type share.
pub(super) type LegKey = (TransactionType, String);

/// What a transaction is found by.
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

/// The entry of a transfer within an account does not say the id of its second transaction.
fn received(from: &str, at_ms: u64) -> String {
    format!("{from} {at_ms}")
}

/// An entry about money lacks a field of its type: it is of an earlier version, or was made by hand.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct MissingField;

/// What must be known to read entries.
#[derive(Debug, Default)]
pub(super) struct Reader {
    /// Numbers of the wallets of this account and mode, closed ones too.
    pub(super) own: HashSet<u64>,
    /// Agents that have a wallet at this entry, as the trail tells.
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

    /// Whether the script said that it happened, and not that it was refused.
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

    fn note_agent(&mut self, entry: &Entry) {
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

    /// The transactions that belong to an entry, in the order of their numbers.
    pub(super) fn legs(&mut self, entry: &Entry) -> Result<Vec<Leg>, MissingField> {
        self.note_agent(entry);
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
                // The trail of a payee in another account states what it gets.
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

/// Whether the money of an arrival waits for room: it has an entry of its own when it comes.
pub(super) fn waits(fields: &EntryFields<'_>) -> bool {
    fields.text("credit") == Ok("waiting")
}
