//! Kills processes on a random schedule.

use crate::fixture::{ADMIN, Fixture};
use harness::{Admin, AdminOptions, SeededRandom, free_port};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Location of an admin server that is killed and started again.
pub struct ServerSetup {
    redis_url: String,
    listen: u16,
    ops: u16,
}

impl ServerSetup {
    pub fn new(redis_url: &str) -> Self {
        Self {
            redis_url: redis_url.to_owned(),
            listen: free_port(),
            ops: free_port(),
        }
    }

    pub fn url(&self) -> String {
        format!("http://127.0.0.1:{}", self.listen)
    }

    pub fn start(&self) -> Admin {
        let at = |port: u16| format!("127.0.0.1:{port}");
        let options = AdminOptions::new(ADMIN, &self.redis_url)
            .until_alive()
            .env("TOLLGATE_ADMIN__LISTEN", at(self.listen))
            .env("TOLLGATE_ADMIN__OPS_LISTEN", at(self.ops));
        Admin::start(options)
    }
}

pub struct Chaos {
    pub dice: SeededRandom,
    pub fixture: Arc<Fixture>,
    pub setups: [Arc<ServerSetup>; 2],
    /// `None` while it is down.
    pub servers: [Option<Admin>; 2],
    /// Number of kills of the store and of each server.
    pub strikes: [u32; 3],
}

impl Chaos {
    pub async fn run(&mut self, during: Duration) {
        let end = Instant::now() + during;
        // Each process is killed early once, then at random.
        let mut first = vec![2, 1, 0];
        while Instant::now() < end {
            self.dice.sleep(200, 1500).await;
            let what = first.pop().unwrap_or_else(|| self.dice.below(3));
            self.strikes[usize::try_from(what).expect("an index")] += 1;
            match what {
                0 => {
                    self.fixture.redis.kill9();
                    self.dice.sleep(20, 600).await;
                    tokio::task::block_in_place(|| {
                        self.fixture.redis.restart();
                        self.fixture.redis.rewrite_if_torn();
                    });
                }
                server => {
                    let at = usize::try_from(server - 1).expect("an index");
                    if let Some(admin) = self.servers[at].take() {
                        admin.kill9();
                    }
                    self.dice.sleep(20, 600).await;
                    let setup = Arc::clone(&self.setups[at]);
                    self.servers[at] = Some(tokio::task::block_in_place(|| setup.start()));
                }
            }
        }
    }

    /// Starts every server that is down.
    pub fn heal(&mut self) {
        for (server, setup) in self.servers.iter_mut().zip(&self.setups) {
            if server.is_none() {
                *server = Some(setup.start());
            }
        }
    }
}
