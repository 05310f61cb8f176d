//! Directed checks: the edges of every rule, one after the other. The mutation test runs them on changed scripts.

mod counting;
mod extending;
mod periods;
mod preconditions;
mod resolving;
mod runs;

use crate::scripts::{Scripts, Texts};
use crate::world::{Checked, World, within_one_day};
use domain::period::Period;
use harness::Redis;
use store::Store;

/// The store, scripts and period of a check.
pub struct Bench<'a> {
    pub store: &'a Store,
    pub scripts: &'a Scripts,
    pub period: Period,
}

impl<'a> Bench<'a> {
    /// A world to be arranged further before it is installed.
    pub fn world(&self) -> World<'a> {
        World::new(self.store, self.scripts, self.period)
    }

    pub async fn installed(&self) -> Result<World<'a>, String> {
        let world = self.world();
        world.install().await?;
        Ok(world)
    }
}

/// Every directed check.
pub async fn all(store: &Store, scripts: &Scripts) -> Checked {
    within_one_day(store, async |period| {
        let bench = Bench {
            store,
            scripts,
            period,
        };
        resolving::all(&bench).await?;
        counting::all(&bench).await?;
        preconditions::all(&bench).await?;
        runs::all(&bench).await?;
        extending::all(&bench).await?;
        periods::all(&bench).await
    })
    .await
}

/// The calendar alone, four centuries of it.
pub async fn calendar(store: &Store, scripts: &Scripts) -> Checked {
    within_one_day(store, async |period| {
        periods::calendar(&Bench {
            store,
            scripts,
            period,
        })
        .await
    })
    .await
}

#[tokio::test]
async fn every_edge_of_every_rule() {
    let redis = Redis::start();
    let scripts = Texts::real().build();
    let store = redis.store();
    all(&store, &scripts).await.unwrap();
    calendar(&store, &scripts).await.unwrap();
}
