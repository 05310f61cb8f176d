//! Cap: each limit exactly reached and exceeded by one nano, the policy that applies, and the ceiling of the counters.

use super::Bench;
use crate::fixture::{Checked, Fixture, open_cap, usd};
use crate::model::{BEYOND, CEILING, Charge, ChargeState, NO_CHECKS};
use domain::cap::CapPolicy;
use domain::money::Nanos;
use domain::period::Period;

/// The four counters that limit a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Gauge {
    Run,
    Day,
    Month,
    Tracked,
}

pub const GAUGES: [Gauge; 4] = [Gauge::Run, Gauge::Day, Gauge::Month, Gauge::Tracked];

pub async fn all(bench: &Bench<'_>) -> Checked {
    limits(bench).await?;
    first_calls(bench).await?;
    other_runs(bench).await?;
    policies(bench).await?;
    freezes(bench).await?;
    exact(bench).await?;
    ceilings(bench).await?;
    beyond(bench).await
}

pub fn policy(gauge: Gauge, limit: u64) -> CapPolicy {
    let of = |wanted: Gauge| (gauge == wanted).then(|| usd(limit));
    CapPolicy {
        per_run: of(Gauge::Run),
        daily: of(Gauge::Day),
        monthly: of(Gauge::Month),
        ..open_cap()
    }
}

/// An earlier charge that counts for one gauge only.
fn spent(period: Period, gauge: Gauge, amount: i128) -> Charge {
    let (today, month) = (period.day, period.month);
    let (agent, named, day, month) = match gauge {
        Gauge::Run => ("a", true, today - 1, month - 1),
        Gauge::Day => ("a", false, today, month - 1),
        Gauge::Month => ("a", false, today - 1, month),
        Gauge::Tracked => ("b", false, today, month),
    };
    Charge {
        id: "allow_before".to_owned(),
        agent: agent.to_owned(),
        run: "r".to_owned(),
        named,
        key_id: "vk_1".to_owned(),
        period: Period { day, month },
        estimate: 0,
        checks: NO_CHECKS.to_owned(),
        amount,
        state: ChargeState::Settled,
    }
}

pub async fn before<'a>(bench: &Bench<'a>, gauge: Gauge, amount: i128) -> Result<Fixture<'a>, String> {
    let mut fixture = bench.fixture();
    let charge = spent(bench.period, gauge, amount);
    if charge.named {
        let at = crate::snapshot::Window::at(clock::now_ms());
        let run = crate::model::Run::called(at, at.later(3_600_000));
        let name = ("a".to_owned(), "r".to_owned());
        fixture.model.list(name.clone(), at);
        fixture.model.runs.insert(name, run);
    }
    fixture.model.charges.push(charge);
    fixture.install().await?;
    Ok(fixture)
}

async fn limits(bench: &Bench<'_>) -> Checked {
    let max = Nanos::MAX.get();
    for gauge in GAUGES {
        for (used, estimate) in [
            (0, 0),
            (0, 1),
            (5, 0),
            (5, 1),
            (5, 10),
            (0, max),
            (1, max - 1),
            (max, 0),
            (max, 1),
        ] {
            let sum = used + estimate;
            for limit in [0, sum.saturating_sub(1), sum, sum + 1, max] {
                if limit > max {
                    continue;
                }
                let mut fixture = before(bench, gauge, i128::from(used)).await?;
                fixture
                    .change(|model| set_policy(model, policy(gauge, limit)))
                    .await?;
                let mut call = fixture.call_in("r", estimate);
                if gauge == Gauge::Tracked {
                    call.plan.tracked_usd_per_month = Some(usd(limit));
                }
                fixture.authorize(&call).await?;
            }
        }
    }
    Ok(())
}

/// Limits are exact also before anything was spent.
async fn first_calls(bench: &Bench<'_>) -> Checked {
    for gauge in GAUGES {
        for estimate in [9, 10, 11] {
            let mut fixture = bench.installed().await?;
            fixture
                .change(|model| set_policy(model, policy(gauge, 10)))
                .await?;
            let mut call = fixture.call_in("r", estimate);
            if gauge == Gauge::Tracked {
                call.plan.tracked_usd_per_month = Some(usd(10));
            }
            fixture.authorize(&call).await?;
        }
    }
    Ok(())
}

pub fn set_policy(model: &mut crate::model::Model, policy: CapPolicy) {
    if let Some(agent) = model.agents.get_mut("a") {
        agent.cap = Some(policy);
    }
}

/// A run's spend limits only calls of the same agent that name the run.
async fn other_runs(bench: &Bench<'_>) -> Checked {
    let mut fixture = before(bench, Gauge::Run, 10).await?;
    fixture
        .change(|model| set_policy(model, policy(Gauge::Run, 10)))
        .await?;
    let mut unnamed = fixture.call_in("r", 1);
    unnamed.named = false;
    fixture.authorize(&unnamed).await?;
    let other = fixture.call_in("s", 10);
    fixture.authorize(&other).await?;
    for estimate in [10, 11] {
        let unnamed = fixture.call(estimate);
        fixture.authorize(&unnamed).await?;
    }
    let mut agent = fixture.call_in("r", 10);
    agent.name.agent = "b".to_owned();
    fixture.authorize(&agent).await?;
    let same = fixture.call_in("r", 1);
    fixture.authorize(&same).await
}

/// An agent's own policy replaces the account's as a whole; without one the account's applies.
async fn policies(bench: &Bench<'_>) -> Checked {
    let disabled = CapPolicy {
        enabled: false,
        ..open_cap()
    };
    let own = [None, Some(open_cap()), Some(disabled)];
    let own = own
        .into_iter()
        .chain(GAUGES[..3].iter().map(|gauge| Some(policy(*gauge, 5))));
    for own in own {
        let account = [None, Some(open_cap()), Some(disabled)];
        let account = account
            .into_iter()
            .chain(GAUGES[..3].iter().map(|gauge| Some(policy(*gauge, 3))));
        for account in account {
            let mut fixture = bench.fixture();
            fixture.model.policy = account;
            if let Some(agent) = fixture.model.agents.get_mut("a") {
                agent.cap = own;
            }
            fixture.install().await?;
            for estimate in [3, 1, 2] {
                let call = fixture.call_in("r", estimate);
                fixture.authorize(&call).await?;
            }
        }
    }
    Ok(())
}

async fn freezes(bench: &Bench<'_>) -> Checked {
    let mut fixture = bench.installed().await?;
    for frozen in [true, false] {
        fixture
            .change(|model| model.agents.values_mut().for_each(|agent| agent.frozen = frozen))
            .await?;
        let call = fixture.call_in("r", 1);
        fixture.authorize(&call).await?;
    }
    Ok(())
}

/// Counters stay exact up to and beyond 2^53, where doubles lose the last digit.
async fn exact(bench: &Bench<'_>) -> Checked {
    let edge: i128 = 1 << 53;
    for gauge in GAUGES {
        for (used, estimate) in [
            (edge - 1, 0),
            (edge - 1, 1),
            (edge - 1, 2),
            (edge, 1),
            (edge + 1, 1),
            (edge + 1, 0),
            (edge - 5, 2),
            (2 * edge - 1, 2),
            (3 * edge + 1, 3),
        ] {
            let mut fixture = before(bench, gauge, used).await?;
            let call = fixture.call_in("r", estimate);
            fixture.approve(&call).await?;
            fixture.settle(&call.name, estimate, 1).await?;
            for call in [fixture.call_in("r", 3), fixture.call(3)] {
                fixture.approve(&call).await?;
                fixture.void(&call.name).await?;
            }
        }
    }
    Ok(())
}

/// Counters are 64-bit integers: a charge that could overflow one is refused before anything is written.
async fn ceilings(bench: &Bench<'_>) -> Checked {
    // Doubles are 1024 apart near the ceiling.
    for gauge in GAUGES {
        for (below, estimate) in [
            (0, 0),
            (0, 1024),
            (1024, 1024),
            (1024, 2048),
            (-1024, 0),
            (-1024, 1024),
        ] {
            let mut fixture = before(bench, gauge, CEILING - below).await?;
            let call = fixture.call_in("r", estimate);
            fixture.authorize(&call).await?;
        }
    }
    Ok(())
}

/// An estimate beyond any amount exceeds every limit, even the largest. Without a limit it is denied and recorded all
/// the same, and counts against the rate.
async fn beyond(bench: &Bench<'_>) -> Checked {
    let beyond = |fixture: &mut Fixture<'_>| {
        let mut call = fixture.call_in("r", 0);
        call.estimate = Some(BEYOND);
        call
    };
    for gauge in GAUGES {
        let mut fixture = before(bench, gauge, 5).await?;
        let unlimited = beyond(&mut fixture);
        fixture.authorize(&unlimited).await?;
        fixture
            .change(|model| set_policy(model, policy(gauge, Nanos::MAX.get())))
            .await?;
        let mut call = beyond(&mut fixture);
        if gauge == Gauge::Tracked {
            call.plan.tracked_usd_per_month = Some(Nanos::MAX);
        }
        fixture.authorize(&call).await?;
        call.named = false;
        fixture.authorize(&call).await?;
    }
    // Reasons that precede Cap come first.
    let mut fixture = bench.installed().await?;
    let mut limited = beyond(&mut fixture);
    limited.plan.proxy_requests_per_minute = Some(1);
    fixture.authorize(&limited).await?;
    fixture.authorize(&limited).await?;
    fixture.change(|model| model.active.clear()).await?;
    let revoked = beyond(&mut fixture);
    fixture.authorize(&revoked).await
}
