//! The expected answer of each script that decides or records, and the state afterwards.

use super::{
    CEILING, Call, Charge, ChargeState, Counted, MINUTE_MS, MODEL, Model, Moment, PRICE_VERSION, Run, millis,
};
use crate::snapshot::Window;
use domain::cap;
use domain::denial::{Denial, DenialStage};
use domain::denial_window::OWN_RECORDS;
use domain::money::Nanos;
use harness::old_counters;
use std::collections::BTreeMap;
use std::ops::Range;
use store::call::authorize::{AuthorizeOutcome, AuthorizeReply, RUN_LIFE_MS};
use store::call::denial_windows::CountedDenials;
use store::call::denial_windows::script::WindowRecorded;
use store::call::hold::HoldName;
use store::script::change::VERSION_STEP;

/// Most members that a script drops from an index at once.
pub(super) const EXPIRED_MAX: usize = 10;

impl Model {
    /// The expected answer of `authorize`. Updates the model.
    pub fn authorize(&mut self, call: &Call, at: Moment) -> AuthorizeReply {
        self.forget_window_ahead(call, at.clock.to);
        let before = self.checks(call);
        let outcome = self.decide(call, at);
        match &outcome {
            AuthorizeOutcome::Charged { .. } => self.charge(call, before.join(","), at),
            AuthorizeOutcome::Denied(denial) => self.denied(call, *denial, &before, at),
            AuthorizeOutcome::RunsFull => self.write_denial(call, Denial::RateLimited, 0..7, (&before, at)),
            AuthorizeOutcome::TooMuch => {
                self.write_denial(call, Denial::ServiceUnavailable, 0..0, (&before, at))
            }
            _ => {}
        }
        AuthorizeReply {
            outcome,
            view: self.view(),
        }
    }

    fn decide(&mut self, call: &Call, at: Moment) -> AuthorizeOutcome {
        let known = &call.view;
        if self.generation < known.generation
            || (self.generation == known.generation && self.version < known.version)
        {
            return AuthorizeOutcome::LostWrites;
        }
        let Some(rank) = self.active.iter().position(|(_, key)| *key == call.key_id) else {
            return AuthorizeOutcome::Revoked;
        };
        if self.plan != known.plan {
            return AuthorizeOutcome::OtherPlan;
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
            return self.before_cap(call, Denial::PlanKeyLimit, before, opened);
        }
        if call
            .plan
            .proxy_requests_per_minute
            .is_some_and(|limit| before >= limit)
        {
            return self.before_cap(call, Denial::RateLimited, before, opened);
        }
        match call.estimate {
            None => AuthorizeOutcome::Counted,
            Some(estimate) => self.cap(call, estimate, at),
        }
    }

    /// The outcome of a denial before Cap, for a key with `before` earlier requests in its minute: beyond its rate the
    /// denial is counted, and has a line only if it is one of the first.
    fn before_cap(&mut self, call: &Call, denial: Denial, before: u64, opened: Window) -> AuthorizeOutcome {
        let limit = call.plan.proxy_requests_per_minute;
        if limit.is_none_or(|limit| before < limit) {
            return AuthorizeOutcome::Denied(denial);
        }
        let HoldName { account, agent, .. } = &call.name;
        let name = format!("{} {account} {agent} {}", denial.reason(), call.key_id);
        let ends = opened.later(MINUTE_MS);
        let known = |counted: &&mut Counted| counted.name == name && counted.ends == ends;
        let count = match self.counted.iter_mut().find(known) {
            Some(counted) => {
                counted.count += 1;
                counted.count
            }
            None => {
                self.counted.push(Counted { ends, name, count: 1 });
                1
            }
        };
        let ends_ms = ends.from;
        match count > OWN_RECORDS {
            true => AuthorizeOutcome::DeniedUnrecorded { denial, ends_ms },
            false => AuthorizeOutcome::Denied(denial),
        }
    }

    /// The expected answer of `denial_window`; `text` is the entry that it writes.
    pub fn record_window(&mut self, counted: &CountedDenials, text: String, at: Window) -> WindowRecorded {
        if counted.ends_ms > at.to {
            return WindowRecorded::Early;
        }
        let name = counted.field.split_once(' ').map_or("", |(_, name)| name);
        let same = |there: &Counted| there.name == name && there.ends.from == counted.ends_ms;
        let Some(found) = self.counted.iter().position(same) else {
            return WindowRecorded::Changed;
        };
        if self.counted[found].count != counted.count {
            return WindowRecorded::Changed;
        }
        self.counted.remove(found);
        self.version += VERSION_STEP;
        self.log.push((at, text));
        WindowRecorded::Done
    }

    /// Counters before a call, a group for each check.
    fn checks(&self, call: &Call) -> [String; 7] {
        let (agent, plan) = (call.name.agent.as_str(), &call.plan);
        let text = |limit: Option<u64>| limit.map(|limit| limit.to_string()).unwrap_or_default();
        let nanos = |limit: Option<Nanos>| text(limit.map(Nanos::get));
        let policy = self.effective(agent).unwrap_or_default();
        let rank = self.active.iter().position(|(_, key)| *key == call.key_id);
        let requests = self.keys.get(&call.key_id).and_then(|key| key.rate);
        let of_run = |charge: &Charge| {
            call.named && charge.named && charge.agent == agent && charge.run == call.name.run
        };
        let held = self.held(|charge| charge.agent == agent);
        let slots = self.slots(self.period.month);
        let others = slots - u64::from(self.has_slot(agent, self.period.month));
        let keys = text(plan.active_virtual_keys);
        [
            format!("{}:{keys}:", rank.unwrap_or_default()),
            format!(
                "{}:{}:",
                requests.map_or(0, |(count, _)| count),
                text(plan.proxy_requests_per_minute)
            ),
            format!("{}:{}:", self.sum(of_run), nanos(policy.per_run)),
            format!("{}:{}:{held}", self.day_spent(agent), nanos(policy.daily)),
            format!("{}:{}:", self.month_spent(agent), nanos(policy.monthly)),
            format!("{others}:{}:", text(plan.cap_agents_per_month)),
            format!("{}:{}:", self.tracked(), nanos(plan.tracked_usd_per_month)),
        ]
    }

    /// Writes the line of a denial, and counts it for its run where Cap or the plan decided.
    fn denied(&mut self, call: &Call, denial: Denial, before: &[String; 7], at: Moment) {
        let shown = match denial {
            Denial::PlanKeyLimit => 0..1,
            Denial::RateLimited => 1..2,
            Denial::NoProviderKey => 0..0,
            _ => 0..7,
        };
        self.write_denial(call, denial, shown, (before, at));
        let run = (call.name.agent.clone(), call.name.run.clone());
        if call.named && denial.stage() != DenialStage::BeforeCap && self.runs.contains_key(&run) {
            self.touch_run(call, at).denied += 1;
        }
    }

    /// Writes the line of a denial that shows these groups.
    fn write_denial(
        &mut self,
        call: &Call,
        denial: Denial,
        shown: Range<usize>,
        (before, at): (&[String; 7], Moment),
    ) {
        let groups = before.iter().enumerate();
        let groups = groups.map(|(group, text)| if shown.contains(&group) { text } else { "" });
        let groups: Vec<&str> = groups.collect();
        let HoldName {
            account,
            agent,
            run,
            allow_id,
        } = &call.name;
        let amount = call.estimate.and_then(|estimate| Nanos::new(estimate.get()));
        let estimate = amount.map_or("-".to_owned(), |estimate| estimate.get().to_string());
        let priced = if call.estimate.is_some() {
            format!("{PRICE_VERSION} {MODEL}")
        } else {
            "- ".to_owned()
        };
        let line = format!(
            "D {} {allow_id} {estimate} {} {account} {agent} {run} {} {priced}",
            denial.reason(),
            groups.join(","),
            call.key_id
        );
        self.log.push((at.clock, line));
    }

    /// A named run's record, updated to the current moment.
    fn touch_run(&mut self, call: &Call, at: Moment) -> &mut Run {
        let name = (call.name.agent.clone(), call.name.run.clone());
        let (now, expires) = (at.clock, at.real.later(RUN_LIFE_MS));
        let listed = self.listed.get(&name).copied().unwrap_or(now);
        let counted = self.counted_runs.get(&name).copied().unwrap_or(now);
        let indexed = self.listed_expires.get(&name.0).copied().unwrap_or(expires);
        let all_indexed = self.counted_expires.unwrap_or(expires);
        let minutes = |window: Window| (window.from / MINUTE_MS, window.to / MINUTE_MS);
        let run = self.runs.get(&name).copied();
        let (listed, counted, last, expires, indexed) = match run {
            // Within the minute in which the run was last seen, moment, indexes and expiry stay as they are.
            Some(run) if minutes(run.last) == minutes(now) && minutes(now).0 == minutes(now).1 => {
                (listed, counted, run.last, run.expires, None)
            }
            // The minute may have ended between the two calls.
            Some(run) if minutes(run.last).1 >= minutes(now).0 => (
                listed.hull(now),
                counted.hull(now),
                run.last.hull(now),
                run.expires.hull(expires),
                Some((indexed.hull(expires), all_indexed.hull(expires))),
            ),
            _ => (now, now, now, expires, Some((expires, expires))),
        };
        self.listed.insert(name.clone(), listed);
        self.counted_runs.insert(name.clone(), counted);
        if let Some((indexed, all_indexed)) = indexed {
            self.listed_expires.insert(name.0.clone(), indexed);
            self.counted_expires = Some(all_indexed);
            let oldest = now.to.saturating_sub(RUN_LIFE_MS);
            drop_ended(&mut self.listed, oldest, |agent| *agent == name.0);
            drop_ended(&mut self.counted_runs, oldest, |_| true);
        }
        let new = Run {
            calls: None,
            denied: 0,
            first: now,
            last: now,
            expires,
            status: None,
            by_calls: false,
        };
        let run = self.runs.entry(name).or_insert(new);
        (run.last, run.expires) = (last, expires);
        run
    }

    fn cap(&self, call: &Call, estimate: Nanos, at: Moment) -> AuthorizeOutcome {
        let name = &call.name;
        if self
            .agents
            .get(&name.agent)
            .is_none_or(|agent| agent.no_provider_key)
        {
            return AuthorizeOutcome::Denied(Denial::NoProviderKey);
        }
        let run_spent = match call.named {
            true => self.run_spent(&name.agent, &name.run),
            false => 0,
        };
        let spent = [
            run_spent,
            self.day_spent(&name.agent),
            self.month_spent(&name.agent),
            self.tracked(),
        ];
        let month = self.period.month;
        let slots = (self.has_slot(&name.agent, month), self.slots(month));
        let snapshot = self.cap_snapshot(&name.agent, spent, slots);
        let policy = self.effective(&name.agent);
        if let Err(denial) = cap::decide(policy.as_ref(), &call.plan.cap(), &snapshot, estimate) {
            return AuthorizeOutcome::Denied(denial);
        }
        let run = (name.agent.clone(), name.run.clone());
        let is_new = call.named && !self.runs.contains_key(&run);
        // A run is kept for 35 days after its last call (decision D38), and counts as long (decision D71).
        let ended = at.clock.to.saturating_sub(RUN_LIFE_MS);
        if is_new && self.live_runs(ended) >= self.runs_most {
            return AuthorizeOutcome::RunsFull;
        }
        let sums = [
            snapshot.run_spent,
            snapshot.day_spent,
            snapshot.month_spent,
            snapshot.tracked_spent,
            Nanos::from_stored(self.held(|charge| charge.agent == name.agent)),
        ];
        if sums
            .iter()
            .any(|sum| i128::from(sum.get()) + i128::from(estimate.get()) > CEILING)
        {
            return AuthorizeOutcome::TooMuch;
        }
        if self.open(&name.allow_id).is_some() || self.tombstones.contains_key(&name.allow_id) {
            return AuthorizeOutcome::KnownId;
        }
        AuthorizeOutcome::Charged {
            estimate,
            provider_key_id: format!("pk_{}", name.agent),
            sealed: format!("sealed-{}", name.agent),
        }
    }

    fn charge(&mut self, call: &Call, checks: String, at: Moment) {
        let name = call.name.clone();
        let estimate = call.estimate.expect("an approved call has an estimate").get();
        let first_today = !self
            .charges
            .iter()
            .any(|charge| charge.agent == name.agent && charge.period.day == self.period.day);
        if first_today {
            let period = self.period;
            let mut agent = self.agents.remove(&name.agent).unwrap_or_default();
            let old = old_counters(self.agent(&name.agent, &agent).keys(), period);
            agent.extra.retain(|field, _| !old.contains(field));
            self.agents.insert(name.agent.clone(), agent);
        }
        if call.named {
            let is_new = !self.runs.contains_key(&(name.agent.clone(), name.run.clone()));
            let run = self.touch_run(call, at);
            run.by_calls = is_new || run.by_calls && run.status.is_none();
            run.calls = Some(run.calls.unwrap_or(0) + 1);
            run.status = None;
        }
        self.charges.push(Charge {
            id: name.allow_id,
            agent: name.agent,
            run: name.run,
            named: call.named,
            key_id: call.key_id.clone(),
            period: self.period,
            estimate,
            checks,
            amount: i128::from(estimate),
            state: ChargeState::Open {
                due: at.clock.later(millis(call.hold_life)),
            },
        });
        self.version += 1;
    }

    /// Removes the record of an expired run.
    pub fn forget_run(&mut self, agent: &str, run: &str) {
        self.runs.remove(&(agent.to_owned(), run.to_owned()));
    }
}

/// Drops the first ended runs of some agents: those that were not seen since `oldest`.
fn drop_ended(
    index: &mut BTreeMap<(String, String), Window>,
    oldest: u64,
    is_meant: impl Fn(&String) -> bool,
) {
    let ended = index
        .iter()
        .filter(|((agent, _), touch_run)| is_meant(agent) && touch_run.from <= oldest);
    let mut ended: Vec<_> = ended
        .map(|(run, touch_run)| (touch_run.from, run.clone()))
        .collect();
    ended.sort_unstable();
    for (_, run) in ended.into_iter().take(EXPIRED_MAX) {
        index.remove(&run);
    }
}
