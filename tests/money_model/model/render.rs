//! The expected content of the store, key by key.

mod policies;
mod requests;

use super::{ACCOUNTS, Agent, At, DESCRIPTION, Model, Place, Wallet, account, keys, mode, realm};
use crate::snapshot::{Expected, Record, Shape};
use domain::mode::Mode;
use domain::number::Number;
use std::collections::{BTreeMap, BTreeSet};
use store::keys::{self as names, Bucket, Series, USER, closed_holder};
use store::provider_key::KEY_BYTES;
use store::transaction::{NewTransaction, TransactionText};

/// The sealed text of every provider key.
const SEALED: &str = "v1.sealed";

pub type Cells = BTreeMap<String, String>;

pub fn cells<const N: usize>(pairs: [(&str, &str); N]) -> Cells {
    pairs
        .into_iter()
        .map(|(name, value)| (name.to_owned(), value.to_owned()))
        .collect()
}

/// The expected records, while they are collected.
pub struct Page(pub Expected);

impl Page {
    pub fn put(&mut self, key: String, shape: Shape) {
        let is_there = match &shape {
            Shape::Text(_) => true,
            Shape::Hash(cells) | Shape::Intent(cells) | Shape::Zset(cells) => !cells.is_empty(),
            Shape::Set(members) => !members.is_empty(),
            Shape::List(items) => !items.is_empty(),
            Shape::Rows(rows) => !rows.is_empty(),
            Shape::Log(entries) => !entries.is_empty(),
        };
        if is_there {
            self.0.insert(key, Record { expires: None, shape });
        }
    }

    pub fn expire(&mut self, key: &str, expires: crate::names::Window) {
        if let Some(record) = self.0.get_mut(key) {
            record.expires = Some(expires);
        }
    }
}

impl Model {
    /// The expected content of the whole store.
    pub fn render(&self) -> Expected {
        let mut page = Page(Expected::new());
        self.outside(&mut page);
        self.numbers(&mut page);
        for at in 0..ACCOUNTS.len() {
            self.account(&mut page, at * 2);
        }
        for at in 0..self.sides.len() {
            self.wallets_of(&mut page, at);
            self.movements_of(&mut page, at);
            self.requests_of(&mut page, at);
            self.rest_of(&mut page, at);
        }
        self.escrows_of(&mut page);
        self.on_the_way(&mut page);
        page.0
    }

    /// Records that the accounts of a bucket share: the last numbers drawn, and the look-up record of each number.
    fn numbers(&self, page: &mut Page) {
        for (series, drawn) in Series::ALL.into_iter().zip(self.drawn) {
            for (of, place) in drawn.into_iter().enumerate() {
                let text = place.map(|place| Shape::Text(place.to_string()));
                page.0.extend(text.map(|shape| {
                    let record = Record { expires: None, shape };
                    (keys(of * 2).bucket().counter(series), record)
                }));
            }
        }
        let number = |number| Number::from_u64(number).expect("a number");
        for place in &self.wallets {
            let Place { at, owner, id, .. } = place;
            let text = format!("{} {} {owner} {id}", account(*at), mode(*at));
            page.put(Bucket::wallet_place(number(place.number)), Shape::Text(text));
        }
        for escrow in self.escrows.values() {
            let text = format!("{} {}", account(escrow.at), mode(escrow.at));
            page.put(Bucket::escrow_place(number(escrow.number)), Shape::Text(text));
        }
    }

    /// Records outside the buckets.
    fn outside(&self, page: &mut Page) {
        for (reference, places) in &self.announced {
            let places = places.iter().map(|at| format!("{} {}", account(*at), mode(*at)));
            page.put(names::deposit_lookup(reference), Shape::Set(places.collect()));
        }
    }

    /// The account's record; `at` is its live side.
    /// The bytes of the texts that escrows and intents keep.
    pub fn text_bytes(&self, at: At) -> usize {
        let own = self.escrows.values().filter(|escrow| escrow.at == at);
        let conditions: usize = own.map(|escrow| escrow.conditions.len()).sum();
        let side = &self.sides[at];
        let intents = side.order.iter().map(|id| &side.requests[id]);
        let texts = intents.map(|intent| intent.request.len() + intent.note.as_ref().map_or(0, String::len));
        conditions + texts.sum::<usize>()
    }

    fn account(&self, page: &mut Page, at: At) {
        let version = self.version(at).to_string();
        let mut record = cells([
            ("plan", &self.plans[at / 2]),
            ("generation", "1"),
            ("version", &version),
        ]);
        let mut set = |name: String, value: usize| {
            if value > 0 {
                record.insert(name, value.to_string());
            }
        };
        for at in [at, at + 1] {
            set(format!("{}_audit_seq", mode(at)), self.sides[at].audit.len());
            set(format!("{}_txn_seq", mode(at)), self.sides[at].movements.len());
        }
        for at in [at, at + 1] {
            let (side, mode) = (&self.sides[at], mode(at));
            set(format!("{mode}_closed_wallets"), side.closed.len());
            set(format!("{mode}_deposits"), side.deposits.len());
            set(format!("{mode}_txn_in"), self.received(at));
            let own = self.escrows.values().filter(|escrow| escrow.at == at);
            set(format!("{mode}_escrows"), own.count());
            set(format!("{mode}_text_bytes"), self.text_bytes(at));
            set(format!("{mode}_audit_text"), self.audit_texts[at] as usize);
            let described = side.agents.values().filter(|agent| agent.wallet.is_some());
            let sealed = side.agents.values().filter(|agent| agent.provider_key);
            let kept_text = self.kept_texts[at] as usize
                + described.count() * DESCRIPTION.len()
                + sealed.count() * (SEALED.len() + KEY_BYTES as usize);
            set(format!("{mode}_kept_text"), kept_text);
            set(format!("{mode}_intent_seq"), side.last_place);
        }
        let months: BTreeSet<u64> = self.sides[at]
            .charges
            .iter()
            .map(|charge| charge.period.month)
            .collect();
        for month in months {
            record.insert(format!("t{month}"), self.tracked(at, month).to_string());
            record.insert(format!("n{month}"), self.slots(at, month).to_string());
        }
        for at in [at, at + 1] {
            record.extend(self.sides[at].strictest(mode(at).as_str()));
            if !self.sides[at].closed.is_empty() {
                // It has counted the text of an agent that was deleted.
                let kept_text = record.entry(format!("{}_kept_text", mode(at)));
                kept_text.or_insert_with(|| "0".to_owned());
            }
            let kept = self.sides[at].refusals;
            record.extend(kept.map(|(span, this, before)| {
                (
                    format!("{}_refusals", mode(at)),
                    format!("{span} {this} {before}"),
                )
            }));
        }
        page.put(keys(at).record(), Shape::Hash(record));
    }

    /// Number of transactions that came from other accounts.
    fn received(&self, at: At) -> usize {
        let arrived = self.arrivals.iter().filter(|arrival| arrival.to == at);
        let sent = |id: &str| self.sent.iter().find(|transit| transit.id == id);
        arrived
            .filter(|arrival| sent(&arrival.id).is_some_and(|transit| transit.credit.is_some()))
            .count()
    }

    /// Returns whether the transaction with this number came from another account.
    pub fn is_arrival(&self, at: At, number: usize) -> bool {
        let id = &self.sides[at].movements[number - 1].id;
        let mut sent = self.sent.iter().filter(|transit| transit.to == at);
        sent.any(|transit| transit.credit.as_ref().is_some_and(|credit| credit.id == *id))
    }

    fn wallets_of(&self, page: &mut Page, at: At) {
        let (side, realm) = (&self.sides[at], realm(at));
        if let Some(wallet) = &side.user {
            page.put(realm.wallet(USER), Shape::Hash(self.row(at, wallet)));
        }
        let mut listed = Cells::new();
        for (name, agent) in &side.agents {
            let mut record = self.counters(at, name, agent);
            if let Some(wallet) = &agent.wallet {
                record.extend(self.row(at, wallet));
                record.extend(cells([
                    ("name", name),
                    ("type", "custom"),
                    ("description", DESCRIPTION),
                ]));
                listed.insert(name.clone(), wallet.made.clone());
            }
            if let Some(policy) = &agent.policy {
                record.extend(side.policies[policy].limits.on_agent());
                record.insert("policy_id".to_owned(), policy.clone());
            }
            page.put(realm.agent(name), Shape::Hash(record));
        }
        page.put(realm.agents(), Shape::Zset(listed));
        if realm.mode() == Mode::Live {
            side.keys_in(page, realm.keys());
        }
        for closed in &side.closed {
            let wallet = &closed.wallet;
            let record = cells([
                ("wallet_number", &wallet.number.to_string()),
                ("wallet", &wallet.id),
                ("name", &closed.agent),
                ("balance", "0"),
                ("created_at", &wallet.made),
                ("updated_at", &closed.at),
                ("closed_at", &closed.at),
                ("agent", &closed.agent),
            ]);
            page.put(realm.closed_wallet(wallet.number), Shape::Hash(record));
        }
    }

    fn row(&self, at: At, wallet: &Wallet) -> Cells {
        let mut row = cells([
            ("wallet_number", &wallet.number.to_string()),
            ("wallet", &wallet.id),
            ("balance", &self.balance(at, wallet.number).to_string()),
            ("created_at", &wallet.made),
            ("updated_at", &wallet.updated),
        ]);
        if wallet.awaits {
            row.insert("pending".to_owned(), self.pending(at, wallet.number).to_string());
        }
        row.extend(
            wallet
                .spend_limit
                .map(|limit| ("spend_limit".to_owned(), limit.to_string())),
        );
        row
    }

    /// Fields of an agent that outlive its wallet.
    pub(super) fn counters(&self, at: At, name: &str, agent: &Agent) -> Cells {
        let mut record = agent.old.clone();
        for charge in self.sides[at]
            .charges
            .iter()
            .filter(|charge| charge.agent == name)
        {
            let (day, month) = (charge.period.day, charge.period.month);
            record.insert(format!("d{day}"), self.day_spent(at, name, day).to_string());
            record.insert(format!("m{month}"), self.month_spent(at, name, month).to_string());
            if charge.from_wallet {
                record.insert(format!("w{day}"), self.wallet_spent(at, name, day).to_string());
            }
            if mode(at) == Mode::Live {
                // A void does not give it back, also if only calls used it before.
                record.insert(format!("s{month}"), "1".to_owned());
            }
        }
        record.extend(agent.frozen.map(|who| ("frozen".to_owned(), who.to_owned())));
        if agent.provider_key {
            record.insert(names::provider_key_id_field("openai"), "pk_1".to_owned());
            record.insert(names::provider_key_sealed_field("openai"), SEALED.to_owned());
        }
        record
    }

    fn movements_of(&self, page: &mut Page, at: At) {
        let (side, realm) = (&self.sides[at], realm(at));
        let mut lines = Cells::new();
        let mut lists: BTreeMap<String, Vec<String>> = BTreeMap::new();
        let mut balances: BTreeMap<u64, i128> = BTreeMap::new();
        for (index, movement) in side.movements.iter().enumerate() {
            let number = (index + 1).to_string();
            let balance = balances.entry(movement.wallet).or_default();
            *balance += movement.signed();
            let words = NewTransaction {
                id: &movement.id,
                kind: movement.kind,
                owner: &movement.owner,
                intent: movement.intent.as_deref(),
                currency: super::USD,
                tail: TransactionText {
                    counterparty: Some(movement.other.clone()).filter(|other| !other.is_empty()),
                    memo: movement.memo.clone(),
                },
            };
            let line = format!(
                "{} {balance} {}{} {} {}",
                movement.at,
                movement.kind.sign(),
                movement.amount,
                movement.wallet,
                words.words()
            );
            let kind = movement.kind.as_str();
            let holder = match side
                .closed
                .iter()
                .any(|closed| closed.wallet.number == movement.wallet)
            {
                true => closed_holder(movement.wallet),
                false => movement.owner.clone(),
            };
            for list in [
                realm.transactions_of_type(kind),
                realm.transactions_of_wallet(&holder, None),
                realm.transactions_of_wallet(&holder, Some(kind)),
            ] {
                lists.entry(list).or_default().push(number.clone());
            }
            lines.insert(number, line);
        }
        page.put(realm.transactions(), Shape::Hash(lines));
        for (key, numbers) in lists {
            page.put(key, Shape::List(numbers));
        }
    }

    fn rest_of(&self, page: &mut Page, at: At) {
        let (side, realm) = (&self.sides[at], realm(at));
        side.policies_in(page, &realm);
        side.frozen_in(page, &realm);
        for (owner, numbers) in &side.open {
            let numbers = numbers.iter().map(u64::to_string).collect();
            page.put(realm.open_escrows(owner), Shape::Set(numbers));
        }
        let listed = side
            .escrows
            .iter()
            .map(|number| (number.to_string(), number.to_string()));
        page.put(realm.escrows(), Shape::Zset(listed.collect()));
        page.put(realm.audit(), Shape::Log(side.audit.clone()));
    }
}
