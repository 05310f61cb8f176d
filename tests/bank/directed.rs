//! Directed checks: the edges of every rule, one after the other. They are also what changed scripts have to survive.

pub mod stage;
mod transfers;

use crate::world::{Checked, within_one_day};
use harness::Redis;
use shared::store::Store;
use stage::Stage;

/// Every directed check of the scripts of these names, or of all.
pub async fn all(store: &Store) -> Checked {
    within_one_day(store, async |period| {
        let stage = Stage { store, period };
        transfers::all(&stage).await
    })
    .await
}

#[tokio::test]
async fn every_edge_of_every_rule() {
    let redis = Redis::start();
    all(&redis.store()).await.unwrap();
}
