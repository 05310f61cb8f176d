//! Extensions of a hold: each limit exactly reached and exceeded by one nano, the hold's own run, day and month, every
//! reason of refusal, and the end of an extended hold.

mod counters;

use super::Bench;
use super::preconditions::{GAUGES, Gauge, before, policy, set_policy};
use crate::fixture::{AGENTS, Checked, Fixture, KEYS, LONG, open_cap, usd};
use crate::model::{Call, Charge, ChargeState, Extension, Model, NO_CHECKS};
use crate::snapshot::Window;
use domain::cap::CapPolicy;
use domain::period::Period;
use std::time::Duration;

/// The estimate before the extension.
const FROM: u64 = 10;
/// The amount of the extension.
const BY: u64 = 7;

pub async fn all(bench: &Bench<'_>) -> Checked {
    limits(bench).await?;
    unnamed(bench).await?;
    own_periods(bench).await?;
    policies(bench).await?;
    reasons_in_order(bench).await?;
    views(bench).await?;
    holds(bench).await?;
    ends(bench).await?;
    deadlines(bench).await?;
    forgotten_runs(bench).await?;
    counters::all(bench).await
}

async fn approved(fixture: &mut Fixture<'_>, named: bool) -> Result<Call, String> {
    let call = if named {
        fixture.call_in("r", FROM)
    } else {
        fixture.call(FROM)
    };
    fixture.approve(&call).await?;
    Ok(call)
}

/// Sets the limit of a gauge: in the policy of agent `a`, or in the plan that the extension names.
async fn limit(fixture: &mut Fixture<'_>, extension: &mut Extension, gauge: Gauge, limit: u64) -> Checked {
    if gauge == Gauge::Tracked {
        extension.plan.tracked_usd_per_month = Some(usd(limit));
        return Ok(());
    }
    fixture
        .change(|model| set_policy(model, policy(gauge, limit)))
        .await?;
    extension.view = fixture.model.view();
    Ok(())
}

async fn limits(bench: &Bench<'_>) -> Checked {
    for gauge in GAUGES {
        for used in [0, 5] {
            for by in [1, BY] {
                let sum = used + FROM + by;
                for most in [0, sum - 1, sum, sum + 1] {
                    let mut fixture = before(bench, gauge, i128::from(used)).await?;
                    let call = approved(&mut fixture, true).await?;
                    let mut extension = fixture.extension(&call, FROM + by);
                    limit(&mut fixture, &mut extension, gauge, most).await?;
                    fixture.extend(&extension).await?;
                }
            }
        }
    }
    Ok(())
}

/// A call without a named run is a run by itself, also beside others.
async fn unnamed(bench: &Bench<'_>) -> Checked {
    for most in [FROM + BY - 1, FROM + BY] {
        let mut fixture = bench.installed().await?;
        approved(&mut fixture, false).await?;
        approved(&mut fixture, true).await?;
        let call = approved(&mut fixture, false).await?;
        let mut extension = fixture.extension(&call, FROM + BY);
        limit(&mut fixture, &mut extension, Gauge::Run, most).await?;
        fixture.extend(&extension).await?;
        fixture.settle(&call.name, FROM + BY, 4).await?;
    }
    Ok(())
}

fn charge(id: &str, period: Period, amount: u64, state: ChargeState) -> Charge {
    Charge {
        id: id.to_owned(),
        agent: AGENTS[0].to_owned(),
        run: "r".to_owned(),
        named: false,
        key_id: KEYS[0].to_owned(),
        period,
        estimate: amount,
        checks: NO_CHECKS.to_owned(),
        amount: i128::from(amount),
        state,
    }
}

/// The extension of a hold of yesterday and last month is charged there, also if more was charged since.
async fn own_periods(bench: &Bench<'_>) -> Checked {
    let (today, now) = (bench.period, clock::now_ms());
    let earlier = Period {
        day: today.day - 1,
        month: today.month - 1,
    };
    let due = Window::at(now + 3_600_000);
    for gauge in [Gauge::Day, Gauge::Month, Gauge::Tracked] {
        for most in [FROM + 5 + BY - 1, FROM + 5 + BY] {
            let mut fixture = bench.fixture();
            fixture.model.charges = vec![
                charge("allow_late", earlier, FROM, ChargeState::Open { due }),
                charge("allow_before", earlier, 5, ChargeState::Settled),
                charge("allow_today", today, 1_000, ChargeState::Settled),
            ];
            fixture.install().await?;
            let mut call = fixture.call(FROM);
            call.name.allow_id = "allow_late".to_owned();
            call.name.run = "r".to_owned();
            let mut extension = fixture.extension(&call, FROM + BY);
            limit(&mut fixture, &mut extension, gauge, most).await?;
            fixture.extend(&extension).await?;
            fixture.void(&call.name).await?;
        }
    }
    Ok(())
}

/// An agent's own policy replaces the account's as a whole; without one the account's applies.
async fn policies(bench: &Bench<'_>) -> Checked {
    let disabled = CapPolicy {
        enabled: false,
        ..open_cap()
    };
    let each = |most| {
        let limited = GAUGES[..3].iter().map(move |gauge| Some(policy(*gauge, most)));
        [None, Some(open_cap()), Some(disabled)]
            .into_iter()
            .chain(limited)
    };
    for own in each(FROM + BY - 1) {
        for account in each(FROM + BY) {
            let mut fixture = bench.installed().await?;
            let call = approved(&mut fixture, true).await?;
            let change = |model: &mut Model| {
                model.policy = account;
                if let Some(agent) = model.agents.get_mut(AGENTS[0]) {
                    agent.cap = own;
                }
            };
            fixture.change(change).await?;
            for to in [FROM + BY, FROM + BY - 1, FROM + BY + 1] {
                let extension = fixture.extension(&call, to);
                fixture.extend(&extension).await?;
            }
        }
    }
    Ok(())
}

/// Reasons that refuse an extension, in order of precedence.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Refusal {
    LostWrites,
    Estimate,
    Key,
    Plan,
    Frozen,
    Disabled,
    Limit(Gauge),
}

const ORDER: [Refusal; 10] = [
    Refusal::LostWrites,
    Refusal::Estimate,
    Refusal::Key,
    Refusal::Plan,
    Refusal::Frozen,
    Refusal::Disabled,
    Refusal::Limit(Gauge::Run),
    Refusal::Limit(Gauge::Day),
    Refusal::Limit(Gauge::Month),
    Refusal::Limit(Gauge::Tracked),
];

/// Of two reasons, the first in order is given.
async fn reasons_in_order(bench: &Bench<'_>) -> Checked {
    for (at, first) in ORDER.into_iter().enumerate() {
        for second in &ORDER[at..] {
            let mut fixture = bench.installed().await?;
            let call = approved(&mut fixture, true).await?;
            let both = [first, *second];
            let is_there = |refusal: Refusal| both.contains(&refusal);
            let tight = |gauge: Gauge| is_there(Refusal::Limit(gauge)).then(|| usd(FROM));
            let change = |model: &mut Model| {
                if is_there(Refusal::Key) {
                    model.active.retain(|(_, key)| key != KEYS[0]);
                }
                if is_there(Refusal::Plan) {
                    model.plan = "a plan".to_owned();
                }
                if let Some(agent) = model.agents.get_mut(AGENTS[0]) {
                    agent.frozen = is_there(Refusal::Frozen);
                    agent.cap = Some(CapPolicy {
                        enabled: !is_there(Refusal::Disabled),
                        per_run: tight(Gauge::Run),
                        daily: tight(Gauge::Day),
                        monthly: tight(Gauge::Month),
                    });
                }
            };
            let plan = fixture.model.plan.clone();
            fixture.change(change).await?;
            let mut extension = fixture.extension(&call, FROM + BY);
            extension.view.plan = plan;
            extension.plan.tracked_usd_per_month = tight(Gauge::Tracked);
            extension.view.version += u64::from(is_there(Refusal::LostWrites));
            if is_there(Refusal::Estimate) {
                extension.from = FROM - 1;
            }
            fixture.extend(&extension).await?;
        }
    }
    Ok(())
}

/// A store behind the version that the edge knows changes nothing.
async fn views(bench: &Bench<'_>) -> Checked {
    for (generations, versions) in [(0, 0), (0, 1), (0, -1), (1, -1), (-1, 1), (2, -2), (-1, 0)] {
        let mut fixture = bench.fixture();
        (fixture.model.generation, fixture.model.version) = (5, 7);
        fixture.install().await?;
        let call = approved(&mut fixture, true).await?;
        let mut extension = fixture.extension(&call, FROM + BY);
        let view = &mut extension.view;
        view.generation = view.generation.saturating_add_signed(generations);
        view.version = view.version.saturating_add_signed(versions);
        fixture.extend(&extension).await?;
    }
    Ok(())
}

/// Only an open hold with exactly this estimate is extended, and only once.
async fn holds(bench: &Bench<'_>) -> Checked {
    let mut fixture = bench.installed().await?;
    let unknown = fixture.call_in("r", FROM);
    let extension = fixture.extension(&unknown, FROM + BY);
    fixture.extend(&extension).await?;
    let call = approved(&mut fixture, true).await?;
    for from in [0, 1, FROM - 1, FROM + 1, FROM * 10] {
        let mut other = fixture.extension(&call, FROM * 10 + 1);
        other.from = from;
        fixture.extend(&other).await?;
    }
    let extension = fixture.extension(&call, FROM + BY);
    fixture.extend(&extension).await?;
    // The repetition after a lost reply gets the same answer, even if the extension would be refused now.
    fixture.extend(&extension).await?;
    fixture
        .change(|model| set_policy(model, policy(Gauge::Day, 1)))
        .await?;
    fixture.extend(&extension).await?;
    fixture.change(|model| set_policy(model, open_cap())).await?;
    let next = fixture.extension(&call, FROM + 2 * BY);
    fixture.extend(&next).await?;
    fixture.extend(&extension).await?;
    for below in [0, FROM] {
        let mut below = fixture.extension(&call, below);
        fixture.extend(&below).await?;
        below.from -= 1;
        fixture.extend(&below).await?;
    }
    fixture.void(&call.name).await?;
    let extension = fixture.extension(&call, FROM + 3 * BY);
    fixture.extend(&extension).await?;
    let settled = approved(&mut fixture, false).await?;
    fixture.settle(&settled.name, FROM, 4).await?;
    let extension = fixture.extension(&settled, FROM + BY);
    fixture.extend(&extension).await
}

/// Settlements with one or two possible estimates; voids and reaps of an extended hold.
async fn ends(bench: &Bench<'_>) -> Checked {
    for named in [true, false] {
        let mut fixture = bench.installed().await?;
        for (extended, (estimate, extension)) in [
            (true, (FROM + BY, FROM + BY + 1)),
            (true, (FROM, FROM + BY)),
            (false, (FROM, FROM + BY)),
        ] {
            let call = grown(&mut fixture, named, extended).await?;
            for wrong in [(FROM - 1, FROM + 1), (1, 0), (FROM * 10, FROM * 10 + BY)] {
                fixture.settle_either(&call.name, wrong, 4).await?;
            }
            fixture
                .settle_either(&call.name, (estimate, extension), 4)
                .await?;
            fixture
                .settle_either(&call.name, (estimate, extension), 4)
                .await?;
        }
        let call = grown(&mut fixture, named, true).await?;
        fixture.settle(&call.name, FROM, 4).await?;
        fixture.settle(&call.name, FROM + BY, 30).await?;
        let call = grown(&mut fixture, named, true).await?;
        fixture.void(&call.name).await?;
        // A kept hold is not extended, and is corrected from its last estimate.
        let call = approved(&mut fixture, named).await?;
        let mut extension = fixture.extension(&call, FROM + BY);
        extension.hold_life = Duration::ZERO;
        fixture.extend(&extension).await?;
        let hold = fixture.hold(&call);
        fixture.reap(&hold).await?;
        let mut again = fixture.extension(&call, FROM + 2 * BY);
        again.from = FROM + BY;
        fixture.extend(&again).await?;
        fixture.settle_either(&call.name, (FROM, FROM + BY), 4).await?;
    }
    Ok(())
}

async fn grown(fixture: &mut Fixture<'_>, named: bool, extended: bool) -> Result<Call, String> {
    let call = approved(fixture, named).await?;
    if extended {
        let extension = fixture.extension(&call, FROM + BY);
        fixture.extend(&extension).await?;
    }
    Ok(call)
}

/// An extension moves the deadline; a repetition does not.
async fn deadlines(bench: &Bench<'_>) -> Checked {
    let mut fixture = bench.installed().await?;
    let mut call = fixture.call_in("r", FROM);
    call.hold_life = Duration::ZERO;
    fixture.approve(&call).await?;
    let mut extension = fixture.extension(&call, FROM + BY);
    fixture.extend(&extension).await?;
    let hold = fixture.hold(&call);
    fixture.reap(&hold).await?;
    extension.hold_life = LONG * 2;
    fixture.extend(&extension).await
}

/// A run's record may expire before its last hold ends: it is not written again, and the run consists of this call.
async fn forgotten_runs(bench: &Bench<'_>) -> Checked {
    for most in [FROM + BY - 1, FROM + BY] {
        let mut fixture = bench.installed().await?;
        let call = approved(&mut fixture, true).await?;
        fixture.change(|model| model.forget_run("a", "r")).await?;
        let mut extension = fixture.extension(&call, FROM + BY);
        limit(&mut fixture, &mut extension, Gauge::Run, most).await?;
        fixture.extend(&extension).await?;
        let estimate = fixture.extension(&call, 0).from;
        fixture.settle(&call.name, estimate, 4).await?;
    }
    Ok(())
}
