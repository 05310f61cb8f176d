//! Ends of a hold: settled, released, voided, kept; once, twice, late, by the wrong name.

use super::Bench;
use crate::fixture::{ACCOUNT, Checked, Fixture, LONG, settlement};
use crate::model::{Call, Charge, ChargeState};
use domain::entry::EndedBy;
use domain::money::Nanos;
use domain::period::Period;
use std::time::Duration;
use store::StoreError;
use store::call::reap::{KEPT_LIFE, Reaped, reap};
use store::call::void::void;
use store::keys::AccountKeys;
use store::versions::AccountVersion;

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

async fn approved(
    fixture: &mut Fixture<'_>,
    named: bool,
    estimate: u64,
    life: Duration,
) -> Result<Call, String> {
    let mut call = if named {
        fixture.call_in("r", estimate)
    } else {
        fixture.call(estimate)
    };
    call.hold_life = life;
    fixture.approve(&call).await?;
    Ok(call)
}

async fn settled(bench: &Bench<'_>) -> Checked {
    let mut fixture = bench.installed().await?;
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
            let call = approved(&mut fixture, named, estimate, LONG).await?;
            fixture.settle(&call.name, estimate, cost).await?;
            fixture.settle(&call.name, estimate, cost).await?;
            fixture.void(&call.name).await?;
            fixture.settle(&call.name, estimate, cost).await?;
        }
    }
    Ok(())
}

/// A missing hold is accepted only if the account's version is at least that of the hold's opening; an existing hold is
/// resolved in any case.
async fn lost_writes(bench: &Bench<'_>) -> Checked {
    for (generations, versions) in [(0, 0), (0, 1), (0, -1), (1, -1), (-1, 1), (2, -2), (0, 2)] {
        let mut fixture = bench.fixture();
        (fixture.model.generation, fixture.model.version) = (5, 7);
        fixture.install().await?;
        let as_of = |fixture: &Fixture<'_>| AccountVersion {
            generation: fixture.model.generation.saturating_add_signed(generations),
            version: fixture.model.version.saturating_add_signed(versions),
        };
        let (settled, voided) = (fixture.call_in("r", 10), fixture.call_in("s", 10));
        let known = as_of(&fixture);
        fixture.settle_as_of(&settled.name, 10, 4, Some(known)).await?;
        fixture.void_as_of(&voided.name, known).await?;
        // A void that wrote nothing leaves the call chargeable.
        fixture.authorize(&voided).await?;
        for _ in 0..2 {
            fixture.settle_as_of(&voided.name, 10, 4, Some(known)).await?;
        }
        for life in [LONG, NOW] {
            for void in [false, true] {
                let call = approved(&mut fixture, true, 10, life).await?;
                if life == NOW {
                    let hold = fixture.hold(&call);
                    fixture.reap(&hold).await?;
                }
                let ahead = as_of(&fixture);
                for _ in 0..2 {
                    if void {
                        fixture.void_as_of(&call.name, ahead).await?;
                    } else {
                        fixture.settle_as_of(&call.name, 10, 4, Some(ahead)).await?;
                    }
                }
                fixture.void(&call.name).await?;
                fixture.settle_as_of(&call.name, 10, 4, Some(ahead)).await?;
            }
        }
    }
    unknown_account(bench).await
}

/// Without the account's record nothing is written, not even for a caller that names no version.
async fn unknown_account(bench: &Bench<'_>) -> Checked {
    let mut fixture = bench.installed().await?;
    let call = fixture.call_in("r", 10);
    fixture.settle(&call.name, 10, 4).await?;
    let flushed: Result<String, _> = bench.scripts.store.command(&redis::cmd("FLUSHALL")).await;
    flushed.map_err(|error| format!("{error:?}"))?;
    let settle = settlement(call.name.clone(), 10, 4);
    let as_of = AccountVersion::default();
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
    let mut fixture = bench.installed().await?;
    let call = approved(&mut fixture, true, 12, LONG).await?;
    for estimate in [0, 1, 2, 11, 13, 120] {
        fixture.settle(&call.name, estimate, 5).await?;
    }
    fixture.settle(&call.name, 12, 5).await
}

async fn voided(bench: &Bench<'_>) -> Checked {
    for (estimate, named) in [(10, true), (10, false), (0, true), (0, false), (1, true)] {
        let mut fixture = bench.installed().await?;
        approved(&mut fixture, true, 7, LONG).await?;
        let call = approved(&mut fixture, named, estimate, LONG).await?;
        fixture.void(&call.name).await?;
        fixture.void(&call.name).await?;
        fixture.settle(&call.name, estimate, 3).await?;
        let mut late = call.clone();
        late.view = fixture.model.view();
        fixture.authorize(&late).await?;
    }
    // A void before its authorize arrives, or of one that never arrives.
    let mut fixture = bench.installed().await?;
    let call = fixture.call_in("r", 10);
    fixture.void(&call.name).await?;
    fixture.authorize(&call).await?;
    fixture.settle(&call.name, 10, 3).await?;
    let hold = fixture.hold(&call);
    fixture.reap(&hold).await
}

async fn kept(bench: &Bench<'_>) -> Checked {
    for (estimate, named) in [(10, true), (10, false), (0, true)] {
        let mut fixture = bench.installed().await?;
        approved(&mut fixture, true, 1, LONG).await?;
        for settle in [false, true] {
            let call = approved(&mut fixture, named, estimate, NOW).await?;
            let hold = fixture.hold(&call);
            fixture.reap(&hold).await?;
            fixture.reap(&hold).await?;
            fixture.settle(&call.name, estimate + 1, 5).await?;
            if settle {
                fixture.settle(&call.name, estimate, 14).await?;
            }
            fixture.void(&call.name).await?;
            fixture.settle(&call.name, estimate, 5).await?;
        }
        // The line of a hold that the operator ends by hand says so, for an open hold and for a kept one.
        for (life, reason, cost) in [
            (LONG, None, 6),
            (NOW, Some("invoice 17".to_owned()), 6),
            (LONG, None, 8),
        ] {
            let by_hand = approved(&mut fixture, named, estimate, life).await?;
            let hold = fixture.hold(&by_hand);
            fixture.reap(&hold).await?;
            let operator = EndedBy::Operator { reason };
            fixture
                .settle_for(&operator, &by_hand.name, estimate, cost)
                .await?;
        }
        // An unknown cost leaves the charge as it was.
        let unknown = approved(&mut fixture, named, estimate, NOW).await?;
        let hold = fixture.hold(&unknown);
        fixture.reap(&hold).await?;
        fixture.settle(&unknown.name, estimate, estimate).await?;
        let early = approved(&mut fixture, named, estimate, LONG).await?;
        let hold = fixture.hold(&early);
        fixture.reap(&hold).await?;
        fixture.settle(&early.name, estimate, 2).await?;
        fixture.reap(&hold).await?;
    }
    Ok(())
}

/// A run's record may expire before its last hold is resolved; it is not written again with a negative spend.
async fn forgotten_runs(bench: &Bench<'_>) -> Checked {
    for void in [false, true] {
        let mut fixture = bench.installed().await?;
        let call = approved(&mut fixture, true, 10, LONG).await?;
        fixture.change(|model| model.forget_run("a", "r")).await?;
        if void {
            fixture.void(&call.name).await?;
        } else {
            fixture.settle(&call.name, 10, 4).await?;
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
    let mut fixture = bench.installed().await?;
    let call = approved(&mut fixture, true, 10, LONG).await?;
    for (key, field) in [(&agent, "d"), (&agent, "m"), (&record, "t")] {
        let period = if field == "d" { day } else { month };
        lose(key, &format!("{field}{period}")).await?;
    }
    let lost = Charge {
        id: "allow_lost".to_owned(),
        named: false,
        amount: -10,
        state: ChargeState::Voided,
        ..fixture.model.charges[0].clone()
    };
    fixture.model.charges.push(lost);
    fixture.settle(&call.name, 10, 4).await?;

    let mut fixture = bench.installed().await?;
    let call = approved(&mut fixture, false, 0, LONG).await?;
    lose(&agent, "held").await?;
    fixture.settle(&call.name, 0, 0).await
}

/// An id that is open or voided is refused, and costs nothing but the rate count.
async fn ids(bench: &Bench<'_>) -> Checked {
    let mut fixture = bench.installed().await?;
    let call = approved(&mut fixture, true, 10, LONG).await?;
    for estimate in [10, 0, 11] {
        let mut again = fixture.call_in("s", estimate);
        again.name.allow_id.clone_from(&call.name.allow_id);
        fixture.authorize(&again).await?;
    }
    fixture.settle(&call.name, 10, 10).await
}

/// At the millisecond of its deadline a hold is due.
async fn overdue(bench: &Bench<'_>) -> Checked {
    for _ in 0..DEADLINE_TRIES {
        let mut fixture = bench.installed().await?;
        let call = approved(&mut fixture, true, 10, LONG).await?;
        let found = reap(&bench.scripts.at_deadline, &fixture.hold(&call)).await;
        if !matches!(found, Ok(Reaped::Kept)) {
            return Err(format!("a hold at its deadline: {found:?}"));
        }
    }
    Ok(())
}

/// Keeping a hold drops the entries of the kept index whose records have expired, and no others.
async fn kept_index(bench: &Bench<'_>) -> Checked {
    let mut fixture = bench.fixture();
    let life = u64::try_from(KEPT_LIFE.as_millis()).map_err(|error| error.to_string())?;
    let now = clock::now_ms();
    for (id, moment) in [
        ("gone", now - life - 1),
        ("older", now - 2 * life),
        ("young", now - life + 600_000),
    ] {
        fixture.model.kept_extra.insert(id.to_owned(), moment);
    }
    for number in 0..20 {
        let moment = now - life - 1000 + number;
        fixture.model.kept_extra.insert(format!("gone-{number}"), moment);
    }
    fixture.install().await?;
    // Those that have not expired stay when nothing else is left.
    for _ in 0..4 {
        let call = approved(&mut fixture, false, 10, NOW).await?;
        let hold = fixture.hold(&call);
        fixture.reap(&hold).await?;
    }
    Ok(())
}

/// An entry of the due index without a hold is dropped when its deadline has come.
async fn strays(bench: &Bench<'_>) -> Checked {
    let mut fixture = bench.fixture();
    let now = clock::now_ms();
    fixture.model.due_extra.extend([
        ("allow_1".to_owned(), now - 1),
        ("allow_2".to_owned(), now + 600_000),
    ]);
    fixture.install().await?;
    for _ in 0..2 {
        let call = fixture.call_in("r", 10);
        let hold = fixture.hold(&call);
        fixture.reap(&hold).await?;
    }
    Ok(())
}
