//! One master and its replica, outside of a cluster, and handles on it.

use harness::{Redis, Store, until};
use settings::StoreSettings;
use settings::durability::Durability;
use std::path::PathBuf;

/// Key that the test writes to see that the replica follows.
const STEP: &str = "{b0001}/step";

/// `store.timeout_ms` and `store.durability_timeout_ms`.
pub type Timeouts = (u64, u64);

/// A handle whose changes are confirmed by one replica.
pub fn by_a_replica(url: String, timeouts: Timeouts) -> Store {
    handle(Durability::Replicas(1), url, timeouts)
}

/// A handle with this durability and these time-outs.
pub fn handle(durability: Durability, url: String, timeouts: Timeouts) -> Store {
    let settings = StoreSettings {
        url_file: PathBuf::new(),
        url: url.into(),
        ca_file: PathBuf::new(),
        timeout_ms: timeouts.0,
        durability,
        durability_timeout_ms: timeouts.1,
        max_clock_difference_ms: settings::default_max_clock_difference_ms(),
    };
    Store::from_settings(&settings).expect("the store's address")
}

pub async fn master_with_replica() -> (Redis, Redis) {
    let (master, replica) = (
        Redis::start_with(&["--repl-diskless-sync-delay", "0"]),
        Redis::start(),
    );
    let port = master.port().to_string();
    let _: String = replica.command(&["REPLICAOF", "127.0.0.1", &port]);
    until("a replica in step", async || {
        let _: String = master.command(&["SET", STEP, "1"]);
        replica.try_command::<u64>(&["EXISTS", STEP]) == Ok(1)
    })
    .await;
    // Its first acknowledgement comes up to a second later.
    until("a replica that is online", async || {
        let info: String = master.command(&["INFO", "replication"]);
        info.contains(",state=online,")
    })
    .await;
    (master, replica)
}
