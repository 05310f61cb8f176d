//! Directed checks: the edges of every rule, one after the other. The mutation test runs them on changed scripts.

mod counting;
mod extending;
mod giving_back;
mod periods;
mod preconditions;
mod resolving;
mod runs;

use crate::fixture::{Checked, Fixture, within_one_day};
use crate::scripts::{Scripts, Texts};
use domain::period::Period;
use harness::Redis;

/// The scripts and period of a check.
pub struct Bench<'a> {
    pub scripts: &'a Scripts,
    pub period: Period,
}

impl<'a> Bench<'a> {
    /// A fixture that the check can still change before it is installed.
    pub fn fixture(&self) -> Fixture<'a> {
        Fixture::new(self.scripts, self.period)
    }

    pub async fn installed(&self) -> Result<Fixture<'a>, String> {
        let fixture = self.fixture();
        fixture.install().await?;
        Ok(fixture)
    }
}

/// The checks of one file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Group {
    Resolving,
    Counting,
    Preconditions,
    Runs,
    Extending,
    Periods,
    GivingBack,
}

impl Group {
    pub const ALL: [Self; 7] = [
        Self::Resolving,
        Self::Counting,
        Self::Preconditions,
        Self::Runs,
        Self::Extending,
        Self::Periods,
        Self::GivingBack,
    ];

    pub async fn check(self, scripts: &Scripts) -> Checked {
        within_one_day(&scripts.store, async |period| {
            let bench = Bench { scripts, period };
            match self {
                Self::Resolving => resolving::all(&bench).await,
                Self::Counting => counting::all(&bench).await,
                Self::Preconditions => preconditions::all(&bench).await,
                Self::Runs => runs::all(&bench).await,
                Self::Extending => extending::all(&bench).await,
                Self::Periods => periods::all(&bench).await,
                Self::GivingBack => giving_back::all(&bench).await,
            }
        })
        .await
    }
}

/// The check of the calendar alone, over four centuries.
pub async fn calendar(scripts: &Scripts) -> Checked {
    within_one_day(&scripts.store, async |period| {
        periods::calendar(&Bench { scripts, period }).await
    })
    .await
}

#[tokio::test]
async fn every_edge_of_every_rule() {
    let redis = Redis::start();
    let scripts = Texts::real().build(&redis.store());
    for group in Group::ALL {
        group.check(&scripts).await.unwrap();
    }
    calendar(&scripts).await.unwrap();
}
