//! Twins of `policy/*.lua`: set and delete policies. A change takes effect in the same step.

use crate::policy::PolicyRecord;
use crate::script::change::{
    AuditEvent, BUDGET, FIELDS, FieldChange, Scope, ShownField, field_args, shown, unexpected_reply,
};
use crate::script::replaced::{self, replaced};
use crate::script::script;
use crate::{Store, StoreError};
use serde_json::json;

const PRECONDITION: &str = include_str!("precondition.lua");
const STRICTEST: &str = include_str!("strictest.lua");

script! {
    /// Creates or changes a policy.
    pub static SET = "policy_set",
    kind: Change,
    source: [BUDGET, FIELDS, PRECONDITION, STRICTEST, include_str!("set.lua")],
    when_full: Refuse,
    marks: [with_budgets],
    /// `target` is the agent, or the hash of account-wide policies for one of those.
    keys: struct PolicyKeys: String { policy, policies, target },
    /// `changes` are for `fields.lua`.
    args: struct SetArgs<'a>: &'a str {
        policy_id, reach, state, account_policies_max, read_revision, expected, changes[..]
    },
}

script! {
    /// Deletes a policy.
    pub static DELETE = "policy_delete",
    kind: Change,
    source: [PRECONDITION, STRICTEST, include_str!("delete.lua")],
    when_full: Run,
    keys: PolicyKeys,
    args: struct DeleteArgs<'a>: &'a str { policy_id, reach, read_revision, expected },
}

/// Maximum number of account-wide policies of an account and mode.
pub const ACCOUNT_POLICIES_MAX: usize = 100;

/// Maximum number of attempts to set a policy. Each concurrent change of the same policy can cost one.
const SET_ATTEMPTS: usize = 64;
/// Revision of a policy that does not exist.
const NO_REVISION: &str = "0";

impl PolicyKeys {
    fn new(scope: &Scope<'_>, id: &str, agent: Option<&str>) -> Self {
        let realm = scope.realm();
        Self {
            policy: realm.policy(id),
            policies: realm.policies(),
            target: match agent {
                Some(agent) => realm.agent(agent),
                None => realm.account_policies(),
            },
        }
    }
}

/// Arguments of a new or changed policy.
#[derive(Debug)]
pub struct SetPolicy<'a> {
    /// The agent; `None` for an account-wide policy.
    pub agent: Option<&'a str>,
    /// The given fields.
    pub changes: &'a [FieldChange],
    /// The other fields of a new policy.
    pub defaults: &'a [FieldChange],
    /// Id of a new policy, `pol_…`.
    pub new_id: &'a str,
    /// Required state of the policy; otherwise nothing changes.
    pub expected: &'a PolicyPrecondition,
}

/// Outcome of setting a policy.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PolicySet {
    /// In force from the next call on; the new record.
    Done(Box<PolicyRecord>),
    /// The account has [`ACCOUNT_POLICIES_MAX`] account-wide policies.
    TooMany,
    /// The policy does not match `expected`; nothing changed.
    Unexpected,
}

/// Precondition on the policy, to detect concurrent edits.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum PolicyPrecondition {
    /// No precondition.
    #[default]
    Anything,
    /// The policy does not exist.
    None,
    /// The policy exists.
    Some,
    /// The policy has one of these revisions.
    Revisions(Vec<u64>),
}

impl PolicyPrecondition {
    fn word(&self) -> String {
        match self {
            Self::Anything => String::new(),
            Self::None => "none".to_owned(),
            Self::Some => "any".to_owned(),
            Self::Revisions(revisions) => {
                let words: String = revisions.iter().map(|revision| format!("{revision} ")).collect();
                format!(" {words}")
            }
        }
    }
}

impl SetPolicy<'_> {
    /// Sets the policy.
    ///
    /// # Errors
    /// [`StoreError`], also if others keep deleting the policy. Setting an agent's policy is safe to retry.
    pub async fn execute(&self, store: &Store, scope: &Scope<'_>) -> Result<PolicySet, StoreError> {
        let realm = scope.realm();
        for _ in 0..SET_ATTEMPTS {
            let existing: Option<String> = match self.agent {
                Some(agent) => {
                    let record = realm.agent(agent);
                    store
                        .command(redis::cmd("HGET").arg(record).arg("policy_id"))
                        .await?
                }
                None => None,
            };
            if let Some(done) = self.attempt(store, scope, existing.as_deref()).await? {
                return Ok(done);
            }
        }
        Err(StoreError::unexpected("a policy that changes all the time"))
    }

    /// Makes one attempt; `None` if the agent's policy was created, changed or deleted between read and script.
    async fn attempt(
        &self,
        store: &Store,
        scope: &Scope<'_>,
        existing: Option<&str>,
    ) -> Result<Option<PolicySet>, StoreError> {
        let is_new = existing.is_none();
        let id = existing.unwrap_or(self.new_id);
        let changes = match is_new {
            true => [self.defaults, self.changes].concat(),
            false => self.changes.to_vec(),
        };
        let before = match is_new {
            true => Before::none(),
            false => Before::read(store, scope, id, &changes).await?,
        };
        let keys = PolicyKeys::new(scope, id, self.agent);
        let args = SetArgs {
            policy_id: id,
            reach: reach(self.agent),
            state: if is_new { "new" } else { "old" },
            account_policies_max: &ACCOUNT_POLICIES_MAX.to_string(),
            read_revision: &before.revision,
            expected: &self.expected.word(),
            changes: field_args(&changes),
        };
        let mut data = json!({ "policyId": id, "new": is_new, "fields": shown(&changes, form) });
        if !is_new {
            data["previous"] = shown(&before.changed, form).into();
        }
        let event = AuditEvent::new("policy.set", data).with_agent(self.agent);
        let mut reply = scope.execute(store, &SET, event, keys, args).await?;
        match reply.word()?.as_str() {
            "set" => {
                let record = reply.record(PolicyRecord::from_fields)?;
                Ok(Some(PolicySet::Done(Box::new(record))))
            }
            "too_many" => Ok(Some(PolicySet::TooMany)),
            "mismatch" => Ok(Some(PolicySet::Unexpected)),
            "changed" => Ok(None),
            _ => reply.unexpected(),
        }
    }
}

/// A policy as it was read before a change.
struct Before {
    revision: String,
    /// The fields that the change gives another value or removes, with the values that they had.
    changed: Vec<FieldChange>,
}

impl Before {
    fn none() -> Self {
        Self {
            revision: NO_REVISION.to_owned(),
            changed: Vec::new(),
        }
    }

    /// Reads the fields that a change replaces.
    async fn read(
        store: &Store,
        scope: &Scope<'_>,
        id: &str,
        changes: &[FieldChange],
    ) -> Result<Self, StoreError> {
        let before = Self::fields(store, scope, id, &replaced::names(changes)).await?;
        Ok(Self {
            changed: replaced(changes, &before.changed),
            ..before
        })
    }

    /// Reads all fields that the policy has.
    async fn whole(store: &Store, scope: &Scope<'_>, id: &str) -> Result<Self, StoreError> {
        let mut before = Self::fields(store, scope, id, &GIVEN_FIELDS).await?;
        before.changed.retain(|(_, value)| value.is_some());
        Ok(before)
    }

    /// Reads revision and fields in one command. The scripts compare the revision, so the values are those that they
    /// replace.
    async fn fields(
        store: &Store,
        scope: &Scope<'_>,
        id: &str,
        names: &[&'static str],
    ) -> Result<Self, StoreError> {
        let names = [names, &["revision"]].concat();
        let mut changed = replaced::read(store, &scope.realm().policy(id), &names).await?;
        let revision = changed.pop().and_then(|(_, revision)| revision);
        Ok(Self {
            revision: revision.unwrap_or_else(|| NO_REVISION.to_owned()),
            changed,
        })
    }
}

/// Outcome of deleting a policy.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PolicyDeleted {
    /// It applies to no call any more.
    Done,
    /// It does not exist.
    Missing,
    /// It does not match `expected`; nothing changed.
    Unexpected,
}

/// Deletes a policy. The entry names what it had, unless others change it all the time.
/// Safe to retry.
pub async fn delete(
    store: &Store,
    scope: &Scope<'_>,
    id: &str,
    expected: &PolicyPrecondition,
) -> Result<PolicyDeleted, StoreError> {
    for attempt in 0..=replaced::COMPARED_ATTEMPTS {
        let before = Before::whole(store, scope, id).await?;
        if before.revision == NO_REVISION {
            return Ok(PolicyDeleted::Missing);
        }
        let compares = attempt < replaced::COMPARED_ATTEMPTS;
        if let Some(deleted) = try_delete(store, scope, (id, &before), expected, compares).await? {
            return Ok(deleted);
        }
    }
    unexpected_reply(&DELETE)
}

/// Makes one attempt; `None` if the policy was changed after it was read, and the script `compares`.
async fn try_delete(
    store: &Store,
    scope: &Scope<'_>,
    (id, before): (&str, &Before),
    expected: &PolicyPrecondition,
    compares: bool,
) -> Result<Option<PolicyDeleted>, StoreError> {
    let agent = before.changed.iter().find(|(field, _)| *field == "agent");
    let agent = agent.and_then(|(_, agent)| agent.as_deref());
    let keys = PolicyKeys::new(scope, id, agent);
    let args = DeleteArgs {
        policy_id: id,
        reach: reach(agent),
        read_revision: if compares { &before.revision } else { "" },
        expected: &expected.word(),
    };
    let mut data = json!({ "policyId": id });
    if compares {
        data["previous"] = shown(&before.changed, form).into();
    }
    let event = AuditEvent::new("policy.deleted", data).with_agent(agent);
    let mut reply = scope.execute(store, &DELETE, event, keys, args).await?;
    match reply.word()?.as_str() {
        "deleted" => Ok(Some(PolicyDeleted::Done)),
        "missing" => Ok(Some(PolicyDeleted::Missing)),
        "mismatch" => Ok(Some(PolicyDeleted::Unexpected)),
        "changed" => Ok(None),
        _ => reply.unexpected(),
    }
}

/// The fields of a policy that callers give.
const GIVEN_FIELDS: [&str; 10] = [
    "name",
    "agent",
    "currency",
    "cap",
    "run",
    "day",
    "month",
    "transaction",
    "approval",
    "low_balance",
];

/// Returns a field as the audit log shows it.
fn form(field: &'static str) -> ShownField {
    match field {
        "agent" => ShownField::Text("agentId"),
        "cap" => ShownField::Flag("capEnabled"),
        "run" => ShownField::Amount("maxSpendPerRun"),
        "day" => ShownField::Amount("maxSpendPerDay"),
        "month" => ShownField::Amount("maxSpendPerMonth"),
        "transaction" => ShownField::Amount("maxSpendPerTransaction"),
        "approval" => ShownField::Amount("approvalThreshold"),
        "low_balance" => ShownField::Amount("lowBalanceThreshold"),
        other => ShownField::Text(other),
    }
}

const fn reach(agent: Option<&str>) -> &'static str {
    match agent {
        Some(_) => "agent",
        None => "account",
    }
}
