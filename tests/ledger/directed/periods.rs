//! Days and months: each charge counts in the period of its approval, whenever it is settled.

use super::Bench;
use crate::fixture::{Checked, KEYS};
use crate::model::{Charge, ChargeState, NO_CHECKS};
use crate::snapshot::Window;
use domain::cap::CapPolicy;
use domain::period::{DAY_MS, Period};
use harness::open_cap;

/// Days whose months are compared at once.
const DAYS_AT_ONCE: usize = 2_000;

pub async fn all(bench: &Bench<'_>) -> Checked {
    late_resolutions(bench).await?;
    old_slots(bench).await?;
    borders(bench).await?;
    old_fields(bench).await?;
    old_fields_in_a_known_month(bench).await?;
    midnights(bench).await
}

/// A hold of yesterday and last month: the difference is charged there, not today.
async fn late_resolutions(bench: &Bench<'_>) -> Checked {
    let now = clock::now_ms();
    let long_ago = Window::at(now - 10);
    let later = Window::at(now + 3_600_000);
    let states = [
        ChargeState::Open { due: later },
        ChargeState::Open { due: long_ago },
        ChargeState::Kept { at: long_ago },
    ];
    for state in states {
        for void in [false, true] {
            let mut fixture = bench.fixture();
            let today = bench.period;
            let before = Period {
                day: today.day - 1,
                month: today.month - 1,
            };
            fixture.model.charges = vec![
                charge("allow_late", before, state),
                charge("allow_settled", before, ChargeState::Settled),
                charge("allow_today", today, ChargeState::Settled),
            ];
            fixture.install().await?;
            let mut call = fixture.call(10);
            call.name.allow_id = "allow_late".to_owned();
            call.name.run = "r".to_owned();
            if void {
                fixture.void(&call.name).await?;
            } else {
                fixture.settle(&call.name, 10, 4).await?;
            }
            let hold = fixture.hold(&call);
            fixture.reap(&hold).await?;
        }
    }
    Ok(())
}

/// A slot of last month is not one of this month.
async fn old_slots(bench: &Bench<'_>) -> Checked {
    for limit in [0, 1] {
        let mut fixture = bench.fixture();
        let before = Period {
            day: bench.period.day - 1,
            month: bench.period.month - 1,
        };
        fixture
            .model
            .charges
            .push(charge("allow_before", before, ChargeState::Settled));
        fixture.install().await?;
        for agent in ["a", "b", "a"] {
            let mut call = fixture.call(1);
            agent.clone_into(&mut call.name.agent);
            call.plan.cap_agents_per_month = Some(limit);
            fixture.authorize(&call).await?;
        }
    }
    Ok(())
}

/// Across the border of a month and back, as when a store's clock is set back: an agent has one slot in each month,
/// which it keeps and which is counted once.
async fn borders(bench: &Bench<'_>) -> Checked {
    let border = domain::timestamp::ms_from_iso("2027-01-01T00:00:00Z").ok_or("a moment")?;
    for limit in [1, 2] {
        let mut fixture = bench.installed().await?;
        for (at_ms, agent) in [
            (border + 20_000, "a"),
            (border - 160_000, "a"),
            (border + 140_000, "a"),
            (border + 140_000, "b"),
            (border - 1, "b"),
            (border - 1, "a"),
            (border, "a"),
            (border, "b"),
            (border, "c"),
        ] {
            fixture.clock_ms = Some(at_ms);
            fixture.model.period = Period::at(at_ms);
            let mut call = fixture.call(1);
            agent.clone_into(&mut call.name.agent);
            call.plan.cap_agents_per_month = Some(limit);
            fixture.authorize(&call).await?;
        }
    }
    Ok(())
}

/// As many counters of a kind as stay, however old they are.
const NEWEST: u64 = 7;
/// Days and months after those that the limits of age are about: the newest of a kind stay, however old they are.
const NEWER: std::ops::RangeInclusive<u64> = 1..=5;

/// The first charge of an agent's day drops its counters of long ago, and nothing else.
async fn old_fields(bench: &Bench<'_>) -> Checked {
    let Period { day, month } = bench.period;
    let mut fixture = bench.fixture();
    let fields = [
        format!("d{}", day - 39),
        format!("d{}", day - 40),
        format!("d{}", day - 41),
        format!("d{}", day - 4_000),
        format!("d{}", day + 1),
        format!("m{}", month - 199),
        format!("m{}", month - 200),
        format!("m{}", month - 201),
        format!("s{}", month - 199),
        format!("s{}", month - 200),
        format!("s{}", month - 201),
        format!("w{}", day - 39),
        format!("w{}", day - 40),
        format!("w{}", day - 41),
        "d1x".to_owned(),
        "m1x".to_owned(),
        "xd1".to_owned(),
        "day1".to_owned(),
        "d".to_owned(),
    ];
    let newer = NEWER.flat_map(|n| {
        [
            format!("d{}", day - n),
            format!("m{}", month - n),
            format!("s{}", month - n),
            format!("w{}", day - n),
        ]
    });
    let newer: Vec<String> = newer.collect();
    for (name, agent) in &mut fixture.model.agents {
        agent.extra = fields
            .iter()
            .chain(&newer)
            .map(|field| (field.clone(), "7".to_owned()))
            .collect();
        if name == "b" {
            // One fewer: the newest of the old ones stays.
            agent.extra.remove(&format!("d{}", day + 1));
            agent.extra.remove(&newer[1]);
            agent.extra.remove(&newer[2]);
        }
    }
    fixture.install().await?;
    for agent in ["a", "a", "b"] {
        let mut call = fixture.call(0);
        agent.clone_into(&mut call.name.agent);
        fixture.authorize(&call).await?;
    }
    // Fields that turn up later in the day are left to the next day.
    fixture
        .change(|model| {
            for agent in model.agents.values_mut() {
                agent.extra.insert("d1".to_owned(), "1".to_owned());
            }
        })
        .await?;
    let call = fixture.call(1);
    fixture.authorize(&call).await
}

/// Old fields are dropped at the first charge of the day, not of the month.
async fn old_fields_in_a_known_month(bench: &Bench<'_>) -> Checked {
    let mut fixture = bench.fixture();
    let Period { day, month } = bench.period;
    let yesterday = Period { day: day - 1, month };
    fixture
        .model
        .charges
        .push(charge("allow_before", yesterday, ChargeState::Settled));
    for agent in fixture.model.agents.values_mut() {
        for old in 1..=NEWEST {
            agent.extra.insert(format!("d{old}"), "1".to_owned());
        }
    }
    fixture.install().await?;
    let call = fixture.call(1);
    fixture.authorize(&call).await
}

/// The last millisecond of a day and the first of the next, with a settlement after midnight and limits on both sides.
async fn midnights(bench: &Bench<'_>) -> Checked {
    for midnight in [
        "2026-11-21T00:00:00Z",
        "2026-12-01T00:00:00Z",
        "2027-01-01T00:00:00Z",
        "2028-02-29T00:00:00Z",
        "2028-03-01T00:00:00Z",
        "2100-03-01T00:00:00Z",
    ] {
        let midnight = domain::timestamp::ms_from_iso(midnight).ok_or("a moment")?;
        let mut fixture = bench.fixture();
        let limit = Some(crate::fixture::usd(15));
        let policy = CapPolicy {
            daily: limit,
            monthly: Some(crate::fixture::usd(25)),
            ..open_cap()
        };
        fixture.model.policy = Some(policy);
        for agent in fixture.model.agents.values_mut() {
            agent.cap = None;
        }
        fixture.install().await?;
        let mut held = None;
        for at_ms in [midnight - 2, midnight - 1, midnight, midnight + 1] {
            fixture.clock_ms = Some(at_ms);
            fixture.model.period = Period::at(at_ms);
            let mut call = fixture.call_in("r", 10);
            call.plan.cap_agents_per_month = Some(1);
            call.plan.tracked_usd_per_month = limit;
            fixture.authorize(&call).await?;
            held.get_or_insert(call);
        }
        let held = held.ok_or("a call")?;
        fixture.settle(&held.name, 10, 13).await?;
    }
    Ok(())
}

/// The scripts' calendar is that of `domain::period`, for every day of four centuries, from its first
/// millisecond to its last.
pub async fn calendar(bench: &Bench<'_>) -> Checked {
    let days: Vec<u64> = (0..146_097).collect();
    for days in days.chunks(DAYS_AT_ONCE) {
        let Some(&first) = days.first() else { continue };
        for within in [0, DAY_MS - 1] {
            let clock = |day: &u64| {
                let now = day * DAY_MS + within;
                [(now / 1000).to_string(), (now % 1000 * 1000 + 999).to_string()]
            };
            let texts: Vec<String> = days.iter().flat_map(clock).collect();
            let args: Vec<&str> = texts.iter().map(String::as_str).collect();
            let answer: Result<Vec<String>, _> = bench
                .scripts
                .store
                .script(&bench.scripts.period, &[], &args)
                .await;
            let answer = answer.map_err(|error| format!("the calendar: {error:?}"))?;
            let months = days.iter().map(|day| Period::at(day * DAY_MS + within).month);
            let expected: Vec<String> = [first * DAY_MS + within, first]
                .into_iter()
                .chain(months)
                .map(|n| n.to_string())
                .collect();
            if answer != expected {
                return Err(format!("the calendar from day {first} is not the product's"));
            }
        }
    }
    Ok(())
}

pub fn charge(id: &str, period: Period, state: ChargeState) -> Charge {
    Charge {
        id: id.to_owned(),
        agent: "a".to_owned(),
        run: "r".to_owned(),
        named: false,
        key_id: KEYS[0].to_owned(),
        period,
        estimate: 10,
        checks: NO_CHECKS.to_owned(),
        amount: 10,
        state,
    }
}
