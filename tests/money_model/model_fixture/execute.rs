//! Actions on the store, through the typed twins of the scripts, and their answers in words.

use super::ModelFixture;
use crate::act::{ACTOR, Act, DECIDER, Deposit, Plan, RequestId, Spend, Transfer};
use crate::model::transfers::RECORD_LIFE;
use crate::model::{At, Place, USD, account, keys, mode, realm};
use domain::cap::CapPlan;
use domain::money::Nanos;
use store::deposit::DepositState;
use store::deposit::script::{
    Cancelled, DepositConfirmation, DepositConfirmed, DepositMade, NewDeposit, cancel,
};
use store::intent::{ApproverDecision, IntentRecord};
use store::script::change::Scope;
use store::spend;
use store::spend::deny::deny;
use store::spend::{Injection, PlanCap, SpendStep, Spent};
use store::transfer::{NewTransfer, Transferred};
use store::transit::script::{Delivered, deliver};
use store::wallet::WalletPlace;
use store::{Store, StoreError};

/// A detected prompt injection.
const INJECTION: Injection<'_> = Injection {
    field: "description",
    pattern: "ignore_previous",
};

/// The answer of an action, in words.
pub type Outcome = Result<String, String>;

pub fn wrong(error: impl std::fmt::Debug) -> String {
    format!("{error:?}")
}

pub fn usd(nanos: u64) -> Nanos {
    Nanos::from_stored(nanos)
}

pub fn scope(at: At) -> Scope<'static> {
    Scope {
        account: account(at),
        mode: mode(at),
        actor: ACTOR,
    }
}

impl Place {
    fn place(&self) -> WalletPlace {
        WalletPlace {
            account: account(self.at).to_owned(),
            mode: mode(self.at),
            owner: self.owner.clone(),
            number: self.number,
        }
    }
}

impl Plan {
    fn cap(&self) -> PlanCap<'_> {
        PlanCap {
            name: &self.name,
            cap: CapPlan {
                agents: self.agents,
                tracked: self.tracked.map(usd),
            },
        }
    }
}

impl ModelFixture {
    pub(super) fn store(&self, crash: bool) -> &Store {
        if crash { &self.crashing } else { &self.store }
    }

    pub(super) async fn perform(&self, act: &Act) -> Outcome {
        match act {
            Act::Spend(spend) => self.spend(spend).await,
            Act::Resolve { .. } => self.resolve(act).await,
            Act::Transfer(transfer) => self.transfer(transfer).await,
            Act::Deposit(deposit) => self.deposit(deposit).await,
            Act::Confirm {
                request_id,
                keyed,
                reference,
            } => self.confirm(request_id, *keyed, reference).await,
            Act::Cancel { at, reference } => self.cancel(*at, reference).await,
            Act::Escrow(_) | Act::Fund { .. } | Act::Decide(_) | Act::End { .. } => self.escrow(act).await,
            Act::Deliver { id, half } => self.deliver(id, *half).await,
            agents => self.agents(agents).await,
        }
    }

    async fn spend(&self, spend: &Spend) -> Outcome {
        let (identity, txn, request) = (
            spend.request_id.identity(),
            spend.request_id.txn(),
            spend.request(),
        );
        let new = spend::Spend {
            agent: &spend.agent,
            amount: usd(spend.amount),
            currency: USD,
            run: spend.run.as_deref(),
            recipient: spend.recipient.as_deref(),
            description: spend.description.as_deref(),
            transaction: &txn,
            plan: spend.plan.as_ref().map(Plan::cap),
        };
        let ask = SpendStep::Request {
            identity: &identity,
            at_ms: spend.request_id.at_ms,
            request: &request,
            injection: spend.injection.then_some(INJECTION),
        };
        spent(new.execute(&self.store, &scope(spend.request_id.at), ask).await)
    }

    async fn resolve(&self, act: &Act) -> Outcome {
        let Act::Resolve {
            at,
            id,
            grant,
            stale,
            at_ms,
            plan,
            n,
        } = act
        else {
            return Err("no approval".to_owned());
        };
        let record = IntentRecord::read(&self.store, &realm(*at), id).await;
        let mut record = record.map_err(wrong)?.ok_or("no intent")?;
        if *stale {
            record.head = "00".repeat(32);
        }
        let decision = ApproverDecision {
            granted: *grant,
            by: DECIDER.to_owned(),
            at_ms: *at_ms,
        };
        let scope = Scope {
            actor: DECIDER,
            ..scope(*at)
        };
        if !grant {
            let denied = deny(&self.store, &scope, &record, &decision, Some("no")).await;
            return denied
                .map(|denied| if denied { "denied" } else { "changed" }.to_owned())
                .map_err(wrong);
        }
        let body: serde_json::Value = serde_json::from_str(&record.request).map_err(wrong)?;
        let txn = format!("txn_{n}");
        let again = spend::Spend {
            agent: &record.agent,
            amount: record.amount,
            currency: &record.currency,
            run: body["runId"].as_str(),
            recipient: body["recipient"].as_str(),
            description: record.note.as_deref(),
            transaction: &txn,
            plan: plan.as_ref().map(Plan::cap),
        };
        let ask = SpendStep::Approval {
            record: &record,
            decision: &decision,
            why: None,
        };
        spent(again.execute(&self.store, &scope, ask).await)
    }

    async fn transfer(&self, transfer: &Transfer) -> Outcome {
        let (identity, txn, arrival) = (
            transfer.request_id.identity(),
            transfer.request_id.txn(),
            transfer.request_id.arrival(),
        );
        let (from, to) = (transfer.from.place(), transfer.to.place());
        let new = NewTransfer {
            identity: &identity,
            record_life: transfer.keyed.then_some(RECORD_LIFE),
            from: &from,
            to: &to,
            amount: usd(transfer.amount),
            currency: USD,
            memo: transfer.memo.as_deref(),
            transaction: &txn,
            arrival: &arrival,
            closed: transfer.closed,
            request: "{}",
            at_ms: transfer.request_id.at_ms,
        };
        let done = new
            .execute(self.store(transfer.crash), &scope(transfer.from.at))
            .await;
        Ok(match done.map_err(wrong)? {
            Transferred::Done { balance, at_ms } => format!("done {} {at_ms}", balance.get()),
            Transferred::Blocked(reason) => format!("blocked {}", reason.as_str()),
            Transferred::Known => "known".to_owned(),
            Transferred::Insufficient => "insufficient".to_owned(),
            Transferred::TooMuch => "too_much".to_owned(),
            Transferred::Changed => "changed".to_owned(),
        })
    }

    async fn deposit(&self, new: &Deposit) -> Outcome {
        let (identity, txn, place) = (new.request_id.identity(), new.request_id.txn(), new.to.place());
        let state = if new.pending {
            DepositState::Pending
        } else {
            DepositState::Confirmed
        };
        let deposit = NewDeposit {
            identity: &identity,
            record_life: new.keyed.then_some(RECORD_LIFE),
            wallet: &place,
            closed: new.closed,
            amount: usd(new.amount),
            currency: USD,
            reference: &new.reference,
            state,
            transaction: &txn,
            request: "{}",
            at_ms: new.request_id.at_ms,
        };
        Ok(
            match deposit
                .execute(&self.store, &scope(new.to.at))
                .await
                .map_err(wrong)?
            {
                DepositMade::Done { deposit, again } => {
                    deposit_summary(&deposit, if again { "again" } else { "made" })
                }
                DepositMade::Blocked(reason) => format!("blocked {}", reason.as_str()),
                DepositMade::Known => "known".to_owned(),
                DepositMade::OtherDeposit => "other".to_owned(),
                DepositMade::OtherState { .. } => "other_state".to_owned(),
                DepositMade::TooMuch => "too_much".to_owned(),
                DepositMade::Changed => "changed".to_owned(),
            },
        )
    }

    async fn confirm(&self, request_id: &RequestId, keyed: bool, reference: &str) -> Outcome {
        let identity = request_id.identity();
        let confirmation = DepositConfirmation {
            identity: &identity,
            record_life: keyed.then_some(RECORD_LIFE),
            reference,
            request: "{}",
            at_ms: request_id.at_ms,
        };
        let confirmed = confirmation.execute(&self.store, &scope(request_id.at)).await;
        Ok(match confirmed.map_err(wrong)? {
            DepositConfirmed::Done { deposit, again } => {
                deposit_summary(&deposit, if again { "again" } else { "confirmed" })
            }
            DepositConfirmed::Known => "known".to_owned(),
            DepositConfirmed::Missing => "missing".to_owned(),
            DepositConfirmed::Cancelled => "cancelled".to_owned(),
            DepositConfirmed::Closed => "closed".to_owned(),
            DepositConfirmed::TooMuch => "too_much".to_owned(),
        })
    }

    async fn cancel(&self, at: At, reference: &str) -> Outcome {
        let cancelled = cancel(&self.store, &scope(at), reference).await;
        Ok(match cancelled.map_err(wrong)? {
            Cancelled::Done { deposit, again } => {
                let how = if again { "again" } else { "cancelled" };
                format!("{how} {}", deposit.cancelled_ms.ok_or("no time")?)
            }
            Cancelled::Missing => "missing".to_owned(),
            Cancelled::Confirmed => "confirmed".to_owned(),
        })
    }

    async fn deliver(&self, id: &str, half: bool) -> Outcome {
        let id = self.model.names.show(&self.model.transit_id(id));
        let transit = self.rows.get(&id).ok_or("never seen in transit")?;
        match deliver(&self.store, transit).await {
            Ok(Delivered::Arrived) => {}
            Ok(Delivered::NoRoom) => return Ok("no_room".to_owned()),
            Err(_) => return Ok("error".to_owned()),
        }
        if half {
            let keys = keys(2 * usize::from(transit.from_account == account(2)));
            let row = serde_json::to_string(transit).map_err(wrong)?;
            let mark = store::keys::AccountKeys::new(&transit.to_account);
            let mut back = redis::pipe();
            back.cmd("HSET").arg(keys.bucket().transit()).arg(&id).arg(row);
            back.cmd("PERSIST").arg(mark.bucket().arrived(&id));
            let _: redis::Value = self.store.pipeline(&back).await.map_err(wrong)?;
        }
        Ok("delivered".to_owned())
    }
}

fn spent(answer: Result<Spent, StoreError>) -> Outcome {
    Ok(match answer.map_err(wrong)? {
        Spent::Settled { balance } => {
            let balance = balance.map(|balance| balance.get().to_string());
            format!("settled {}", balance.unwrap_or_default())
        }
        Spent::Pending => "pending".to_owned(),
        Spent::Blocked { reason, intent_id } => format!("blocked {} {intent_id}", reason.as_str()),
        Spent::Known => "known".to_owned(),
        Spent::Changed => "changed".to_owned(),
        Spent::OtherPlan(plan) => format!("other_plan {plan}"),
        Spent::NotFound => "not_found".to_owned(),
        Spent::TooMuch => "too_much".to_owned(),
    })
}

fn deposit_summary(deposit: &store::deposit::Deposit, how: &str) -> String {
    let confirmed = deposit
        .confirmed
        .map(|(at, balance)| format!("{at} {}", balance.get()));
    let confirmed = confirmed.unwrap_or_else(|| "-".to_owned());
    format!(
        "{how} {} {} {} {confirmed}",
        deposit.id,
        deposit.first_balance.get(),
        deposit.at_ms
    )
}
