//! The end of an escrow, as it should be: one of release and dispute wins, and the operator ends disputes (decisions
//! D26 to D28).

use super::audit_entries::entry;
use super::{Escrow, MOST, MOST_BY_OTHERS, Model, Request, Transit, is_remote};
use crate::act::{ACTOR, Decide, RequestId, Verdict};
use store::transaction::TransactionType;

/// Release and dispute intents that an escrow lists.
const SIBLINGS_MAX: usize = 100;

/// Returns true if this call resolved the escrow.
fn is_winner(escrow: &Escrow, request_id: &RequestId) -> bool {
    let winner = escrow.winner.as_ref();
    winner.is_some_and(|(id, at, _)| (id, *at) == (&request_id.id, request_id.at))
}

impl Model {
    /// Pays the money of an escrow into a wallet of the payer's account, or into the account's own if that wallet is
    /// closed. `None` if the wallet has no room.
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
            (leg.owner, leg.wallet) = (store::keys::USER.to_owned(), self.user_wallet(at, actor));
        }
        if !self.has_room(at, leg.wallet, leg.amount) {
            return None;
        }
        let (moment, id) = (self.now(), self.names.id("txn_"));
        (leg.at, leg.id) = (moment.clone(), id.clone());
        self.post(at, leg);
        Some((moment, id))
    }

    /// Whether the wallet of a payee in another account would hold at most `most` after the payment.
    fn has_payee_room(&self, escrow: &Escrow, most: u64) -> bool {
        let (owner, number) = &escrow.to;
        let user = || self.sides[escrow.to_at].user.as_ref().map(|wallet| wallet.number);
        let receiver = match self.is_alive(escrow.to_at, owner, *number) {
            true => Some(*number),
            false => user(),
        };
        let room = |number| i128::from(most) - self.balance(escrow.to_at, number);
        receiver.is_none_or(|number| room(number) >= i128::from(escrow.amount))
    }

    pub fn decide_escrow(&mut self, decide: &Decide) -> String {
        let (request_id, number) = (&decide.request_id, decide.escrow);
        let escrow = self.escrows[&number].clone();
        let by_payee = request_id.at != escrow.at;
        let (kind, audit, note) = match &decide.verdict {
            Verdict::Release => ("escrow_release", "escrow.release", None),
            Verdict::Dispute(reason) => ("escrow_dispute", "escrow.dispute", reason.clone()),
        };
        let mut request = self.call(kind, request_id, number);
        request.note.clone_from(&note);
        let release = matches!(decide.verdict, Verdict::Release);
        let most = if by_payee { MOST } else { MOST_BY_OTHERS };
        if release && is_remote(&escrow) && escrow.status == "funded" && !self.has_payee_room(&escrow, most) {
            return "too_much".to_owned();
        }
        // A payee's key is claimed in its own account first; the claim ends with its intent.
        let claimed =
            by_payee && self.sides[request_id.at].claims.get(&request_id.id) == Some(&request_id.fp);
        if !claimed && self.is_taken(request_id.at, &request_id.id) {
            return "known".to_owned();
        }
        if by_payee {
            let (id, fp) = (request_id.id.clone(), request_id.fp.clone());
            self.sides[request_id.at].claims.insert(id, fp);
        }
        if is_winner(&escrow, request_id) {
            if !self.finish(number, decide.crash) {
                return "error".to_owned();
            }
            if self.request(request_id.at, &request_id.id).is_some() {
                return "known".to_owned();
            }
        }
        if escrow.status != "funded" {
            return self.refuse_verdict(decide, request, audit, &escrow);
        }
        let local = release && !is_remote(&escrow);
        let mut txn = None;
        let moment = match local {
            false => self.now(),
            true => match self.pay_out(number, TransactionType::EscrowRelease, Some(&request_id.id)) {
                None => return "too_much".to_owned(),
                Some((moment, id)) => {
                    txn = Some(id);
                    moment
                }
            },
        };
        let status = if release { "released" } else { "disputed" };
        self.end_as(number, status, &moment);
        let sibling = (request_id.at, request_id.id.clone());
        let known = self.escrows.get_mut(&number).expect("the escrow");
        known.winner = Some((request_id.id.clone(), request_id.at, kind));
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
            self.keep(request_id.at, &request_id.id, &moment, request);
            if !is_remote(&escrow) {
                return "done".to_owned();
            }
            return self
                .pass(number, status, status, (release, "payer"), None, decide.crash)
                .map_or("done", |()| "done")
                .to_owned();
        }
        let parts = Some((request_id.id.clone(), request));
        let passed = self.pass(number, status, status, (release, ACTOR), parts, decide.crash);
        passed.map_or_else(|| "error".to_owned(), |()| "done".to_owned())
    }

    /// Repeats a call that resolved the escrow: delivers a row left in transit. Returns false if it crashes first.
    fn finish(&mut self, number: u64, crash: bool) -> bool {
        let number = self.escrows[&number].number;
        let ids = ["released", "disputed"].map(|status| format!("escrow:{number}:{status}"));
        for id in ids
            .iter()
            .filter(|id| self.waiting.contains(*id))
            .collect::<Vec<_>>()
        {
            if crash {
                return false;
            }
            self.deliver(id, false);
        }
        true
    }

    fn refuse_verdict(&mut self, decide: &Decide, request: Request, audit: &str, escrow: &Escrow) -> String {
        let request_id = &decide.request_id;
        let (reason, id) = match escrow.status {
            "pending" => ("escrow_not_funded", &request_id.spare),
            "released" => ("escrow_released", &request_id.id),
            "disputed" => ("escrow_disputed", &request_id.id),
            _ => ("escrow_refunded", &request_id.id),
        };
        let known = self.escrows.get_mut(&decide.escrow).expect("the escrow");
        if !is_winner(escrow, request_id) && known.siblings.len() < SIBLINGS_MAX - 1 {
            known.siblings.push((request_id.at, id.clone()));
        }
        self.sides[request_id.at].claims.remove(&request_id.id);
        let owner = if request_id.at == escrow.at {
            &escrow.from.0
        } else {
            &escrow.to.0
        };
        self.refuse(request_id, id, request, reason, (audit, owner), escrow.status)
    }

    /// Sets the escrow's status. Unless disputed, the escrow is over for the wallets of the payer's account.
    fn end_as(&mut self, number: u64, status: &'static str, moment: &str) {
        let escrow = self.escrows.get_mut(&number).expect("the escrow");
        escrow.status = status;
        escrow.updated = moment.to_owned();
        if status == "disputed" {
            return;
        }
        escrow.resolved = Some(moment.to_owned());
        let escrow = escrow.clone();
        self.close_for(escrow.at, &escrow.from.0, escrow.number);
        if !is_remote(&escrow) {
            self.close_for(escrow.at, &escrow.to.0, escrow.number);
        }
    }

    /// Delivers to the payee's account: money, the end of the escrow, an intent. `None` if it stays in transit.
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
        let id = format!("escrow:{}:{name}", escrow.number);
        let kind = format!("escrow.{status}");
        self.depart(Transit {
            id: id.clone(),
            from: escrow.at,
            to: escrow.to_at,
            owner: escrow.to.0.clone(),
            wallet: escrow.to.1,
            credit,
            escrow: (status != "disputed").then_some(escrow.number),
            lists: None,
            intent,
            entry: entry(String::new(), &kind, actor, &escrow.to.0, escrow.amount, None),
        });
        if !crash {
            // Money that finds no room waits.
            self.deliver(&id, false);
        }
        (!crash).then_some(())
    }

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
        if remote && !refund && !self.has_payee_room(&escrow, MOST) {
            return "too_much".to_owned();
        }
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
