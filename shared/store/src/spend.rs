//! Twin of `spend/spend.lua`: a spend that is asked for, or approved after it waited (decision D23).

pub mod deny;
mod intent_args;

use self::intent_args::IntentArgs;
use crate::call::authorize::RUN_LIFE;
use crate::intent::{Decision, IntentPlace, IntentRecord};
use crate::once::Once;
use crate::script::change::{
    AGENT_EXISTS, BUDGET, CHANGE, Event, INTENT, LOW_BALANCE, MONEY, PERIOD, PRUNE, RUN, Scope,
    unexpected_reply,
};
use crate::script::{Script, WhenFull};
use crate::transaction::{NewTransaction, Tail, TransactionType};
use crate::{Store, StoreError};
use domain::cap::CapPlan;
use domain::intent::{Kind, Reason};
use domain::money::Nanos;
use serde_json::{Value, json};
use std::sync::LazyLock;

/// Checks and carries out a spend.
pub static SPEND: LazyLock<Script> = LazyLock::new(|| {
    let fragments = [
        CHANGE,
        BUDGET,
        PERIOD,
        PRUNE,
        RUN,
        MONEY,
        INTENT,
        AGENT_EXISTS,
        LOW_BALANCE,
    ];
    let own = [include_str!("spend/spend.lua")];
    Script::new("spend", WhenFull::Refuse, &[&fragments[..], &own].concat())
        .of_money()
        .with_budgets()
});

/// Denies one that waits for approval.
pub static DENY: LazyLock<Script> = LazyLock::new(|| {
    let parts = [CHANGE, INTENT, include_str!("spend/deny.lua")];
    Script::new("spend_deny", WhenFull::Refuse, &parts).of_money()
});

/// Why a spend can be refused, in order of precedence.
pub const REASONS: &[Reason] = &[
    Reason::InjectionDetected,
    Reason::Frozen,
    Reason::CapDisabled,
    Reason::PerTransactionLimit,
    Reason::PerRunLimit,
    Reason::DailyLimit,
    Reason::MonthlyLimit,
    Reason::PlanAgentLimit,
    Reason::PlanLimit,
    Reason::SpendLimit,
    Reason::InsufficientBalance,
];

/// Characters of a text that the audit log repeats.
pub const TEXT_LOGGED_MAX: usize = 200;

/// A spend.
#[derive(Debug, Clone, Copy)]
pub struct Spend<'a> {
    /// The agent that spends.
    pub agent: &'a str,
    /// Amount.
    pub amount: Nanos,
    /// `USD` or `USDC`.
    pub currency: &'a str,
    /// The run that it belongs to, when it was named.
    pub run: Option<&'a str>,
    /// Payee.
    pub recipient: Option<&'a str>,
    /// What for.
    pub description: Option<&'a str>,
    /// The id of the transaction, should a wallet move.
    pub transaction: &'a str,
    /// The account's plan; `None` where no plan counts (decision D53).
    pub plan: Option<PlanCap<'a>>,
}

/// The limits of a plan: the script refuses those of another plan than the account's.
#[derive(Debug, Clone, Copy)]
pub struct PlanCap<'a> {
    /// The plan's name.
    pub name: &'a str,
    /// Its limits.
    pub cap: CapPlan,
}

/// Why the script runs.
#[derive(Debug, Clone, Copy)]
pub enum SpendStep<'a> {
    /// The spend is asked for.
    Request {
        /// Which request it is.
        once: &'a Once,
        /// When it came.
        at_ms: u64,
        /// What was asked for besides, as JSON: see [`IntentRecord`].
        request: &'a str,
        /// What in its text reads like an attempt to instruct the agent: then it is blocked.
        injection: Option<Injection<'a>>,
    },
    /// It waited, and was approved: all checks run again.
    Approval {
        /// The intent as it was seen.
        record: &'a IntentRecord,
        /// Who approved it.
        decision: &'a Decision,
        /// Why, for the audit log.
        why: Option<&'a str>,
    },
}

/// An attempt to instruct the agent in the text of a spend. The text itself is told to nobody: whoever reads the audit
/// log or an event may be an agent, too.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Injection<'a> {
    /// The field of the request: `description`, `recipient` or `metadata`.
    pub field: &'static str,
    /// The name of the pattern that matched.
    pub pattern: &'a str,
}

/// Outcome of the script.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Spent {
    /// It was charged, and taken from the wallet where the agent has one, which holds `balance` now.
    Settled {
        /// What the wallet holds after it.
        balance: Option<Nanos>,
    },
    /// It waits for approval; nothing was charged.
    Pending,
    /// It was refused, and that is kept under this intent id.
    Blocked {
        /// Why.
        reason: Reason,
        /// Where it is kept: under the request's own id or the spare one.
        intent_id: String,
    },
    /// A request of this id was made before; nothing happened.
    Known,
    /// The intent no longer waits as it was seen; nothing happened.
    Changed,
    /// The limits sent belong to another plan than this one of the account; nothing happened.
    OtherPlan(String),
    /// There is no such agent; nothing happened.
    NotFound,
    /// The counters cannot hold the sum; nothing happened.
    TooMuch,
}

impl Spend<'_> {
    /// Executes the script.
    ///
    /// # Errors
    /// [`StoreError`]; when it may have run, the same request with the same key finds out.
    pub async fn execute(
        &self,
        store: &Store,
        scope: &Scope<'_>,
        ask: SpendStep<'_>,
    ) -> Result<Spent, StoreError> {
        let asked = IntentArgs::new(self, scope, ask);
        let keys = self.keys(scope, &asked);
        let limit = |limit: Option<u64>| limit.map(|limit| limit.to_string()).unwrap_or_default();
        let cap = self.plan.map_or_else(CapPlan::default, |plan| plan.cap);
        let mut args = vec![
            self.plan.map_or("", |plan| plan.name).to_owned(),
            limit(cap.agents),
            limit(cap.tracked.map(Nanos::get)),
            self.amount.get().to_string(),
            asked.head.to_owned(),
            asked.heads.clone(),
            asked.id.to_owned(),
            asked.spare_id.to_owned(),
            self.run.unwrap_or_default().to_owned(),
            RUN_LIFE.as_millis().to_string(),
            self.words(asked.id),
            asked.injection.map(|_| "1".to_owned()).unwrap_or_default(),
        ];
        args.extend(asked.fields.iter().cloned());
        let args: Vec<&str> = args.iter().map(String::as_str).collect();
        let event = Event {
            kind: asked.event,
            agent: Some(self.agent),
            data: self.audit_data(&asked),
        };
        let reply = scope.execute(store, &SPEND, event, &keys, &args).await?;
        parse(&reply)
    }

    fn keys(&self, scope: &Scope<'_>, asked: &IntentArgs<'_>) -> Vec<String> {
        let (account, mode) = (scope.keys(), scope.mode);
        let place = IntentPlace {
            kind: Kind::Spend.as_str(),
            agent: self.agent,
        };
        let mut keys = vec![account.transactions(mode)];
        keys.extend(account.leg(mode, self.agent, TransactionType::Spend.as_str()));
        keys.push(account.intent(mode, asked.id));
        keys.push(account.intent(mode, asked.spare_id));
        keys.extend(place.index(&account, mode));
        keys.push(match self.run {
            Some(run) => account.run(mode, self.agent, run),
            // Declared and not touched.
            None => account.agent(mode, self.agent),
        });
        keys.push(account.agent_keys(self.agent));
        keys.push(account.runs(mode, self.agent));
        keys.push(account.all_runs(mode));
        keys
    }

    /// The words of the transaction.
    fn words(&self, intent: &str) -> String {
        let new = NewTransaction {
            id: self.transaction,
            kind: TransactionType::Spend,
            owner: self.agent,
            intent: Some(intent),
            currency: self.currency,
            tail: Tail {
                counterparty: self.recipient.map(str::to_owned),
                memo: self.description.map(str::to_owned),
            },
        };
        new.words()
    }

    /// What the audit log tells.
    fn audit_data(&self, asked: &IntentArgs<'_>) -> Value {
        let text = |text: Option<&str>| text.filter(|_| asked.injection.is_none()).map(beginning);
        let mut data = json!({
            "intentId": asked.id,
            "amount": self.amount,
            "amountNanos": self.amount.get().to_string(),
            "currency": self.currency,
            "recipient": text(self.recipient),
            "description": text(self.description),
            "runId": self.run,
        });
        let more = [
            ("why", asked.why.map(Value::from)),
            (
                "injection",
                asked
                    .injection
                    .map(|found| json!({ "field": found.field, "pattern": found.pattern })),
            ),
        ];
        if let Some(data) = data.as_object_mut() {
            let given = more.into_iter().filter_map(|(name, value)| Some((name, value?)));
            data.extend(given.map(|(name, value)| (name.to_owned(), value)));
        }
        data
    }
}

/// The first [`TEXT_LOGGED_MAX`] characters: the intent has the whole text.
fn beginning(text: &str) -> String {
    text.chars().take(TEXT_LOGGED_MAX).collect()
}

fn parse(reply: &[String]) -> Result<Spent, StoreError> {
    let words: Vec<&str> = reply.iter().map(String::as_str).collect();
    let spent = match words.as_slice() {
        ["settled", "", _policy] => Some(Spent::Settled { balance: None }),
        ["settled", balance, _policy] => balance.parse().ok().map(|nanos| Spent::Settled {
            balance: Some(Nanos::from_stored(nanos)),
        }),
        ["pending"] => Some(Spent::Pending),
        ["blocked", reason, intent_id] => Reason::parse(reason).map(|reason| Spent::Blocked {
            reason,
            intent_id: (*intent_id).to_owned(),
        }),
        ["known"] => Some(Spent::Known),
        ["changed"] => Some(Spent::Changed),
        ["other_plan", plan] => Some(Spent::OtherPlan((*plan).to_owned())),
        ["not_found"] => Some(Spent::NotFound),
        ["too_much"] => Some(Spent::TooMuch),
        _ => None,
    };
    spent.map_or_else(|| unexpected_reply(&SPEND), Ok)
}

#[cfg(test)]
mod tests {
    use super::*;
    use domain::check::CheckName;

    #[test]
    fn every_reason_of_a_spend_is_a_check_in_the_same_order() {
        let names = REASONS
            .iter()
            .map(|reason| CheckName::parse(reason.as_str()).unwrap());
        assert!(names.collect::<Vec<_>>().is_sorted());
    }
}
