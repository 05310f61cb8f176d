//! Escrows, as they should be (specification "Escrow", decisions D26 to D28).

use super::audit_entries::entry;
use super::{At, Escrow, Model, Movement, Request, Transit, is_remote};
use crate::act::{ACTOR, NewEscrow, RequestId};
use store::keys::Series;
use store::transaction::TransactionType;

impl Model {
    pub fn create(&mut self, new: &NewEscrow) -> String {
        let (at, request_id) = (new.request_id.at, &new.request_id);
        let number = (!new.closed).then(|| self.draw(Series::Escrow, at));
        self.asked_escrows += u64::from(!new.closed);
        if self.is_taken(at, &request_id.id) {
            return "known".to_owned();
        }
        let alive = |place: &super::Place| self.is_alive(place.at, &place.owner, place.number);
        let closed = new.closed || !alive(&new.from) || (new.to.at == at && !alive(&new.to));
        let mut request = Request::new("escrow_create", request_id, &new.from.owner, new.amount);
        let moment = self.now();
        if closed {
            return self.refuse(
                request_id,
                &request_id.id,
                request,
                "wallet_closed",
                ("escrow.create", &new.from.owner),
                "-",
            );
        }
        let number = number.expect("a number");
        request.escrow = Some(number);
        self.escrows.insert(
            self.asked_escrows,
            Escrow {
                number,
                at,
                from: (new.from.owner.clone(), new.from.number),
                to_at: new.to.at,
                to: (new.to.owner.clone(), new.to.number),
                status: "pending",
                amount: new.amount,
                intent: request_id.id.clone(),
                conditions: r#"{"n":1}"#.to_owned(),
                dispute_reason: None,
                made: moment.clone(),
                updated: moment.clone(),
                funded: None,
                resolved: None,
                winner: None,
                siblings: Vec::new(),
            },
        );
        self.sides[at].escrows.insert(number);
        if new.to.at != at {
            self.list_with_payee(number, new);
        }
        self.keep(at, &request_id.id, &moment, request);
        let words = Some("outcome=settled".to_owned());
        self.record(
            at,
            entry(
                moment.clone(),
                "escrow.create",
                ACTOR,
                &new.from.owner,
                new.amount,
                words,
            ),
        );
        format!("done {number} {moment}")
    }

    /// Adds an escrow to the list of a payee in another account, by a row in transit.
    fn list_with_payee(&mut self, number: u64, new: &NewEscrow) {
        let id = format!("escrow:{number}:created");
        self.depart(Transit {
            id: id.clone(),
            from: new.request_id.at,
            to: new.to.at,
            owner: new.to.owner.clone(),
            wallet: new.to.number,
            credit: None,
            escrow: None,
            lists: Some(number),
            intent: None,
            entry: entry(String::new(), "", ACTOR, &new.to.owner, new.amount, None),
        });
        if !new.crash {
            self.deliver(&id, false);
        }
    }

    /// Writes a refused intent and returns the outcome; `owner` is the owner of the wallet that the audit entry names.
    pub fn refuse(
        &mut self,
        request_id: &RequestId,
        id: &str,
        mut request: Request,
        reason: &'static str,
        (kind, owner): (&str, &str),
        status: &str,
    ) -> String {
        let moment = self.now();
        (request.state, request.first, request.reason) = ("blocked", "blocked", reason);
        let amount = request.amount;
        self.keep(request_id.at, id, &moment, request);
        let words = format!("outcome=blocked reason={reason} intentId={id}");
        self.record(
            request_id.at,
            entry(moment, kind, ACTOR, owner, amount, Some(words)),
        );
        format!("blocked {reason} {id} {status}")
    }

    /// The intent of a call on an escrow by the calling account.
    pub fn call(&self, kind: &'static str, request_id: &RequestId, number: u64) -> Request {
        let escrow = &self.escrows[&number];
        let payer = request_id.at == escrow.at;
        let owner = if payer { &escrow.from.0 } else { &escrow.to.0 };
        Request {
            escrow: Some(escrow.number),
            request: format!(r#"{{"escrowId":{}}}"#, escrow.number),
            ..Request::new(kind, request_id, owner, escrow.amount)
        }
    }

    pub fn fund(&mut self, request_id: &RequestId, number: u64) -> String {
        let escrow = self.escrows[&number].clone();
        let (at, remote) = (escrow.at, is_remote(&escrow));
        let payee_alive = self.is_alive(escrow.to_at, &escrow.to.0, escrow.to.1);
        if self.is_taken(at, &request_id.id) {
            return "known".to_owned();
        }
        let mut request = self.call("escrow_fund", request_id, number);
        let payer_alive = self.is_alive(at, &escrow.from.0, escrow.from.1);
        let short = self.balance(at, escrow.from.1) < i128::from(escrow.amount);
        let refused = match () {
            () if escrow.status != "pending" => Some(("escrow_not_pending", true)),
            () if !payer_alive || !payee_alive => Some(("wallet_closed", false)),
            () if self.is_frozen(at, &escrow.from.0) => Some(("frozen", false)),
            () if short => Some(("insufficient_balance", true)),
            () => None,
        };
        if let Some((reason, spare)) = refused {
            let id = if spare { &request_id.spare } else { &request_id.id };
            return self.refuse(
                request_id,
                id,
                request,
                reason,
                ("escrow.fund", &escrow.from.0),
                escrow.status,
            );
        }
        let (moment, id) = (self.now(), self.names.id("txn_"));
        self.post(
            at,
            self.leg_of(
                number,
                TransactionType::EscrowFund,
                &id,
                &moment,
                Some(&request_id.id),
            ),
        );
        let balance = self.balance(at, escrow.from.1).to_string();
        (request.txn, request.balance) = (Some(id), Some(balance.clone()));
        self.keep(at, &request_id.id, &moment, request);
        self.open_for(at, &escrow.from.0, escrow.number);
        if !remote {
            self.open_for(at, &escrow.to.0, escrow.number);
        }
        let after = self.balance(at, escrow.from.1);
        let words = Some(self.debit_words(at, &escrow.from.0, escrow.amount, after));
        self.record(
            at,
            entry(
                moment.clone(),
                "escrow.fund",
                ACTOR,
                &escrow.from.0,
                escrow.amount,
                words,
            ),
        );
        let escrow = self.escrows.get_mut(&number).expect("the escrow");
        escrow.status = "funded";
        (escrow.funded, escrow.updated) = (Some(moment.clone()), moment);
        format!("done {balance}")
    }

    fn open_for(&mut self, at: At, owner: &str, number: u64) {
        self.sides[at]
            .open
            .entry(owner.to_owned())
            .or_default()
            .insert(number);
    }

    /// A movement of an escrow's money: out of and back to the payer's wallet, or to the payee's.
    pub fn leg_of(
        &self,
        number: u64,
        kind: TransactionType,
        id: &str,
        moment: &str,
        intent: Option<&str>,
    ) -> Movement {
        let escrow = &self.escrows[&number];
        let (owner, wallet) = match kind {
            TransactionType::EscrowRelease => escrow.to.clone(),
            _ => escrow.from.clone(),
        };
        Movement {
            at: moment.to_owned(),
            wallet,
            owner,
            kind,
            amount: escrow.amount,
            id: id.to_owned(),
            intent: intent.map(str::to_owned),
            other: format!("escrow:{}", escrow.number),
            memo: None,
        }
    }
}
