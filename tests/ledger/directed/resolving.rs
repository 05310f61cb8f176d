//! Ends of a hold: settled, released, voided, kept; once, twice, late, by the wrong name.

use super::Bench;
use crate::fixture::{ACCOUNT, Checked, LONG, World, settlement};
use crate::model::{Call, Charge, ChargeState};
use domain::entry::EndedBy;
use domain::money::Nanos;
use domain::period::Period;
use std::time::Duration;
use store::StoreError;
use store::call::hold::AsOf;
use store::call::reap::{KEPT_LIFE, Reaped, reap};
use store::call::void::void;
use store::keys::AccountKeys;

/// A hold that is due at once.
const NOW: Duration = Duration::ZERO;
/// Times that a hold is reaped at the very millisecond of its deadline.
const DEADLINE_TRIES: u32 = 12;

pub async fn all(bench: &Bench<'_>) -> Checked {
    settled(bench).await?;
    lost_writes(bench).await?;
    mismatched(bench).await?;
    voided(bench).await?;
    kept(bench).await?;
    forgotten_runs(bench).await?;
    lost_counters(bench).await?;
    ids(bench).await?;
    overdue(bench).await?;
    kept_index(bench).await?;
    strays(bench).await
}

async fn approved(world: &mut World<'_>, named: bool, estimate: u64, life: Duration) -> Result<Call, String> {
    let mut call = if named {
        world.call_in("r", estimate)
    } else {
        world.call(estimate)
    };
    call.hold_life = life;
    world.approve(&call).await?;
    Ok(call)
}

async fn settled(bench: &Bench<'_>) -> Checked {
    let mut world = bench.installed().await?;
    let max = Nanos::MAX.get();
    for (estimate, cost) in [
        (10, 4),
        (10, 10),
        (10, 0),
        (10, 25),
        (0, 0),
        (0, 3),
        (1, 0),
        (max, 1),
        (3, max),
    ] {
        for named in [false, true] {
            let call = approved(&mut world, named, estimate, LONG).await?;
            world.settle(&call.name, estimate, cost).await?;
            world.settle(&call.name, estimate, cost).await?;
            world.void(&call.name).await?;
            world.settle(&call.name, estimate, cost).await?;
        }
    }
    Ok(())
}

/// A missing hold is accepted only if the account's version is at least that of the hold's opening; an existing hold is
/// resolved in any case.
async fn lost_writes(bench: &Bench<'_>) -> Checked {
    for (generations, versions) in [(0, 0), (0, 1), (0, -1), (1, -1), (-1, 1), (2, -2), (0, 2)] {
        let mut world = bench.world();
        (world.model.generation, world.model.version) = (5, 7);
        world.install().await?;
        let as_of = |world: &World<'_>| AsOf {
            generation: world.model.generation.saturating_add_signed(generations),
            version: world.model.version.saturating_add_signed(versions),
        };
        let (settled, voided) = (world.call_in("r", 10), world.call_in("s", 10));
        let known = as_of(&world);
        world.settle_as_of(&settled.name, 10, 4, Some(known)).await?;
        world.void_as_of(&voided.name, known).await?;
        // A void that wrote nothing leaves the call chargeable.
        world.authorize(&voided).await?;
        for _ in 0..2 {
            world.settle_as_of(&voided.name, 10, 4, Some(known)).await?;
        }
        for life in [LONG, NOW] {
            for void in [false, true] {
                let call = approved(&mut world, true, 10, life).await?;
                if life == NOW {
                    let hold = world.hold(&call);
                    world.reap(&hold).await?;
                }
                let ahead = as_of(&world);
                for _ in 0..2 {
                    if void {
                        world.void_as_of(&call.name, ahead).await?;
                    } else {
                        world.settle_as_of(&call.name, 10, 4, Some(ahead)).await?;
                    }
                }
                world.void(&call.name).await?;
                world.settle_as_of(&call.name, 10, 4, Some(ahead)).await?;
            }
        }
    }
    unknown_account(bench).await
}

/// Without the account's record nothing is written, not even for a caller that names no version.
async fn unknown_account(bench: &Bench<'_>) -> Checked {
    let mut world = bench.installed().await?;
    let call = world.call_in("r", 10);
    world.settle(&call.name, 10, 4).await?;
    let flushed: Result<String, _> = bench.scripts.store.command(&redis::cmd("FLUSHALL")).await;
    flushed.map_err(|error| format!("{error:?}"))?;
    let settle = settlement(call.name.clone(), 10, 4);
    let as_of = AsOf::default();
    let store = &bench.scripts.store;
    let settled = settle.execute(&settle.name.keys(), Some(as_of), store).await;
    let voided = void(store, &call.name, as_of).await;
    let keys: Result<u64, _> = store.command(&redis::cmd("DBSIZE")).await;
    match (settled, voided, keys) {
        (Err(StoreError::LacksWrites), Err(StoreError::LacksWrites), Ok(0)) => Ok(()),
        other => Err(format!("an account that is not here: {other:?}")),
    }
}

/// A settlement with another estimate than the hold's moves nothing, also if one is a prefix of the other.
async fn mismatched(bench: &Bench<'_>) -> Checked {
    let mut world = bench.installed().await?;
    let call = approved(&mut world, true, 12, LONG).await?;
    for estimate in [0, 1, 2, 11, 13, 120] {
        world.settle(&call.name, estimate, 5).await?;
    }
    world.settle(&call.name, 12, 5).await
}

async fn voided(bench: &Bench<'_>) -> Checked {
    for (estimate, named) in [(10, true), (10, false), (0, true), (0, false), (1, true)] {
        let mut world = bench.installed().await?;
        approved(&mut world, true, 7, LONG).await?;
        let call = approved(&mut world, named, estimate, LONG).await?;
        world.void(&call.name).await?;
        world.void(&call.name).await?;
        world.settle(&call.name, estimate, 3).await?;
        let mut late = call.clone();
        late.view = world.model.view();
        world.authorize(&late).await?;
    }
    // A void before its authorize arrives, or of one that never arrives.
    let mut world = bench.installed().await?;
    let call = world.call_in("r", 10);
    world.void(&call.name).await?;
    world.authorize(&call).await?;
    world.settle(&call.name, 10, 3).await?;
    let hold = world.hold(&call);
    world.reap(&hold).await
}

async fn kept(bench: &Bench<'_>) -> Checked {
    for (estimate, named) in [(10, true), (10, false), (0, true)] {
        let mut world = bench.installed().await?;
        approved(&mut world, true, 1, LONG).await?;
        for settle in [false, true] {
            let call = approved(&mut world, named, estimate, NOW).await?;
            let hold = world.hold(&call);
            world.reap(&hold).await?;
            world.reap(&hold).await?;
            world.settle(&call.name, estimate + 1, 5).await?;
            if settle {
                world.settle(&call.name, estimate, 14).await?;
            }
            world.void(&call.name).await?;
            world.settle(&call.name, estimate, 5).await?;
        }
        // The line of a hold that the operator ends by hand says so, for an open hold and for a kept one.
        for (life, reason, cost) in [
            (LONG, None, 6),
            (NOW, Some("invoice 17".to_owned()), 6),
            (LONG, None, 8),
        ] {
            let by_hand = approved(&mut world, named, estimate, life).await?;
            let hold = world.hold(&by_hand);
            world.reap(&hold).await?;
            let operator = EndedBy::Operator { reason };
            world.settle_for(&operator, &by_hand.name, estimate, cost).await?;
        }
        // An unknown cost leaves the charge as it was.
        let unknown = approved(&mut world, named, estimate, NOW).await?;
        let hold = world.hold(&unknown);
        world.reap(&hold).await?;
        world.settle(&unknown.name, estimate, estimate).await?;
        let early = approved(&mut world, named, estimate, LONG).await?;
        let hold = world.hold(&early);
        world.reap(&hold).await?;
        world.settle(&early.name, estimate, 2).await?;
        world.reap(&hold).await?;
    }
    Ok(())
}

/// A run's record may expire before its last hold is resolved; it is not written again with a negative spend.
async fn forgotten_runs(bench: &Bench<'_>) -> Checked {
    for void in [false, true] {
        let mut world = bench.installed().await?;
        let call = approved(&mut world, true, 10, LONG).await?;
        world.change(|model| model.forget_run("a", "r")).await?;
        if void {
            world.void(&call.name).await?;
        } else {
            world.settle(&call.name, 10, 4).await?;
        }
    }
    Ok(())
}

/// A missing counter or held amount counts as zero: a counter that would fall below it stays missing.
async fn lost_counters(bench: &Bench<'_>) -> Checked {
    let keys = AccountKeys::new(ACCOUNT);
    let (record, agent) = (keys.record(), keys.live().agent("a"));
    let Period { day, month } = bench.period;
    let lose = async |key: &str, field: &str| {
        let lost: Result<i64, _> = bench
            .scripts
            .store
            .command(redis::cmd("HDEL").arg(key).arg(field))
            .await;
        lost.map(drop).map_err(|error| format!("{error:?}"))
    };
    let mut world = bench.installed().await?;
    let call = approved(&mut world, true, 10, LONG).await?;
    for (key, field) in [(&agent, "d"), (&agent, "m"), (&record, "t")] {
        let period = if field == "d" { day } else { month };
        lose(key, &format!("{field}{period}")).await?;
    }
    let lost = Charge {
        id: "allow_lost".to_owned(),
        named: false,
        amount: -10,
        state: ChargeState::Voided,
        ..world.model.charges[0].clone()
    };
    world.model.charges.push(lost);
    world.settle(&call.name, 10, 4).await?;

    let mut world = bench.installed().await?;
    let call = approved(&mut world, false, 0, LONG).await?;
    lose(&agent, "held").await?;
    world.settle(&call.name, 0, 0).await
}

/// An id that is open or voided is refused, and costs nothing but the rate count.
async fn ids(bench: &Bench<'_>) -> Checked {
    let mut world = bench.installed().await?;
    let call = approved(&mut world, true, 10, LONG).await?;
    for estimate in [10, 0, 11] {
        let mut again = world.call_in("s", estimate);
        again.name.allow_id.clone_from(&call.name.allow_id);
        world.authorize(&again).await?;
    }
    world.settle(&call.name, 10, 10).await
}

/// At the millisecond of its deadline a hold is due.
async fn overdue(bench: &Bench<'_>) -> Checked {
    for _ in 0..DEADLINE_TRIES {
        let mut world = bench.installed().await?;
        let call = approved(&mut world, true, 10, LONG).await?;
        let found = reap(&bench.scripts.at_deadline, &world.hold(&call)).await;
        if !matches!(found, Ok(Reaped::Kept)) {
            return Err(format!("a hold at its deadline: {found:?}"));
        }
    }
    Ok(())
}

/// Keeping a hold drops the entries of the kept index whose records have expired, and no others.
async fn kept_index(bench: &Bench<'_>) -> Checked {
    let mut world = bench.world();
    let life = u64::try_from(KEPT_LIFE.as_millis()).map_err(|error| error.to_string())?;
    let now = clock::now_ms();
    for (id, moment) in [
        ("gone", now - life - 1),
        ("older", now - 2 * life),
        ("young", now - life + 600_000),
    ] {
        world.model.kept_extra.insert(id.to_owned(), moment);
    }
    for number in 0..20 {
        let moment = now - life - 1000 + number;
        world.model.kept_extra.insert(format!("gone-{number}"), moment);
    }
    world.install().await?;
    // Those that have not expired stay when nothing else is left.
    for _ in 0..4 {
        let call = approved(&mut world, false, 10, NOW).await?;
        let hold = world.hold(&call);
        world.reap(&hold).await?;
    }
    Ok(())
}

/// An entry of the due index without a hold is dropped when its deadline has come.
async fn strays(bench: &Bench<'_>) -> Checked {
    let mut world = bench.world();
    let now = clock::now_ms();
    world.model.due_extra.extend([
        ("allow_1".to_owned(), now - 1),
        ("allow_2".to_owned(), now + 600_000),
    ]);
    world.install().await?;
    for _ in 0..2 {
        let call = world.call_in("r", 10);
        let hold = world.hold(&call);
        world.reap(&hold).await?;
    }
    Ok(())
}
