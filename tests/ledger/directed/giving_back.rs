//! A void gives back the plan's slot and the run that its call took, unless something else uses them.

use super::Bench;
use super::periods::charge;
use crate::fixture::{Checked, World, usd};
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
fn call(world: &mut World<'_>, agent: &str, run: &str) -> Call {
    let mut call = world.call_in(run, 10);
    agent.clone_into(&mut call.name.agent);
    call.plan.cap_agents_per_month = Some(1);
    call
}

/// Another agent, on a plan with one slot.
async fn another(world: &mut World<'_>) -> Checked {
    let other = call(world, "b", "r");
    world.authorize(&other).await
}

/// The slot goes with the last call that uses it, in whatever order they are voided, and can be taken again.
async fn last_user(bench: &Bench<'_>) -> Checked {
    // More than nine: the number is a text.
    for (calls, is_reversed) in [(1, false), (2, false), (2, true), (11, false), (11, true)] {
        let mut world = bench.installed().await?;
        for _ in 0..2 {
            let mut approved = Vec::new();
            for _ in 0..calls {
                let call = call(&mut world, "a", "r");
                world.approve(&call).await?;
                approved.push(call);
            }
            if is_reversed {
                approved.reverse();
            }
            for call in &approved {
                another(&mut world).await?;
                for _ in 0..2 {
                    world.void(&call.name).await?;
                }
            }
        }
        another(&mut world).await?;
        let late = call(&mut world, "a", "r");
        world.authorize(&late).await?;
    }
    Ok(())
}

/// A settled call keeps the slot, whatever it cost; a kept hold gives it back when it is voided.
async fn other_ends(bench: &Bench<'_>) -> Checked {
    for cost in [0, 10] {
        let mut world = bench.installed().await?;
        let [settled, voided] = ["r", "s"].map(|run| call(&mut world, "a", run));
        for call in [&settled, &voided] {
            world.approve(call).await?;
        }
        world.settle(&settled.name, 10, cost).await?;
        world.void(&voided.name).await?;
        another(&mut world).await?;
    }
    let mut world = bench.installed().await?;
    let mut call = call(&mut world, "a", "r");
    call.hold_life = Duration::ZERO;
    world.approve(&call).await?;
    let hold = world.hold(&call);
    world.reap(&hold).await?;
    another(&mut world).await?;
    world.void(&call.name).await?;
    another(&mut world).await
}

/// A slot that a spend uses is kept.
async fn slot_of_a_spend(bench: &Bench<'_>) -> Checked {
    let mut world = bench.world();
    let agent = world.model.agents.get_mut("a").ok_or("an agent")?;
    agent
        .extra
        .insert(format!("s{}", bench.period.month), "1".to_owned());
    // Without a charge the model's record does not say how many slots are taken.
    let of_another = Charge {
        agent: "b".to_owned(),
        ..charge("allow_before", bench.period, ChargeState::Settled)
    };
    world.model.charges.push(of_another);
    world.install().await?;
    for _ in 0..2 {
        let mut call = call(&mut world, "a", "r");
        call.plan.cap_agents_per_month = Some(2);
        world.approve(&call).await?;
        world.void(&call.name).await?;
    }
    Ok(())
}

/// Each month's slot is given back by itself, also after the clock was set back.
async fn months(bench: &Bench<'_>) -> Checked {
    let border = domain::timestamp::ms_from_iso("2027-01-01T00:00:00Z").ok_or("a moment")?;
    for moments in [[border - 1, border], [border, border - 1]] {
        for first in [0, 1] {
            let mut world = bench.installed().await?;
            let mut approved = Vec::new();
            for at_ms in moments.into_iter().chain(moments) {
                world.clock_ms = Some(at_ms);
                world.model.period = Period::at(at_ms);
                let call = call(&mut world, "a", "r");
                world.approve(&call).await?;
                approved.push(call);
            }
            for of in [first, 1 - first] {
                for call in [&approved[of], &approved[of + 2]] {
                    world.void(&call.name).await?;
                    let again = call_of_another_at(&mut world, moments[of]);
                    world.authorize(&again).await?;
                }
            }
            for at_ms in moments {
                world.clock_ms = Some(at_ms);
                world.model.period = Period::at(at_ms);
                let late = call(&mut world, "a", "r");
                world.authorize(&late).await?;
            }
        }
    }
    Ok(())
}

fn call_of_another_at(world: &mut World<'_>, at_ms: u64) -> Call {
    world.clock_ms = Some(at_ms);
    world.model.period = Period::at(at_ms);
    call(world, "b", "r")
}

/// A run whose calls are all voided is gone with its place in the budget; the next call of the name is a new run.
async fn runs(bench: &Bench<'_>) -> Checked {
    for estimate in [0, 10] {
        let scripts = bench.scripts.with_runs(1);
        let mut world = World::new(&scripts, bench.period);
        world.model.runs_most = 1;
        world.install().await?;
        for _ in 0..2 {
            let [one, two] = [0, 1].map(|_| world.call_in("r", estimate));
            for call in [&one, &two] {
                world.approve(call).await?;
            }
            world.void(&one.name).await?;
            let full = world.call_in("s", estimate);
            world.authorize(&full).await?;
            world.void(&two.name).await?;
        }
        let next = world.call_in("s", estimate);
        world.approve(&next).await?;
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
    let mut world = bench.world();
    world.model.runs.insert(name.clone(), waiting);
    world.model.list(name.clone(), at);
    world.install().await?;
    let call = world.call_in("r", 10);
    world.approve(&call).await?;
    world.void(&call.name).await?;

    let mut world = bench.installed().await?;
    let call = world.call_in("r", 10);
    world.approve(&call).await?;
    let mut denied = world.call_in("r", 50);
    denied.plan.tracked_usd_per_month = Some(usd(40));
    world.authorize(&denied).await?;
    world.void(&call.name).await?;

    for is_resumed in [false, true] {
        let mut world = bench.world();
        let ended = Run {
            status: Some("failed"),
            by_calls: true,
            ..Run::called(at, at.later(3_600_000))
        };
        world.model.runs.insert(name.clone(), ended);
        world.model.list(name.clone(), at);
        let due = at.later(3_600_000);
        let open = Charge {
            named: true,
            ..charge("allow_before", bench.period, ChargeState::Open { due })
        };
        world.model.charges.push(open);
        world.install().await?;
        let mut before = world.call_in("r", 10);
        if is_resumed {
            world.approve(&before).await?;
            world.void(&before.name).await?;
        }
        "allow_before".clone_into(&mut before.name.allow_id);
        world.void(&before.name).await?;
    }
    Ok(())
}
