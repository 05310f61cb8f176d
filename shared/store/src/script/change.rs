//! Common parts of all changes of an account: the fragments, and the first keys and arguments.

use super::Script;
use super::names::Inputs;
use super::reply::ScriptReply;
use crate::keys::{AccountKeys, Realm};
use crate::{Store, StoreError, audit};
use domain::budget::Budget;
use domain::mode::Mode;
use domain::money::Nanos;
use serde_json::{Map, Value, json};

/// Budgets of records; before fragments that read all arguments.
pub(crate) const BUDGET: &str = include_str!("budget.lua");
/// The count of transactions that an account caused; needs [`BUDGET`].
pub(crate) const CAUSED: &str = include_str!("caused.lua");
/// The day and month; for a timed script.
pub(crate) const PERIOD: &str = include_str!("period.lua");
/// Removes old counters; needs [`PERIOD`].
pub(crate) const PRUNE: &str = include_str!("prune.lua");
/// Increment of an account's version by a change; a call increments it by 1. Equals `CHANGE_STEP` in `change.lua`.
pub const VERSION_STEP: u64 = 1 << 20;

/// The limits of Cap and plan, in their order.
pub(crate) const CAP: &str = include_str!("cap.lua");
/// The count of runs that have not ended; for a timed script.
pub(crate) const LIVE_RUNS: &str = include_str!("live_runs.lua");
/// Named runs; for a timed script.
pub(crate) const RUN: &str = include_str!("run.lua");
/// The count of texts that stay; for a change.
pub(crate) const KEPT_TEXT: &str = include_str!("kept_text.lua");
/// Wallets and transactions; for a change, needs [`KEPT_TEXT`].
pub(crate) const MONEY: &str = include_str!("money.lua");
/// The audit line of a debit; for a change.
pub(crate) const LOW_BALANCE: &str = include_str!("low_balance.lua");
/// Intents; for a change.
pub(crate) const INTENT: &str = include_str!("intent.lua");
/// The budgets of intents; needs [`BUDGET`].
pub(crate) const INTENT_BUDGET: &str = include_str!("intent_budget.lua");
/// Count of stored refusals; for a change, needs [`BUDGET`].
pub(crate) const REFUSALS: &str = include_str!("refusals.lua");
/// The record of a transfer or deposit; for a change.
pub(crate) const IDEMPOTENCY: &str = include_str!("idempotency.lua");
pub(crate) const AGENT_EXISTS: &str = include_str!("agent_exists.lua");
/// Sets and clears fields of a record.
pub(crate) const FIELDS: &str = include_str!("fields.lua");

/// Maximum number of attempts of a change that first reads a record, while others change the same record.
pub(crate) const CHANGE_ATTEMPTS: usize = 16;

/// Account, mode and actor of a change.
#[derive(Debug, Clone, Copy)]
pub struct Scope<'a> {
    /// Account id, `acct_…`.
    pub account: &'a str,
    /// `live` or `test`.
    pub mode: Mode,
    /// The actor in the audit log.
    pub actor: &'a str,
}

/// An event for the audit log.
pub(crate) struct AuditEvent<'a> {
    pub(crate) kind: &'a str,
    pub(crate) agent: Option<&'a str>,
    pub(crate) data: Value,
}

impl<'a> AuditEvent<'a> {
    /// An event of no agent.
    pub(crate) const fn new(kind: &'a str, data: Value) -> Self {
        let agent = None;
        Self { kind, agent, data }
    }

    pub(crate) fn with_agent(self, agent: impl Into<Option<&'a str>>) -> Self {
        let agent = agent.into();
        Self { agent, ..self }
    }
}

/// A field and its new value; `None` clears it.
pub type FieldChange = (&'static str, Option<String>);

/// Form of a field in an audit entry, under its name in the API (decision D5).
pub(crate) enum ShownField {
    /// Unchanged.
    Text(&'static str),
    /// `1` is true.
    Flag(&'static str),
    /// Nano-USD: as a number, and as the exact amount (decision D50).
    Amount(&'static str),
}

/// Composes the changed fields for the audit log; a cleared field is `null`.
pub(crate) fn shown(
    changes: &[FieldChange],
    form: impl Fn(&'static str) -> ShownField,
) -> Map<String, Value> {
    let mut data = Map::new();
    for (field, value) in changes {
        match form(field) {
            ShownField::Text(name) => {
                data.insert(name.to_owned(), json!(value));
            }
            ShownField::Flag(name) => {
                data.insert(name.to_owned(), json!(value.as_ref().map(|value| value == "1")));
            }
            ShownField::Amount(name) => {
                let nanos = value.as_ref().and_then(|value| value.parse().ok());
                data.insert(name.to_owned(), json!(nanos.map(Nanos::from_stored)));
                data.insert(format!("{name}Nanos"), json!(value));
            }
        }
    }
    data
}

impl<'a> Scope<'a> {
    /// A change of the live records.
    pub const fn live(account: &'a str, actor: &'a str) -> Self {
        let mode = Mode::Live;
        Self { account, mode, actor }
    }

    /// A change by the operator.
    pub const fn from_operator(account: &'a str, mode: Mode) -> Self {
        let actor = audit::OPERATOR;
        Self { account, mode, actor }
    }

    pub(crate) fn keys(&self) -> AccountKeys {
        AccountKeys::new(self.account)
    }

    /// Returns the account and mode.
    pub fn realm(&self) -> Realm {
        Realm::new(self.account, self.mode)
    }

    /// Executes a script whose first keys are account record and audit log, and whose first arguments are mode and
    /// audit entry. A missing account is an error, since the caller has read it. Budgets are appended as the last
    /// argument.
    pub(crate) fn execute<'s>(
        &'s self,
        store: &'s Store,
        script: &'s Script,
        event: AuditEvent<'_>,
        keys: impl Inputs<Value = String>,
        args: impl Inputs<Value: AsRef<str>>,
    ) -> impl Future<Output = Result<ScriptReply, StoreError>> {
        let entry = audit::entry(event.kind, event.agent, self.actor, &event.data);
        self.execute_with_entry(store, script, entry, keys, args)
    }

    /// Like [`execute`](Self::execute), for an audit entry that was composed before.
    pub(crate) fn execute_with_entry<'s>(
        &'s self,
        store: &'s Store,
        script: &'s Script,
        entry: String,
        keys: impl Inputs<Value = String>,
        args: impl Inputs<Value: AsRef<str>>,
    ) -> impl Future<Output = Result<ScriptReply, StoreError>> {
        // Evaluated here and not in the future, which would reserve space for both inputs and their values.
        self.change(store, script, entry, keys.values(), args.values())
    }

    async fn change(
        &self,
        store: &Store,
        script: &Script,
        entry: String,
        keys: Vec<String>,
        args: Vec<impl AsRef<str>>,
    ) -> Result<ScriptReply, StoreError> {
        let realm = self.realm();
        let first = [realm.record(), realm.audit()];
        let first = first.iter().map(String::as_str);
        let keys: Vec<&str> = first.chain(keys.iter().map(String::as_str)).collect();
        let first = [self.mode.as_str(), &entry].into_iter();
        let budgets = script.has_budgets().then(|| store.budget_words());
        let args = first.chain(args.iter().map(AsRef::as_ref)).chain(budgets);
        let args: Vec<&[u8]> = args.map(str::as_bytes).collect();
        let words: Vec<String> = store.script(script, &keys, &args).await?;
        match words.as_slice() {
            [word, kind] if word == "over_budget" && script.has_budgets() => {
                let Some(budget) = Budget::parse(kind) else {
                    return unexpected_reply(script);
                };
                Err(StoreError::OverBudget {
                    budget,
                    most: store.budgets().limit(budget),
                })
            }
            _ => Ok(ScriptReply::new(script, words)),
        }
    }
}

/// Returns the arguments that `fields.lua` reads.
pub(crate) fn field_args(changes: &[FieldChange]) -> Vec<&str> {
    let words = changes.iter().flat_map(|(field, value)| match value {
        Some(value) => ["set", field, value.as_str()],
        None => ["clear", field, ""],
    });
    words.collect()
}

/// Returns the error for a reply that the Rust twin does not know.
pub(crate) fn unexpected_reply<T>(script: &Script) -> Result<T, StoreError> {
    Err(StoreError::unexpected(script.name()))
}
