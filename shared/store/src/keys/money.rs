//! The key names of wallets, transactions, intents, escrows and deposits.

use super::{AccountKeys, USER};
use crate::transaction::TransactionType;
use domain::mode::Mode;
use sha2::{Digest, Sha256};

/// The number of lists that a wallet's transactions are in: all, and those of each type.
pub const TRANSACTION_LISTS: usize = 1 + TransactionType::ALL.len();

impl AccountKeys {
    /// The wallet of `owner` (hash): an agent's own record, or that of the account's user wallet.
    pub fn wallet(&self, mode: Mode, owner: &str) -> String {
        match owner {
            USER => format!("{}/{mode}/user-wallet", self.base),
            agent => self.agent(mode, agent),
        }
    }

    /// What is left of a wallet whose agent was deleted (hash).
    pub fn closed_wallet(&self, mode: Mode, number: u64) -> String {
        format!("{}/{mode}/closed-wallet/{number}", self.base)
    }

    /// Escrows, funded or disputed, that owe the wallet of `owner` something (set of numbers).
    pub fn open_escrows(&self, mode: Mode, owner: &str) -> String {
        format!("{}/{mode}/open-escrows/{owner}", self.base)
    }

    /// All transactions (hash of number to line); the numbers count from 1 without a gap.
    pub fn transactions(&self, mode: Mode) -> String {
        format!("{}/{mode}/txns", self.base)
    }

    /// The numbers of all transactions of a type (list, oldest first).
    pub fn transactions_of_type(&self, mode: Mode, kind: &str) -> String {
        format!("{}/{mode}/txns/type/{kind}", self.base)
    }

    /// The numbers of the transactions of a wallet (list, oldest first): all, or those of one type. `holder` is the
    /// owner, or for a closed wallet `closed/<number>`.
    pub fn transactions_of_wallet(&self, mode: Mode, holder: &str, kind: Option<&str>) -> String {
        match kind {
            None => format!("{}/{mode}/txns/of/{holder}", self.base),
            Some(kind) => format!("{}/{mode}/txns/of/{holder}/{kind}", self.base),
        }
    }

    /// Every list of the transactions of a wallet: all, and those of each type.
    pub fn transaction_lists(&self, mode: Mode, holder: &str) -> [String; TRANSACTION_LISTS] {
        std::array::from_fn(|at| {
            let kind = at.checked_sub(1).and_then(|at| TransactionType::ALL.get(at));
            self.transactions_of_wallet(mode, holder, kind.map(|kind| kind.as_str()))
        })
    }

    /// The four keys of a movement of the wallet of `owner`, as the scripts take them: the wallet, and the lists of its
    /// transactions of the type, of its own, and both.
    pub fn leg(&self, mode: Mode, owner: &str, kind: &str) -> [String; 4] {
        [
            self.wallet(mode, owner),
            self.transactions_of_type(mode, kind),
            self.transactions_of_wallet(mode, owner, None),
            self.transactions_of_wallet(mode, owner, Some(kind)),
        ]
    }

    /// The record of a request that is made at most once (hash): an intent, a transfer or a deposit.
    pub fn intent(&self, mode: Mode, id: &str) -> String {
        format!("{}/{mode}/intent/{id}", self.base)
    }

    /// Ids of intents (list, oldest first). `which` is one of [`IntentIndex`].
    pub fn intents(&self, mode: Mode, which: IntentIndex<'_>) -> String {
        let base = format!("{}/{mode}/intents", self.base);
        match which {
            IntentIndex::All => base,
            IntentIndex::Kind(kind) => format!("{base}/kind/{kind}"),
            IntentIndex::Agent(agent) => format!("{base}/agent/{agent}"),
            IntentIndex::State(state) => format!("{base}/state/{state}"),
        }
    }

    /// What describes the segments of archived intents (list, oldest first).
    pub fn intent_segments(&self, mode: Mode) -> String {
        format!("{}/{mode}/intents/segments", self.base)
    }

    /// An escrow that a wallet of this account pays (hash).
    pub fn escrow(&self, mode: Mode, number: u64) -> String {
        format!("{}/{mode}/escrow/{number}", self.base)
    }

    /// The release and dispute intents of an escrow (list of `<account> <intent id>`).
    pub fn escrow_siblings(&self, mode: Mode, number: u64) -> String {
        format!("{}/{mode}/escrow/{number}/siblings", self.base)
    }

    /// The escrows that the account pays or is paid by (sorted set of numbers, by number).
    pub fn escrows(&self, mode: Mode) -> String {
        format!("{}/{mode}/escrows", self.base)
    }

    /// A deposit (hash), by its rail reference.
    pub fn deposit(&self, mode: Mode, reference: &str) -> String {
        let hash = hex::encode(Sha256::digest(reference.as_bytes()));
        format!("{}/{mode}/deposit/{hash}", self.base)
    }
}

/// Under what the transactions of a closed wallet are listed.
pub fn closed_holder(number: u64) -> String {
    format!("closed/{number}")
}

/// One of the lists of an account's intents.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum IntentIndex<'a> {
    /// Every intent, by creation.
    All,
    /// Those of a kind, by creation.
    Kind(&'a str),
    /// Those of an agent, by creation.
    Agent(&'a str),
    /// Those in a state, by the time they came into it; those that wait for approval are a sorted set.
    State(&'a str),
}
