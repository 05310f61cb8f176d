//! Random faults of the store, the wire and one of the edges.

use super::EdgeSetup;
use crate::fixture::{Fixture, sha};
use harness::{Edge, SeededRandom, Wire};
use std::sync::Arc;
use std::time::{Duration, Instant};
use store::call::authorize::AUTHORIZE;
use store::call::settle::SETTLE;
use store::call::void::VOID;

pub struct Chaos {
    pub dice: SeededRandom,
    pub fixture: Arc<Fixture>,
    /// The wire of the edge that is not killed.
    pub wire: Arc<Wire>,
    /// Location of the edge that is killed.
    pub setup: Arc<EdgeSetup>,
    pub shaky: Edge,
}

impl Chaos {
    /// Causes one fault after another.
    pub async fn run(&mut self, during: Duration) {
        let end = Instant::now() + during;
        // Each kind of fault comes once early, then at random.
        let mut kinds = (0..8).collect::<Vec<u64>>();
        while Instant::now() < end {
            let kind = kinds.pop().unwrap_or_else(|| self.dice.below(8));
            self.strike(kind).await;
            self.dice.sleep(300, 1200).await;
        }
    }

    async fn strike(&mut self, kind: u64) {
        match kind {
            0 => {
                self.fixture.redis.pause();
                self.dice.sleep(100, 1500).await;
                self.fixture.redis.resume();
            }
            1 => {
                self.fixture.redis.kill9();
                self.dice.sleep(50, 800).await;
                tokio::task::block_in_place(|| {
                    self.fixture.redis.restart();
                    self.fixture.redis.rewrite_if_torn();
                });
            }
            2 => self.wire.cut(),
            3 => {
                let script = self.dice.pick(&[&*AUTHORIZE, &*SETTLE, &*VOID]);
                let times = 1 + u32::try_from(self.dice.below(6)).expect("a few");
                self.wire.lose_reply_to(sha(script), times);
            }
            4 => {
                self.wire
                    .delay_replies(Duration::from_millis(50 + self.dice.below(700)));
                self.dice.sleep(200, 900).await;
                self.wire.heal();
            }
            5 => {
                self.wire.swallow_requests(true);
                self.wire.refuse(true);
                self.wire.cut();
                self.dice.sleep(100, 900).await;
                self.wire.heal();
            }
            6 => {
                self.wire.hold_requests();
                self.dice.sleep(200, 900).await;
                self.wire.release_requests();
            }
            _ => {
                self.shaky.kill9();
                self.dice.sleep(50, 500).await;
                self.shaky = tokio::task::block_in_place(|| self.setup.start());
            }
        }
        // Now and then the store forgets its scripts as well.
        if self.dice.percent(20) {
            let _ = self.fixture.redis.try_command::<String>(&["SCRIPT", "FLUSH"]);
        }
    }

    /// Ends all faults.
    pub async fn heal(&mut self) {
        self.fixture.redis.resume();
        self.wire.heal();
        self.wire.cut();
        tokio::task::yield_now().await;
    }
}
