//! Denials for keys, rate and plan, which are decided before Cap, and the counters of a request.

use super::Bench;
use crate::fixture::{ACCOUNT, Checked, KEYS, unlimited};
use crate::model;
use crate::snapshot::Window;
use domain::period::Period;
use std::time::Duration;
use store::call::authorize::{AccountView, AuthorizeOutcome};
use store::call::denial_windows::CountedDenials;

pub async fn all(bench: &Bench<'_>) -> Checked {
    ranks(bench).await?;
    rates(bench).await?;
    counted(bench).await?;
    recorded(bench).await?;
    rate_windows(bench).await?;
    windows_of_a_clock_that_was_ahead(bench).await?;
    agents(bench).await?;
    staleness(bench).await?;
    lost_accounts(bench).await?;
    provider_keys(bench).await
}

/// The oldest keys are within the plan's limit; a revoked one does not count.
async fn ranks(bench: &Bench<'_>) -> Checked {
    for limit in 0..=5 {
        let mut fixture = bench.installed().await?;
        for revoke in [false, true] {
            if revoke {
                fixture.change(|model| drop(model.active.remove(1))).await?;
            }
            for key in KEYS {
                let mut call = fixture.call(1);
                key.clone_into(&mut call.key_id);
                call.plan.active_virtual_keys = Some(limit);
                fixture.authorize(&call).await?;
                call = fixture.call(1);
                key.clone_into(&mut call.key_id);
                call.plan.active_virtual_keys = Some(limit);
                call.estimate = None;
                fixture.authorize(&call).await?;
            }
        }
    }
    Ok(())
}

async fn rates(bench: &Bench<'_>) -> Checked {
    for limit in 0..=3 {
        let mut fixture = bench.installed().await?;
        for request in 0..5 {
            let mut call = fixture.call(1);
            call.plan.proxy_requests_per_minute = Some(limit);
            if request == 1 {
                call.estimate = None;
            }
            fixture.authorize(&call).await?;
        }
    }
    Ok(())
}

/// Beyond the rate ten denials of a reason have a line each; the others are counted, also when the plan changes
/// meanwhile.
async fn counted(bench: &Bench<'_>) -> Checked {
    let mut fixture = bench.installed().await?;
    for request in 0..40_u64 {
        let mut call = fixture.call_in("r", 1);
        KEYS[1].clone_into(&mut call.key_id);
        call.plan.proxy_requests_per_minute = Some(if request < 8 { 2 } else { 3 });
        call.plan.active_virtual_keys = (request % 3 == 2).then_some(1);
        if request % 5 == 4 {
            call.estimate = None;
        }
        fixture.authorize(&call).await?;
    }
    let mut of_another = fixture.call(1);
    of_another.plan.proxy_requests_per_minute = Some(0);
    for _ in 0..12 {
        let mut call = of_another.clone();
        call.name.allow_id.push('x');
        fixture.authorize(&call).await?;
    }
    // A key beyond the plan's limit, but within its rate, has a line for each denial.
    let mut fixture = bench.installed().await?;
    for _ in 0..12 {
        let mut call = fixture.call(1);
        call.plan.active_virtual_keys = Some(0);
        call.plan.proxy_requests_per_minute = Some(12);
        fixture.authorize(&call).await?;
    }
    Ok(())
}

/// A window becomes a record once, after its end, and only if its count is the stored one.
async fn recorded(bench: &Bench<'_>) -> Checked {
    let now = clock::now_ms();
    let mut fixture = bench.fixture();
    let name = |key: &str| format!("rate_limited {ACCOUNT} a {key}");
    for (key, ends_ms) in [("vk_1", now - 10), ("vk_2", now + 3_600_000), ("vk_3", now - 10)] {
        let (ends, name) = (Window::at(ends_ms), name(key));
        fixture.model.counted.push(model::Counted {
            ends,
            name,
            count: 14,
        });
    }
    fixture.install().await?;
    let window = |key: &str, ends_ms: u64, count: u64| {
        CountedDenials::parse(&format!("{ends_ms} {}", name(key)), &count.to_string()).ok_or("a window")
    };
    let first = window("vk_1", now - 10, 14)?;
    fixture
        .record_window(&window("vk_1", now - 10, 13)?, None)
        .await?;
    fixture.record_window(&first, None).await?;
    fixture.record_window(&first, None).await?;
    let later = window("vk_2", now + 3_600_000, 14)?;
    fixture.record_window(&later, None).await?;
    fixture.record_window(&later, Some(later.ends_ms - 1)).await?;
    fixture.record_window(&later, Some(later.ends_ms)).await
}

/// The minute opens at the first request and is not moved by the next ones.
async fn rate_windows(bench: &Bench<'_>) -> Checked {
    let mut fixture = bench.installed().await?;
    for _ in 0..3 {
        let call = fixture.call_in("r", 1);
        fixture.authorize(&call).await?;
        tokio::time::sleep(Duration::from_millis(3)).await;
    }
    Ok(())
}

/// A window that opened while the clock was ahead denies nothing: the first request beyond the rate opens a new one.
async fn windows_of_a_clock_that_was_ahead(bench: &Bench<'_>) -> Checked {
    for (ahead_ms, limit) in [
        (0, 3),
        (1, 3),
        (1, 0),
        (240_000, 3),
        (240_000, 4),
        (240_000, 0),
        (36_000_000, 1),
    ] {
        let opened = clock::now_ms() + 5_000;
        let mut fixture = bench.fixture();
        let key = fixture.model.keys.entry(KEYS[0].to_owned()).or_default();
        key.rate = Some((3, Window::at(opened)));
        fixture.install().await?;
        // The first call is exact to the millisecond; the others use the real clock, seconds before the window opens.
        let at_ms = opened - ahead_ms;
        (fixture.clock_ms, fixture.model.period) = (Some(at_ms), Period::at(at_ms));
        for estimate in [Some(1), None, Some(1), Some(1)] {
            let mut call = fixture.call(1);
            call.plan.proxy_requests_per_minute = Some(limit);
            if estimate.is_none() {
                call.estimate = None;
            }
            fixture.authorize(&call).await?;
            (fixture.clock_ms, fixture.model.period) = (None, bench.period);
        }
    }
    Ok(())
}

/// An agent takes one of the plan's slots with its first approved call of the month and keeps it.
async fn agents(bench: &Bench<'_>) -> Checked {
    for limit in 0..=4 {
        let mut fixture = bench.installed().await?;
        for agent in ["a", "b", "a", "c", "b", "a", "c"] {
            let mut call = fixture.call(0);
            agent.clone_into(&mut call.name.agent);
            call.plan.cap_agents_per_month = Some(limit);
            fixture.authorize(&call).await?;
        }
    }
    Ok(())
}

/// The store must not be behind the version that the edge has seen.
async fn staleness(bench: &Bench<'_>) -> Checked {
    let mut fixture = bench.fixture();
    (fixture.model.generation, fixture.model.version) = (5, 5);
    fixture.install().await?;
    for generation in [4, 5, 6, 10] {
        for version in [0, 4, 5, 6, 7, 10] {
            let mut call = fixture.call(1);
            // The second approval raises the version beyond the one above.
            call.view = AccountView {
                generation,
                version: version + fixture.model.version - 5,
                ..call.view
            };
            fixture.authorize(&call).await?;
            call.view.version = version;
            fixture.authorize(&call).await?;
        }
    }
    let mut call = fixture.call(1);
    call.view.plan = "p1".to_owned();
    fixture.authorize(&call).await?;
    fixture.change(|model| model.plan = "p1".to_owned()).await?;
    call.view = fixture.model.view();
    fixture.authorize(&call).await
}

/// A missing or incomplete account means that the store lost writes.
async fn lost_accounts(bench: &Bench<'_>) -> Checked {
    for lost in ["generation", "plan", "everything"] {
        let mut fixture = bench.installed().await?;
        let record = store::keys::AccountKeys::new(crate::fixture::ACCOUNT).record();
        let mut command = redis::cmd("HDEL");
        command.arg(&record).arg(lost);
        if lost == "everything" {
            command = redis::cmd("DEL").arg(&record).take();
        }
        let gone: Result<i64, _> = bench.scripts.store.command(&command).await;
        gone.map_err(|error| format!("{error:?}"))?;
        let call = fixture.call(1);
        let plan = unlimited();
        let request = store::call::authorize::Authorize {
            name: &call.name,
            key_id: &call.key_id,
            view: &call.view,
            plan: &plan,
            charge: None,
        };
        match request.execute(&call.name.keys(), &bench.scripts.store).await {
            Ok(answer)
                if answer.outcome == AuthorizeOutcome::LostWrites
                    && answer.view == AccountView::default() => {}
            other => return Err(format!("{lost} lost: {other:?}")),
        }
    }
    Ok(())
}

async fn provider_keys(bench: &Bench<'_>) -> Checked {
    let mut fixture = bench.installed().await?;
    let keys = store::keys::AccountKeys::new(crate::fixture::ACCOUNT);
    let agent = keys.live().agent("a");
    for field in ["pk_id:openai", "pk_sealed:openai"] {
        fixture.install().await?;
        let gone: Result<i64, _> = bench
            .scripts
            .store
            .command(redis::cmd("HDEL").arg(&agent).arg(field))
            .await;
        gone.map_err(|error| format!("{error:?}"))?;
        let call = fixture.call(1);
        let mut model = fixture.model.clone();
        if let Some(agent) = model.agents.get_mut("a") {
            agent.no_provider_key = true;
            let other = if field.starts_with("pk_id") {
                ("pk_sealed:openai", "sealed-a")
            } else {
                ("pk_id:openai", "pk_a")
            };
            agent.extra.insert(other.0.to_owned(), other.1.to_owned());
        }
        std::mem::swap(&mut fixture.model, &mut model);
        fixture.authorize(&call).await?;
        std::mem::swap(&mut fixture.model, &mut model);
    }
    let mut call = fixture.call(1);
    call.name.agent = "nobody".to_owned();
    fixture.install().await?;
    fixture.authorize(&call).await
}
