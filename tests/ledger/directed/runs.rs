//! Named runs and held amounts: ended runs resume, the index drops ended ones, the held amount never falls below zero.

use super::Bench;
use crate::fixture::{ACCOUNT, Checked, Fixture, unlimited, usd};
use crate::model::Run;
use crate::snapshot::Window;
use store::call::authorize::RUN_LIFE_MS;
use store::keys::AccountKeys;

pub async fn all(bench: &Bench<'_>) -> Checked {
    ended(bench).await?;
    index(bench).await?;
    unknown(bench).await?;
    many_ended(bench).await?;
    budget(bench).await?;
    budget_of_ended(bench).await?;
    edge_of_life(bench).await?;
    minutes(bench).await?;
    held_below(bench).await
}

fn name(run: &str) -> (String, String) {
    ("a".to_owned(), run.to_owned())
}

/// A denied call leaves a run ended; an approved one resumes it with its earlier spend.
async fn ended(bench: &Bench<'_>) -> Checked {
    for status in ["completed", "failed"] {
        let mut fixture = bench.fixture();
        let at = Window::at(clock::now_ms());
        let run = Run {
            status: Some(status),
            ..Run::called(at, at.later(3_600_000))
        };
        fixture.model.runs.insert(name("r"), run);
        fixture.model.list(name("r"), at);
        fixture.install().await?;
        let mut denied = fixture.call_in("r", 5);
        denied.plan = unlimited();
        denied.plan.tracked_usd_per_month = Some(usd(4));
        fixture.authorize(&denied).await?;
        let call = fixture.call_in("r", 5);
        fixture.approve(&call).await?;
        fixture.settle(&call.name, 5, 3).await?;
    }
    Ok(())
}

/// A call of a run drops from both indexes the runs whose records have ended, unless the run was called in the same
/// minute before.
async fn index(bench: &Bench<'_>) -> Checked {
    for denied in [false, true] {
        let mut fixture = bench.fixture();
        let now = clock::now_ms();
        let moments = [
            ("older", now - 2 * RUN_LIFE_MS),
            ("gone", now - RUN_LIFE_MS - 1),
            ("young", now - RUN_LIFE_MS + 600_000),
            ("r", now - 300_000),
        ];
        for (run, moment) in moments {
            fixture.model.list(name(run), Window::at(moment));
        }
        let of_another = ("b".to_owned(), "gone".to_owned());
        fixture.model.list(of_another, Window::at(now - 2 * RUN_LIFE_MS));
        let last_seen = Window::at(now - 300_000);
        let known = Run::called(last_seen, last_seen.later(3_600_000));
        fixture.model.runs.insert(name("r"), known);
        fixture.install().await?;
        for run in ["r", "new", "new"] {
            let mut call = fixture.call_in(run, 5);
            call.plan.tracked_usd_per_month = denied.then(|| usd(4));
            fixture.authorize(&call).await?;
        }
    }
    Ok(())
}

/// A denial for any reason makes no run record; the approved call after it does.
async fn unknown(bench: &Bench<'_>) -> Checked {
    for frozen in [false, true] {
        let mut fixture = bench.fixture();
        if let Some(agent) = fixture.model.agents.get_mut("a") {
            agent.frozen = frozen;
        }
        fixture.install().await?;
        for estimate in [50, 50, 5, 50] {
            let mut call = fixture.call_in("r", estimate);
            call.plan.tracked_usd_per_month = Some(usd(40));
            fixture.authorize(&call).await?;
        }
    }
    Ok(())
}

/// Each new run drops the ten ended runs that were seen first.
async fn many_ended(bench: &Bench<'_>) -> Checked {
    let mut fixture = bench.fixture();
    for number in 0..25 {
        let last_seen = clock::now_ms() - RUN_LIFE_MS - 1000 + number;
        fixture
            .model
            .list(name(&format!("gone-{number}")), Window::at(last_seen));
    }
    fixture.install().await?;
    for run in ["one", "one", "two", "three", "four"] {
        let call = fixture.call_in(run, 5);
        fixture.approve(&call).await?;
    }
    Ok(())
}

/// A new run beyond the budget of runs is denied if no other check fails, and charges nothing; known runs and calls
/// without a run continue (decision D71).
async fn budget(bench: &Bench<'_>) -> Checked {
    for most in [1, 2] {
        let scripts = bench.scripts.with_runs(most);
        let mut fixture = Fixture::new(&scripts, bench.period);
        fixture.model.runs_most = usize::try_from(most).map_err(|error| error.to_string())?;
        fixture.install().await?;
        for run in ["one", "two", "one", "two", "three"] {
            let call = fixture.call_in(run, 5);
            fixture.authorize(&call).await?;
            let mut dear = fixture.call_in(run, 50);
            dear.plan.tracked_usd_per_month = Some(usd(40));
            fixture.authorize(&dear).await?;
        }
        let unnamed = fixture.call(5);
        fixture.approve(&unnamed).await?;
        if fixture.model.counted_runs.len() != fixture.model.runs_most {
            return Err(format!("{:?} of {most}", fixture.model.counted_runs));
        }
    }
    Ok(())
}

/// Runs that ended 35 days after their last call leave the budget, whether or not the index has dropped them.
async fn budget_of_ended(bench: &Bench<'_>) -> Checked {
    let scripts = bench.scripts.with_runs(2);
    let bench = Bench {
        scripts: &scripts,
        ..*bench
    };
    // Many more than a script drops at once: the budget was larger before.
    for ended in [2, 30] {
        let mut fixture = bench.fixture();
        fixture.model.runs_most = 2;
        for number in 0..ended {
            let last_seen = Window::at(clock::now_ms() - RUN_LIFE_MS - 1000 + number);
            let name = ("b".to_owned(), format!("gone-{number}"));
            fixture.model.list(name, last_seen);
        }
        fixture.install().await?;
        for run in ["one", "two"] {
            let call = fixture.call_in(run, 5);
            fixture.approve(&call).await?;
        }
        let third = fixture.call_in("three", 5);
        fixture.authorize(&third).await?;
        if fixture.model.open(&third.name.allow_id).is_some() {
            return Err("a third run within a budget of two".to_owned());
        }
    }
    Ok(())
}

/// The life of a run is exact to the millisecond, by the store's clock.
async fn edge_of_life(bench: &Bench<'_>) -> Checked {
    let scripts = bench.scripts.with_runs(1);
    let bench = Bench {
        scripts: &scripts,
        ..*bench
    };
    let at_ms = domain::timestamp::ms_from_iso("2026-11-21T12:00:00Z").ok_or("a moment")?;
    for (seen, has_room) in [(at_ms - RUN_LIFE_MS, true), (at_ms - RUN_LIFE_MS + 1, false)] {
        let mut fixture = bench.fixture();
        fixture.model.runs_most = 1;
        fixture.clock_ms = Some(at_ms);
        fixture.model.period = domain::period::Period::at(at_ms);
        fixture
            .model
            .counted_runs
            .insert(("b".to_owned(), "other".to_owned()), Window::at(seen));
        fixture.install().await?;
        let call = fixture.call_in("new", 5);
        fixture.authorize(&call).await?;
        if fixture.model.open(&call.name.allow_id).is_some() != has_room {
            return Err(format!("a run that was last seen at {seen}, now {at_ms}"));
        }
    }
    Ok(())
}

/// Index and end of a run are written in its first call of a minute of the clock.
async fn minutes(bench: &Bench<'_>) -> Checked {
    let start = domain::timestamp::ms_from_iso("2026-11-21T12:00:00Z").ok_or("a moment")?;
    let mut fixture = bench.installed().await?;
    for later in [0, 1, 59_999, 60_000, 60_001, 180_000] {
        let at_ms = start + later;
        fixture.clock_ms = Some(at_ms);
        fixture.model.period = domain::period::Period::at(at_ms);
        for estimate in [5, 50] {
            let mut call = fixture.call_in("r", estimate);
            call.plan.tracked_usd_per_month = Some(usd(40));
            fixture.authorize(&call).await?;
        }
    }
    Ok(())
}

/// If the field `held` is below the hold's estimate, resolving the hold leaves zero, and no negative number.
async fn held_below(bench: &Bench<'_>) -> Checked {
    let agent = AccountKeys::new(ACCOUNT).live().agent("a");
    for noted in [0, 3, 10] {
        let mut fixture = bench.installed().await?;
        let call = fixture.call_in("r", 10);
        fixture.approve(&call).await?;
        let mut command = redis::cmd("HSET");
        command.arg(&agent).arg("held").arg(noted);
        let set: Result<i64, _> = bench.scripts.store.command(&command).await;
        set.map_err(|error| format!("{error:?}"))?;
        fixture.settle(&call.name, 10, 4).await?;
    }
    Ok(())
}
