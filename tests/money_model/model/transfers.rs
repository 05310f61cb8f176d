//! The model of transfers, and of arrivals from another account (decisions D18, D28).

use super::audit_entries::{entry, event};
use super::{Arrival, At, Model, Movement, Place, Request, Transit, Wallet};
use crate::act::{ACTOR, Transfer};
use crate::snapshot::Entry;
use std::time::Duration;
use store::keys::{Series, USER};
use store::transaction::TransactionType;

/// Retention of the records of transfers and deposits in these tests.
pub const RECORD_LIFE: Duration = Duration::from_secs(30 * 24 * 3600);
/// Retention of an arrival's mark after its row is removed.
const MARK_LIFE: Duration = Duration::from_secs(35 * 24 * 3600);

pub fn millis(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).expect("milliseconds")
}

impl Model {
    pub fn transfer(&mut self, transfer: &Transfer) -> String {
        let (from, to, amount) = (&transfer.from, &transfer.to, transfer.amount);
        let at = from.at;
        if transfer.keyed && self.is_taken(at, &transfer.request_id.id) {
            return "known".to_owned();
        }
        let here = to.at == at;
        let alive = |place: &Place| self.is_alive(place.at, &place.owner, place.number);
        let reason = match () {
            () if transfer.closed => "wallet_closed",
            () if !alive(from) => return "changed".to_owned(),
            () if self.is_frozen(at, &from.owner) => "frozen",
            () if self.balance(at, from.number) < i128::from(amount) => return "insufficient".to_owned(),
            () if here && !alive(to) => return "changed".to_owned(),
            () if here && !self.has_room(at, to.number, amount) => return "too_much".to_owned(),
            () => "",
        };
        let moment = self.now();
        let words = match reason {
            "" => self.debit_words(
                at,
                &from.owner,
                amount,
                self.balance(at, from.number) - i128::from(amount),
            ),
            reason => format!("outcome=blocked reason={reason}"),
        };
        let audit = entry(
            moment.clone(),
            "transfer.requested",
            ACTOR,
            &from.owner,
            amount,
            Some(words),
        );
        self.record(at, audit);
        let mut balance = String::new();
        if reason.is_empty() {
            let txn = transfer.request_id.txn();
            self.post(
                at,
                self.leg(transfer, (from, to), TransactionType::TransferOut, txn, &moment),
            );
            balance = self.balance(at, from.number).to_string();
            let arrival = transfer.request_id.arrival();
            let arrival = self.leg(
                transfer,
                (to, from),
                TransactionType::TransferIn,
                arrival,
                &moment,
            );
            match here {
                true => self.post(at, arrival),
                false => self.send(transfer, arrival),
            }
        }
        if transfer.keyed {
            self.keep_record(transfer, &moment, reason, &balance);
        }
        match reason {
            "" => format!("done {balance} {moment}"),
            reason => format!("blocked {reason}"),
        }
    }

    fn leg(
        &self,
        transfer: &Transfer,
        (of, other): (&Place, &Place),
        kind: TransactionType,
        id: String,
        moment: &str,
    ) -> Movement {
        Movement {
            at: moment.to_owned(),
            wallet: of.number,
            owner: of.owner.clone(),
            kind,
            amount: transfer.amount,
            id,
            intent: None,
            other: other.number.to_string(),
            memo: transfer.memo.clone(),
        }
    }

    pub fn post(&mut self, at: At, movement: Movement) {
        if let Some(wallet) = self.wallet_mut(at, &movement.owner) {
            wallet.updated.clone_from(&movement.at);
        }
        self.sides[at].movements.push(movement);
    }

    fn keep_record(&mut self, transfer: &Transfer, moment: &str, reason: &'static str, balance: &str) {
        let mut request = Request::new(
            "transfer",
            &transfer.request_id,
            &transfer.from.owner,
            transfer.amount,
        );
        let state = if reason.is_empty() { "settled" } else { "blocked" };
        (request.state, request.first, request.reason) = (state, state, reason);
        request.at = moment.to_owned();
        request.note = transfer.memo.clone();
        request.txn = Some(transfer.request_id.txn());
        request.balance = Some(balance.to_owned());
        request.expires = Some(self.window.later(millis(RECORD_LIFE)));
        if state == "blocked" {
            self.count_refusal(transfer.from.at);
        }
        let requests = &mut self.sides[transfer.from.at].requests;
        requests.insert(transfer.request_id.id.clone(), request);
    }

    fn send(&mut self, transfer: &Transfer, arrival: Movement) {
        let to = &transfer.to;
        let received = entry(
            String::new(),
            "transfer.received",
            "another account",
            &to.owner,
            transfer.amount,
            None,
        );
        self.depart(Transit {
            id: transfer.request_id.txn(),
            from: transfer.from.at,
            to: to.at,
            owner: to.owner.clone(),
            wallet: to.number,
            credit: Some(arrival),
            escrow: None,
            lists: None,
            intent: None,
            entry: received,
        });
        if !transfer.crash {
            let id = transfer.request_id.txn();
            self.deliver(&id, false);
        }
    }

    /// Adds a row in transit.
    pub fn depart(&mut self, transit: Transit) {
        self.waiting.insert(transit.id.clone());
        self.sent.push(transit);
    }

    /// The account's own wallet, opened when there is none.
    pub fn user_wallet(&mut self, at: At, actor: &str) -> u64 {
        if let Some(wallet) = &self.sides[at].user {
            return wallet.number;
        }
        let number = self.draw(Series::Wallet, at);
        let (id, made) = (self.names.id("wal_"), self.now());
        self.sides[at].user = Some(Wallet {
            number,
            id: id.clone(),
            awaits: false,
            spend_limit: None,
            made: made.clone(),
            updated: made.clone(),
        });
        self.wallets.push(Place {
            at,
            owner: USER.to_owned(),
            number,
            id,
        });
        self.record(at, event(made, "wallet.opened", actor, None));
        number
    }

    /// Delivers money in transit once and removes its row. With `half` the worker crashes in between and the row stays.
    /// Returns true if the row was delivered. Money that finds no room waits, but its intent and its escrow are
    /// written.
    pub fn deliver(&mut self, id: &str, half: bool) -> bool {
        let transit = self.sent.iter().find(|transit| transit.id == id);
        let transit = transit.expect("something that was sent").clone();
        if let Some(number) = transit.lists {
            self.sides[transit.to].escrows.insert(number);
            self.waiting.remove(id);
            if half {
                self.waiting.insert(id.to_owned());
            }
            return true;
        }
        if !self.arrivals.iter().any(|arrival| arrival.id == id) && !self.arrive(&transit) {
            return false;
        }
        let expires = self.window.later(millis(MARK_LIFE));
        let arrival = self.arrivals.iter_mut().find(|arrival| arrival.id == id);
        arrival.expect("its mark").expires = (!half).then_some(expires);
        if half {
            self.waiting.insert(id.to_owned());
        } else {
            self.waiting.remove(id);
        }
        true
    }

    fn arrive(&mut self, transit: &Transit) -> bool {
        let to = transit.to;
        let (mut owner, mut number) = (transit.owner.clone(), transit.wallet);
        if transit.credit.is_some() && !self.is_alive(to, &owner, number) {
            (owner, number) = (USER.to_owned(), self.user_wallet(to, "worker"));
        }
        let credit = transit.credit.as_ref();
        let fits = credit.is_none_or(|credit| self.has_room(to, number, credit.amount));
        let noticed = self.notices.iter().any(|notice| notice.id == transit.id);
        if !fits && (noticed || transit.escrow.is_none() && transit.intent.is_none()) {
            return false;
        }
        let moment = self.now();
        let mark = Arrival {
            id: transit.id.clone(),
            to,
            at: moment.clone(),
            expires: None,
        };
        match fits {
            true => {
                self.notices.retain(|notice| notice.id != transit.id);
                self.arrivals.push(mark);
            }
            false => self.notices.push(mark),
        }
        let intent = transit.intent.clone();
        if let Some(credit) = credit.filter(|_| fits) {
            let movement = Movement {
                at: moment.clone(),
                wallet: number,
                owner,
                intent: intent.as_ref().map(|(id, _)| id.clone()),
                ..credit.clone()
            };
            self.post(to, movement);
        }
        if let Some((id, request)) = intent.filter(|_| !noticed)
            && self.request(to, &id).is_none()
        {
            self.keep(to, &id, &moment, request);
        }
        let entry = Entry {
            at: moment,
            words: (!fits).then(|| "credit=waiting".to_owned()),
            ..transit.entry.clone()
        };
        self.record(to, entry);
        fits
    }

    /// Removes the escrow from the open ones of the wallet of `owner`.
    pub fn close_for(&mut self, at: At, owner: &str, escrow: u64) {
        if let Some(open) = self.sides[at].open.get_mut(owner) {
            open.remove(&escrow);
        }
    }
}
