//! A void gives back the plan's slot and the run that its call took, unless something else uses them.

use super::Bench;
use super::periods::charge;
use crate::fixture::{Checked, Fixture, usd};
use crate::model::{Call, Charge, ChargeState, Run};
use crate::snapshot::Window;
use domain::period::Period;
use std::time::Duration;

pub async fn all(bench: &Bench<'_>) -> Checked {
    last_user(bench).await?;
    other_ends(bench).await?;
    slot_of_a_spend(bench).await?;
    months(bench).await?;
    runs(bench).await?;
    other_uses_of_a_run(bench).await
}

/// A call of `agent` on a plan with one slot.
fn call(fixture: &mut Fixture<'_>, agent: &str, run: &str) -> Call {
    let mut call = fixture.call_in(run, 10);
    agent.clone_into(&mut call.name.agent);
    call.plan.cap_agents_per_month = Some(1);
    call
}

/// Another agent, on a plan with one slot.
async fn another(fixture: &mut Fixture<'_>) -> Checked {
    let other = call(fixture, "b", "r");
    fixture.authorize(&other).await
}

/// The slot goes with the last call that uses it, in whatever order they are voided, and can be taken again.
async fn last_user(bench: &Bench<'_>) -> Checked {
    // More than nine: the number is a text.
    for (calls, is_reversed) in [(1, false), (2, false), (2, true), (11, false), (11, true)] {
        let mut fixture = bench.installed().await?;
        for _ in 0..2 {
            let mut approved = Vec::new();
            for _ in 0..calls {
                let call = call(&mut fixture, "a", "r");
                fixture.approve(&call).await?;
                approved.push(call);
            }
            if is_reversed {
                approved.reverse();
            }
            for call in &approved {
                another(&mut fixture).await?;
                for _ in 0..2 {
                    fixture.void(&call.name).await?;
                }
            }
        }
        another(&mut fixture).await?;
        let late = call(&mut fixture, "a", "r");
        fixture.authorize(&late).await?;
    }
    Ok(())
}

/// A settled call keeps the slot, whatever it cost; a kept hold gives it back when it is voided.
async fn other_ends(bench: &Bench<'_>) -> Checked {
    for cost in [0, 10] {
        let mut fixture = bench.installed().await?;
        let [settled, voided] = ["r", "s"].map(|run| call(&mut fixture, "a", run));
        for call in [&settled, &voided] {
            fixture.approve(call).await?;
        }
        fixture.settle(&settled.name, 10, cost).await?;
        fixture.void(&voided.name).await?;
        another(&mut fixture).await?;
    }
    let mut fixture = bench.installed().await?;
    let mut call = call(&mut fixture, "a", "r");
    call.hold_life = Duration::ZERO;
    fixture.approve(&call).await?;
    let hold = fixture.hold(&call);
    fixture.reap(&hold).await?;
    another(&mut fixture).await?;
    fixture.void(&call.name).await?;
    another(&mut fixture).await
}

/// A slot that a spend uses is kept.
async fn slot_of_a_spend(bench: &Bench<'_>) -> Checked {
    let mut fixture = bench.fixture();
    let agent = fixture.model.agents.get_mut("a").ok_or("an agent")?;
    agent
        .extra
        .insert(format!("s{}", bench.period.month), "1".to_owned());
    // Without a charge the model's record does not say how many slots are taken.
    let of_another = Charge {
        agent: "b".to_owned(),
        ..charge("allow_before", bench.period, ChargeState::Settled)
    };
    fixture.model.charges.push(of_another);
    fixture.install().await?;
    for _ in 0..2 {
        let mut call = call(&mut fixture, "a", "r");
        call.plan.cap_agents_per_month = Some(2);
        fixture.approve(&call).await?;
        fixture.void(&call.name).await?;
    }
    Ok(())
}

/// Each month's slot is given back by itself, also after the clock was set back.
async fn months(bench: &Bench<'_>) -> Checked {
    let border = domain::timestamp::ms_from_iso("2027-01-01T00:00:00Z").ok_or("a moment")?;
    for moments in [[border - 1, border], [border, border - 1]] {
        for first in [0, 1] {
            let mut fixture = bench.installed().await?;
            let mut approved = Vec::new();
            for at_ms in moments.into_iter().chain(moments) {
                fixture.clock_ms = Some(at_ms);
                fixture.model.period = Period::at(at_ms);
                let call = call(&mut fixture, "a", "r");
                fixture.approve(&call).await?;
                approved.push(call);
            }
            for of in [first, 1 - first] {
                for call in [&approved[of], &approved[of + 2]] {
                    fixture.void(&call.name).await?;
                    let again = call_of_another_at(&mut fixture, moments[of]);
                    fixture.authorize(&again).await?;
                }
            }
            for at_ms in moments {
                fixture.clock_ms = Some(at_ms);
                fixture.model.period = Period::at(at_ms);
                let late = call(&mut fixture, "a", "r");
                fixture.authorize(&late).await?;
            }
        }
    }
    Ok(())
}

fn call_of_another_at(fixture: &mut Fixture<'_>, at_ms: u64) -> Call {
    fixture.clock_ms = Some(at_ms);
    fixture.model.period = Period::at(at_ms);
    call(fixture, "b", "r")
}

/// A run whose calls are all voided is gone with its place in the budget; the next call of the name is a new run.
async fn runs(bench: &Bench<'_>) -> Checked {
    for estimate in [0, 10] {
        let scripts = bench.scripts.with_runs(1);
        let mut fixture = Fixture::new(&scripts, bench.period);
        fixture.model.runs_most = 1;
        fixture.install().await?;
        for _ in 0..2 {
            let [one, two] = [0, 1].map(|_| fixture.call_in("r", estimate));
            for call in [&one, &two] {
                fixture.approve(call).await?;
            }
            fixture.void(&one.name).await?;
            let full = fixture.call_in("s", estimate);
            fixture.authorize(&full).await?;
            fixture.void(&two.name).await?;
        }
        let next = fixture.call_in("s", estimate);
        fixture.approve(&next).await?;
    }
    Ok(())
}

/// A run stays that was there before its first call, as a waiting spend makes one, that has a denial, or that ended.
async fn other_uses_of_a_run(bench: &Bench<'_>) -> Checked {
    let at = Window::at(clock::now_ms());
    let name = ("a".to_owned(), "r".to_owned());
    let waiting = Run {
        calls: None,
        ..Run::called(at, at.later(3_600_000))
    };
    let mut fixture = bench.fixture();
    fixture.model.runs.insert(name.clone(), waiting);
    fixture.model.list(name.clone(), at);
    fixture.install().await?;
    let call = fixture.call_in("r", 10);
    fixture.approve(&call).await?;
    fixture.void(&call.name).await?;

    let mut fixture = bench.installed().await?;
    let call = fixture.call_in("r", 10);
    fixture.approve(&call).await?;
    let mut denied = fixture.call_in("r", 50);
    denied.plan.tracked_usd_per_month = Some(usd(40));
    fixture.authorize(&denied).await?;
    fixture.void(&call.name).await?;

    for is_resumed in [false, true] {
        let mut fixture = bench.fixture();
        let ended = Run {
            status: Some("failed"),
            by_calls: true,
            ..Run::called(at, at.later(3_600_000))
        };
        fixture.model.runs.insert(name.clone(), ended);
        fixture.model.list(name.clone(), at);
        let due = at.later(3_600_000);
        let open = Charge {
            named: true,
            ..charge("allow_before", bench.period, ChargeState::Open { due })
        };
        fixture.model.charges.push(open);
        fixture.install().await?;
        let mut before = fixture.call_in("r", 10);
        if is_resumed {
            fixture.approve(&before).await?;
            fixture.void(&before.name).await?;
        }
        "allow_before".clone_into(&mut before.name.allow_id);
        fixture.void(&before.name).await?;
    }
    Ok(())
}
