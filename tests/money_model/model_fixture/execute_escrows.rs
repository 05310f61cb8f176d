//! Actions on escrows in the store, through the typed twins of the scripts, and their answers in words.

use super::ModelFixture;
use super::execute::{Outcome, scope, usd, wrong};
use crate::act::{Act, Decide, NewEscrow, RequestId, Verdict};
use crate::model::{Place, USD, account};
use store::StoreError;
use store::escrow::script::{self as script, CallOutcome, DisputeEnded, Winner, decide, end_dispute, fund};
use store::escrow::{Escrow, EscrowStatus, Party};
use store::idempotency::RequestIdentity;

impl RequestId {
    fn requester<'a>(&self, identity: &'a RequestIdentity) -> script::Requester<'a> {
        script::Requester {
            scope: scope(self.at),
            identity,
            at_ms: self.at_ms,
        }
    }
}

impl Place {
    fn party(&self) -> Party {
        Party {
            account: account(self.at).to_owned(),
            owner: self.owner.clone(),
            wallet: self.number,
        }
    }
}

impl ModelFixture {
    pub(super) async fn escrow(&self, act: &Act) -> Outcome {
        match act {
            Act::Escrow(new) => self.create(new).await,
            Act::Fund { request_id, escrow } => {
                let (escrow, identity) = (self.read(*escrow).await?, request_id.identity());
                let called = fund(self.store(false), &request_id.requester(&identity), &escrow).await;
                Ok(summary(called.map_err(wrong)?, |balance| {
                    format!("done {}", balance.get())
                }))
            }
            Act::Decide(verdict) => self.decide(verdict).await,
            Act::End {
                escrow,
                refund,
                crash,
            } => {
                let escrow = self.read(*escrow).await?;
                let winner = if *refund { Winner::Payer } else { Winner::Payee };
                Ok(
                    match end_dispute(self.store(*crash), &escrow, winner)
                        .await
                        .map_err(wrong)?
                    {
                        DisputeEnded::Done(status) => format!("done {}", status.as_str()),
                        DisputeEnded::WrongState(status) => format!("wrong {}", status.as_str()),
                        DisputeEnded::TooMuch => "too_much".to_owned(),
                    },
                )
            }
            other => Err(format!("no escrow: {other:?}")),
        }
    }

    async fn read(&self, number: u64) -> Result<Escrow, String> {
        let known = self.model.escrows.get(&number);
        let number = known.ok_or_else(|| format!("no escrow {number}"))?.number;
        let escrow = Escrow::read(self.store(false), number).await;
        escrow
            .map_err(wrong)?
            .ok_or_else(|| format!("no escrow {number}"))
    }

    async fn create(&self, new: &NewEscrow) -> Outcome {
        let (payer, payee, identity) = (new.from.party(), new.to.party(), new.request_id.identity());
        let escrow = script::NewEscrow {
            payer: &payer,
            payee: &payee,
            amount: usd(new.amount),
            currency: USD,
            conditions: r#"{"n":1}"#,
        };
        let requester = new.request_id.requester(&identity);
        let made = match new.closed {
            true => escrow.refuse(self.store(false), &requester).await,
            false => escrow.create(self.store(new.crash), &requester).await,
        };
        Ok(summary(made.map_err(wrong)?, |made| {
            format!("done {} {}", made.number, made.at_ms)
        }))
    }

    async fn decide(&self, act: &Decide) -> Outcome {
        let (escrow, identity) = (self.read(act.escrow).await?, act.request_id.identity());
        let verdict = match &act.verdict {
            Verdict::Release => script::PartyDecision::Release,
            Verdict::Dispute(reason) => script::PartyDecision::Dispute(reason.as_deref()),
        };
        let called = decide(
            self.store(act.crash),
            &act.request_id.requester(&identity),
            &escrow,
            verdict,
        )
        .await;
        // A payee's answer needs the delivered row.
        match called {
            Ok(called) => Ok(summary(called, |()| "done".to_owned())),
            Err(error @ StoreError::OverBudget { .. }) => Err(wrong(error)),
            Err(_) => Ok("error".to_owned()),
        }
    }
}

fn summary<T>(called: CallOutcome<T>, done: impl Fn(T) -> String) -> String {
    match called {
        CallOutcome::Done(what) => done(what),
        CallOutcome::Blocked(blocked) => {
            let status = blocked.status.map_or("-", EscrowStatus::as_str);
            format!("blocked {} {} {status}", blocked.reason.as_str(), blocked.intent)
        }
        CallOutcome::Known => "known".to_owned(),
        CallOutcome::TooMuch => "too_much".to_owned(),
    }
}
