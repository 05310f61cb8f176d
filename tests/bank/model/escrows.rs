//! Escrows, as they should be (specification "Escrow", decisions D26 to D28).

use super::spends::entry;
use super::{At, Escrow, Model, Movement, Request, Transit, is_remote};
use crate::act::{ACTOR, Asked, Decide, NewEscrow, Verdict};
use shared::store::transaction::TransactionType;

/// Release and dispute intents that an escrow lists.
const SIBLINGS_MAX: usize = 100;

impl Model {
    pub fn create(&mut self, new: &NewEscrow) -> String {
        let (at, asked) = (new.asked.at, &new.asked);
        if !new.closed {
            self.escrow_number += 1;
        }
        if self.request(at, &asked.id).is_some() {
            return "known".to_owned();
        }
        let alive = |place: &super::Place| self.is_alive(place.at, &place.owner, place.number);
        let closed = new.closed || !alive(&new.from) || (new.to.at == at && !alive(&new.to));
        let mut request = Request::new("escrow_create", asked, &new.from.owner, new.amount);
        let moment = self.now();
        if closed {
            return self.refuse(
                asked,
                &asked.id,
                request,
                "wallet_closed",
                ("escrow.create", &new.from.owner),
                "-",
            );
        }
        let number = self.escrow_number;
        request.escrow = Some(number);
        self.escrows.insert(
            number,
            Escrow {
                at,
                from: (new.from.owner.clone(), new.from.number),
                to_at: new.to.at,
                to: (new.to.owner.clone(), new.to.number),
                status: "pending",
                amount: new.amount,
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
        self.sides[new.to.at].escrows.insert(number);
        self.keep(at, &asked.id, &moment, request);
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

    /// Keeps a refused intent, and says so; `owner` is whose wallet the audit log names.
    fn refuse(
        &mut self,
        asked: &Asked,
        id: &str,
        mut request: Request,
        reason: &'static str,
        (kind, owner): (&str, &str),
        status: &str,
    ) -> String {
        let moment = self.now();
        (request.state, request.first, request.reason) = ("blocked", "blocked", reason);
        let amount = request.amount;
        self.keep(asked.at, id, &moment, request);
        let words = format!("outcome=blocked reason={reason} intentId={id}");
        self.record(asked.at, entry(moment, kind, ACTOR, owner, amount, Some(words)));
        format!("blocked {reason} {id} {status}")
    }

    /// The intent of a call on an escrow by the account that asks.
    fn call(&self, kind: &'static str, asked: &Asked, number: u64) -> Request {
        let escrow = &self.escrows[&number];
        let payer = asked.at == escrow.at;
        let owner = if payer { &escrow.from.0 } else { &escrow.to.0 };
        Request {
            escrow: Some(number),
            request: format!(r#"{{"escrowId":{number}}}"#),
            ..Request::new(kind, asked, owner, escrow.amount)
        }
    }

    pub fn fund(&mut self, asked: &Asked, number: u64) -> String {
        let escrow = self.escrows[&number].clone();
        let (at, remote) = (escrow.at, is_remote(&escrow));
        let payee_alive = self.is_alive(escrow.to_at, &escrow.to.0, escrow.to.1);
        // The payee's note of what looks like it will be funded is written first, and stays when it is not.
        let covers = |wallet: &super::Wallet| self.balance(at, wallet.number) >= i128::from(escrow.amount);
        let hopeful =
            self.wallet(at, &escrow.from.0).is_some_and(covers) && !self.is_frozen(at, &escrow.from.0);
        if remote && payee_alive && hopeful && escrow.status == "pending" {
            self.open_for(escrow.to_at, &escrow.to.0, number);
        }
        if self.request(at, &asked.id).is_some() {
            return "known".to_owned();
        }
        let mut request = self.call("escrow_fund", asked, number);
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
            let id = if spare { &asked.spare } else { &asked.id };
            return self.refuse(
                asked,
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
            self.leg_of(number, TransactionType::EscrowFund, &id, &moment, Some(&asked.id)),
        );
        let balance = self.balance(at, escrow.from.1).to_string();
        (request.txn, request.balance) = (Some(id), Some(balance.clone()));
        self.keep(at, &asked.id, &moment, request);
        self.open_for(at, &escrow.from.0, number);
        self.open_for(escrow.to_at, &escrow.to.0, number);
        let words = Some("outcome=settled".to_owned());
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
    fn leg_of(
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
            other: format!("escrow:{number}"),
            memo: None,
        }
    }

    /// Money comes out of an escrow into a wallet of the payer's account; into the account's own when that one is closed.
    /// `None` when the wallet cannot hold it.
    fn pay_out(
        &mut self,
        number: u64,
        kind: TransactionType,
        intent: Option<&str>,
    ) -> Option<(String, String)> {
        let at = self.escrows[&number].at;
        let mut leg = self.leg_of(number, kind, "", "", intent);
        if !self.is_alive(at, &leg.owner, leg.wallet) {
            let actor = if intent.is_some() { ACTOR } else { "operator" };
            (leg.owner, leg.wallet) = (shared::store::keys::USER.to_owned(), self.user_wallet(at, actor));
        }
        if !self.has_room(at, leg.wallet, leg.amount) {
            return None;
        }
        let (moment, id) = (self.now(), self.names.id("txn_"));
        (leg.at, leg.id) = (moment.clone(), id.clone());
        self.post(at, leg);
        Some((moment, id))
    }

    pub fn decide_escrow(&mut self, decide: &Decide) -> String {
        let (asked, number) = (&decide.asked, decide.escrow);
        let escrow = self.escrows[&number].clone();
        let by_payee = asked.at != escrow.at;
        let (kind, audit, note) = match &decide.verdict {
            Verdict::Release => ("escrow_release", "escrow.release", None),
            Verdict::Dispute(reason) => ("escrow_dispute", "escrow.dispute", reason.clone()),
        };
        let mut request = self.call(kind, asked, number);
        request.note.clone_from(&note);
        if !by_payee && self.request(asked.at, &asked.id).is_some() {
            return "known".to_owned();
        }
        if escrow
            .winner
            .as_ref()
            .is_some_and(|(id, at, _)| (id, *at) == (&asked.id, asked.at))
        {
            return self.finish(&escrow, number, decide.crash);
        }
        if escrow.status != "funded" {
            return self.refuse_verdict(decide, request, audit, &escrow);
        }
        let release = matches!(decide.verdict, Verdict::Release);
        let local = release && !is_remote(&escrow);
        let mut txn = None;
        let moment = match local {
            false => self.now(),
            true => match self.pay_out(number, TransactionType::EscrowRelease, Some(&asked.id)) {
                None => return "too_much".to_owned(),
                Some((moment, id)) => {
                    txn = Some(id);
                    moment
                }
            },
        };
        let status = if release { "released" } else { "disputed" };
        self.end_as(number, status, &moment);
        let sibling = (asked.at, asked.id.clone());
        let known = self.escrows.get_mut(&number).expect("the escrow");
        known.winner = Some((asked.id.clone(), asked.at, kind));
        known.dispute_reason = note;
        known.siblings.push(sibling);
        known.siblings.truncate(SIBLINGS_MAX);
        let actor = if by_payee { "payee" } else { ACTOR };
        let words = Some("outcome=settled".to_owned());
        self.record(
            escrow.at,
            entry(moment.clone(), audit, actor, &escrow.from.0, escrow.amount, words),
        );
        if !by_payee {
            request.txn = txn;
            self.keep(asked.at, &asked.id, &moment, request);
            if !release || local {
                return "done".to_owned();
            }
            return self
                .pass(number, status, status, (release, "payer"), None, decide.crash)
                .map_or("done", |()| "done")
                .to_owned();
        }
        let parts = Some((asked.id.clone(), request));
        let passed = self.pass(number, status, status, (release, ACTOR), parts, decide.crash);
        passed.map_or_else(|| "error".to_owned(), |()| "done".to_owned())
    }

    /// A repeated call of a payee whose first one won: what it left in transit is delivered.
    fn finish(&mut self, escrow: &Escrow, number: u64, crash: bool) -> String {
        let ids = ["released", "disputed"].map(|status| format!("escrow:{number}:{status}"));
        debug_assert!(is_remote(escrow), "others find their intent");
        for id in ids {
            if self.waiting.contains(&id) && (crash || !self.deliver(&id, false)) {
                return "error".to_owned();
            }
        }
        "known".to_owned()
    }

    fn refuse_verdict(&mut self, decide: &Decide, request: Request, audit: &str, escrow: &Escrow) -> String {
        let asked = &decide.asked;
        let (reason, id) = match escrow.status {
            "pending" => ("escrow_not_funded", &asked.spare),
            "released" => ("escrow_released", &asked.id),
            "disputed" => ("escrow_disputed", &asked.id),
            _ => ("escrow_refunded", &asked.id),
        };
        let known = self.escrows.get_mut(&decide.escrow).expect("the escrow");
        if known.siblings.len() < SIBLINGS_MAX - 1 {
            known.siblings.push((asked.at, id.clone()));
        }
        if self.request(asked.at, id).is_some() {
            return "known".to_owned();
        }
        let owner = if asked.at == escrow.at {
            &escrow.from.0
        } else {
            &escrow.to.0
        };
        self.refuse(asked, id, request, reason, (audit, owner), escrow.status)
    }

    /// The escrow's status changes; one that is not disputed is over for the wallets of the payer's account.
    fn end_as(&mut self, number: u64, status: &'static str, moment: &str) {
        let escrow = self.escrows.get_mut(&number).expect("the escrow");
        escrow.status = status;
        escrow.updated = moment.to_owned();
        if status == "disputed" {
            return;
        }
        escrow.resolved = Some(moment.to_owned());
        let escrow = escrow.clone();
        self.close_for(escrow.at, &escrow.from.0, number);
        if !is_remote(&escrow) {
            self.close_for(escrow.at, &escrow.to.0, number);
        }
    }

    /// What the payee's account gets: money, the end of the escrow, an intent. `None` when it is stuck on the way.
    fn pass(
        &mut self,
        number: u64,
        name: &str,
        status: &str,
        (money, actor): (bool, &str),
        intent: Option<(String, Request)>,
        crash: bool,
    ) -> Option<()> {
        let escrow = self.escrows[&number].clone();
        let txn = money.then(|| self.names.id("txn_"));
        let credit = txn
            .as_ref()
            .map(|id| self.leg_of(number, TransactionType::EscrowRelease, id, "", None));
        let intent = intent.map(|(id, request)| (id, Request { txn, ..request }));
        let id = format!("escrow:{number}:{name}");
        let kind = format!("escrow.{status}");
        self.depart(Transit {
            id: id.clone(),
            from: escrow.at,
            to: escrow.to_at,
            owner: escrow.to.0.clone(),
            wallet: escrow.to.1,
            credit,
            escrow: (status != "disputed").then_some(number),
            intent,
            entry: entry(String::new(), &kind, actor, &escrow.to.0, escrow.amount, None),
        });
        (!crash && self.deliver(&id, false)).then_some(())
    }

    /// The operator ends a dispute.
    pub fn end_dispute(&mut self, number: u64, refund: bool, crash: bool) -> String {
        let escrow = self.escrows[&number].clone();
        if escrow.status != "disputed" {
            return format!("wrong {}", escrow.status);
        }
        let (status, kind) = match refund {
            true => ("refunded", TransactionType::EscrowRefund),
            false => ("released", TransactionType::EscrowRelease),
        };
        let remote = is_remote(&escrow);
        let moment = match refund || !remote {
            false => self.now(),
            true => match self.pay_out(number, kind, None) {
                None => return "too_much".to_owned(),
                Some((moment, _)) => moment,
            },
        };
        self.end_as(number, status, &moment);
        let words = Some("outcome=settled".to_owned());
        self.record(
            escrow.at,
            entry(
                moment,
                "escrow.resolve",
                "operator",
                &escrow.from.0,
                escrow.amount,
                words,
            ),
        );
        if remote {
            let _stuck = self.pass(number, "resolved", status, (!refund, "operator"), None, crash);
        }
        format!("done {status}")
    }
}
