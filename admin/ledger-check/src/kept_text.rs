//! The counter of the text that stays in agents' rows and in the transactions that an account caused, by which the
//! guard of a nearly full store judges it (decision D71): it is the sum of these texts.

use domain::mode::Mode;
use store::account::ModeField;
use store::keys::is_provider_key_sealed_field;
use store::provider_key::KEY_BYTES;
use store::record_fields::{FieldValues, RecordFields};
use store::transaction::{LONG_TRANSACTION, Transaction, TransactionType};

/// The counter of one account and mode, and the sum of the texts.
#[derive(Debug, Default)]
pub(super) struct KeptText {
    /// The counter, as stored.
    pub(super) says: Option<String>,
    /// Number of the last transaction that it counts.
    last: u64,
    pub(super) sum: u64,
    /// True after a long line that does not say which account caused it.
    pub(super) is_undecided: bool,
}

impl KeptText {
    /// Reads the counter of an account's record.
    pub(super) fn new(record: &FieldValues, mode: Mode, last: u64) -> Self {
        Self {
            says: RecordFields(record).text(&ModeField::KeptText.name(mode)),
            last,
            ..Self::default()
        }
    }

    pub(super) fn add_agent(&mut self, row: &FieldValues) {
        let description = RecordFields(row).length("description");
        let keys = row.iter().filter(|(name, _)| is_provider_key_sealed_field(name));
        let keys = keys.map(|(_, sealed)| KEY_BYTES + sealed.len() as u64);
        self.sum += description + keys.sum::<u64>();
    }

    /// Adds the bytes of a transaction's line beyond its common length, unless it is of another account. `is_own` says
    /// of the number of a wallet whether it is one of this account and mode.
    pub(super) fn add_line(
        &mut self,
        (number, line): (u64, &str),
        transaction: &Transaction,
        is_own: impl FnOnce(u64) -> bool,
    ) {
        let beyond = line.len().saturating_sub(LONG_TRANSACTION) as u64;
        if beyond == 0 || number > self.last {
            return;
        }
        let counterparty = transaction.tail.counterparty.as_deref();
        match transaction.kind {
            TransactionType::TransferIn => {
                let from = counterparty.and_then(|number| number.parse().ok());
                self.sum += if from.is_some_and(is_own) { beyond } else { 0 };
            }
            // It is short but for the name of the agent, and may be of an escrow that another account pays.
            TransactionType::EscrowRelease => self.is_undecided = true,
            _ => self.sum += beyond,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(kind: TransactionType, counterparty: &str) -> (String, Transaction) {
        let memo = "x".repeat(LONG_TRANSACTION);
        let tail = format!(r#"{{"c":"{counterparty}","m":"{memo}"}}"#);
        let line = format!("5 9 {}2 7 txn_1 {} ann - USD {tail}", kind.sign(), kind.as_str());
        let transaction = Transaction::parse(&line).unwrap();
        (line, transaction)
    }

    #[test]
    fn what_an_account_caused_counts() {
        let sum = |kind, counterparty: &str, number| {
            let mut text = KeptText {
                last: 3,
                ..KeptText::default()
            };
            let (line, transaction) = line(kind, counterparty);
            text.add_line((number, &line), &transaction, |wallet| wallet == 7);
            let beyond = (line.len() - LONG_TRANSACTION) as u64;
            assert!(text.sum == 0 || text.sum == beyond);
            (text.sum > 0, text.is_undecided)
        };
        for (kind, counterparty, counts) in [
            (TransactionType::Spend, "Books", (true, false)),
            (TransactionType::TransferOut, "9", (true, false)),
            (TransactionType::TransferIn, "7", (true, false)),
            (TransactionType::TransferIn, "9", (false, false)),
            (TransactionType::EscrowRelease, "escrow:1", (false, true)),
        ] {
            assert_eq!(sum(kind, counterparty, 3), counts, "{kind:?} {counterparty}");
            assert_eq!(sum(kind, counterparty, 4), (false, false), "after the counter");
        }
    }

    #[test]
    fn an_agent_counts_with_its_description_and_its_keys() {
        let fields = [
            ("name", "a long name"),
            ("description", "12345"),
            ("pk_sealed:openai", "v1.x"),
            ("pk_id:openai", "pk_1"),
        ];
        let fields = fields.map(|(name, value)| (name.to_owned(), value.to_owned()));
        let mut text = KeptText::default();
        text.add_agent(&fields.into());
        assert_eq!(text.sum, 5 + KEY_BYTES + 4);
    }
}
