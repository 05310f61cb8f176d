//! 64 callers transfer, spend, fund, release and dispute while two admin servers and the store are killed with -9 and
//! started again on a seeded schedule. Afterwards the books are right, every acknowledged request is executed, and
//! every other request once or not at all (ARCHITECTURE.md, invariants 6 to 8).

mod books;
mod caller;
mod chaos;

use crate::fixture::{Fixture, initialised};
use caller::{Made, SharedState, run};
use chaos::{Chaos, ServerSetup};
use harness::{Redis, SeededRandom, eventually, torture_seed};
use std::sync::Arc;
use std::time::Duration;

/// Duration of the load.
const CALLING: Duration = Duration::from_secs(30);
/// Longest wait for rows in transit.
const DUST: Duration = Duration::from_secs(60);
const CALLERS: u64 = 64;

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
#[ignore = "long: make verify runs it"]
async fn no_crash_creates_loses_or_doubles_a_cent() {
    let seed = torture_seed();
    let redis = initialised(Redis::start_durable()).await;
    let setups = [ServerSetup::new(&redis.url()), ServerSetup::new(&redis.url())].map(Arc::new);
    let servers = setups.each_ref().map(|setup| Some(setup.start()));
    let fixture = Arc::new(Fixture::found(redis, &setups[0].url()).await);
    let urls = setups.each_ref().map(|setup| setup.url());
    let shared = Arc::new(SharedState::new(&fixture, urls.clone(), CALLING));
    let mut chaos = Chaos {
        dice: SeededRandom::new(seed),
        fixture: Arc::clone(&fixture),
        setups,
        servers,
        strikes: [0; 3],
    };
    let callers = (0..CALLERS).map(|at| tokio::spawn(run(Arc::clone(&shared), at, seed)));
    let calling = futures::future::join_all(callers);
    let (made, ()) = futures::future::join(calling, chaos.run(CALLING)).await;
    let made: Vec<Made> = made
        .into_iter()
        .flat_map(|made| made.expect("a caller"))
        .collect();
    chaos.heal();
    assert!(
        chaos.strikes.iter().all(|strikes| *strikes > 0),
        "{:?}",
        chaos.strikes
    );

    eventually("nothing in transit", DUST, async || {
        let waiting = fixture.tenants.iter().map(|tenant| {
            let key = tenant.account.keys.bucket().transit();
            fixture.redis.command::<u64>(&["HLEN", &key])
        });
        (waiting.sum::<u64>() == 0).then_some(())
    })
    .await;
    fixture.books_are_right(&format!("seed {seed}, before the repeats"));
    books::check(&fixture, &shared, made, seed).await;
    fixture.books_are_right(&format!("seed {seed}"));
}
