//! Counters of an extension: missing ones, exact digits beyond 2^53, the ceiling; an account without its record.

use super::{BY, FROM, approved, charge, limit};
use crate::directed::Bench;
use crate::directed::preconditions::{GAUGES, Gauge, before};
use crate::fixture::{ACCOUNT, AGENTS, Checked, Fixture, usd};
use crate::model::{CEILING, Charge, ChargeState, Extension};
use crate::snapshot::Window;
use domain::period::Period;
use store::StoreError;
use store::call::extend::{Extend, Extended};
use store::keys::AccountKeys;

pub async fn all(bench: &Bench<'_>) -> Checked {
    lost_counters(bench).await?;
    exact(bench).await?;
    ceilings(bench).await?;
    no_account(bench).await
}

/// A missing counter counts as zero.
async fn lost_counters(bench: &Bench<'_>) -> Checked {
    let keys = AccountKeys::new(ACCOUNT);
    let Period { day, month } = bench.period;
    let agent = keys.live().agent(AGENTS[0]);
    let fields = [
        (agent.clone(), format!("d{day}")),
        (agent, format!("m{month}")),
        (keys.record(), format!("t{month}")),
    ];
    for gauge in [Gauge::Day, Gauge::Month, Gauge::Tracked] {
        for most in [BY - 1, BY] {
            let mut fixture = bench.installed().await?;
            let call = approved(&mut fixture, false).await?;
            let mut extension = fixture.extension(&call, FROM + BY);
            limit(&mut fixture, &mut extension, gauge, most).await?;
            for (key, field) in &fields {
                lose(bench, key, field).await?;
            }
            fixture.model.charges.push(Charge {
                amount: -i128::from(FROM),
                ..charge("allow_lost", bench.period, FROM, ChargeState::Voided)
            });
            if most < BY {
                // Nothing is written, so the fields stay missing: only the reply is compared.
                refused(bench, &extension).await?;
            } else {
                fixture.extend(&extension).await?;
            }
        }
    }
    Ok(())
}

async fn refused(bench: &Bench<'_>, extension: &Extension) -> Checked {
    match extended(bench, extension).await {
        Ok(Extended::Denied(_)) => Ok(()),
        other => Err(format!("beyond a limit: {other:?}")),
    }
}

async fn extended(bench: &Bench<'_>, extension: &Extension) -> Result<Extended, StoreError> {
    let request = Extend {
        name: &extension.name,
        key_id: &extension.key_id,
        view: &extension.view,
        plan: &extension.plan,
        from: usd(extension.from),
        to: usd(extension.to),
        hold_life: extension.hold_life,
    };
    request
        .execute(&extension.name.keys(), &bench.scripts.store)
        .await
}

/// Counters stay exact up to and beyond 2^53, where doubles lose the last digit.
async fn exact(bench: &Bench<'_>) -> Checked {
    let edge: i128 = 1 << 53;
    for gauge in GAUGES {
        for (used, by) in [
            (edge - 12, 1),
            (edge - 11, 1),
            (edge - 11, 3),
            (edge, 1),
            (edge + 1, 1),
            (3 * edge + 1, 3),
        ] {
            let mut fixture = before(bench, gauge, used).await?;
            let call = approved(&mut fixture, true).await?;
            let extension = fixture.extension(&call, FROM + by);
            fixture.extend(&extension).await?;
            fixture.settle(&call.name, FROM + by, 1).await?;
        }
    }
    Ok(())
}

/// Counters are 64-bit integers: an extension that could overflow one is refused before anything is written.
async fn ceilings(bench: &Bench<'_>) -> Checked {
    // Doubles are 1024 apart near the ceiling.
    for gauge in GAUGES {
        for (below, by) in [(2048, 1024), (2048, 2048), (4096, 1024), (1024, 1024)] {
            let mut fixture = before(bench, gauge, CEILING - below).await?;
            grows_from_1024(&mut fixture, by).await?;
        }
    }
    // The sum of the open holds, here one of last month.
    let earlier = Period {
        day: bench.period.day - 1,
        month: bench.period.month - 1,
    };
    let due = Window::at(clock::now_ms() + 3_600_000);
    for by in [1024, 2048] {
        let mut fixture = bench.fixture();
        let held = u64::try_from(CEILING - 2048).map_err(|error| error.to_string())?;
        let open = charge("allow_held", earlier, held, ChargeState::Open { due });
        fixture.model.charges.push(open);
        fixture.install().await?;
        grows_from_1024(&mut fixture, by).await?;
    }
    Ok(())
}

async fn grows_from_1024(fixture: &mut Fixture<'_>, by: u64) -> Checked {
    let call = fixture.call_in("r", 1024);
    fixture.approve(&call).await?;
    let extension = fixture.extension(&call, 1024 + by);
    fixture.extend(&extension).await
}

/// Removes a field of a record.
async fn lose(bench: &Bench<'_>, key: &str, field: &str) -> Checked {
    let mut command = redis::cmd("HDEL");
    let lost: Result<i64, _> = bench.scripts.store.command(command.arg(key).arg(field)).await;
    lost.map(drop).map_err(|error| format!("{error:?}"))
}

/// An account with a missing or incomplete record lacks writes.
async fn no_account(bench: &Bench<'_>) -> Checked {
    let record = AccountKeys::new(ACCOUNT).record();
    for field in ["generation", "plan"] {
        let mut fixture = bench.installed().await?;
        let call = approved(&mut fixture, true).await?;
        let extension = fixture.extension(&call, FROM + BY);
        lose(bench, &record, field).await?;
        match extended(bench, &extension).await {
            Err(StoreError::LacksWrites) => {}
            other => return Err(format!("an account without its {field}: {other:?}")),
        }
    }
    Ok(())
}
