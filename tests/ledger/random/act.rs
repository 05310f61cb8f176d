//! Plays a case: choices become concrete calls on the records that the model has at that moment.

use super::op::{Amount, CallOp, Case, Cost, From, Gauge, Id, Limit, NamedEstimate, Op, PlanLimits, Policy};
use crate::fixture::{ACCOUNT, AGENTS, Checked, Fixture, KEYS, LONG, unlimited, usd};
use crate::model::{Call, Charge, ChargeState, NO_CHECKS};
use crate::scripts::Scripts;
use domain::cap::CapPolicy;
use domain::money::Nanos;
use domain::period::Period;
use domain::plan::Plan;
use std::time::Duration;
use store::call::hold::HoldName;

struct Actor<'a> {
    fixture: Fixture<'a>,
    plans: [Plan; 3],
    calls: Vec<Call>,
    /// Runs are not used again after their record expired: 35 days have passed.
    run_age: [[u32; 2]; 3],
    next_key: u64,
}

pub async fn play(scripts: &Scripts, period: Period, case: &Case) -> Checked {
    let mut fixture = Fixture::new(scripts, period);
    if case.before > 0 {
        fixture.model.charges.push(spent_before(period, case.before));
    }
    fixture.install().await?;
    let plans = case.plans.map(plan);
    let next_key = KEYS.len() as u64 + 1;
    let mut actor = Actor {
        fixture,
        plans,
        calls: Vec::new(),
        run_age: [[0; 2]; 3],
        next_key,
    };
    for (at, op) in case.ops.iter().enumerate() {
        actor
            .act(*op)
            .await
            .map_err(|error| format!("action {at}, {op:?}: {error}"))?;
    }
    Ok(())
}

fn spent_before(period: Period, amount: u64) -> Charge {
    Charge {
        id: "allow_before".to_owned(),
        agent: AGENTS[0].to_owned(),
        run: "before".to_owned(),
        named: false,
        key_id: KEYS[0].to_owned(),
        period,
        estimate: 0,
        checks: NO_CHECKS.to_owned(),
        amount: i128::from(amount),
        state: ChargeState::Settled,
    }
}

fn plan(limits: PlanLimits) -> Plan {
    Plan {
        active_virtual_keys: limits.keys,
        proxy_requests_per_minute: limits.rate,
        cap_agents_per_month: limits.agents,
        tracked_usd_per_month: limits.tracked.map(usd),
        ..unlimited()
    }
}

fn clamp(amount: i128) -> u64 {
    u64::try_from(amount.max(0))
        .unwrap_or(u64::MAX)
        .min(Nanos::MAX.get())
}

impl Actor<'_> {
    async fn act(&mut self, op: Op) -> Checked {
        match op {
            Op::Call(call) => self.call(call).await,
            Op::Extend { .. } => self.extend(op).await,
            Op::Settle { which, cost, named } => self.settle(which, cost, named).await,
            Op::Void { which } => match self.pick(which) {
                Some(call) => self.fixture.void(&call.name).await,
                None => Ok(()),
            },
            Op::VoidUnknown => {
                let call = self.fixture.call_in("r", 1);
                self.calls.push(call.clone());
                self.fixture.void(&call.name).await
            }
            Op::Reap { which } => match self.pick(which) {
                Some(call) => {
                    let hold = self.fixture.hold(&call);
                    self.fixture.reap(&hold).await
                }
                None => Ok(()),
            },
            Op::Generation => self.fixture.change(|model| model.generation += 1).await,
            Op::ForgetRun { agent, run } => {
                let name = self.run_name(agent, run);
                self.run_age[agent][run] += 1;
                self.fixture
                    .change(|model| model.forget_run(AGENTS[agent], &name))
                    .await
            }
            change => self.change(change).await,
        }
    }

    async fn change(&mut self, op: Op) -> Checked {
        let policy = match op {
            Op::Policy {
                agent,
                policy: Some(policy),
            } => Some(self.policy(agent.unwrap_or(0), policy)),
            _ => None,
        };
        let (number, plan) = (self.next_key, if let Op::Plan(plan) = op { plan } else { 0 });
        self.next_key += 1;
        let change = |model: &mut crate::model::Model| match op {
            Op::Policy { agent: None, .. } => model.policy = policy,
            Op::Policy {
                agent: Some(agent), ..
            } => agent_of(model, agent).cap = policy,
            Op::Freeze { agent, frozen } => agent_of(model, agent).frozen = frozen,
            Op::ProviderKey { agent, present } => agent_of(model, agent).no_provider_key = !present,
            Op::Key { key, active } => {
                let known = model.active.iter().position(|(_, id)| *id == KEYS[key]);
                match (known, active) {
                    (Some(at), false) => drop(model.active.remove(at)),
                    (None, true) => model.active.push((number, KEYS[key].to_owned())),
                    _ => {}
                }
            }
            _ => model.plan = format!("p{plan}"),
        };
        self.fixture.change(change).await
    }

    fn pick(&self, which: usize) -> Option<Call> {
        // Recent calls are picked more often: half of the time one of the last three.
        let from = if which.is_multiple_of(2) {
            self.calls.len().saturating_sub(3)
        } else {
            0
        };
        let calls = &self.calls[from..];
        (!calls.is_empty()).then(|| calls[which / 2 % calls.len()].clone())
    }

    fn run_name(&self, agent: usize, run: usize) -> String {
        format!("r{run}.{}", self.run_age[agent][run])
    }

    fn plan_now(&self) -> &Plan {
        let at = self
            .fixture
            .model
            .plan
            .trim_start_matches('p')
            .parse()
            .unwrap_or(0);
        &self.plans[at]
    }

    fn spent(&self, agent: &str, run: &str, gauge: Gauge) -> i128 {
        let model = &self.fixture.model;
        match gauge {
            Gauge::Run => model.run_spent(agent, run),
            Gauge::Day => model.day_spent(agent),
            Gauge::Month => model.month_spent(agent),
            Gauge::Tracked => model.tracked(),
        }
    }

    fn policy(&self, agent: usize, policy: Policy) -> CapPolicy {
        let run = self.run_name(agent, 0);
        let limit = |limit: Limit, gauge: Gauge| match limit {
            Limit::None => None,
            Limit::Zero => Some(Nanos::ZERO),
            Limit::Small(nanos) => Some(usd(nanos)),
            Limit::Max => Some(Nanos::MAX),
            Limit::Spent(more) => Some(usd(clamp(
                self.spent(AGENTS[agent], &run, gauge) + i128::from(more),
            ))),
        };
        CapPolicy {
            enabled: policy.enabled,
            per_run: limit(policy.run, Gauge::Run),
            daily: limit(policy.day, Gauge::Day),
            monthly: limit(policy.month, Gauge::Month),
        }
    }

    fn amount(&self, amount: Amount, agent: &str, run: &str) -> u64 {
        let policy = self.fixture.model.effective(agent).unwrap_or_default();
        match amount {
            Amount::Zero => 0,
            Amount::One => 1,
            Amount::Small(nanos) => nanos,
            Amount::Max => Nanos::MAX.get(),
            Amount::Room(gauge, off) => {
                let limit = match gauge {
                    Gauge::Run => policy.per_run,
                    Gauge::Day => policy.daily,
                    Gauge::Month => policy.monthly,
                    Gauge::Tracked => self.plan_now().tracked_usd_per_month,
                };
                let room = limit.map(|limit| i128::from(limit.get()) - self.spent(agent, run, gauge));
                room.map_or(3, |room| clamp(room + i128::from(off)))
            }
        }
    }

    async fn call(&mut self, op: CallOp) -> Checked {
        let agent = AGENTS[op.agent];
        let mut call = self.fixture.call(0);
        agent.clone_into(&mut call.name.agent);
        KEYS[op.key].clone_into(&mut call.key_id);
        if let Some(run) = op.run {
            call.named = true;
            call.name.run = self.run_name(op.agent, run);
        }
        if let Id::Earlier(which) = op.id
            && let Some(earlier) = self.pick(which)
            && self.can_come_again(&earlier)
        {
            (call.name, call.named) = (earlier.name, earlier.named);
        }
        let amount = self.amount(op.amount, &call.name.agent, &call.name.run);
        call.estimate = (!op.probe).then(|| usd(amount));
        if op.due_at_once {
            call.hold_life = Duration::ZERO;
        } else {
            call.hold_life = LONG;
        }
        call.plan = self.plan_now().clone();
        op.drift.apply(&mut call.view);
        self.calls.push(call.clone());
        self.fixture.authorize(&call).await
    }

    /// Returns true if a call's command may arrive again. It may not if the hold is kept, since it is then as old as a
    /// hold's life, or if the run's record has expired.
    fn can_come_again(&self, call: &Call) -> bool {
        let name = &call.name;
        let model = &self.fixture.model;
        let kept =
            |charge: &Charge| charge.id == name.allow_id && matches!(charge.state, ChargeState::Kept { .. });
        let of_run = |charge: &Charge| charge.named && charge.agent == name.agent && charge.run == name.run;
        let known = model.runs.contains_key(&(name.agent.clone(), name.run.clone()));
        !model.charges.iter().any(kept) && (known || !model.charges.iter().any(of_run))
    }

    async fn extend(&mut self, op: Op) -> Checked {
        let Op::Extend {
            which,
            by,
            from,
            drift,
            due_at_once,
        } = op
        else {
            return Ok(());
        };
        let Some(call) = self.pick(which) else {
            return Ok(());
        };
        let by = self.amount(by, &call.name.agent, &call.name.run);
        let mut extension = self.fixture.extension(&call, 0);
        extension.to = clamp(i128::from(extension.from) + i128::from(by));
        match from {
            From::Now => {}
            From::Repeated => {
                (extension.from, extension.to) = (extension.from.saturating_sub(1), extension.from)
            }
            From::Wrong => extension.from = (extension.from ^ 1).min(Nanos::MAX.get()),
        }
        extension.plan = self.plan_now().clone();
        if due_at_once {
            extension.hold_life = Duration::ZERO;
        }
        drift.apply(&mut extension.view);
        self.fixture.extend(&extension).await
    }

    async fn settle(&mut self, which: usize, cost: Cost, named: NamedEstimate) -> Checked {
        let Some(call) = self.pick(which) else {
            return Ok(());
        };
        let name = HoldName {
            account: ACCOUNT.to_owned(),
            ..call.name
        };
        let first = call.estimate.unwrap_or_default().get();
        let mut charges = self.fixture.model.charges.iter().rev();
        let charge = charges.find(|charge| charge.id == name.allow_id);
        let estimate = charge.map_or(first, |charge| charge.estimate);
        let cost = match cost {
            Cost::Estimate => estimate,
            Cost::Zero => 0,
            Cost::Off(off) => clamp(i128::from(estimate) + i128::from(off)),
            Cost::Max => Nanos::MAX.get(),
        };
        let another = (estimate ^ 1).min(Nanos::MAX.get());
        match named {
            NamedEstimate::Current => self.fixture.settle(&name, estimate, cost).await,
            NamedEstimate::Either => self.fixture.settle_either(&name, (first, estimate), cost).await,
            NamedEstimate::NotExtended => self.fixture.settle_either(&name, (estimate, another), cost).await,
            NamedEstimate::Wrong => self.fixture.settle(&name, another, cost).await,
        }
    }
}

fn agent_of(model: &mut crate::model::Model, agent: usize) -> &mut crate::model::Agent {
    model.agents.entry(AGENTS[agent].to_owned()).or_default()
}
