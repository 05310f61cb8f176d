//! Actions on user wallets, agents and policies in the store, through the typed twins of the scripts, and their answers
//! in words.

use super::ModelFixture;
use super::execute::{Outcome, scope, wrong};
use crate::act::Act;
use crate::model::{At, DESCRIPTION, Limits, USD};
use store::Store;
use store::agent;
use store::agent::freeze::{Freeze, Frozen, FrozenBy, set_frozen};
use store::agent::script::{AgentCreated, Deleted, NewAgent};
use store::policy;
use store::policy::script::{PolicyDeleted, PolicyPrecondition, PolicySet, SetPolicy, delete};
use store::script::change::FieldChange;
use store::script::plan_limit::PlanLimit;
use store::wallet::script::find_or_open_user_wallet;

impl ModelFixture {
    pub(super) async fn agents(&self, act: &Act) -> Outcome {
        let store = self.store(false);
        match act {
            Act::OpenUser { at } => {
                let opened = find_or_open_user_wallet(store, &scope(*at)).await;
                opened
                    .map(|wallet| format!("wallet {}", wallet.number))
                    .map_err(wrong)
            }
            Act::Freeze { at, agent, by, lift } => freeze(store, *at, agent, *by, *lift).await,
            Act::NewAgent { at, agent, most, .. } => {
                let plan = &self.model.plans[at / 2];
                let new = NewAgent {
                    id: agent,
                    name: agent,
                    kind: "custom",
                    description: Some(DESCRIPTION),
                    limit: most.map(|most| PlanLimit {
                        plan,
                        most: Some(most),
                    }),
                };
                Ok(match new.create(store, &scope(*at)).await.map_err(wrong)? {
                    AgentCreated::Done => "created",
                    AgentCreated::TierLimit => "tier_limit",
                    AgentCreated::Exists => "exists",
                    AgentCreated::OtherPlan(_) => "other_plan",
                }
                .to_owned())
            }
            Act::Delete { at, agent } => {
                let deleted = agent::script::delete(store, &scope(*at), agent)
                    .await
                    .map_err(wrong)?;
                Ok(match deleted {
                    Deleted::Done => "deleted",
                    Deleted::Missing => "missing",
                    Deleted::HoldsMoney => "holds_money",
                    Deleted::AwaitsDeposit => "awaits_deposit",
                    Deleted::OpenEscrows => "open_escrows",
                    Deleted::TooManyKeys(_) => "too_many_keys",
                }
                .to_owned())
            }
            Act::Policy { at, agent, limits, n } => {
                set_policy(store, *at, agent.as_deref(), limits, *n).await
            }
            Act::DropPolicy { at, id } => {
                let deleted = delete(store, &scope(*at), id, &PolicyPrecondition::Anything).await;
                Ok(match deleted.map_err(wrong)? {
                    PolicyDeleted::Done => "deleted",
                    PolicyDeleted::Missing => "missing",
                    PolicyDeleted::Unexpected => "mismatch",
                }
                .to_owned())
            }
            other => Err(format!("not about agents: {other:?}")),
        }
    }
}

async fn freeze(store: &Store, at: At, agent: &str, by: FrozenBy, lift: bool) -> Outcome {
    let freeze = if lift { Freeze::Lift(by) } else { Freeze::By(by) };
    let frozen = set_frozen(store, &scope(at), agent, freeze)
        .await
        .map_err(wrong)?;
    Ok(match frozen {
        Frozen::Done => "done",
        Frozen::AlreadySo => "already",
        Frozen::NotPermitted => "not_permitted",
        Frozen::NotFound => "not_found",
    }
    .to_owned())
}

async fn set_policy(store: &Store, at: At, agent: Option<&str>, limits: &Limits, n: u64) -> Outcome {
    let text = |limit: Option<u64>| limit.map(|limit| limit.to_string());
    let cap = u8::from(!limits.disabled).to_string();
    let changes: [FieldChange; 7] = [
        ("cap", Some(cap)),
        ("run", text(limits.run)),
        ("day", text(limits.day)),
        ("month", text(limits.month)),
        ("transaction", text(limits.txn)),
        ("approval", text(limits.approval)),
        ("low_balance", text(limits.low)),
    ];
    let mut defaults: Vec<FieldChange> =
        vec![("name", Some("n".to_owned())), ("currency", Some(USD.to_owned()))];
    defaults.extend(agent.map(|agent| ("agent", Some(agent.to_owned()))));
    let id = format!("pol_{n}");
    let set = SetPolicy {
        agent,
        changes: &changes,
        defaults: &defaults,
        new_id: &id,
        expected: &policy::script::PolicyPrecondition::Anything,
    };
    match set.execute(store, &scope(at)).await.map_err(wrong)? {
        PolicySet::Done(_) => Ok("set".to_owned()),
        PolicySet::TooMany => Ok("too_many".to_owned()),
        PolicySet::Unexpected => Ok("mismatch".to_owned()),
    }
}
