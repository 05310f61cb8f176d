//! Every kind of address, every script.

use super::Payer;
use crate::fixture::{settlement, usd};
use harness::{REPOSITORY, Redis, RedisCluster, Seed};
use settings::StoreSettings;
use settings::durability::Durability;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::time::Duration;
use store::call::extend::{Extend, Extended};
use store::call::hold::Hold;
use store::call::reap::{Reaped, reap, sweep};
use store::call::settle::Settled;
use store::call::void::{Voided, void};
use store::command_rights::Program;
use store::script::all::all;
use store::versions::AccountVersion;
use store::{Store, sanity};

/// Longest wait for the store.
const TIMEOUT: Duration = Duration::from_secs(5);
/// Accounts that are spread over the nodes of a cluster: with 48 a node of three is left out once in a hundred million
/// runs.
const ACCOUNTS: usize = 48;

/// Approve, extend and settle, approve and void, approve and keep.
async fn whole_life(store: &Store, payer: &Payer) {
    let settled = payer.approve(store, 90).await;
    let extend = Extend {
        name: &settled,
        key_id: &payer.key_id,
        view: &payer.view,
        plan: &payer.plan,
        from: usd(90),
        to: usd(100),
        hold_life: TIMEOUT,
    };
    let extended = extend.execute(&settled.keys(), store).await.unwrap();
    assert!(matches!(extended, Extended::Extended { .. }), "{extended:?}");
    assert_eq!(payer.charged().await, 100);
    let settle = settlement(settled, 100, 30);
    assert!(matches!(
        settle.execute(&settle.name.keys(), None, store).await.unwrap(),
        Settled::Done
    ));
    assert_eq!(
        settle.execute(&settle.name.keys(), None, store).await.unwrap(),
        Settled::Missing
    );
    let voided = payer.approve(store, 100).await;
    assert_eq!(
        void(store, &voided, AccountVersion::default()).await.unwrap(),
        Voided::Refunded
    );
    assert_eq!(payer.charged().await, 30);

    let kept = payer.new_name();
    payer
        .authorize_for(store, &kept, 7, Duration::ZERO)
        .await
        .unwrap();
    let bucket = payer.agent.account.keys.bucket();
    let soon = clock::now_ms() + 5;
    tokio::time::sleep(Duration::from_millis(6)).await;
    let swept: Vec<Hold> = sweep(store, bucket, soon).await.unwrap();
    let ids: Vec<&str> = swept.iter().map(|hold| hold.name.allow_id.as_str()).collect();
    assert_eq!(ids, [kept.allow_id.as_str()]);
    assert_eq!(reap(store, &swept[0]).await.unwrap(), Reaped::Gone);
    assert_eq!((payer.charged().await, payer.agent.kept_holds().await), (37, 1));
    let late = settlement(kept, 7, 1);
    assert!(matches!(
        late.execute(&late.name.keys(), None, store).await.unwrap(),
        Settled::Done
    ));
    assert_eq!((payer.charged().await, payer.agent.kept_holds().await), (31, 0));
}

#[tokio::test]
async fn on_tcp_and_on_a_unix_socket() {
    let redis = Redis::start();
    for url in [redis.url(), redis.unix_url()] {
        let store = Store::open(&url, TIMEOUT).unwrap();
        let payer = Payer::new(&Seed::new(&store).await).await;
        whole_life(&store, &payer).await;
        sanity::check(&store, Program::Management).await.unwrap();
        assert!(!store.is_cluster());
    }
}

/// The settings of a store at `url` that trusts the certificates in `ca_file`.
fn settings(url: String, ca_file: &Path) -> StoreSettings {
    StoreSettings {
        url_file: std::path::PathBuf::new(),
        url: url.into(),
        ca_file: ca_file.to_owned(),
        timeout_ms: 5_000,
        durability: Durability::Async,
        durability_timeout_ms: 5_000,
        max_clock_difference_ms: settings::default_max_clock_difference_ms(),
    }
}

#[tokio::test]
async fn over_tls_with_a_certificate_that_is_trusted() {
    let redis = Redis::start();
    let (port, cert) = redis.open_tls_port();
    let plain = redis.store();
    let payer = Payer::new(&Seed::new(&plain).await).await;
    let url = format!("rediss://localhost:{port}");
    whole_life(
        &Store::from_settings(&settings(url.clone(), &cert)).unwrap(),
        &payer,
    )
    .await;

    let stranger = Store::from_settings(&settings(url.clone(), Path::new(""))).unwrap();
    assert!(
        sanity::record(&stranger).await.is_err(),
        "a certificate of an unknown authority"
    );
    for (file, what) in [
        ("/nonexistent/ca.pem", "store.ca_file /nonexistent/ca.pem"),
        ("/dev/null", "store.ca_file /dev/null: it holds no certificate"),
    ] {
        let error = Store::check(&settings(url.clone(), Path::new(file))).unwrap_err();
        assert!(error.to_string().contains(what), "{error}");
    }
}

#[tokio::test]
async fn on_every_node_of_a_cluster() {
    let cluster = RedisCluster::start(3);
    let store = Store::open(&cluster.url(), TIMEOUT).unwrap();
    assert!(store.is_cluster());
    let seed = Seed::new(&store).await;
    for _ in 0..ACCOUNTS {
        whole_life(&store, &Payer::new(&seed).await).await;
    }
    sanity::check(&store, Program::Management).await.unwrap();
    for node in cluster.nodes() {
        let ran = node.calls("evalsha") + node.calls("eval");
        assert!(ran > 0, "no account fell on {}", node.url());
        let refused: Option<String> = node.stat("evalsha", "rejected_calls=");
        assert!(
            refused.is_none_or(|count| count == "0"),
            "every script's keys share a slot"
        );
    }
}

/// Number of scripts that the sources in and below `dir` declare.
fn declared(dir: &Path) -> usize {
    let files = std::fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().path());
    let count = |path: PathBuf| match path.extension() {
        None => declared(&path),
        Some(ending) if ending == "rs" => {
            let source = std::fs::read_to_string(path).unwrap();
            let is_one = |line: &&str| line.starts_with("script! {") || line.contains(": LazyLock<Script>");
            source.lines().filter(is_one).count()
        }
        Some(_) => 0,
    };
    files.map(count).sum()
}

#[test]
fn every_script_loads() {
    let redis = Redis::start();
    let all = all();
    let mut names = BTreeSet::new();
    for script in &all {
        let loaded = redis.try_command::<String>(&["SCRIPT", "LOAD", script.source()]);
        assert!(loaded.is_ok(), "{}: {loaded:?}", script.name());
        assert!(
            names.insert(script.name()),
            "two scripts called {}",
            script.name()
        );
    }
    let sources = Path::new(REPOSITORY).join("shared/store/src");
    assert_eq!(
        all.len(),
        declared(&sources),
        "a script is missing from this list"
    );
}
