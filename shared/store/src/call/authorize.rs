//! Twin of `authorize.lua`: decide on a call and charge its estimate, in one step.

use crate::call::hold::{AsOf, HoldKeys, HoldName, NONE, memo};
use crate::keys;
use crate::script::change::{CLOCK, PERIOD, PRUNE, RUN};
use crate::script::names::{Names, inputs};
use crate::script::{Script, WhenFull, with_fragments};
use crate::{Store, StoreError};
use domain::budget::Budget;
use domain::denial::Denial;
use domain::mode::Mode;
use domain::money::Nanos;
use domain::plan::Plan;
use std::borrow::Cow;
use std::sync::LazyLock;
use std::time::Duration;

/// The script.
pub static AUTHORIZE: LazyLock<Script> = LazyLock::new(|| {
    // A function that most calls do not need is made in the branch that does.
    let fragments = [("run.lua", RUN), ("prune.lua", PRUNE)];
    let own = with_fragments(include_str!("authorize.lua"), &fragments);
    let inputs = Names {
        keys: AuthorizeKeys::NAMES,
        args: AuthorizeArgs::NAMES,
    };
    Script::with_inputs("authorize", WhenFull::Refuse, inputs, &[CLOCK, PERIOD, &own])
});

/// Run records live this long after their last call (decision D38): 35 days, and the minute for which the scripts may
/// put off writing it.
pub const RUN_LIFE: Duration = Duration::from_secs(35 * 24 * 3600 + 60);

/// What an edge last heard of an account. A reply that is older than this means that the store lost writes.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct AccountView {
    /// Incremented by `store accept`.
    pub generation: u64,
    /// Incremented by every change; never decreases within a generation.
    pub version: u64,
    /// The account's plan.
    pub plan: String,
}

impl AccountView {
    /// How far the account had come.
    #[must_use]
    pub const fn as_of(&self) -> AsOf {
        AsOf {
            generation: self.generation,
            version: self.version,
        }
    }
}

/// One request to decide.
#[derive(Debug)]
pub struct Authorize<'a> {
    /// Whose call it is and how it will be named.
    pub name: &'a HoldName,
    /// The virtual key used.
    pub key_id: &'a str,
    /// What is known of the account.
    pub view: &'a AccountView,
    /// The limits of the plan in `view`.
    pub plan: &'a Plan,
    /// The charge; `None` only counts the request against the rate and checks the key.
    pub charge: Option<&'a Charge<'a>>,
}

/// What to charge.
#[derive(Debug)]
pub struct Charge<'a> {
    /// The estimate.
    pub estimate: Nanos,
    /// Whether the caller named the run.
    pub run_named: bool,
    /// How long the hold may stay open.
    pub hold_life: Duration,
    /// Version of the price table behind the estimate.
    pub price_version: &'a str,
    /// The model asked for.
    pub model: &'a str,
    /// The upstream's provider, whose key of the agent is to be used.
    pub provider: &'a str,
}

/// What the store decided.
#[derive(Debug, PartialEq, Eq)]
pub enum Outcome {
    /// The estimate is charged and a hold is open.
    Charged {
        /// The provider key to use.
        provider_key_id: String,
        /// Its sealed form.
        sealed: String,
    },
    /// A request without a charge passed key and rate.
    Counted,
    /// Denied, which the audit log tells; of what was spent nothing changed.
    Denied(Denial),
    /// Denied beyond the key's rate, and counted for the record of the key's rate window: there is no audit line of its
    /// own (decision D70).
    CountedIn {
        /// Why it is denied.
        denial: Denial,
        /// When the window ends, in ms since 1970 on the store's clock.
        ends_ms: u64,
    },
    /// A new run beyond the account's budget of runs (decision D71): denied as for its rate, which the audit log tells.
    RunsFull,
    /// The key is revoked or was never one of this account's.
    Revoked,
    /// The limits sent belong to another plan than the account's; nothing changed. Ask again with those of the plan in
    /// the answer's view.
    OtherPlan,
    /// The store holds an older state than was seen before, or does not know the account: it lost writes.
    Stale,
    /// The id was used before, or voided; nothing changed.
    KnownId,
    /// The counters cannot hold the sum; nothing changed.
    TooMuch,
}

/// The outcome and the account as the store sees it now.
#[derive(Debug, PartialEq, Eq)]
pub struct Answer {
    /// What was decided.
    pub outcome: Outcome,
    /// To be remembered for the next call.
    pub view: AccountView,
}

impl Authorize<'_> {
    /// Executes the script.
    ///
    /// # Errors
    /// [`StoreError`]. When it [may have run](StoreError::may_have_run), the id must be voided.
    pub async fn execute(&self, store: &Store) -> Result<Answer, StoreError> {
        self.execute_with(&self.name.keys(), store).await
    }

    /// The same with the keys of `name`, for whoever has them.
    ///
    /// # Errors
    /// As [`execute`](Self::execute).
    pub async fn execute_with(&self, keys: &HoldKeys, store: &Store) -> Result<Answer, StoreError> {
        self.execute_keyed(&AUTHORIZE, keys, store).await
    }

    /// Like [`execute`](Self::execute) with another script: the tests check that a changed one is noticed.
    ///
    /// # Errors
    /// As [`execute`](Self::execute).
    pub async fn execute_script(&self, script: &Script, store: &Store) -> Result<Answer, StoreError> {
        self.execute_keyed(script, &self.name.keys(), store).await
    }

    async fn execute_keyed(
        &self,
        script: &Script,
        hold: &HoldKeys,
        store: &Store,
    ) -> Result<Answer, StoreError> {
        debug_assert_eq!(hold, &self.name.keys(), "the keys are of this hold");
        let account = &hold.of_account;
        let (active, rate) = (account.active_keys(), account.rate(self.key_id));
        let virtual_key = account.virtual_key(self.key_id);
        let runs = account.runs(Mode::Live, &self.name.agent);
        let denials = account.bucket().counted_denials();
        let is_named = self.charge.is_some_and(|charge| charge.run_named);
        let all_runs = is_named.then(|| account.all_runs(Mode::Live));
        let keys = AuthorizeKeys {
            account: &hold.account,
            active_keys: &active,
            rate: &rate,
            agent: &hold.agent,
            hold: &hold.hold,
            due: &hold.due,
            run: &hold.run,
            virtual_key: &virtual_key,
            audit_log: &hold.audit,
            agent_runs: &runs,
            counted_denials: &denials,
            account_runs: all_runs.as_ref().unwrap_or(&hold.account),
        };
        let args = self.args(store).into_values();
        let args = args.each_ref().map(AsRef::as_ref);
        let reply: String = store.script(script, &keys.into_values(), &args[..]).await?;
        parse(&reply)
    }

    fn args(&self, store: &Store) -> AuthorizeArgs<'_> {
        let number = |number: u64| Cow::Owned(number.to_string());
        let limit = |limit: Option<u64>| limit.map(number).unwrap_or_default();
        let charge = self.charge;
        let (model, price_version) = charge.map_or(("", NONE), |charge| (charge.model, charge.price_version));
        let run = charge.filter(|charge| charge.run_named).map(|_| &*self.name.run);
        let field = |field: fn(&str) -> String| charge.map(|charge| field(charge.provider).into());
        AuthorizeArgs {
            key_id: self.key_id.into(),
            plan: self.view.plan.as_str().into(),
            generation: number(self.view.generation),
            version: number(self.view.version),
            active_keys: limit(self.plan.active_virtual_keys),
            requests: limit(self.plan.proxy_requests_per_minute),
            agents: limit(self.plan.cap_agents_per_month),
            tracked: limit(self.plan.tracked_usd_per_month.map(Nanos::get)),
            allow_id: self.name.allow_id.as_str().into(),
            memo: memo(self.name, self.key_id, price_version, model).into(),
            estimate: limit(charge.map(|charge| charge.estimate.get())),
            run: run.unwrap_or_default().into(),
            hold_life: charge
                .map(|charge| charge.hold_life.as_millis().to_string().into())
                .unwrap_or_default(),
            provider_key_id: field(keys::provider_key_id_field).unwrap_or_default(),
            provider_key_sealed: field(keys::provider_key_sealed_field).unwrap_or_default(),
            runs_max: limit(charge.map(|_| store.budgets().limit(Budget::Runs))),
        }
    }
}

/// Reads `word generation version plan`; or what follows `ok`: `generation version id sealed plan`; or what follows
/// `counted_in`: `generation version end reason plan`. The plan comes last, since it alone may contain spaces. A word
/// that is not known is an error, so that a store that answers anything unexpected never approves.
fn parse(reply: &str) -> Result<Answer, StoreError> {
    let unexpected_reply = || StoreError::UnexpectedReply("authorize".to_owned());
    let mut rest = reply;
    let mut next = || {
        let (word, after) = rest.split_once(' ').ok_or_else(unexpected_reply)?;
        rest = after;
        Ok::<_, StoreError>(word)
    };
    let word = next()?;
    let generation = next()?.parse().map_err(|_| unexpected_reply())?;
    let version = next()?.parse().map_err(|_| unexpected_reply())?;
    let outcome = match word {
        "ok" => {
            let (id, sealed) = (next()?, next()?);
            if id.is_empty() || sealed.is_empty() {
                return Err(unexpected_reply());
            }
            Outcome::Charged {
                provider_key_id: id.to_owned(),
                sealed: sealed.to_owned(),
            }
        }
        "counted_in" => Outcome::CountedIn {
            ends_ms: next()?.parse().map_err(|_| unexpected_reply())?,
            denial: Denial::from_reason(next()?).ok_or_else(unexpected_reply)?,
        },
        "counted" => Outcome::Counted,
        "runs_full" => Outcome::RunsFull,
        "revoked" => Outcome::Revoked,
        "other_plan" => Outcome::OtherPlan,
        "stale" | "no_account" => Outcome::Stale,
        "known" => Outcome::KnownId,
        "too_much" => Outcome::TooMuch,
        reason => Outcome::Denied(Denial::from_reason(reason).ok_or_else(unexpected_reply)?),
    };
    let view = AccountView {
        generation,
        version,
        plan: rest.to_owned(),
    };
    Ok(Answer { outcome, view })
}

#[cfg(test)]
mod tests {
    use super::*;
    use domain::denial_window::OWN_RECORDS;

    fn outcome(reply: &str) -> Option<Outcome> {
        parse(reply).ok().map(|answer| answer.outcome)
    }

    #[test]
    fn replies_are_read() {
        let answer = parse("ok 1 12 pk_1 c2VhbGVk a plan").unwrap();
        let charged = Outcome::Charged {
            provider_key_id: "pk_1".to_owned(),
            sealed: "c2VhbGVk".to_owned(),
        };
        assert_eq!(answer.outcome, charged);
        assert_eq!((answer.view.generation, answer.view.version), (1, 12));
        assert_eq!(answer.view.plan, "a plan");
        assert_eq!(outcome("counted 1 2 free"), Some(Outcome::Counted));
        assert_eq!(outcome("no_account 0 0 "), Some(Outcome::Stale));
        let answer = parse("counted_in 1 2 1795000060000 rate_limited a plan").unwrap();
        let counted = Outcome::CountedIn {
            denial: Denial::RateLimited,
            ends_ms: 1_795_000_060_000,
        };
        assert_eq!((answer.outcome, answer.view.plan.as_str()), (counted, "a plan"));
        assert_eq!(outcome("runs_full 1 2 free"), Some(Outcome::RunsFull));
        assert_eq!(outcome("frozen 1 2 free"), Some(Outcome::Denied(Denial::Frozen)));
    }

    #[test]
    fn what_is_not_known_never_approves() {
        for reply in [
            "",
            "ok",
            "ok 1 2 free",
            "ok 1 2 pk_1 free",
            "ok 1 2  sealed free",
            "ok 1 2 pk_1  free",
            "ok x 2 pk_1 sealed free",
            "ok 1 -2 pk_1 sealed free",
            "okay 1 2 pk_1 sealed free",
            "counted 1",
            "counted_in 1 2 1795000060000 no_such_reason free",
            "counted_in 1 2 -1 rate_limited free",
            "counted_in 1 2 rate_limited free",
        ] {
            assert_eq!(outcome(reply), None, "{reply}");
        }
    }

    /// `authorize.lua` and the spends say how long a run lives, each in its own way.
    #[test]
    fn the_constants_of_the_script_are_those_of_the_product() {
        let constants = format!("= 9e18, 2 ^ 53, 60000, {}, {OWN_RECORDS}\n", RUN_LIFE.as_millis());
        assert!(AUTHORIZE.source().contains(&constants));
    }
}
