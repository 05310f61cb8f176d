//! Transactions: one for each change of a wallet, with the resulting balance (decision D19). Scripts write lines `<at
//! ms> <balance after> <amount> <wallet number> <txn id> <type> <owner> <intent id or -> <currency> <tail>`, where
//! `amount` has a sign and `tail` is JSON.

use domain::money::Nanos;
use serde::{Deserialize, Serialize};

pub mod list;

/// The length in bytes of a line that the common size of a transaction stands for. Equals `LONG_TRANSACTION` in
/// `money.lua`.
pub const LONG_TRANSACTION: usize = 256;

domain::words! {
    /// Cause of a transaction, which determines whether it is a credit or a debit.
    pub enum TransactionType {
        /// A confirmed deposit.
        Deposit = "deposit",
        /// Money from another wallet.
        TransferIn = "transfer_in",
        /// Money to another wallet.
        TransferOut = "transfer_out",
        /// Payment of a spend.
        Spend = "spend",
        /// Money into an escrow.
        EscrowFund = "escrow_fund",
        /// Money from an escrow to its payee.
        EscrowRelease = "escrow_release",
        /// Money from an escrow back to its payer, after the operator resolved a dispute in the payer's favour.
        EscrowRefund = "escrow_refund",
    }
}

impl TransactionType {
    /// Returns the sign of the amount in the script: `-` for a debit.
    pub const fn sign(self) -> &'static str {
        match self {
            Self::Deposit | Self::TransferIn | Self::EscrowRelease | Self::EscrowRefund => "",
            Self::TransferOut | Self::Spend | Self::EscrowFund => "-",
        }
    }
}

/// Arguments of a transaction.
#[derive(Debug, Clone)]
pub struct NewTransaction<'a> {
    /// `txn_…`
    pub id: &'a str,
    /// Type.
    pub kind: TransactionType,
    /// Owner of the wallet: agent id, or `user`.
    pub owner: &'a str,
    /// Id of its intent.
    pub intent: Option<&'a str>,
    /// `USD` or `USDC`.
    pub currency: &'a str,
    /// Counterparty and memo.
    pub tail: TransactionText,
}

/// The text part of a transaction.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct TransactionText {
    /// Counterparty: a wallet number, `escrow:<number>`, the recipient of a spend, the reference of a deposit.
    #[serde(rename = "c", default, skip_serializing_if = "Option::is_none")]
    pub counterparty: Option<String>,
    /// The caller's memo.
    #[serde(rename = "m", default, skip_serializing_if = "Option::is_none")]
    pub memo: Option<String>,
}

impl NewTransaction<'_> {
    /// Returns the words that scripts append to the values that only they know.
    pub fn words(&self) -> String {
        let tail = serde_json::to_string(&self.tail).unwrap_or_else(|_| "{}".to_owned());
        let intent = self.intent.unwrap_or("-");
        let kind = self.kind.as_str();
        format!(
            "{} {kind} {} {intent} {} {tail}",
            self.id, self.owner, self.currency
        )
    }
}

/// One debit or credit of a wallet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Transaction {
    /// `txn_…`
    pub id: String,
    /// In ms since 1970.
    pub at_ms: u64,
    /// Wallet number.
    pub wallet: u64,
    /// Owner of the wallet: agent id, or `user`.
    pub owner: String,
    /// Type.
    pub kind: TransactionType,
    /// Without a sign; the type determines it.
    pub amount: Nanos,
    /// Balance afterwards.
    pub balance_after: Nanos,
    /// `USD` or `USDC`.
    pub currency: String,
    /// Id of its intent.
    pub intent: Option<String>,
    /// Counterparty and memo.
    pub tail: TransactionText,
}

impl Transaction {
    /// Parses a line; `None` if it is malformed.
    pub fn parse(line: &str) -> Option<Self> {
        let mut words = line.splitn(10, ' ');
        let mut next = || words.next();
        let at_ms = next()?.parse().ok()?;
        let balance_after = Nanos::from_stored(next()?.parse().ok()?);
        let signed = next()?;
        let wallet = next()?.parse().ok()?;
        let id = next()?.to_owned();
        let kind = TransactionType::parse(next()?)?;
        let amount = signed.strip_prefix(kind.sign())?.parse().ok()?;
        let owner = next()?.to_owned();
        let intent = Some(next()?).filter(|intent| *intent != "-").map(str::to_owned);
        let currency = next()?.to_owned();
        let tail = serde_json::from_str(next()?).ok()?;
        Some(Self {
            id,
            at_ms,
            wallet,
            owner,
            kind,
            amount: Nanos::from_stored(amount),
            balance_after,
            currency,
            intent,
            tail,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_script_counts_by_the_same_length() {
        let source = include_str!("script/money.lua");
        assert!(source.contains(&format!("local LONG_TRANSACTION = {LONG_TRANSACTION}\n")));
    }

    #[test]
    fn a_written_transaction_is_read_back() {
        for kind in TransactionType::ALL {
            let new = NewTransaction {
                id: "txn_1",
                kind,
                owner: "bot",
                intent: None,
                currency: "USD",
                tail: TransactionText {
                    counterparty: Some("Bob & Söhne".into()),
                    memo: Some("two words".into()),
                },
            };
            let line = format!("5 9223372036854775807 {}12 7 {}", kind.sign(), new.words());
            let read = Transaction::parse(&line).unwrap();
            assert_eq!((read.kind, read.amount.get(), read.wallet), (kind, 12, 7));
            assert_eq!(read.balance_after.get(), 9_223_372_036_854_775_807);
            assert_eq!((read.tail, read.intent), (new.tail.clone(), None));
            let wrong = if kind.sign().is_empty() { "-12" } else { "12" };
            let line = format!("5 1 {wrong} 7 {}", new.words());
            assert_eq!(Transaction::parse(&line), None, "the sign goes with the type");
        }
    }
}
