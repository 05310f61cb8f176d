//! Random sequences of actions, biased to the edges, each compared with the model.

mod chance;
mod escrow_steps;
mod op;
mod player;
mod steps;

use crate::model_fixture::{Checked, within_one_day};
use harness::Redis;
pub use op::Case;
use proptest::strategy::{Strategy, ValueTree as _};
use proptest::test_runner::{Config, TestCaseError, TestError, TestRng, TestRunner};
use store::Store;

/// Threads that share the cases.
const RUNNERS: u32 = 2;
/// Most operations of a case.
const OPS: usize = 100;

/// The same `count` cases each time, for comparing scripts.
pub fn fixed_cases(count: u32) -> Vec<Case> {
    let config = Config::default();
    let rng = TestRng::deterministic_rng(config.rng_algorithm);
    let mut runner = TestRunner::new_with_rng(config, rng);
    let cases = chance::case(OPS);
    (0..count)
        .map(|_| cases.new_tree(&mut runner).expect("a case").current())
        .collect()
}

/// Plays one case on an empty store.
pub async fn play(store: &Store, case: &Case) -> Checked {
    within_one_day(store, async |period| player::play(store, period, case).await).await
}

#[test]
fn the_store_is_always_as_the_model_says() {
    compare_all(100);
}

#[test]
#[ignore = "long: make verify runs it"]
fn the_store_is_as_the_model_says_in_many_cases() {
    compare_all(200);
}

/// Compares this many cases with the model.
fn compare_all(cases: u32) {
    // Each runner has a store of its own.
    std::thread::scope(|scope| {
        for _ in 0..RUNNERS {
            scope.spawn(|| compare(cases / RUNNERS));
        }
    });
}

/// Compares the runner's share of cases with the model.
fn compare(cases: u32) {
    let redis = Redis::start();
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let store = runtime.block_on(async { redis.store() });
    let config = Config {
        cases,
        failure_persistence: None,
        ..Config::default()
    };
    let mut runner = TestRunner::new(config);
    let result = runner.run(&chance::case(OPS), |case| {
        let checked = runtime.block_on(play(&store, &case));
        checked.map_err(TestCaseError::fail)
    });
    match result {
        Ok(()) => {}
        Err(TestError::Fail(reason, case)) => panic!("{reason}\nshortest case: {case:#?}"),
        Err(other) => panic!("{other}"),
    }
}
