//! Deposits, as they should be (decision D17).

use super::audit_entries::entry;
use super::transfers::{RECORD_LIFE, millis};
use super::{At, Deposit, MOST, Model, Movement, Request};
use crate::act::{self, ACTOR, RequestId};
use store::transaction::TransactionType;

impl Model {
    pub fn deposit(&mut self, new: &act::Deposit) -> String {
        let summary = self.take_deposit(new);
        if new.pending && !new.closed {
            self.announce(new.to.at, &new.reference);
        }
        summary
    }

    /// Updates the look-up of an announced deposit's reference: it names the account if the account has the deposit and
    /// the deposit was pending once.
    fn announce(&mut self, at: At, reference: &str) {
        let deposit = self.sides[at].deposits.get(reference);
        let is_there = deposit.is_some_and(|deposit| deposit.first_pending);
        let places = self.announced.entry(reference.to_owned()).or_default();
        match is_there {
            true => places.insert(at),
            false => places.remove(&at),
        };
        if places.is_empty() {
            self.announced.remove(reference);
        }
    }

    fn take_deposit(&mut self, new: &act::Deposit) -> String {
        let (to, at, amount) = (&new.to, new.to.at, new.amount);
        if new.keyed && self.is_taken(at, &new.request_id.id) {
            return "known".to_owned();
        }
        if let Some(there) = self.sides[at].deposits.get(&new.reference).cloned() {
            if (there.wallet, there.amount) != (to.number, amount) {
                return "other".to_owned();
            }
            if there.first_pending != new.pending || there.cancelled.is_some() {
                return "other_state".to_owned();
            }
            let (moment, balance) = (self.now(), there.first_balance.to_string());
            let of = (to.owner.as_str(), amount);
            self.keep_deposit((&new.request_id, new.keyed), of, &moment, None, &balance);
            self.of_deposit(&new.request_id, new.keyed, &there);
            if new.keyed {
                self.count_refusal(at);
            }
            return there.summary("again");
        }
        if new.closed {
            let moment = self.now();
            let words = "outcome=blocked reason=wallet_closed".to_owned();
            let audit = entry(
                moment.clone(),
                "deposit.requested",
                ACTOR,
                &to.owner,
                amount,
                Some(words),
            );
            self.record(at, audit);
            self.keep_deposit(
                (&new.request_id, new.keyed),
                (&to.owner, amount),
                &moment,
                Some("wallet_closed"),
                "",
            );
            return "blocked wallet_closed".to_owned();
        }
        if !self.is_alive(at, &to.owner, to.number) {
            return "changed".to_owned();
        }
        let (balance, pending) = (self.balance(at, to.number), self.pending(at, to.number));
        if balance + pending + i128::from(amount) > i128::from(MOST) {
            return "too_much".to_owned();
        }
        self.take_in(new, balance)
    }

    /// Makes a deposit that passed all checks; `balance` is that of its wallet.
    fn take_in(&mut self, new: &act::Deposit, balance: i128) -> String {
        let (to, at, amount) = (&new.to, new.to.at, new.amount);
        let moment = self.now();
        let mut deposit = Deposit {
            id: new.request_id.txn(),
            wallet: to.number,
            owner: to.owner.clone(),
            amount,
            pending: new.pending,
            first_pending: new.pending,
            first_balance: balance,
            at: moment.clone(),
            confirmed: None,
            cancelled: None,
        };
        if new.pending {
            self.awaits(at, &to.owner, &moment);
        } else {
            self.credit(at, &mut deposit, &new.reference, &moment);
            deposit.first_balance += i128::from(amount);
        }
        let (summary, balance) = (deposit.summary("made"), deposit.first_balance.to_string());
        self.sides[at].deposits.insert(new.reference.clone(), deposit);
        let words = match new.pending {
            true => "outcome=settled".to_owned(),
            false => format!("outcome=settled balance_nanos={balance}"),
        };
        let words = Some(words);
        self.record(
            at,
            entry(
                moment.clone(),
                "deposit.requested",
                ACTOR,
                &to.owner,
                amount,
                words,
            ),
        );
        self.keep_deposit(
            (&new.request_id, new.keyed),
            (&to.owner, amount),
            &moment,
            None,
            &balance,
        );
        summary
    }

    /// Notes that the wallet has had a pending deposit.
    fn awaits(&mut self, at: At, owner: &str, moment: &str) {
        let wallet = self.wallet_mut(at, owner).expect("the wallet");
        (wallet.awaits, wallet.updated) = (true, moment.to_owned());
    }

    fn credit(&mut self, at: At, deposit: &mut Deposit, reference: &str, moment: &str) {
        self.post(
            at,
            Movement {
                at: moment.to_owned(),
                wallet: deposit.wallet,
                owner: deposit.owner.clone(),
                kind: TransactionType::Deposit,
                amount: deposit.amount,
                id: deposit.id.clone(),
                intent: None,
                other: reference.to_owned(),
                memo: None,
            },
        );
        deposit.pending = false;
        deposit.confirmed = Some((moment.to_owned(), self.balance(at, deposit.wallet)));
    }

    fn keep_deposit(
        &mut self,
        (request_id, keyed): (&RequestId, bool),
        (owner, amount): (&str, u64),
        moment: &str,
        refused: Option<&'static str>,
        balance: &str,
    ) {
        if !keyed {
            return;
        }
        let mut request = Request::new("deposit", request_id, owner, amount);
        let state = if refused.is_none() { "settled" } else { "blocked" };
        let reason = refused.unwrap_or_default();
        (request.state, request.first, request.reason) = (state, state, reason);
        request.at = moment.to_owned();
        request.txn = Some(request_id.txn());
        request.balance = Some(balance.to_owned());
        request.expires = Some(self.window.later(millis(RECORD_LIFE)));
        if state == "blocked" {
            self.count_refusal(request_id.at);
        }
        self.sides[request_id.at]
            .requests
            .insert(request_id.id.clone(), request);
    }

    /// Makes the request's record name the deposit that existed before the request.
    fn of_deposit(&mut self, request_id: &RequestId, keyed: bool, deposit: &Deposit) {
        let requests = &mut self.sides[request_id.at].requests;
        if let Some(record) = requests.get_mut(&request_id.id).filter(|_| keyed) {
            record.txn = Some(deposit.id.clone());
        }
    }

    pub fn confirm(&mut self, request_id: &RequestId, keyed: bool, reference: &str) -> String {
        let at = request_id.at;
        let Some(mut deposit) = self.sides[at].deposits.get(reference).cloned() else {
            return "missing".to_owned();
        };
        if keyed && self.is_taken(at, &request_id.id) {
            return "known".to_owned();
        }
        let of = (deposit.owner.as_str(), deposit.amount);
        let is_alive = self.is_alive(at, &deposit.owner, deposit.wallet);
        let refused = match deposit.cancelled {
            Some(_) => Some(("cancelled", "")),
            None => (deposit.pending && !is_alive).then_some(("closed", "wallet_closed")),
        };
        if let Some((refused, reason)) = refused {
            let moment = self.now();
            self.keep_deposit((request_id, keyed), of, &moment, Some(reason), "");
            self.of_deposit(request_id, keyed, &deposit);
            return refused.to_owned();
        }
        if !deposit.pending {
            let moment = self.now();
            let balance = deposit.confirmed.as_ref().map(|(_, balance)| balance.to_string());
            self.keep_deposit(
                (request_id, keyed),
                of,
                &moment,
                None,
                &balance.unwrap_or_default(),
            );
            self.of_deposit(request_id, keyed, &deposit);
            if keyed {
                self.count_refusal(at);
            }
            return deposit.summary("again");
        }
        if !self.has_room(at, deposit.wallet, deposit.amount) {
            return "too_much".to_owned();
        }
        let moment = self.now();
        self.credit(at, &mut deposit, reference, &moment);
        let balance = self.balance(at, deposit.wallet).to_string();
        self.keep_deposit(
            (request_id, keyed),
            (&deposit.owner, deposit.amount),
            &moment,
            None,
            &balance,
        );
        self.of_deposit(request_id, keyed, &deposit);
        self.record(
            at,
            entry(
                moment,
                "deposit.confirmed",
                ACTOR,
                &deposit.owner,
                deposit.amount,
                Some(format!("balance_nanos={balance}")),
            ),
        );
        let summary = deposit.summary("confirmed");
        self.sides[at].deposits.insert(reference.to_owned(), deposit);
        summary
    }

    pub fn cancel(&mut self, at: At, reference: &str) -> String {
        let Some(mut deposit) = self.sides[at].deposits.get(reference).cloned() else {
            return "missing".to_owned();
        };
        if let Some(moment) = &deposit.cancelled {
            return format!("again {moment}");
        }
        if !deposit.pending {
            return "confirmed".to_owned();
        }
        let moment = self.now();
        if self.is_alive(at, &deposit.owner, deposit.wallet) {
            self.awaits(at, &deposit.owner, &moment);
        }
        (deposit.pending, deposit.cancelled) = (false, Some(moment.clone()));
        let audit = entry(
            moment.clone(),
            "deposit.cancelled",
            ACTOR,
            &deposit.owner,
            deposit.amount,
            None,
        );
        self.record(at, audit);
        self.sides[at].deposits.insert(reference.to_owned(), deposit);
        format!("cancelled {moment}")
    }
}

impl Deposit {
    fn summary(&self, how: &str) -> String {
        let confirmed = self.confirmed.as_ref();
        let confirmed = confirmed.map_or_else(|| "-".to_owned(), |(at, balance)| format!("{at} {balance}"));
        format!("{how} {} {} {} {confirmed}", self.id, self.first_balance, self.at)
    }
}
