//! The key names of wallets, transactions, intents, escrows and deposits.

use super::{Realm, USER};
use crate::transaction::TransactionType;
use sha2::{Digest, Sha256};

/// The number of lists that contain a wallet's transactions: one of all, and one of each type.
pub const TRANSACTION_LISTS: usize = 1 + TransactionType::ALL.len();

impl Realm {
    /// The wallet of `owner` (hash): an agent's own record, or that of the account's user wallet.
    pub fn wallet(&self, owner: &str) -> String {
        match owner {
            USER => self.key(["/user-wallet"]),
            agent => self.agent(agent),
        }
    }

    /// The numbers of the transactions of a wallet (list, oldest first): all, or those of one type. `holder` is the
    /// owner, or `closed/<number>` for a closed wallet.
    pub fn transactions_of_wallet(&self, holder: &str, kind: Option<&str>) -> String {
        match kind {
            None => self.key(["/txns/of/", holder]),
            Some(kind) => self.key(["/txns/of/", holder, "/", kind]),
        }
    }

    /// Returns all lists of the transactions of a wallet: all transactions, and those of each type.
    pub fn transaction_lists(&self, holder: &str) -> [String; TRANSACTION_LISTS] {
        std::array::from_fn(|at| {
            let kind = at.checked_sub(1).and_then(|at| TransactionType::ALL.get(at));
            self.transactions_of_wallet(holder, kind.map(|kind| kind.as_str()))
        })
    }

    /// Returns the four keys of a movement of the wallet of `owner`, as the scripts expect them: the wallet, and the
    /// lists of its transactions: by type, by wallet, and by both.
    pub fn leg(&self, owner: &str, kind: &str) -> [String; 4] {
        [
            self.wallet(owner),
            self.transactions_of_type(kind),
            self.transactions_of_wallet(owner, None),
            self.transactions_of_wallet(owner, Some(kind)),
        ]
    }

    /// Ids of intents (list, oldest first). `which` is one of [`IntentIndex`].
    pub fn intents(&self, which: IntentIndex<'_>) -> String {
        match which {
            IntentIndex::All => self.key(["/intents"]),
            IntentIndex::Kind(kind) => self.key(["/intents/kind/", kind]),
            IntentIndex::Agent(agent) => self.key(["/intents/agent/", agent]),
            IntentIndex::State(state) => self.key(["/intents/state/", state]),
        }
    }
}

keys! {
    Realm:
    /// The remaining record of a wallet whose agent was deleted (hash).
    pub closed_wallet(number: u64) = "/closed-wallet/", &number.to_string();
    /// Escrows, funded or disputed, that owe the wallet of `owner` something (set of numbers).
    pub open_escrows(owner: &str) = "/open-escrows/", owner;
    /// All transactions (hash of number to line); the numbers count from 1 without a gap.
    pub transactions() = "/txns";
    /// The numbers of all transactions of a type (list, oldest first).
    pub transactions_of_type(kind: &str) = "/txns/type/", kind;
    /// The record of a request that is executed at most once (hash): an intent, a transfer or a deposit.
    pub intent(id: &str) = "/intent/", id;
    /// The descriptors of the segments of archived intents (list, oldest first).
    pub intent_segments() = "/intents/segments";
    /// An escrow that a wallet of this account pays (hash).
    pub escrow(number: u64) = "/escrow/", &number.to_string();
    /// The release and dispute intents of an escrow (list of `<account> <intent id>`).
    pub escrow_siblings(number: u64) = "/escrow/", &number.to_string(), "/siblings";
    /// The escrows of which the account is payer or payee (sorted set of numbers, by number).
    pub escrows() = "/escrows";
    /// A deposit (hash), by its rail reference.
    pub deposit(reference: &str) = "/deposit/", &hex::encode(Sha256::digest(reference.as_bytes()));
}

/// Returns the holder under which the transactions of a closed wallet are listed.
pub fn closed_holder(number: u64) -> String {
    format!("closed/{number}")
}

/// One of the lists of an account's intents.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum IntentIndex<'a> {
    /// Every intent, by creation.
    All,
    /// The intents of a kind, by creation.
    Kind(&'a str),
    /// The intents of an agent, by creation.
    Agent(&'a str),
    /// The intents in a state, by the time of the change to it; those that wait for approval are a sorted set.
    State(&'a str),
}
