//! The windows of denied calls of one bucket: an account that lost writes does not delay the records of another one.

use harness::{Redis, Seed, SeedAccount};
use std::collections::HashMap;
use store::call::denial_windows;
use store::keys::Bucket;

/// Windows of each account, so that some of the second one's come behind those of the first in any order.
const WINDOWS: u64 = 8;
/// End of the windows, in ms since 1970.
const END_MS: u64 = 1_795_000_060_000;

/// Two accounts of one bucket.
async fn neighbours(seed: &Seed) -> [SeedAccount; 2] {
    let mut by_bucket: HashMap<Bucket, SeedAccount> = HashMap::new();
    loop {
        let account = seed.account("builder").await;
        if let Some(other) = by_bucket.remove(&account.keys.bucket()) {
            return [other, account];
        }
        by_bucket.insert(account.keys.bucket(), account);
    }
}

#[tokio::test]
async fn an_account_that_lost_writes_does_not_delay_its_neighbours() {
    let redis = Redis::start();
    let store = redis.store();
    let [lost, other] = &neighbours(&Seed::new(&store).await).await;
    let bucket = lost.keys.bucket();
    let windows = bucket.counted_denials();
    let count = |account: &SeedAccount, key: String, count: &str| {
        let field = format!("{END_MS} rate_limited {} bot {key}", account.id);
        let _: u64 = redis.command(&["HSET", &windows, &field, count]);
    };
    // This process knows a version that the store has no more.
    count(lost, "vk_before".to_owned(), "25");
    assert_eq!(denial_windows::sweep(&store, bucket, END_MS).await.unwrap(), 1);
    let _: u64 = redis.command(&["HSET", &lost.keys.record(), "version", "1"]);
    for account in [lost, other] {
        for n in 0..WINDOWS {
            count(account, format!("vk_many{n}"), "25");
            count(account, format!("vk_few{n}"), "4");
        }
    }

    let swept = denial_windows::sweep(&store, bucket, END_MS).await;
    assert!(swept.is_err(), "the account's windows wait: {swept:?}");
    let left: Vec<String> = redis.command(&["HKEYS", &windows]);
    assert_eq!(left.len() as u64, WINDOWS, "{left:?}");
    assert!(
        left.iter()
            .all(|field| field.contains(&lost.id) && field.contains("vk_many")),
        "{left:?}"
    );
    let records = other.audit_types(domain::mode::Mode::Live).await;
    assert_eq!(records.len() as u64, WINDOWS, "{records:?}");
}
