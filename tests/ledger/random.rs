//! Random sequences of actions, biased to the edges of the limits, each compared with the model.

mod act;
mod op;

use crate::fixture::{Checked, within_one_day};
use crate::scripts::{Scripts, Texts};
use harness::Redis;
pub use op::Case;
use proptest::strategy::{Strategy, ValueTree as _};
use proptest::test_runner::{Config, TestError, TestRng, TestRunner};

/// Cases of the property test.
const CASES: u32 = 400;
/// Longest case.
const OPS: usize = 60;

/// The same `count` cases each time, for comparing scripts.
pub fn fixed_cases(count: u32) -> Vec<Case> {
    let config = Config::default();
    let rng = TestRng::deterministic_rng(config.rng_algorithm);
    let mut runner = TestRunner::new_with_rng(config, rng);
    let cases = op::case(OPS);
    (0..count)
        .map(|_| cases.new_tree(&mut runner).expect("a case").current())
        .collect()
}

/// Plays one case on an empty store.
pub async fn play(scripts: &Scripts, case: &Case) -> Checked {
    within_one_day(&scripts.store, async |period| {
        act::play(scripts, period, case).await
    })
    .await
}

#[test]
fn the_store_is_always_as_the_model_says() {
    let redis = Redis::start();
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let scripts = runtime.block_on(async { Texts::real().build(&redis.store()) });
    let config = Config {
        cases: CASES,
        failure_persistence: None,
        ..Config::default()
    };
    let mut runner = TestRunner::new(config);
    let result = runner.run(&op::case(OPS), |case| {
        let checked = runtime.block_on(play(&scripts, &case));
        checked.map_err(proptest::test_runner::TestCaseError::fail)
    });
    match result {
        Ok(()) => {}
        Err(TestError::Fail(reason, case)) => panic!("{reason}\nshortest case: {case:#?}"),
        Err(other) => panic!("{other}"),
    }
}
