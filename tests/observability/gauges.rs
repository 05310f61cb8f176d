//! Gauges of open, waiting and broken records, on the server that exposes them.

use crate::fixture::{Fixture, body, scrape};
use harness::{Answer, until};
use std::sync::Arc;
use tokio::sync::Notify;

/// Waits until a metric of the admin server has a value that fits.
async fn wait_for_metric(
    fixture: &Fixture,
    metric: &str,
    labels: &[(&str, &str)],
    fits: impl Fn(f64) -> bool,
) {
    until(metric, async || fits(scrape(&fixture.admin).sum(metric, labels))).await;
}

#[tokio::test]
async fn a_call_under_way_is_an_open_hold_with_an_age() {
    let fixture = Fixture::new().await;
    let gate = Arc::new(Notify::new());
    let waits = Arc::clone(&gate);
    fixture
        .upstream
        .set(move |_| Answer::chat(9, 12).wait_for(&waits));
    let actor = fixture.rich().await;
    let caller = actor.caller.clone();
    let call = tokio::spawn(async move { caller.chat(body()).await });
    let some = |value: f64| value > 0.5;
    wait_for_metric(&fixture, "tollgate_admin_holds_open", &[], some).await;
    wait_for_metric(&fixture, "tollgate_admin_holds_oldest_seconds", &[], |age| {
        age > 0.0 && age < 3600.0
    })
    .await;
    gate.notify_one();
    assert_eq!(call.await.unwrap().status, 200);
    wait_for_metric(&fixture, "tollgate_admin_holds_open", &[], |open| open < 0.5).await;
    for worker in ["archiver", "carrier", "census", "reaper", "sealer"] {
        let metric = "tollgate_admin_worker_last_round_timestamp_seconds";
        wait_for_metric(&fixture, metric, &[("worker", worker)], |at| at > 1.6e9).await;
    }
    let edge = scrape(&fixture.edge);
    let counted = |metric: &str, labels: &[(&str, &str)]| edge.sum(metric, labels).round() as u64;
    assert_eq!(
        counted("tollgate_proxy_approved_total", &[("upstream", "2xx")]),
        1
    );
    for stage in ["resolve", "receive", "read", "decide", "upstream", "settle"] {
        let stage = [("stage", stage)];
        assert_eq!(
            counted("tollgate_proxy_stage_seconds_count", &stage),
            1,
            "{stage:?}"
        );
    }
    let charged = counted("tollgate_proxy_charged_nanos_total", &[]);
    assert_eq!(charged, actor.agent.counters().await.day_nanos);
    assert_eq!(charged, counted("tollgate_proxy_actual_nanos_total", &[]));
    assert!(counted("tollgate_proxy_estimated_nanos_total", &[]) > charged);
    assert_eq!(counted("tollgate_proxy_actual_ratio_count", &[]), 1);
    assert_eq!(counted("tollgate_proxy_upstream_connections_total", &[]), 1);
    assert_eq!(counted("tollgate_proxy_cache_entries", &[("cache", "owners")]), 1);
    // Each call has one entry, and only this server seals: all count, also the first of the chain.
    wait_for_metric(
        &fixture,
        "tollgate_admin_audit_entries_sealed_total",
        &[],
        |sealed| sealed > 0.5,
    )
    .await;
    fixture.upstream.set(|_| Answer::chat(9, 12));
    for _ in 0..2 {
        assert_eq!(actor.caller.chat(body()).await.status, 200);
    }
    wait_for_metric(
        &fixture,
        "tollgate_admin_audit_entries_sealed_total",
        &[],
        |sealed| (sealed - 3.0).abs() < 1e-9,
    )
    .await;
    wait_for_metric(&fixture, "tollgate_admin_audit_unsealed_entries", &[], |left| {
        left < 0.5
    })
    .await;
}

#[tokio::test]
async fn a_store_that_is_away_wiped_or_evicting_is_reported_by_both() {
    let fixture = Fixture::with(
        |options| options.env("TOLLGATE_STORE__TIMEOUT_MS", "1000"),
        |options| options,
    )
    .await;
    let both = async |metric: &str, value: f64| {
        until(&format!("{metric} {value}"), async || {
            let says = |daemon, prefix: &str| {
                let found = scrape(daemon).sum(&format!("{prefix}_{metric}"), &[]);
                (found - value).abs() < 1e-9
            };
            says(&fixture.edge, "tollgate_proxy") && says(&fixture.admin, "tollgate_admin")
        })
        .await;
    };
    both("store_up", 1.0).await;
    both("store_noeviction", 1.0).await;
    both("store_epoch_ok", 1.0).await;
    both("store_restored", 0.0).await;
    // A restored store has not lost its epoch; it needs another command.
    let _: i64 = fixture
        .redis
        .command(&["HSET", "tollgate/store", "restored", "backup of x"]);
    both("store_restored", 1.0).await;
    both("store_epoch_ok", 1.0).await;
    let _: i64 = fixture.redis.command(&["HDEL", "tollgate/store", "restored"]);
    both("store_restored", 0.0).await;
    let _: String = fixture
        .redis
        .command(&["CONFIG", "SET", "maxmemory-policy", "allkeys-lru"]);
    let _: String = fixture
        .redis
        .command(&["CONFIG", "SET", "maxmemory", "1073741824"]);
    both("store_noeviction", 0.0).await;
    both("store_memory_max_bytes", 1_073_741_824.0).await;
    let _: String = fixture.redis.command(&["FLUSHALL"]);
    both("store_epoch_ok", 0.0).await;
    fixture.redis.kill9();
    both("store_up", 0.0).await;
    let edge = scrape(&fixture.edge);
    assert!(edge.sum("tollgate_proxy_ready", &[]) < 0.5);
    assert!(edge.sum("tollgate_proxy_store_errors_total", &[]) > 0.5);
}

#[tokio::test]
async fn tables_that_are_read_again_are_counted() {
    let prices = tempfile::NamedTempFile::new().unwrap();
    let good = std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/config/prices.toml")).unwrap();
    std::fs::write(prices.path(), &good).unwrap();
    let path = prices.path().display().to_string();
    let fixture = Fixture::with(
        |options| options.env("TOLLGATE_PRICES__FILE", path.clone()),
        |options| options.env("TOLLGATE_PRICES__FILE", path.clone()),
    )
    .await;
    std::fs::write(prices.path(), "no table").unwrap();
    fixture.edge.signal("HUP");
    fixture.admin.signal("HUP");
    for (daemon, metric) in [
        (&*fixture.edge, "tollgate_proxy_table_reads_total"),
        (&*fixture.admin, "tollgate_admin_table_reads_total"),
    ] {
        until("the reload", async || {
            let scrape = scrape(daemon);
            let count = |table, result| scrape.sum(metric, &[("table", table), ("result", result)]);
            count("prices", "failed") > 0.5 && count("plans", "ok") > 0.5
        })
        .await;
    }
    let actor = fixture.rich().await;
    let reply = actor.caller.chat(body()).await;
    assert_eq!(reply.status, 200, "the prices in force stay");
}

/// The alert about stalled workers does not know how long a pause is set.
#[tokio::test]
async fn a_worker_that_waits_for_its_next_round_is_not_stalled() {
    let week_ms = (7 * 86_400 * 1000).to_string();
    let fixture = Fixture::with(
        |options| options,
        |options| {
            options
                .env("TOLLGATE_AUDIT__CHECKPOINT_EVERY_MS", &week_ms)
                .env("TOLLGATE_AUDIT__SEAL_EVERY_MS", &week_ms)
        },
    )
    .await;
    for worker in ["checkpointer", "sealer"] {
        let metric = "tollgate_admin_worker_last_round_timestamp_seconds";
        wait_for_metric(&fixture, metric, &[("worker", worker)], |at| at > 1.6e9).await;
        let first = scrape(&fixture.admin).sum(metric, &[("worker", worker)]);
        wait_for_metric(&fixture, metric, &[("worker", worker)], |at| at > first).await;
    }
}
