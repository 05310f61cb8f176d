//! Twin of `authorize.lua`: decides a call and charges its estimate, in one step.

use crate::call::hold::{HoldKeys, HoldName, memo};
use crate::script::change::{CAP, LIVE_RUNS, PERIOD, PRUNE, RUN};
use crate::script::{script, with_fragments};
use crate::versions::AccountVersion;
use crate::{Store, StoreError};
use domain::budget::Budget;
use domain::denial::Denial;
use domain::entry::NONE;
use domain::money::Nanos;
use domain::plan::Plan;
use memchr::memchr;
use std::time::Duration;

/// Fragments that few calls need. Each is compiled only in its branch.
const RARE: &[(&str, &str)] = &[
    ("denial_line.lua", include_str!("denial_line.lua")),
    ("live_runs.lua", LIVE_RUNS),
    ("run.lua", RUN),
    ("prune.lua", PRUNE),
];

script! {
    /// Decides a call and charges its estimate.
    pub static AUTHORIZE = "authorize",
    kind: Timed,
    source: [PERIOD, CAP, &with_fragments(include_str!("authorize.lua"), RARE)],
    when_full: Refuse,
    /// The last ones, those of a [run](OF_A_RUN), are omitted if it has no name.
    keys: struct AuthorizeKeys<'a>: &'a str {
        account, active_keys, rate, agent, hold, due, virtual_key, audit_log, counted_denials, run, agent_runs, account_runs
    },
    /// The key, the known view of the account, the limits of its plan (empty if there is none), and the charge.
    /// `estimate` is empty without a charge, and [`NONE`] beyond any amount. `memo` is stored in the hold and in the
    /// audit line, `estimate` and `tracked` are nano-USD, `hold_life` is in ms, `provider` is the provider of
    /// the key that the agent needs.
    args: struct AuthorizeArgs<'a>: &'a str {
        key_id, plan, generation, version, active_keys, requests, agents, tracked, allow_id, memo, estimate, hold_life,
        provider, runs_max
    },
}

/// Number of keys of a run.
const OF_A_RUN: usize = 3;

/// Lifetime of a run's record after its last call, in ms (decision D38): 35 days, plus the minute by which scripts may
/// delay writing the record.
pub const RUN_LIFE_MS: u64 = (35 * 24 * 3600 + 60) * 1000;

/// Version and plan of an account, as received with a decision. An edge keeps the newest: an older reply means that the
/// store lost writes.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct AccountView {
    /// Incremented by `store accept`.
    pub generation: u64,
    /// Incremented by every change; never decreases within a generation.
    pub version: u64,
    /// Name of the account's plan at this version.
    pub plan: String,
}

impl AccountView {
    /// Returns generation and version.
    pub const fn as_of(&self) -> AccountVersion {
        AccountVersion {
            generation: self.generation,
            version: self.version,
        }
    }
}

/// Arguments of one decision.
#[derive(Debug)]
pub struct Authorize<'a> {
    /// The names of the call in the ledger.
    pub name: &'a HoldName,
    /// Id of the virtual key.
    pub key_id: &'a str,
    /// Last known version and plan of the account.
    pub view: &'a AccountView,
    /// Limits of the plan in `view`.
    pub plan: &'a Plan,
    /// The charge; with `None` the script only checks the key and counts the request against its rate.
    pub charge: Option<&'a Charge<'a>>,
}

/// The charge of an approved call.
#[derive(Debug)]
pub struct Charge<'a> {
    /// Estimate of the call's cost. `None` exceeds the largest amount (decision D4): it exceeds every existing limit,
    /// and is never charged.
    pub estimate: Option<Nanos>,
    /// True if the caller named the run.
    pub run_named: bool,
    /// Time until the reaper may turn the hold into a kept one.
    pub hold_life: Duration,
    /// Version of the price table that the estimate follows.
    pub price_version: &'a str,
    /// Requested model.
    pub model: &'a str,
    /// Provider of the upstream. The script returns the agent's key for it.
    pub provider: &'a str,
}

/// Result of `authorize`.
#[derive(Debug, PartialEq, Eq)]
pub enum AuthorizeOutcome {
    /// The estimate is charged and a hold is open.
    Charged {
        /// The charged estimate.
        estimate: Nanos,
        /// Id of the provider key to use.
        provider_key_id: String,
        /// The sealed key.
        sealed: String,
    },
    /// A request without a charge passed key and rate, and counts against the rate.
    Counted,
    /// Denied, with an audit entry. Nothing is charged.
    Denied(Denial),
    /// Denied beyond the key's rate, and counted for the record of its rate window, without its own audit entry
    /// (decision D70).
    DeniedUnrecorded {
        /// Reason.
        denial: Denial,
        /// End of the window, in ms since 1970, on the store's clock.
        ends_ms: u64,
    },
    /// A new run would exceed the account's budget of runs (decision D71): denied like a rate, with an audit entry.
    RunsFull,
    /// The key is revoked, or does not belong to the account.
    Revoked,
    /// The account's plan is not `plan`; nothing changed. Retry with the plan in the answer's view.
    OtherPlan,
    /// The store lost writes: the account's version is below `view`, or the account does not exist.
    LostWrites,
    /// The id was used or voided before; nothing changed.
    KnownId,
    /// The estimate exceeds the largest amount, or a counter would overflow. Nothing is charged; the audit entry has
    /// the reason [`Denial::ServiceUnavailable`].
    TooMuch,
}

/// The outcome, and the account's current version and plan.
#[derive(Debug, PartialEq, Eq)]
pub struct AuthorizeReply {
    /// Result of the script.
    pub outcome: AuthorizeOutcome,
    /// The `view` for the next call.
    pub view: AccountView,
}

impl Authorize<'_> {
    /// Executes the script. `hold` has the keys of `name`.
    ///
    /// # Errors
    /// [`StoreError`]. If the script [may have run](StoreError::may_have_run), the caller must void the id.
    pub async fn execute(&self, hold: &HoldKeys, store: &Store) -> Result<AuthorizeReply, StoreError> {
        debug_assert_eq!(hold, &self.name.keys(), "the keys are of this hold");
        let (realm, account) = (&hold.realm, hold.realm.keys());
        let (active, rate) = (account.active_keys(), account.rate(self.key_id));
        let virtual_key = account.virtual_key(self.key_id);
        let runs = realm.runs(&self.name.agent);
        let singles = account.bucket().single_keys();
        let is_named = self.charge.is_some_and(|charge| charge.run_named);
        let all_runs = realm.all_runs();
        let keys = AuthorizeKeys {
            account: hold.realm.keys().name(),
            active_keys: &active,
            rate: &rate,
            agent: &hold.agent,
            hold: &hold.hold,
            due: &singles.due,
            virtual_key: &virtual_key,
            audit_log: &hold.audit,
            counted_denials: &singles.counted_denials,
            run: &hold.run,
            agent_runs: &runs,
            account_runs: &all_runs,
        };
        let keys = keys.into_values();
        let unused = if is_named { 0 } else { OF_A_RUN };
        let mut texts = ArgumentTexts::new(self);
        let args = self.args(store, &mut texts).into_values();
        let reply: String = store
            .script(&AUTHORIZE, &keys[..keys.len() - unused], &args)
            .await?;
        parse(&reply, self.charge.and_then(|charge| charge.estimate))
    }

    fn args<'t>(&'t self, store: &Store, texts: &'t mut ArgumentTexts) -> AuthorizeArgs<'t> {
        let [
            generation,
            version,
            active_keys,
            requests,
            agents,
            tracked,
            estimate,
            hold_life,
            runs_max,
        ] = &mut texts.numbers;
        let charge = self.charge;
        AuthorizeArgs {
            key_id: self.key_id,
            plan: &self.view.plan,
            generation: generation.format(self.view.generation),
            version: version.format(self.view.version),
            active_keys: optional(active_keys, self.plan.active_virtual_keys),
            requests: optional(requests, self.plan.proxy_requests_per_minute),
            agents: optional(agents, self.plan.cap_agents_per_month),
            tracked: optional(tracked, self.plan.tracked_usd_per_month.map(Nanos::get)),
            allow_id: &self.name.allow_id,
            memo: &texts.memo,
            estimate: charge.map_or("", |charge| {
                let nanos = charge.estimate.map(Nanos::get);
                nanos.map_or(NONE, |nanos| estimate.format(nanos))
            }),
            hold_life: optional(hold_life, charge.map(|charge| charge.hold_life.as_millis())),
            provider: charge.map_or("", |charge| charge.provider),
            runs_max: optional(runs_max, charge.map(|_| store.budgets().limit(Budget::Runs))),
        }
    }
}

/// The texts that the arguments of one execution refer to.
struct ArgumentTexts {
    memo: String,
    /// Digits of the numbers, each in a buffer of its own.
    numbers: [itoa::Buffer; NUMBERS],
}

/// Arguments that are numbers.
const NUMBERS: usize = 9;

impl ArgumentTexts {
    fn new(request: &Authorize<'_>) -> Self {
        let charge = request.charge;
        let (model, price_version) = charge.map_or(("", NONE), |charge| (charge.model, charge.price_version));
        Self {
            memo: memo(request.name, request.key_id, price_version, model),
            numbers: [itoa::Buffer::new(); NUMBERS],
        }
    }
}

/// Returns the digits of a number, or nothing if there is none.
fn optional(digits: &mut itoa::Buffer, number: Option<impl itoa::Integer>) -> &str {
    number.map_or("", |number| digits.format(number))
}

/// Parses `word generation version plan`, `ok generation version id sealed plan` or `counted_in generation version end
/// reason plan`. The plan is last, since it may contain spaces. An unknown word is an error, and so is an approval if
/// nothing was to be `charged`, so that an unexpected reply never approves.
fn parse(reply: &str, charged: Option<Nanos>) -> Result<AuthorizeReply, StoreError> {
    let unexpected_reply = || StoreError::unexpected("authorize");
    let mut rest = reply;
    let mut next = || {
        // Five times a call, in a fifth of the time of `split_once`.
        let end = memchr(b' ', rest.as_bytes()).ok_or_else(unexpected_reply)?;
        let (word, after) = rest.split_at(end);
        rest = &after[1..];
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
            AuthorizeOutcome::Charged {
                estimate: charged.ok_or_else(unexpected_reply)?,
                provider_key_id: id.to_owned(),
                sealed: sealed.to_owned(),
            }
        }
        "counted_in" => AuthorizeOutcome::DeniedUnrecorded {
            ends_ms: next()?.parse().map_err(|_| unexpected_reply())?,
            denial: Denial::from_reason(next()?).ok_or_else(unexpected_reply)?,
        },
        "counted" => AuthorizeOutcome::Counted,
        "runs_full" => AuthorizeOutcome::RunsFull,
        "revoked" => AuthorizeOutcome::Revoked,
        "other_plan" => AuthorizeOutcome::OtherPlan,
        "lost_writes" | "no_account" => AuthorizeOutcome::LostWrites,
        "known" => AuthorizeOutcome::KnownId,
        "too_much" => AuthorizeOutcome::TooMuch,
        reason => AuthorizeOutcome::Denied(Denial::from_reason(reason).ok_or_else(unexpected_reply)?),
    };
    let view = AccountView {
        generation,
        version,
        plan: rest.to_owned(),
    };
    Ok(AuthorizeReply { outcome, view })
}

#[cfg(test)]
mod tests {
    use super::*;
    use domain::denial_window::OWN_RECORDS;

    const ESTIMATE: Option<Nanos> = Nanos::new(9);

    fn outcome(reply: &str) -> Option<AuthorizeOutcome> {
        parse(reply, ESTIMATE).ok().map(|answer| answer.outcome)
    }

    #[test]
    fn replies_are_read() {
        let answer = parse("ok 1 12 pk_1 c2VhbGVk a plan", ESTIMATE).unwrap();
        let charged = AuthorizeOutcome::Charged {
            estimate: ESTIMATE.unwrap(),
            provider_key_id: "pk_1".to_owned(),
            sealed: "c2VhbGVk".to_owned(),
        };
        assert_eq!(answer.outcome, charged);
        assert_eq!((answer.view.generation, answer.view.version), (1, 12));
        assert_eq!(answer.view.plan, "a plan");
        assert_eq!(outcome("counted 1 2 free"), Some(AuthorizeOutcome::Counted));
        assert_eq!(outcome("no_account 0 0 "), Some(AuthorizeOutcome::LostWrites));
        let answer = parse("counted_in 1 2 1795000060000 rate_limited a plan", ESTIMATE).unwrap();
        let counted = AuthorizeOutcome::DeniedUnrecorded {
            denial: Denial::RateLimited,
            ends_ms: 1_795_000_060_000,
        };
        assert_eq!((answer.outcome, answer.view.plan.as_str()), (counted, "a plan"));
        assert_eq!(outcome("runs_full 1 2 free"), Some(AuthorizeOutcome::RunsFull));
        assert_eq!(
            outcome("frozen 1 2 free"),
            Some(AuthorizeOutcome::Denied(Denial::Frozen))
        );
    }

    #[test]
    fn an_unknown_reply_never_approves() {
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
        // Of a probe, and of an estimate beyond any amount.
        assert!(parse("ok 1 2 pk_1 sealed free", None).is_err());
    }

    /// `authorize.lua` and the spend scripts each contain the lifetime of a run.
    #[test]
    fn the_constants_of_the_script_are_those_of_the_product() {
        let constants = format!("= 2 ^ 53, 60000, {RUN_LIFE_MS}, {OWN_RECORDS}\n");
        assert!(AUTHORIZE.source().contains(&constants));
    }
}
