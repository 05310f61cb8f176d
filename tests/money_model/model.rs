//! The model of two accounts in both modes. Balances and counters are not stored but summed over movements and charges,
//! so that the model cannot make the scripts' mistakes.

mod agents;
mod audit_entries;
mod counters;
mod deposits;
mod escrows;
mod records;
mod render;
mod spends;
pub mod transfers;
mod verdicts;

use crate::names::{Names, Window};
use crate::snapshot::Entry;
use domain::mode::Mode;
use domain::number::{EPOCH_MS, LOWEST_COUNT, Number};
use domain::period::Period;
pub use records::*;
use std::collections::{BTreeMap, BTreeSet};
use store::keys::{AccountKeys, Realm, Series, USER};
use store::script::change::VERSION_STEP;

/// The description of every agent.
pub const DESCRIPTION: &str = "works at night";
/// The largest sum that a wallet or counter may reach: as the double that the scripts compare with, and exactly.
pub const CEILING: f64 = 9e18;
pub const MOST: u64 = 9_000_000_000_000_000_000;
/// The largest sum up to which other accounts may fill a wallet.
pub const MOST_BY_OTHERS: u64 = 900_000_000_000_000_000;
/// From this version on a change counts 1, as a call does: `STEPS_END` in `change.lua`.
pub const VERSION_STEPS_END: u64 = 1 << 52;
/// The accounts. They lie in different buckets.
pub const ACCOUNTS: [&str; 2] = ["acct_one", "acct_two"];
/// The currency of everything.
pub const USD: &str = "USD";

/// The last place of each series, by account; `None` before the first.
pub type Drawn = [[Option<u64>; 2]; 2];

/// Index of an account and mode: twice the account's index, and one more in test mode.
pub type At = usize;

pub fn mode(at: At) -> Mode {
    if at.is_multiple_of(2) {
        Mode::Live
    } else {
        Mode::Test
    }
}

pub fn account(at: At) -> &'static str {
    ACCOUNTS[at / 2]
}

pub fn keys(at: At) -> AccountKeys {
    AccountKeys::new(account(at))
}

pub fn realm(at: At) -> Realm {
    keys(at).in_mode(mode(at))
}

#[derive(Debug, Clone)]
pub struct Model {
    pub period: Period,
    /// When the current action happens.
    pub window: Window,
    pub names: Names,
    pub plans: [String; 2],
    /// The version that each account began with.
    pub born: u64,
    pub sides: [Side; 4],
    /// The text of the long lines that the store has in each audit log: the model knows what they say, and not how
    /// long they are.
    pub audit_texts: [u64; 4],
    /// The same for the long lines of transactions that an account caused.
    pub kept_texts: [u64; 4],
    /// The last place that was drawn of each series, by account.
    pub drawn: Drawn,
    /// Numbers that the store drew in the current action.
    pub found: Drawn,
    /// Number of requested escrows. Actions name an escrow by it.
    pub asked_escrows: u64,
    /// Every wallet that was ever opened.
    pub wallets: Vec<Place>,
    /// Accounts and modes of announced deposits, by reference.
    pub announced: BTreeMap<String, BTreeSet<At>>,
    /// By the number of the request.
    pub escrows: BTreeMap<u64, Escrow>,
    /// Every departure from one account to another.
    pub sent: Vec<Transit>,
    pub waiting: BTreeSet<String>,
    pub arrivals: Vec<Arrival>,
    /// Arrivals whose records are written while their money waits for room.
    pub notices: Vec<Arrival>,
}

impl Model {
    /// Two accounts without records.
    pub fn new(period: Period) -> Self {
        Self {
            period,
            window: Window { from: 0, to: 0 },
            names: Names::default(),
            plans: ["p".to_owned(), "p".to_owned()],
            born: 1,
            sides: Default::default(),
            audit_texts: [0; 4],
            kept_texts: [0; 4],
            drawn: Drawn::default(),
            found: Drawn::default(),
            asked_escrows: 0,
            wallets: Vec::new(),
            announced: BTreeMap::new(),
            escrows: BTreeMap::new(),
            sent: Vec::new(),
            waiting: BTreeSet::new(),
            arrivals: Vec::new(),
            notices: Vec::new(),
        }
    }

    pub fn now(&mut self) -> String {
        self.names.moment(self.window)
    }

    /// Draws the number that the store must have drawn: the millisecond of the drawing, or the one after the last.
    pub fn draw(&mut self, series: Series, at: At) -> u64 {
        let (series, of) = (series as usize, at / 2);
        let last = self.drawn[series][of].unwrap_or(0);
        let count = |ms: u64| (last + 1).max(ms.saturating_sub(EPOCH_MS)).max(LOWEST_COUNT);
        let (first, latest) = (count(self.window.from), count(self.window.to));
        let found = self.found[series][of].filter(|found| (first..=latest).contains(found));
        let count = found.unwrap_or(first);
        self.drawn[series][of] = Some(count);
        let number = Number::new(count, keys(at).bucket().number());
        number.expect("a number").get()
    }

    /// The id of a row in transit. `id` contains the number that actions use for its escrow.
    pub fn transit_id(&self, id: &str) -> String {
        let parts = id.strip_prefix("escrow:").and_then(|rest| rest.split_once(':'));
        let named = parts.and_then(|(escrow, word)| Some((self.escrows.get(&escrow.parse().ok()?)?, word)));
        named.map_or_else(
            || id.to_owned(),
            |(escrow, word)| format!("escrow:{}:{word}", escrow.number),
        )
    }

    /// Balance of a wallet.
    pub fn balance(&self, at: At, number: u64) -> i128 {
        let movements = self.sides[at].movements.iter();
        movements
            .filter(|movement| movement.wallet == number)
            .map(Movement::signed)
            .sum()
    }

    /// Sum of the pending deposits of a wallet, in nano-USD.
    pub fn pending(&self, at: At, number: u64) -> i128 {
        let deposits = self.sides[at].deposits.values();
        let of_wallet = deposits.filter(|deposit| deposit.pending && deposit.wallet == number);
        of_wallet.map(|deposit| i128::from(deposit.amount)).sum()
    }

    /// The current wallet of an owner.
    pub fn wallet(&self, at: At, owner: &str) -> Option<&Wallet> {
        match owner {
            USER => self.sides[at].user.as_ref(),
            agent => self.sides[at].agents.get(agent)?.wallet.as_ref(),
        }
    }

    pub fn wallet_mut(&mut self, at: At, owner: &str) -> Option<&mut Wallet> {
        match owner {
            USER => self.sides[at].user.as_mut(),
            agent => self.sides[at].agents.get_mut(agent)?.wallet.as_mut(),
        }
    }

    /// Returns true if the owner's wallet is still the one of this number.
    pub fn is_alive(&self, at: At, owner: &str, number: u64) -> bool {
        self.wallet(at, owner)
            .is_some_and(|wallet| wallet.number == number)
    }

    pub fn is_frozen(&self, at: At, owner: &str) -> bool {
        let agent = self.sides[at].agents.get(owner);
        agent.is_some_and(|agent| agent.frozen.is_some())
    }

    /// Returns true if the wallet can receive this amount.
    pub fn has_room(&self, at: At, number: u64, amount: u64) -> bool {
        self.balance(at, number) + i128::from(amount) <= i128::from(MOST)
    }

    /// Words of the audit log for a debit that leaves `after`, with the threshold if the wallet fell below it: that of
    /// its agent's policy, or else of the account's policies.
    pub fn debit_words(&self, at: At, owner: &str, amount: u64, after: i128) -> String {
        let settled = "outcome=settled";
        let low = self.effective(at, owner).and_then(|(limits, _)| limits.low);
        let before = after + i128::from(amount);
        match low.filter(|low| before >= i128::from(*low) && after < i128::from(*low)) {
            None => settled.to_owned(),
            Some(low) => format!("{settled} low_nanos={low} balance_nanos={after} low_owner={owner}"),
        }
    }

    /// The version of the account whose live side is `at`.
    pub fn version(&self, at: At) -> u64 {
        let changes = self.sides[at].audit.len() + self.sides[at + 1].audit.len();
        (0..changes).fold(self.born, |version, _| match version < VERSION_STEPS_END {
            true => version + VERSION_STEP,
            false => version + 1,
        })
    }

    pub fn request(&self, at: At, id: &str) -> Option<&Request> {
        self.sides[at].requests.get(id)
    }

    /// Returns true if a request of this id was made before.
    pub fn is_taken(&self, at: At, id: &str) -> bool {
        self.request(at, id).is_some() || self.sides[at].claims.contains_key(id)
    }

    /// The number of the current span, as long as a record's life, in which refusals are counted together.
    pub fn span(&self) -> u64 {
        self.window.from / transfers::millis(transfers::RECORD_LIFE)
    }

    /// Counts a refusal that is recorded under a key.
    pub fn count_refusal(&mut self, at: At) {
        let now = self.span();
        let (this, before) = match self.sides[at].refusals {
            Some((span, this, before)) if span == now => (this, before),
            Some((span, this, _)) if span + 1 == now => (0, this),
            _ => (0, 0),
        };
        self.sides[at].refusals = Some((now, this + 1, before));
    }

    /// Writes a new intent.
    pub fn keep(&mut self, at: At, id: &str, moment: &str, request: Request) {
        let side = &mut self.sides[at];
        side.claims.remove(id);
        side.order.push(id.to_owned());
        side.last_place += 1;
        side.places.insert(id.to_owned(), (side.last_place, None));
        side.requests.insert(id.to_owned(), request);
        side.file(id, moment);
    }

    /// Removes an intent that was archived.
    pub fn archive(&mut self, at: At, id: &str) {
        let side = &mut self.sides[at];
        side.requests.remove(id);
        side.places.remove(id);
        for list in [&mut side.order, &mut side.settled, &mut side.blocked] {
            list.retain(|other| other != id);
        }
    }

    /// Appends an entry to the audit trail.
    pub fn record(&mut self, at: At, entry: Entry) {
        self.sides[at].audit.push(entry);
    }
}

#[expect(
    clippy::cast_precision_loss,
    reason = "the scripts compare with the ceiling as doubles"
)]
pub fn as_double(nanos: i128) -> f64 {
    nanos as f64
}

/// Returns true if payer and payee are in different accounts.
pub fn is_remote(escrow: &Escrow) -> bool {
    escrow.to_at != escrow.at
}
