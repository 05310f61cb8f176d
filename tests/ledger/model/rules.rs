//! What each script should answer, and what should be different afterwards.

use super::{CEILING, Call, Charge, MODEL, Model, Moment, PRICE_VERSION, Run, State, millis};
use crate::photo::Window;
use serde_json::json;
use shared::domain::cap::{self, Standing};
use shared::domain::denial::Denial;
use shared::domain::money::Nanos;
use shared::domain::period::Period;
use shared::store::script::authorize::{Answer, Outcome, RUN_LIFE};
use shared::store::script::reap::{KEPT_LIFE, Reaped};
use shared::store::script::settle::Settled;
use shared::store::script::void::{TOMBSTONE_LIFE, Voided};

impl Model {
    /// What `authorize` should answer; the state afterwards is the model's.
    pub fn authorize(&mut self, call: &Call, at: Moment) -> Answer {
        let outcome = self.decide(call, at);
        if let Outcome::Charged { .. } = outcome {
            self.charge(call, at);
        }
        Answer {
            outcome,
            view: self.view(),
        }
    }

    fn decide(&mut self, call: &Call, at: Moment) -> Outcome {
        let known = &call.view;
        if self.generation < known.generation
            || (self.generation == known.generation && self.version < known.version)
        {
            return Outcome::Stale;
        }
        let Some(rank) = self.active.iter().position(|(_, key)| *key == call.key_id) else {
            return Outcome::Revoked;
        };
        if self.plan != known.plan {
            return Outcome::OtherPlan;
        }
        let key = self.keys.entry(call.key_id.clone()).or_default();
        let (before, opened) = key.rate.unwrap_or((0, at.real));
        key.rate = Some((before + 1, opened));
        if before == 0 {
            key.last_used = Some(at.clock);
        }
        if call
            .plan
            .active_virtual_keys
            .is_some_and(|limit| rank as u64 >= limit)
        {
            return Outcome::Denied(Denial::PlanKeyLimit);
        }
        if call
            .plan
            .proxy_requests_per_minute
            .is_some_and(|limit| before >= limit)
        {
            return Outcome::Denied(Denial::RateLimited);
        }
        match call.estimate {
            None => Outcome::Counted,
            Some(estimate) => self.cap(call, estimate),
        }
    }

    fn cap(&self, call: &Call, estimate: Nanos) -> Outcome {
        let name = &call.name;
        let Some(agent) = self
            .agents
            .get(&name.agent)
            .filter(|agent| !agent.no_provider_key)
        else {
            return Outcome::Denied(Denial::NoProviderKey);
        };
        let stored = |sum: i128| Nanos::from_stored(u64::try_from(sum).expect("no counter is negative"));
        let standing = Standing {
            frozen: agent.frozen,
            run_spent: stored(if call.named {
                self.run_spent(&name.agent, &name.run)
            } else {
                0
            }),
            day_spent: stored(self.day_spent(&name.agent)),
            month_spent: stored(self.month_spent(&name.agent)),
            has_slot: self.slot(&name.agent) == Some(self.period.month),
            slots_used: self.slots(self.period.month),
            tracked_spent: stored(self.tracked()),
        };
        let policy = self.effective(&name.agent);
        if let Err(denial) = cap::decide(policy.as_ref(), &call.plan.cap(), &standing, estimate) {
            return Outcome::Denied(denial);
        }
        if self.open(&name.allow_id).is_some() || self.tombstones.contains_key(&name.allow_id) {
            return Outcome::KnownId;
        }
        let sums = [
            standing.run_spent,
            standing.day_spent,
            standing.month_spent,
            standing.tracked_spent,
        ];
        if sums
            .iter()
            .any(|sum| i128::from(sum.get()) + i128::from(estimate.get()) > CEILING)
        {
            return Outcome::TooMuch;
        }
        Outcome::Charged {
            provider_key_id: format!("pk_{}", name.agent),
            sealed: format!("sealed {}", name.agent),
        }
    }

    fn charge(&mut self, call: &Call, at: Moment) {
        let name = call.name.clone();
        let estimate = call.estimate.expect("an approved call has an estimate").get();
        let first_today = !self
            .charges
            .iter()
            .any(|charge| charge.agent == name.agent && charge.period.day == self.period.day);
        if first_today {
            let period = self.period;
            let agent = self.agents.entry(name.agent.clone()).or_default();
            agent.extra.retain(|field, _| !is_old(field, period));
        }
        if call.named {
            let run = self.runs.entry((name.agent.clone(), name.run.clone()));
            let clock = at.clock;
            let run = run.or_insert(Run {
                calls: 0,
                first: clock,
                last: clock,
                expires: clock,
            });
            run.calls += 1;
            run.last = clock;
            run.expires = at.real.later(millis(RUN_LIFE));
            if run.calls == 1 {
                run.first = clock;
            }
        }
        self.charges.push(Charge {
            id: name.allow_id,
            agent: name.agent,
            run: name.run,
            named: call.named,
            key_id: call.key_id.clone(),
            period: self.period,
            estimate,
            amount: i128::from(estimate),
            state: State::Open {
                due: at.clock.later(millis(call.hold_life)),
            },
        });
        self.version += 1;
    }

    pub fn open(&self, id: &str) -> Option<usize> {
        self.find(id, |state| matches!(state, State::Open { .. }))
    }

    fn kept(&self, id: &str) -> Option<usize> {
        self.find(id, |state| matches!(state, State::Kept { .. }))
    }

    fn find(&self, id: &str, of: impl Fn(State) -> bool) -> Option<usize> {
        self.charges
            .iter()
            .position(|charge| charge.id == id && of(charge.state))
    }

    /// What `settle` should answer.
    pub fn settle(&mut self, id: &str, estimate: u64, cost: u64) -> Settled {
        if self.tombstones.contains_key(id) {
            return Settled::Missing;
        }
        let Some(at) = self.open(id).or_else(|| self.kept(id)) else {
            return Settled::Missing;
        };
        if self.charges[at].estimate != estimate {
            return Settled::Mismatch;
        }
        self.charges[at].amount += i128::from(cost) - i128::from(estimate);
        self.charges[at].state = State::Settled;
        self.version += 1;
        Settled::Done {
            version: self.version,
        }
    }

    /// What `void` should answer.
    pub fn void(&mut self, id: &str, at: Window) -> Voided {
        let life = millis(TOMBSTONE_LIFE);
        let found = self.open(id).or_else(|| self.kept(id));
        self.tombstones.insert(id.to_owned(), at.later(life));
        let Some(found) = found else { return Voided::Barred };
        let charge = &mut self.charges[found];
        charge.amount = 0;
        charge.state = State::Voided;
        if let Some(run) = self.runs.get_mut(&(charge.agent.clone(), charge.run.clone())) {
            run.calls -= i64::from(charge.named);
        }
        self.version += 1;
        Voided::Refunded
    }

    /// What `reap` should answer.
    pub fn reap(&mut self, id: &str, at: Window) -> Reaped {
        let Some(found) = self.open(id) else {
            if self.due_extra.get(id).is_some_and(|deadline| *deadline > at.to) {
                return Reaped::Early;
            }
            self.due_extra.remove(id);
            return Reaped::Gone;
        };
        let charge = &mut self.charges[found];
        let State::Open { due } = charge.state else {
            return Reaped::Gone;
        };
        if due.from > at.to {
            return Reaped::Early;
        }
        assert!(
            due.to <= at.from,
            "a test must not depend on the millisecond: {due:?} {at:?}"
        );
        charge.state = State::Kept { at };
        let entry = json!({
            "id": id, "type": "hold.kept", "agentId": charge.agent, "actor": "reaper",
            "data": { "runId": charge.run, "keyId": charge.key_id, "model": MODEL,
                "estimateNanos": charge.estimate.to_string(), "priceVersion": PRICE_VERSION },
        });
        self.kept_log.push((at, entry));
        let life = millis(KEPT_LIFE);
        self.kept_extra.retain(|_, moment| *moment + life > at.to);
        self.version += 1;
        Reaped::Kept
    }

    /// A run's record expires.
    pub fn forget_run(&mut self, agent: &str, run: &str) {
        self.runs.remove(&(agent.to_owned(), run.to_owned()));
    }
}

/// Whether a counter's field is dropped at an agent's first charge of the day.
fn is_old(field: &str, now: Period) -> bool {
    let age = |number: &str, now: u64| number.parse().map_or(0, |then: u64| now.saturating_sub(then));
    match field.split_at(1) {
        ("d", number) => age(number, now.day) > 40,
        ("m", number) => age(number, now.month) > 200,
        _ => false,
    }
}
