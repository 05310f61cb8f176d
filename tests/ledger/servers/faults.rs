//! Stores that fail, as their client sees it. More failures, as callers of the edge see them, are in `tests/faults`.

use super::{Payer, code};
use crate::fixture::settlement;
use harness::{ClosedPort, Redis, Seed, Wire, eventually};
use std::time::Duration;
use store::call::settle::Settled;
use store::call::void::{Voided, void};
use store::command_rights::Program;
use store::keys::Bucket;
use store::read::Read;
use store::versions::AccountVersion;
use store::{Store, StoreError, sanity, server_clock};

/// The store's deadline where a test waits for it.
const DEADLINE: Duration = Duration::from_millis(300);
/// A store that is back is used again within this time.
const RECONNECT: Duration = Duration::from_secs(2);

/// Also if the store was not checked since its clock moved: workers read the clock right before they archive or reap.
#[tokio::test]
async fn the_clock_of_a_store_is_not_read_while_it_is_wrong() {
    const BOUND_MS: i64 = 300_000;
    let redis = Redis::start();
    Seed::new(&redis.store()).await;
    let wire = Wire::to_port(redis.port());
    let store = Store::open(&wire.redis_url(), Duration::from_secs(5)).unwrap();
    for right in [0, BOUND_MS / 1000 - 60, 60 - BOUND_MS / 1000] {
        wire.move_clock(right);
        server_clock::now_ms(&store).await.unwrap();
        sanity::check(&store, Program::Management).await.unwrap();
    }
    for wrong in [BOUND_MS / 1000 + 60, -BOUND_MS / 1000 - 60, 3 * 86_400] {
        wire.move_clock(wrong);
        let (by_time, by_info) = (
            server_clock::now_ms(&store).await,
            sanity::check(&store, Program::Management).await,
        );
        let (Err(StoreError::ClockDiffers(one)), Err(sanity::UntrustedStore::ClockDiffers(other))) =
            (by_time, by_info)
        else {
            panic!("{wrong} s");
        };
        for found in [&one, &other] {
            assert!((found.ahead_ms - wrong * 1000).abs() < 60_000, "{found:?}");
        }
        assert_eq!(other.server, wire.addr().to_string());
    }
}

#[tokio::test]
async fn a_full_store_approves_nothing_and_settles_everything() {
    let redis = Redis::start();
    let store = redis.store();
    let payer = Payer::new(&Seed::new(&store).await).await;
    let (settled, voided) = (payer.approve(&store, 100).await, payer.approve(&store, 100).await);
    let _: String = redis.command(&["CONFIG", "SET", "maxmemory", "1"]);
    for forget in [false, true] {
        if forget {
            let _: String = redis.command(&["SCRIPT", "FLUSH"]);
        }
        let error = payer.authorize(&store, &payer.new_name(), 100).await.unwrap_err();
        assert_eq!(code(&error), "OOM");
        assert!(!error.may_have_run() && error.broken_script().is_none());
    }
    let settle = settlement(settled, 100, 150);
    assert!(matches!(
        settle.execute(&settle.name.keys(), None, &store).await.unwrap(),
        Settled::Done
    ));
    assert_eq!(
        void(&store, &voided, AccountVersion::default()).await.unwrap(),
        Voided::Refunded
    );
    let _: String = redis.command(&["CONFIG", "SET", "maxmemory", "0"]);
    assert_eq!(payer.charged().await, 150);
    payer.approve(&store, 100).await;
}

/// A settlement that breaks off in its middle, since a record of the account has the wrong type, is repeated. It
/// subtracts the difference from the charges at most once: the caps still hold.
#[tokio::test]
async fn a_settlement_that_breaks_off_moves_nothing_twice() {
    let redis = Redis::start();
    let store = redis.store();
    for kept in [false, true] {
        for broken in ["audit", "record"] {
            let payer = Payer::new(&Seed::new(&store).await).await;
            payer.approve(&store, 1_000).await;
            let name = match kept {
                true => payer.keep(&store, 100).await,
                false => payer.approve(&store, 100).await,
            };
            let keys = &payer.agent.account.keys;
            if broken == "audit" {
                let _: u64 = redis.command(&["DEL", &keys.live().audit()]);
                let _: String = redis.command(&["SET", &keys.live().audit(), "no list"]);
            } else {
                let _: u64 = redis.command(&["HSET", &keys.record(), "live_audit_seq", "no number"]);
            }
            let settle = settlement(name, 100, 30);
            let error = settle
                .execute(&settle.name.keys(), None, &store)
                .await
                .unwrap_err();
            assert!(
                error.broken_script().is_some() && error.may_have_run(),
                "{error:?}"
            );
            if broken == "audit" {
                let named = format!("(script `settle`, key `{}`)", keys.live().audit());
                assert!(error.to_string().contains(&named), "{error}");
            }
            for _ in 0..3 {
                assert_eq!(
                    settle.execute(&settle.name.keys(), None, &store).await.unwrap(),
                    Settled::Missing
                );
            }
            let charged = payer.charged().await;
            assert!(
                (1_030..=1_100).contains(&charged),
                "{charged}, kept: {kept}, {broken}"
            );
        }
    }
}

/// Behind an address that always leads to the master, the connection to the old master is replaced.
#[tokio::test]
async fn a_master_that_became_a_replica_is_left() {
    let (old, new) = (Redis::start(), Redis::start());
    let wire = Wire::to_port(old.port());
    let store = Store::open(&wire.redis_url(), DEADLINE).unwrap();
    let closed = ClosedPort::take();
    let (mut set, nobody) = (redis::cmd("SET"), closed.address().port().to_string());
    set.arg("who").arg("me");
    let _: String = store.command(&set).await.unwrap();
    let _: String = old.command(&["REPLICAOF", "127.0.0.1", &nobody]);
    let error = store.command::<String>(&set).await.unwrap_err();
    assert_eq!(code(&error), "READONLY");
    // While there is no other master the same connection is tried again, without a new one each time.
    let before = wire.connections();
    for _ in 0..50 {
        let error = store.command::<String>(&set).await.unwrap_err();
        assert_eq!(code(&error), "READONLY");
    }
    assert!(
        wire.connections() - before <= 3,
        "{} connections",
        wire.connections()
    );
    wire.lead_to(new.port());
    eventually("the new master", RECONNECT, async || {
        store.command::<String>(&set).await.ok()
    })
    .await;
    assert_eq!(new.command::<String>(&["GET", "who"]), "me");
}

/// A server that refuses reads for now has not lost its data: reads of many keys fail as single ones do.
#[tokio::test]
async fn a_server_that_serves_nothing_is_not_empty() {
    let redis = Redis::start();
    let store = redis.store();
    let bucket = Bucket::all().next().unwrap();
    let (text, hash) = (bucket.hold("text"), bucket.hold("hash"));
    let _: String = redis.command(&["SET", &text, "there"]);
    let _: u64 = redis.command(&["HSET", &hash, "field", "1"]);
    let reads = [Read::text(bucket, &hash), Read::text(bucket, &text)];
    let mut answers = store.many(&reads).await.unwrap();
    assert_eq!(answers.read::<String>(), None, "of another type");
    assert_eq!(answers.read::<String>().as_deref(), Some("there"));
    let _: String = redis.command(&["CONFIG", "SET", "replica-serve-stale-data", "no"]);
    let closed = ClosedPort::take();
    let nobody = closed.address().port().to_string();
    let _: String = redis.command(&["REPLICAOF", "127.0.0.1", &nobody]);
    let error = store.many(&reads).await.unwrap_err();
    assert_eq!(code(&error), "MASTERDOWN");
}

/// The error of one command, or of one of several that are sent together, names the command and its key.
#[tokio::test]
async fn data_of_another_type_is_named() {
    let redis = Redis::start();
    let store = redis.store();
    for (key, value) in [("{b}/one", "text"), ("{b}/two", "text")] {
        let _: String = redis.command(&["SET", key, value]);
    }
    let read = redis::cmd("HGETALL").arg("{b}/one").to_owned();
    let error = store.command::<redis::Value>(&read).await.unwrap_err();
    assert!(error.to_string().contains("`HGETALL` of `{b}/one`"), "{error}");
    let mut both = redis::pipe();
    both.cmd("GET").arg("{b}/one").cmd("LLEN").arg("{b}/two");
    let error = store.pipeline::<redis::Value>(&both).await.unwrap_err();
    assert!(error.to_string().contains("`LLEN` of `{b}/two`"), "{error}");
    // The reply is a text where the caller expects a number.
    let read = redis::cmd("GET").arg("{b}/one").to_owned();
    let error = store.command::<u64>(&read).await.unwrap_err();
    assert!(error.to_string().contains("`GET` of `{b}/one`"), "{error}");
}
