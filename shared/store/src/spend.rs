//! Twin of `spend/spend.lua`: a spend, when requested or when approved after waiting (decision D23).

pub mod deny;
mod intent_args;

pub use self::deny::DENY;
use self::intent_args::IntentArgs;
use crate::call::authorize::RUN_LIFE_MS;
use crate::idempotency::RequestIdentity;
use crate::intent::{ApproverDecision, IntentLists, IntentRecord};
use crate::script::change::{
    AGENT_EXISTS, AuditEvent, BUDGET, CAP, INTENT, INTENT_BUDGET, KEPT_TEXT, LIVE_RUNS, LOW_BALANCE, MONEY,
    PERIOD, PRUNE, RUN, Scope,
};
use crate::script::script;
use crate::transaction::{NewTransaction, TransactionText, TransactionType};
use crate::{Store, StoreError};
use domain::cap::CapPlan;
use domain::check::CheckName;
use domain::intent::{IntentKind, Reason};
use domain::money::Nanos;
use serde_json::{Value, json};
use std::sync::LazyLock;

script! {
    /// Checks and executes a spend.
    pub static SPEND = "spend",
    kind: Change,
    source: [
        BUDGET, PERIOD, PRUNE, CAP, LIVE_RUNS, RUN, KEPT_TEXT, MONEY, INTENT, INTENT_BUDGET, AGENT_EXISTS, LOW_BALANCE,
        include_str!("spend/spend.lua"),
    ],
    when_full: Refuse,
    marks: [confirmed, with_budgets],
    /// `run` is the agent in a spend without a run, and is then not used.
    keys: struct SpendKeys: String {
        transactions, agent[4], intent, spare_intent, intent_index[5], pending_intents, run, agent_keys, agent_runs,
        account_runs
    },
    /// `agents` and `tracked` are limits of the plan `plan`. Amounts are nano-USD, `run_life` is in ms.
    args: struct SpendArgs<'a>: &'a str {
        plan, agents, tracked, amount, head, heads, intent, spare_intent, run, run_life, transaction_text, injection,
        fields[..]
    },
}

/// Reasons to refuse a spend, in order of precedence: those that come from a check.
pub static REASONS: LazyLock<Vec<Reason>> = LazyLock::new(|| {
    let all = Reason::ALL.iter().copied();
    all.filter(|reason| CheckName::parse(reason.as_str()).is_some())
        .collect()
});

/// Reason to refuse an approval, which precedes all [`REASONS`]: the agent's wallet is not the one it had when the
/// spend was requested.
pub const OTHER_WALLET: Reason = Reason::WalletClosed;

/// Characters of a text that the audit log repeats.
pub const TEXT_LOGGED_MAX: usize = 200;

/// Arguments of a spend.
#[derive(Debug, Clone, Copy)]
pub struct Spend<'a> {
    /// Agent id.
    pub agent: &'a str,
    /// Debited from the wallet, and charged to the counters of run, day, month and plan.
    pub amount: Nanos,
    /// `USD` or `USDC`.
    pub currency: &'a str,
    /// Run id, if the request names one.
    pub run: Option<&'a str>,
    /// Payee.
    pub recipient: Option<&'a str>,
    /// The caller's description.
    pub description: Option<&'a str>,
    /// Transaction id, used if a wallet changes.
    pub transaction: &'a str,
    /// The account's plan; `None` where no plan applies (decision D53).
    pub plan: Option<PlanCap<'a>>,
}

/// Limits of a plan. The script refuses them if the account has another plan.
#[derive(Debug, Clone, Copy)]
pub struct PlanCap<'a> {
    /// Compared with the account's plan by the script.
    pub name: &'a str,
    /// Monthly limits of the plan.
    pub cap: CapPlan,
}

/// Occasion on which the script runs.
#[derive(Debug, Clone, Copy)]
pub enum SpendStep<'a> {
    /// A new spend.
    Request {
        /// Identity of the request.
        identity: &'a RequestIdentity,
        /// Time of the request, in ms since 1970.
        at_ms: u64,
        /// The request's other fields, as JSON: see [`IntentRecord`].
        request: &'a str,
        /// Suspected prompt injection in its text; the spend is then blocked.
        injection: Option<Injection<'a>>,
    },
    /// An approved waiting spend: all checks are repeated.
    Approval {
        /// The intent as read.
        record: &'a IntentRecord,
        /// The granted decision, with approver and time.
        decision: &'a ApproverDecision,
        /// Comment of the approver, for the audit log.
        why: Option<&'a str>,
    },
}

/// Suspected prompt injection in a spend. The text itself is never returned or logged, since a reader of the audit log
/// or of an event may be an agent too.
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
    /// Charged, and debited from the agent's wallet if it has one.
    Settled {
        /// Balance afterwards.
        balance: Option<Nanos>,
    },
    /// Waits for approval; nothing is charged.
    Pending,
    /// Refused; an intent records it.
    Blocked {
        /// Why.
        reason: Reason,
        /// Id of that intent: the request's own id or the spare one.
        intent_id: String,
    },
    /// A request with this id exists; nothing changed.
    Known,
    /// The intent does not wait as it did when it was read; nothing changed.
    Changed,
    /// The account has this other plan; nothing changed. Retry with its limits.
    OtherPlan(String),
    /// The agent does not exist; nothing changed.
    NotFound,
    /// A counter would overflow; nothing changed.
    TooMuch,
}

impl Spend<'_> {
    /// Executes the script.
    ///
    /// # Errors
    /// [`StoreError`]; if the script may have run, a retry with the same key returns the outcome.
    pub async fn execute(
        &self,
        store: &Store,
        scope: &Scope<'_>,
        step: SpendStep<'_>,
    ) -> Result<Spent, StoreError> {
        let intent_args = IntentArgs::new(self, scope, step);
        let keys = self.keys(scope, &intent_args);
        let limit = |limit: Option<u64>| limit.map(|limit| limit.to_string()).unwrap_or_default();
        let cap = self.plan.map_or_else(CapPlan::default, |plan| plan.cap);
        let (agents, tracked) = (limit(cap.agents), limit(cap.tracked.map(Nanos::get)));
        let (amount, run_life) = (self.amount.get().to_string(), RUN_LIFE_MS.to_string());
        let transaction_text = self.transaction_text(intent_args.id);
        let args = SpendArgs {
            plan: self.plan.map_or("", |plan| plan.name),
            agents: &agents,
            tracked: &tracked,
            amount: &amount,
            head: intent_args.head,
            heads: &intent_args.heads,
            intent: intent_args.id,
            spare_intent: intent_args.spare_id,
            run: self.run.unwrap_or_default(),
            run_life: &run_life,
            transaction_text: &transaction_text,
            injection: intent_args.injection.map_or("", |_| "1"),
            fields: intent_args.fields.iter().map(String::as_str).collect(),
        };
        let event =
            AuditEvent::new(intent_args.event, self.audit_details(&intent_args)).with_agent(self.agent);
        let mut reply = scope.execute(store, &SPEND, event, keys, args).await?;
        match reply.word()?.as_str() {
            "settled" => Ok(Spent::Settled {
                balance: reply.optional_nanos()?,
            }),
            "pending" => Ok(Spent::Pending),
            "blocked" => Ok(Spent::Blocked {
                reason: reply.parsed(Reason::parse)?,
                intent_id: reply.word()?,
            }),
            "known" => Ok(Spent::Known),
            "changed" => Ok(Spent::Changed),
            "other_plan" => reply.word().map(Spent::OtherPlan),
            "not_found" => Ok(Spent::NotFound),
            "too_much" => Ok(Spent::TooMuch),
            _ => reply.unexpected(),
        }
    }

    fn keys(&self, scope: &Scope<'_>, intent_args: &IntentArgs<'_>) -> SpendKeys {
        let realm = scope.realm();
        let lists = IntentLists {
            kind: IntentKind::Spend.as_str(),
            agent: self.agent,
        };
        let [intent_index @ .., pending_intents] = lists.keys(&realm);
        SpendKeys {
            transactions: realm.transactions(),
            agent: realm.leg(self.agent, TransactionType::Spend.as_str()),
            intent: realm.intent(intent_args.id),
            spare_intent: realm.intent(intent_args.spare_id),
            intent_index,
            pending_intents,
            run: match self.run {
                Some(run) => realm.run(self.agent, run),
                None => realm.agent(self.agent),
            },
            agent_keys: realm.keys().agent_keys(self.agent),
            agent_runs: realm.runs(self.agent),
            account_runs: realm.all_runs(),
        }
    }

    /// Composes the text of the transaction, which the script completes.
    fn transaction_text(&self, intent: &str) -> String {
        let new = NewTransaction {
            id: self.transaction,
            kind: TransactionType::Spend,
            owner: self.agent,
            intent: Some(intent),
            currency: self.currency,
            tail: TransactionText {
                counterparty: self.recipient.map(str::to_owned),
                memo: self.description.map(str::to_owned),
            },
        };
        new.words()
    }

    /// Composes the audit details.
    fn audit_details(&self, intent_args: &IntentArgs<'_>) -> Value {
        let text = |text: Option<&str>| text.filter(|_| intent_args.injection.is_none()).map(beginning);
        let mut data = json!({
            "intentId": intent_args.id,
            "amount": self.amount,
            "amountNanos": self.amount.get().to_string(),
            "currency": self.currency,
            "recipient": text(self.recipient),
            "description": text(self.description),
            "runId": self.run,
        });
        let more = [
            ("why", intent_args.why.map(Value::from)),
            (
                "injection",
                intent_args
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

/// Returns the first [`TEXT_LOGGED_MAX`] characters; the intent has the whole text.
fn beginning(text: &str) -> String {
    text.chars().take(TEXT_LOGGED_MAX).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_reasons_of_a_spend_are_its_checks_in_the_same_order() {
        let names = REASONS
            .iter()
            .map(|reason| CheckName::parse(reason.as_str()).unwrap());
        assert!(names.collect::<Vec<_>>().is_sorted());
        let ends = (REASONS.first(), REASONS.last());
        assert_eq!(
            ends,
            (
                Some(&Reason::InjectionDetected),
                Some(&Reason::InsufficientBalance)
            )
        );
        assert!(!REASONS.contains(&Reason::ApprovalDenied));
    }

    #[test]
    fn the_beginning_of_a_text_is_cut_by_characters() {
        assert_eq!(beginning("é"), "é");
        let long = "é".repeat(TEXT_LOGGED_MAX + 1);
        assert_eq!(beginning(&long), "é".repeat(TEXT_LOGGED_MAX));
    }
}
