//! The comparisons, and the words with which a mismatch of each is reported.

use crate::violation::Invariant;

/// The two sides of a comparison.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Comparison {
    /// Settled intents that moved money, and transactions that name an intent.
    IntentTransaction,
    /// The lists that each intent belongs in, and those that contain it.
    IntentList,
    /// Confirmed deposits, and their transactions.
    Deposit,
    /// Money movements by the escrows' records, and the transactions of escrows.
    EscrowMoney,
    /// Parties that released or disputed escrows by the escrows' records, and the settled intents of these operations.
    EscrowWinner,
    /// Lists of transactions that exist, and those that should exist.
    TransactionList,
    /// Wallets and escrows, and the look-ups of their numbers.
    Place,
    /// Parties of escrows, and the lists that contain them.
    EscrowList,
    /// The accounts with a user of an e-mail address, and those in its look-up.
    Email,
    /// Transfers that were sent, and those that were received or wait. A key names a sender, a receiver and an amount;
    /// its items are counted.
    Transfer,
    /// Settled intents, and their audit entries.
    TrailIntent,
    /// Deposits, and their audit entries.
    TrailDeposit,
    /// Steps of escrows, and their audit entries.
    TrailEscrow,
}

/// Kind of the records that a comparison's keys name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ComparedKind {
    /// Intents, by their ids.
    Intent,
    /// Deposits, by their references.
    Deposit,
    /// Escrows, by their numbers.
    Escrow,
    /// Keys of the store, or other names that are reported as they are.
    Key,
}

/// Invariant and words with which a mismatch of a comparison is reported.
#[derive(Debug, Clone, Copy)]
pub(crate) struct MismatchWords {
    pub(crate) invariant: Invariant,
    pub(crate) subject: ComparedKind,
    /// The words before the items that only the side of the records has.
    pub(crate) records: &'static str,
    /// The words before the items that only the other side has.
    pub(crate) matches: &'static str,
}

impl Comparison {
    pub(super) const ALL: [Self; 13] = [
        Self::IntentTransaction,
        Self::IntentList,
        Self::Deposit,
        Self::EscrowMoney,
        Self::EscrowWinner,
        Self::TransactionList,
        Self::Place,
        Self::EscrowList,
        Self::Email,
        Self::Transfer,
        Self::TrailIntent,
        Self::TrailDeposit,
        Self::TrailEscrow,
    ];

    pub(crate) const fn report(self) -> MismatchWords {
        let (invariant, subject, records, matches) = match self {
            Self::IntentTransaction => (
                Invariant::Intent,
                ComparedKind::Intent,
                "the intent records",
                "its transactions are",
            ),
            Self::IntentList => (
                Invariant::Intent,
                ComparedKind::Intent,
                "it belongs in",
                "it is listed in",
            ),
            Self::Deposit => (
                Invariant::Pending,
                ComparedKind::Key,
                "the confirmed deposit is",
                "its transactions are",
            ),
            Self::EscrowMoney => (
                Invariant::EscrowState,
                ComparedKind::Escrow,
                "its status requires",
                "its transactions are",
            ),
            Self::EscrowWinner => (
                Invariant::EscrowState,
                ComparedKind::Escrow,
                "its record names as resolving intent",
                "its settled releases and disputes are",
            ),
            Self::TransactionList => (
                Invariant::WalletBalance,
                ComparedKind::Key,
                "there is",
                "there should be",
            ),
            Self::Place => (
                Invariant::Names,
                ComparedKind::Key,
                "the number belongs to",
                "its look-up names",
            ),
            Self::EscrowList => (
                Invariant::Names,
                ComparedKind::Escrow,
                "its party is",
                "it is in the list of",
            ),
            Self::Email => (
                Invariant::Names,
                ComparedKind::Key,
                "users of it are in",
                "it names",
            ),
            Self::Transfer => (
                Invariant::Transit,
                ComparedKind::Key,
                "sent, but neither received nor waiting:",
                "received or waiting, but not sent:",
            ),
            Self::TrailIntent => (
                Invariant::Trail,
                ComparedKind::Intent,
                "the settled intent is",
                "its audit entries say",
            ),
            Self::TrailDeposit => (
                Invariant::Trail,
                ComparedKind::Deposit,
                "the deposit is",
                "its audit entries say",
            ),
            Self::TrailEscrow => (
                Invariant::Trail,
                ComparedKind::Escrow,
                "the escrow is",
                "its audit entries say",
            ),
        };
        MismatchWords {
            invariant,
            subject,
            records,
            matches,
        }
    }

    /// Returns whether one side is the audit trail.
    pub(crate) fn is_of_trail(self) -> bool {
        self.report().invariant == Invariant::Trail
    }

    /// Returns whether both sides come from the scan of the keys.
    pub(super) const fn is_walked(self) -> bool {
        matches!(self, Self::EscrowWinner | Self::Place | Self::Email)
    }
}
