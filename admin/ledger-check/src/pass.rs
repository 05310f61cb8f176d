//! One pass over all records. It runs beside a live system and takes no snapshot, so each part reads in an order in
//! which what is compared cannot disagree; where that is not possible, only what the next pass finds again counts.

use super::book::{Accounts, Owner, Page, Place};
use super::drive::BATCH;
use super::emails::Emails;
use super::join::{Join, Joins, Odd, Side, Suspects};
use super::names::Names;
use super::pending::Questions;
use super::transit::{Flow, Rows};
use super::violation::{Doubt, Findings, Invariant};
use archive::Archive;
use domain::mode::Mode;
use domain::number::Number;
use domain::period::Period;
use std::collections::HashMap;
use store::keys::parse::{Key, ModeKey};
use store::{Store, StoreError, server_clock};

/// Called now and then with the number of records read so far.
pub type Progress = dyn Fn(u64);

/// A pass and what it knows so far.
pub(super) struct Pass<'a> {
    pub(super) store: &'a Store,
    pub(super) archive: &'a Archive,
    pub(super) accounts: &'a Accounts,
    pub(super) progress: &'a Progress,
    pages: Vec<Page>,
    /// The records of the accounts, in their order.
    pub(super) records: Vec<HashMap<String, String>>,
    pub(super) joins: Joins,
    pub(super) found: Findings,
    /// What cannot be told.
    pub(super) doubts: Vec<Doubt>,
    /// Records read.
    pub(super) checked: u64,
    /// The store's day and month when the pass began.
    pub(super) today: Period,
    pub(super) rows: Rows,
    pub(super) names: Names,
    pub(super) emails: Emails,
    /// What the pass before asked about pending money, and what this one asks.
    pub(super) asked: Questions,
    pub(super) asks: Questions,
    /// What moved in the live and the test mode of all accounts together.
    pub(super) flows: [Flow; 2],
}

/// What a pass comes to.
pub(super) struct PassOutcome {
    pub(super) found: Findings,
    pub(super) doubts: Vec<Doubt>,
    pub(super) suspects: Suspects,
    pub(super) asks: Questions,
    pub(super) checked: u64,
}

impl<'a> Pass<'a> {
    /// Looks at all records of `accounts`.
    pub(super) async fn run(
        (store, archive): (&'a Store, &'a Archive),
        accounts: &'a Accounts,
        (joins, asked): (Joins, Questions),
        progress: &'a Progress,
    ) -> Result<PassOutcome, StoreError> {
        let mut pass = Self {
            store,
            archive,
            accounts,
            progress,
            pages: accounts.places().map(|_| Page::default()).collect(),
            records: vec![HashMap::new(); accounts.len()],
            joins,
            found: Findings::default(),
            doubts: Vec::new(),
            checked: 0,
            today: Period::at(server_clock::now_ms(store).await?),
            rows: Rows::default(),
            names: Names::default(),
            emails: Emails::default(),
            asked,
            asks: Questions::new(),
            flows: [Flow::default(), Flow::default()],
        };
        pass.read_rows().await?;
        pass.walk().await?;
        pass.read_archived_intents().await?;
        pass.answer_questions();
        let witnesses = pass.read_witnesses().await?;
        pass.read_standing().await?;
        pass.check_versions(witnesses);
        pass.check_held().await?;
        pass.read_hold_indexes().await?;
        pass.read_transactions().await?;
        pass.read_lists().await?;
        pass.read_logs().await?;
        pass.read_open_escrows().await?;
        pass.read_escrow_lists().await?;
        pass.read_outside().await?;
        pass.read_email_lookups().await?;
        pass.read_counters_of_numbers().await?;
        pass.check_transit();
        let (suspects, odd) = pass.joins.finish();
        let (found, accounts) = (&mut pass.found, pass.accounts);
        for odd in foreign_left_out(store, accounts, odd).await? {
            tell(found, accounts, &odd);
        }
        Ok(PassOutcome {
            found: pass.found,
            doubts: pass.doubts,
            suspects,
            asks: pass.asks,
            checked: pass.checked,
        })
    }

    /// Counts records that were read.
    pub(super) fn count(&mut self, records: usize) {
        let before = self.checked / BATCH as u64;
        self.checked += records as u64;
        if self.checked / BATCH as u64 != before {
            (self.progress)(self.checked);
        }
    }

    pub(super) fn page(&mut self, place: Place) -> &mut Page {
        &mut self.pages[place.index()]
    }

    pub(super) fn owner(&mut self, place: Place, owner: &str) -> &mut Owner {
        let owners = &mut self.page(place).owners;
        if !owners.contains_key(owner) {
            owners.insert(owner.to_owned(), Owner::default());
        }
        owners.entry(owner.to_owned()).or_default()
    }

    /// A side of a join about something of this place.
    pub(super) fn join(&mut self, join: Join, side: Side, (place, key): (Place, &str), parts: &[&str]) {
        self.joins
            .add(join, side, (self.accounts.word(place), key), parts);
    }

    /// Two answers of the same reading disagree.
    pub(super) fn wrong(&mut self, invariant: Invariant, records: &[&str], detail: impl Into<String>) {
        self.found.add(invariant, records, detail);
    }
}

/// Leaves out what only seems odd because the account of the other side was not looked at: escrows that another account
/// pays. A check of the whole store compares those too.
async fn foreign_left_out(store: &Store, accounts: &Accounts, odd: Vec<Odd>) -> Result<Vec<Odd>, StoreError> {
    let mut told = Vec::with_capacity(odd.len());
    for odd in odd {
        if is_left_by_a_crash(&odd) {
            continue;
        }
        let of_escrow = matches!(
            odd.join,
            Join::EscrowMoney | Join::EscrowWinner | Join::EscrowList
        );
        let number = odd.key.parse().ok().filter(|_| of_escrow && accounts.partial);
        let payer = match number {
            None => None,
            Some(number) => store::escrow::Escrow::read(store, number).await.unwrap_or(None),
        };
        if payer.is_none_or(|escrow| accounts.find(&escrow.payer.account).is_some()) {
            told.push(odd);
        }
    }
    Ok(told)
}

/// An earlier version listed an escrow before it made it: one that is only listed was never made.
fn is_left_by_a_crash(odd: &Odd) -> bool {
    let is_earlier = odd.key.parse().is_ok_and(|number| Number::of(number).is_none());
    odd.join == Join::EscrowList && odd.records.is_empty() && is_earlier
}

/// Says what an odd item means.
fn tell(found: &mut Findings, accounts: &Accounts, odd: &Odd) {
    let invariant = match odd.join {
        Join::IntentTransaction | Join::IntentList => Invariant::Intent,
        Join::Deposit => Invariant::Pending,
        Join::EscrowMoney => Invariant::EscrowState,
        Join::EscrowWinner => Invariant::EscrowState,
        Join::TransactionList => Invariant::WalletBalance,
        Join::Place | Join::EscrowList | Join::Email => Invariant::Names,
    };
    let (records, matches) = (odd.records.join(", "), odd.matches.join(", "));
    let (what, other) = match odd.join {
        Join::IntentTransaction => ("the intent has moved", "transactions of it moved"),
        Join::IntentList => ("it belongs in", "it is listed in"),
        Join::Deposit => ("the confirmed deposit is", "its transactions are"),
        Join::EscrowMoney => ("by its status there was", "its transactions are"),
        Join::EscrowWinner => (
            "it says that it was resolved by",
            "settled releases and disputes of it are",
        ),
        Join::TransactionList => ("there is a list", "there should be a list"),
        Join::Place => ("the number is that of", "it leads to"),
        Join::EscrowList => ("its party is", "it is in the list of"),
        Join::Email => ("it leads to users of", "it names"),
    };
    let none = |text: &str| {
        if text.is_empty() {
            "nothing".to_owned()
        } else {
            text.to_owned()
        }
    };
    let detail = format!("{what} {}, and {other} {}", none(&records), none(&matches));
    let place = place_named(accounts, &odd.place);
    let key = match (odd.join, place) {
        (Join::IntentTransaction | Join::IntentList, Some(place)) => {
            accounts.keys(place).intent(place.mode, &odd.key)
        }
        (Join::EscrowMoney | Join::EscrowWinner | Join::EscrowList, _) => {
            format!("escrow {}", odd.key)
        }
        _ => odd.key.clone(),
    };
    found.add(invariant, &[&key], detail);
}

/// The place that a join's word stands for.
fn place_named(accounts: &Accounts, word: &str) -> Option<Place> {
    let (account, mode) = word.split_once(' ')?;
    Some(Place {
        account: accounts.find(account)?,
        mode: Mode::parse(mode)?,
    })
}

/// Which account and mode a key is of, when it is one that the pass looks at.
pub(super) fn place_of<'k>(accounts: &Accounts, key: Key<'k>) -> Option<(Place, ModeKey<'k>)> {
    match key {
        Key::Mode(account, mode, key) => Some((
            Place {
                account: accounts.find(account)?,
                mode,
            },
            key,
        )),
        _ => None,
    }
}
