//! A store and the model side by side: each action is done to both, then both must agree in everything.

use crate::model::{Agent, Call, ChargeState, Extension, MODEL, Model, Moment, PRICE_VERSION};
use crate::scripts::Scripts;
use crate::snapshot::{self, Plain, Window};
use domain::denial_window::KIND;
use domain::entry::{EndedBy, HoldOutcome};
use domain::measured::{Billing, CallEnd, Endpoint, Measured};
use domain::money::Nanos;
use domain::period::Period;
use domain::plan::Plan;
pub use harness::open_cap;
pub use harness::scripts::{Checked, period, within_one_day};
use harness::scripts::{compare, install};
use std::fmt::Debug;
use std::time::Duration;
use store::call::authorize::{Authorize, AuthorizeOutcome, Charge};
use store::call::denial_windows::CountedDenials;
use store::call::denial_windows::script::record;
use store::call::extend::Extend;
use store::call::hold::{Hold, HoldName};
use store::call::reap::reap;
use store::call::settle::Settle;
use store::call::void::void;
use store::keys::AccountKeys;
use store::versions::AccountVersion;
use store::{StoreError, audit};

pub const PROVIDER: &str = "openai";
pub const ACCOUNT: &str = "acct_ledger";
pub const AGENTS: [&str; 3] = ["a", "b", "c"];
pub const KEYS: [&str; 4] = ["vk_1", "vk_2", "vk_3", "vk_4"];
/// A hold that stays open for the whole test.
pub const LONG: Duration = Duration::from_secs(3600);

pub struct Fixture<'a> {
    pub scripts: &'a Scripts,
    pub model: Model,
    /// The time that `authorize` uses, if not the store's clock.
    pub clock_ms: Option<u64>,
    ids: u32,
}

/// A plan without limits.
pub fn unlimited() -> Plan {
    Plan {
        active_virtual_keys: None,
        proxy_requests_per_minute: None,
        cap_agents_per_month: None,
        tracked_usd_per_month: None,
        custom_agents: None,
        wallet_requests_per_minute: None,
        agent_requests_per_day: None,
        management_requests_per_minute: None,
        webhooks_in_dashboard: true,
        streaming: true,
        upgrade_to: None,
        upgrade_url: None,
    }
}

pub fn usd(nanos: u64) -> Nanos {
    Nanos::new(nanos).expect("an amount")
}

/// The settlement of a hold that was not raised, without measurements; amounts in nano-USD.
pub fn settlement(name: HoldName, estimate: u64, cost: u64) -> Settle {
    Settle {
        name,
        estimate: usd(estimate),
        cost: usd(cost),
        outcome: HoldOutcome::Settled,
        extension: None,
        measured: None,
        ended_by: None,
    }
}

/// The measurements of a call of this cost: none for an odd cost, with details of its charge for a multiple of four.
fn measured(cost: u64) -> Option<Measured> {
    cost.is_multiple_of(2).then_some(Measured {
        endpoint: Endpoint::Chat,
        streamed: false,
        upstream: None,
        input_tokens: Some(cost % 100),
        cached_tokens: None,
        output_tokens: Some(12),
        latency_ms: Some(812),
        first_byte_ms: None,
        end: CallEnd::Completed,
        extensions: 0,
        billing: Billing {
            tier_reported: cost.is_multiple_of(4).then(|| "flex".to_owned()),
            ..Billing::default()
        },
    })
}

fn lost_writes<T: Debug>(what: &impl Debug, found: &Result<T, StoreError>) -> Checked {
    match found {
        Err(StoreError::LacksWrites) => Ok(()),
        other => Err(format!("{what:?} of a store that lost writes: {other:?}")),
    }
}

fn same<T: Debug + PartialEq>(what: &impl Debug, found: T, expected: &T) -> Checked {
    if found == *expected {
        Ok(())
    } else {
        Err(format!("{what:?} answered {found:?}, expected {expected:?}"))
    }
}

impl<'a> Fixture<'a> {
    /// An account with three agents with Cap enabled and four keys; nothing is written before [`Fixture::install`].
    pub fn new(scripts: &'a Scripts, period: Period) -> Self {
        let mut model = Model::new(ACCOUNT, period);
        for agent in AGENTS {
            let agent_model = Agent {
                cap: Some(open_cap()),
                ..Agent::default()
            };
            model.agents.insert(agent.to_owned(), agent_model);
        }
        model.active = KEYS
            .iter()
            .enumerate()
            .map(|(at, key)| (at as u64 + 1, (*key).to_owned()))
            .collect();
        Self {
            scripts,
            model,
            clock_ms: None,
            ids: 0,
        }
    }

    /// Writes the model's state into the store.
    pub async fn install(&self) -> Checked {
        install(&self.scripts.store, &[ACCOUNT], &self.model.render(), &Plain).await
    }

    pub async fn compare(&self) -> Checked {
        compare(&self.scripts.store, &self.model.render(), &mut Plain).await
    }

    fn new_id(&mut self) -> String {
        self.ids += 1;
        format!("allow_{}", self.ids)
    }

    /// A plain call: agent `a`, the first key, unnamed run, a new id, the current view, no plan limit.
    pub fn call(&mut self, estimate: u64) -> Call {
        let id = self.new_id();
        let name = HoldName {
            account: ACCOUNT.to_owned(),
            agent: AGENTS[0].to_owned(),
            run: format!("req_{id}"),
            allow_id: id,
        };
        Call {
            name,
            named: false,
            key_id: KEYS[0].to_owned(),
            view: self.model.view(),
            plan: unlimited(),
            estimate: Some(usd(estimate)),
            hold_life: LONG,
        }
    }

    /// Like [`Self::call`], in a named run.
    pub fn call_in(&mut self, run: &str, estimate: u64) -> Call {
        let mut call = self.call(estimate);
        run.clone_into(&mut call.name.run);
        call.named = true;
        call
    }

    /// Authorizes in both and compares.
    pub async fn authorize(&mut self, call: &Call) -> Checked {
        let charge = call.estimate.map(|estimate| Charge {
            estimate: Nanos::new(estimate.get()),
            run_named: call.named,
            hold_life: call.hold_life,
            price_version: PRICE_VERSION,
            model: MODEL,
            provider: PROVIDER,
        });
        let request = Authorize {
            name: &call.name,
            key_id: &call.key_id,
            view: &call.view,
            plan: &call.plan,
            charge: charge.as_ref(),
        };
        let travelled = self.clock_ms.map(|at_ms| self.scripts.authorizing_at(at_ms));
        let store = travelled.as_ref().unwrap_or(&self.scripts.store);
        let from = clock::now_ms();
        let answer = request.execute(&call.name.keys(), store).await;
        let real = Window {
            from,
            to: clock::now_ms(),
        };
        let at = Moment {
            clock: self.clock_ms.map_or(real, Window::at),
            real,
        };
        let answer = answer.map_err(|error| format!("{call:?}: {error:?}"))?;
        let mut expected = self.model.authorize(call, at);
        if let (
            AuthorizeOutcome::DeniedUnrecorded { ends_ms, .. },
            AuthorizeOutcome::DeniedUnrecorded { ends_ms: wanted, .. },
        ) = (&answer.outcome, &mut expected.outcome)
        {
            // The window ends a minute after its first request, which was within some milliseconds.
            let ends = self.model.counted.iter().map(|counted| counted.ends);
            if ends.clone().any(|ends| (ends.from..=ends.to).contains(ends_ms)) {
                *wanted = *ends_ms;
            }
        }
        same(call, answer, &expected)?;
        self.compare().await
    }

    /// Authorizes; fails unless approved.
    pub async fn approve(&mut self, call: &Call) -> Checked {
        self.authorize(call).await?;
        match self.model.open(&call.name.allow_id) {
            Some(_) => Ok(()),
            None => Err(format!("{call:?} was not approved")),
        }
    }

    /// Records a window at `at_ms` by the script's clock, or now.
    pub async fn record_window(&mut self, counted: &CountedDenials, at_ms: Option<u64>) -> Checked {
        let travelled = at_ms.map(|at_ms| self.scripts.recording_at(at_ms));
        let store = travelled.as_ref().unwrap_or(&self.scripts.store);
        let from = clock::now_ms();
        let found = record(store, counted).await;
        let real = Window {
            from,
            to: clock::now_ms(),
        };
        let at = at_ms.map_or(real, Window::at);
        let found = found.map_err(|error| format!("{counted:?}: {error:?}"))?;
        let entry = counted.entry().ok_or("a window with a record")?;
        let data = serde_json::Value::Object(entry.data);
        let text = audit::entry(KIND, entry.agent.as_deref(), &entry.actor, &data);
        same(counted, found, &self.model.record_window(counted, text, at))?;
        self.compare().await
    }

    /// The extension of an open call's hold to `to`, with the current view, for the plan of the call.
    pub fn extension(&self, call: &Call, to: u64) -> Extension {
        let open = self.model.open(&call.name.allow_id);
        let estimate = open.map(|at| self.model.charges[at].estimate);
        Extension {
            name: call.name.clone(),
            key_id: call.key_id.clone(),
            view: self.model.view(),
            plan: call.plan.clone(),
            from: estimate.unwrap_or(call.estimate.unwrap_or_default().get()),
            to,
            hold_life: LONG,
        }
    }

    /// Extends in both and compares.
    pub async fn extend(&mut self, extension: &Extension) -> Checked {
        let request = Extend {
            name: &extension.name,
            key_id: &extension.key_id,
            view: &extension.view,
            plan: &extension.plan,
            from: usd(extension.from),
            to: usd(extension.to),
            hold_life: extension.hold_life,
        };
        let from = clock::now_ms();
        let found = request.execute(&extension.name.keys(), &self.scripts.store).await;
        let at = Window {
            from,
            to: clock::now_ms(),
        };
        match self.model.extend(extension, at) {
            None => lost_writes(extension, &found)?,
            Some(expected) => {
                let found = found.map_err(|error| format!("{extension:?}: {error:?}"))?;
                same(extension, found, &expected)?;
            }
        }
        self.compare().await
    }

    pub async fn settle(&mut self, name: &HoldName, estimate: u64, cost: u64) -> Checked {
        self.settle_as_of(name, estimate, cost, None).await
    }

    /// Settles a hold whose last extension may have taken place.
    pub async fn settle_either(
        &mut self,
        name: &HoldName,
        (estimate, extension): (u64, u64),
        cost: u64,
    ) -> Checked {
        self.settle_with(name, (estimate, Some(extension)), cost, (None, None))
            .await
    }

    /// Settles; if the hold is missing, the account's version must be at least `as_of`.
    pub async fn settle_as_of(
        &mut self,
        name: &HoldName,
        estimate: u64,
        cost: u64,
        as_of: Option<AccountVersion>,
    ) -> Checked {
        self.settle_with(name, (estimate, None), cost, (as_of, None))
            .await
    }

    /// Settles on behalf of another than the hold's edge.
    pub async fn settle_for(
        &mut self,
        ended_by: &EndedBy,
        name: &HoldName,
        estimate: u64,
        cost: u64,
    ) -> Checked {
        self.settle_with(name, (estimate, None), cost, (None, Some(ended_by)))
            .await
    }

    async fn settle_with(
        &mut self,
        name: &HoldName,
        (estimate, extension): (u64, Option<u64>),
        cost: u64,
        (as_of, ended_by): (Option<AccountVersion>, Option<&EndedBy>),
    ) -> Checked {
        let settle = Settle {
            name: name.clone(),
            estimate: usd(estimate),
            cost: usd(cost),
            outcome: match cost {
                cost if cost == estimate => HoldOutcome::Estimated,
                0 => HoldOutcome::Released,
                _ => HoldOutcome::Settled,
            },
            extension: extension.map(usd),
            measured: measured(cost),
            ended_by: ended_by.cloned(),
        };
        let from = clock::now_ms();
        let store = &self.scripts.store;
        let found = settle.execute(&name.keys(), as_of, store).await;
        let at = Window {
            from,
            to: clock::now_ms(),
        };
        if as_of.is_some_and(|as_of| self.model.lost_writes(&name.allow_id, as_of)) {
            lost_writes(&settle, &found)?;
            return self.compare().await;
        }
        let found = found.map_err(|error| format!("{settle:?}: {error:?}"))?;
        let expected = self.model.settle(&settle, ended_by, at);
        same(&settle, found, &expected)?;
        self.compare().await
    }

    pub async fn void(&mut self, name: &HoldName) -> Checked {
        self.void_as_of(name, AccountVersion::default()).await
    }

    /// Voids; if the hold is missing, the account's version must be at least `as_of`.
    pub async fn void_as_of(&mut self, name: &HoldName, as_of: AccountVersion) -> Checked {
        let from = clock::now_ms();
        let found = void(&self.scripts.store, name, as_of).await;
        let at = Window {
            from,
            to: clock::now_ms(),
        };
        if self.model.lost_writes(&name.allow_id, as_of) {
            lost_writes(name, &found)?;
            return self.compare().await;
        }
        let found = found.map_err(|error| format!("void {name:?}: {error:?}"))?;
        same(name, found, &self.model.void(&name.allow_id, at))?;
        self.compare().await
    }

    /// Reaps; waits until a due deadline lies in the past, so that the outcome does not depend on a millisecond.
    pub async fn reap(&mut self, hold: &Hold) -> Checked {
        let id = &hold.name.allow_id;
        if let Some(ChargeState::Open { due }) = self.model.open(id).map(|at| self.model.charges[at].state) {
            while clock::now_ms() < due.to && due.to < clock::now_ms() + 1000 {
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
        }
        let from = clock::now_ms();
        let found = reap(&self.scripts.store, hold).await;
        let at = Window {
            from,
            to: clock::now_ms(),
        };
        let found = found.map_err(|error| format!("reap {id}: {error:?}"))?;
        same(hold, found, &self.model.reap(id, at))?;
        self.compare().await
    }

    /// The hold of a call, as the reaper reads it: the open one with its id, or the one that the call would open.
    pub fn hold(&self, call: &Call) -> Hold {
        let open = self
            .model
            .open(&call.name.allow_id)
            .map(|at| &self.model.charges[at]);
        Hold {
            name: call.name.clone(),
            estimate: open.map_or(call.estimate.unwrap_or_default(), |charge| usd(charge.estimate)),
            period: self.model.period,
            run_named: call.named,
            checks: open.map_or(String::new(), |charge| charge.checks.clone()),
            key_id: open.map_or(&call.key_id, |charge| &charge.key_id).clone(),
            price_version: PRICE_VERSION.to_owned(),
            model: MODEL.to_owned(),
        }
    }

    /// Changes the model and then the store, with a change of the account's version, as the product does.
    pub async fn change(&mut self, change: impl FnOnce(&mut Model)) -> Checked {
        change(&mut self.model);
        self.model.version += 1;
        let keys = AccountKeys::new(ACCOUNT);
        let mut pipeline = redis::Pipeline::new();
        let owned = self.model.agents.keys().map(|agent| keys.live().agent(agent));
        let owned: Vec<String> = owned.chain([keys.record(), keys.active_keys()]).collect();
        let listed = self.model.listed.keys();
        let gone = listed.filter(|run| !self.model.runs.contains_key(*run));
        let gone: Vec<String> = gone.map(|(agent, run)| keys.live().run(agent, run)).collect();
        pipeline.atomic().cmd("DEL").arg(&owned).arg(&gone);
        let expected = self.model.render();
        for key in &owned {
            if let Some(record) = expected.get(key) {
                pipeline.add_command(snapshot::write(key, &record.shape));
            }
        }
        let done: Result<redis::Value, _> = self.scripts.store.pipeline(&pipeline).await;
        done.map_err(|error| format!("{error:?}"))?;
        self.compare().await
    }
}
