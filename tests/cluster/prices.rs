//! An acknowledged import of prices is as safe as `store.durability` says, since the estimates of calls depend on
//! them.

use crate::pair::{Timeouts, by_a_replica, master_with_replica};
use store::StoreError;
use store::keys::PRICES;
use store::prices::{read, replace};

const TIMEOUTS: Timeouts = (5_000, 1_000);

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_import_is_reported_of_when_the_replica_has_it() {
    let (master, replica) = master_with_replica().await;
    let store = by_a_replica(master.url(), TIMEOUTS);
    replica.pause();
    let answer = replace(&store, None, "first").await;
    assert!(
        matches!(answer, Err(StoreError::NotDurable { ran: true, .. })),
        "{answer:?}"
    );
    replica.resume();
    // A repeated import is acknowledged when the replica has the first one's writes.
    let old = read(&store).await.unwrap();
    assert_eq!(old.as_deref(), Some("first"));
    assert!(replace(&store, old.as_deref(), "first").await.unwrap());
    assert_eq!(replica.command::<String>(&["GET", PRICES]), "first");
}
