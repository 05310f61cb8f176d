//! A block that was acknowledged is as safe as `store.durability` says.

use crate::pair::{Timeouts, by_a_replica, master_with_replica};
use harness::Store;
use store::StoreError;
use store::blocked::script::{BlockChange, ChangeError, Changed, change};
use store::keys::BLOCKED;

const TIMEOUTS: Timeouts = (5_000, 1_000);
const RANGE: &str = "203.0.113.7/32";

async fn change_list(store: &Store, what: BlockChange<'_>) -> Result<Changed, ChangeError> {
    change(store, RANGE.parse().unwrap(), what).await
}

fn is_unconfirmed(answer: &Result<Changed, ChangeError>) -> bool {
    matches!(
        answer,
        Err(ChangeError::Store(StoreError::NotDurable { ran: true, .. }))
    )
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_block_is_reported_of_when_the_replica_has_it() {
    let (master, replica) = master_with_replica().await;
    let store = by_a_replica(master.url(), TIMEOUTS);
    let block = BlockChange::Block(None);
    replica.pause();
    // The first request makes the change, the second finds it made: neither is confirmed.
    for what in [block, block, BlockChange::Unblock, BlockChange::Unblock] {
        let answer = change_list(&store, what).await;
        assert!(is_unconfirmed(&answer), "{what:?}: {answer:?}");
    }
    replica.resume();
    // It has seconds of work to catch up with on a busy machine.
    replica.wait_in_step_with(&master);
    assert_eq!(
        change_list(&store, BlockChange::Unblock).await.unwrap(),
        Changed::AlreadySo
    );
    assert_eq!(replica.command::<u64>(&["HEXISTS", BLOCKED, RANGE]), 0);
    assert_eq!(change_list(&store, block).await.unwrap(), Changed::Done);
    assert_eq!(replica.command::<u64>(&["HEXISTS", BLOCKED, RANGE]), 1);
    assert_eq!(change_list(&store, block).await.unwrap(), Changed::AlreadySo);
}
