//! The data of a pass in memory: one row per account, one per agent or user wallet, one per escrow that holds money.
//! Data that grows with the number of calls is summed while it is read.

use super::kept_text::KeptText;
use super::replay::{Fold, Replay};
use domain::mode::Mode;
use domain::period::Period;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use store::call::unsettled_holds::HoldState;
use store::keys::{Bucket, Realm, USER};
use store::record_fields::{FieldValues, RecordFields};

/// An account, by its index in [`Accounts`], and a mode.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct AccountMode {
    pub(super) account: usize,
    pub(super) mode: Mode,
}

impl AccountMode {
    /// Returns its index in a list with two elements per account.
    pub(super) fn index(self) -> usize {
        self.account * 2 + usize::from(self.mode == Mode::Test)
    }
}

/// The accounts that a pass checks.
#[derive(Debug, Default)]
pub(super) struct Accounts {
    ids: Vec<String>,
    realms: Vec<Realm>,
    words: Vec<String>,
    index: HashMap<String, usize>,
    /// True if there are other accounts that are not checked.
    pub(super) partial: bool,
}

impl Accounts {
    pub(super) fn new(ids: Vec<String>, partial: bool) -> Self {
        let realms = ids
            .iter()
            .flat_map(|id| Mode::ALL.map(|mode| Realm::new(id, mode)));
        let realms: Vec<Realm> = realms.collect();
        let index = ids.iter().enumerate().map(|(at, id)| (id.clone(), at)).collect();
        Self {
            words: realms.iter().map(Realm::to_string).collect(),
            realms,
            ids,
            index,
            partial,
        }
    }

    pub(super) fn len(&self) -> usize {
        self.ids.len()
    }

    pub(super) fn find(&self, id: &str) -> Option<usize> {
        self.index.get(id).copied()
    }

    pub(super) fn id(&self, account_mode: AccountMode) -> &str {
        &self.ids[account_mode.account]
    }

    pub(super) fn realm(&self, account_mode: AccountMode) -> &Realm {
        &self.realms[account_mode.index()]
    }

    /// Returns every account in both modes.
    pub(super) fn account_modes(&self) -> impl Iterator<Item = AccountMode> + use<> {
        (0..self.len()).flat_map(|account| Mode::ALL.map(|mode| AccountMode { account, mode }))
    }

    /// Returns every account in live mode.
    pub(super) fn live(&self) -> impl Iterator<Item = AccountMode> + use<> {
        let modes = self.account_modes();
        modes.filter(|account_mode| account_mode.mode == Mode::Live)
    }

    /// Returns the buckets of all accounts.
    pub(super) fn buckets(&self) -> BTreeSet<Bucket> {
        self.realms.iter().map(Realm::bucket).collect()
    }

    /// Returns the name of an account and mode in comparisons.
    pub(super) fn word(&self, account_mode: AccountMode) -> &str {
        &self.words[account_mode.index()]
    }
}

/// Data of one account and mode.
#[derive(Debug, Default)]
pub(super) struct RealmPage {
    /// Agents, and the user wallet under `user`.
    pub(super) owners: HashMap<String, Owner>,
    /// Closed wallets, by number.
    pub(super) closed: BTreeSet<u64>,
    /// Every wallet, by number.
    pub(super) wallets: HashMap<u64, Replay>,
    /// Number of the last transaction that is checked.
    pub(super) last: u64,
    /// If many numbers up to `last` have no transaction: the first number that certainly has none, or one of the next.
    pub(super) unread: Option<u64>,
    /// The text that stays in agents and transactions.
    pub(super) kept_text: KeptText,
    /// The numbers of each type.
    pub(super) types: [Fold; 7],
    /// The existing lists of intents, by the part of their name after the account.
    pub(super) intent_lists: BTreeSet<String>,
    /// True if there are archived intents.
    pub(super) archived_intents: bool,
    /// Owners that have a set of open escrows.
    pub(super) open_escrows: BTreeSet<String>,
    /// Escrows that hold money.
    pub(super) held: Vec<HeldEscrow>,
    /// The last number assigned in the audit log.
    pub(super) audit_seq: u64,
    /// An index of named runs exists.
    pub(super) has_runs: bool,
    /// Runs that have a record, by agent and id, where they are compared with the trail.
    pub(super) runs: BTreeSet<(String, String)>,
    /// Keys that the trail says were revoked, and that are to be checked.
    pub(super) revoked_keys: Vec<String>,
}

impl RealmPage {
    /// Returns the number of the account's user wallet, if its record was read.
    pub(super) fn user_wallet(&self) -> Option<u64> {
        self.owners.get(USER)?.record.as_ref()?.wallet
    }
}

/// The number of entries that a trail has by its notes.
#[derive(Debug)]
pub(super) struct Noted {
    pub(super) account: String,
    pub(super) mode: Mode,
    /// The note that says so.
    pub(super) path: String,
    pub(super) entries: u64,
}

/// An escrow that holds money, as read.
#[derive(Debug)]
pub(super) struct HeldEscrow {
    pub(super) number: u64,
    pub(super) from_owner: String,
    pub(super) to_account: String,
    pub(super) to_owner: String,
}

/// An agent or a user wallet.
#[derive(Debug, Default)]
pub(super) struct Owner {
    /// Settled spends by day and month of their charge.
    pub(super) charged: BTreeMap<(u64, u64), u128>,
    /// Unsettled holds of its calls.
    pub(super) holds: Vec<OwnerHold>,
    /// Spends of its wallet, by day.
    pub(super) spends: BTreeMap<u64, u128>,
    /// Pending deposits of its wallet.
    pub(super) pending: u128,
    /// The record; `None` until it is read.
    pub(super) record: Option<OwnerRecord>,
}

/// An unsettled hold of an agent's call.
#[derive(Debug)]
pub(super) struct OwnerHold {
    pub(super) id: String,
    pub(super) state: HoldState,
    /// The day and month that it is charged to.
    pub(super) period: Period,
    /// Its estimate, in nano-USD.
    pub(super) nanos: u64,
}

/// An agent's record, read together with the number of the account's last transaction.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub(super) struct OwnerRecord {
    pub(super) seq: u64,
    pub(super) wallet: Option<u64>,
    pub(super) balance: Option<u64>,
    pub(super) pending: Option<u64>,
    /// The months with a slot in the plan: fields `s<month>`.
    pub(super) slots: BTreeSet<u64>,
    /// Sum of its open holds; `None` if invalid.
    pub(super) held: Option<u64>,
    pub(super) counters: Counters,
}

/// The counters of an agent, by day or month.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub(super) struct Counters {
    /// `d<day>`: charged on the day.
    pub(super) days: BTreeMap<u64, i128>,
    /// `m<month>`: charged in the month.
    pub(super) months: BTreeMap<u64, i128>,
    /// `w<day>`: spent from the wallet on the day.
    pub(super) spends: BTreeMap<u64, i128>,
}

impl OwnerRecord {
    /// Parses a record. Invalid numbers become `None`.
    pub(super) fn from_fields(seq: u64, fields: &FieldValues) -> Self {
        let record = RecordFields(fields);
        let number_or_zero = |name: &str| record.optional(name).map(Option::unwrap_or_default);
        Self {
            seq,
            wallet: record.number("wallet_number"),
            balance: record.number("balance"),
            pending: number_or_zero("pending"),
            slots: fields
                .keys()
                .filter_map(|name| name.strip_prefix('s')?.parse().ok())
                .collect(),
            held: number_or_zero("held"),
            counters: Counters::from_fields(fields),
        }
    }
}

impl Counters {
    /// Returns the fields that are counters.
    pub(super) fn from_fields(fields: &FieldValues) -> Self {
        let mut counters = Self::default();
        for (name, value) in fields {
            let period = name.get(1..).and_then(|digits| digits.parse::<u64>().ok());
            let (Some(period), Ok(value)) = (period, value.parse::<i128>()) else {
                continue;
            };
            let counter = match name.as_bytes()[0] {
                b'd' => &mut counters.days,
                b'm' => &mut counters.months,
                b'w' => &mut counters.spends,
                _ => continue,
            };
            counter.insert(period, value);
        }
        counters
    }
}
