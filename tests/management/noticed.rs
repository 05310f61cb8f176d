//! Tries each small change of some scripts: the checks notice all of them but those that change nothing.

use crate::lua;
use harness::{Redis, Store};
use std::collections::BTreeSet;

/// Runs `check` with each of `scripts` as it is, and then with each change of it. Of the more than `least` changes the
/// checks let exactly those pass that are listed as `equivalent`, each with its reason.
pub async fn all_are_noticed(
    scripts: &[(&'static str, &str)],
    least: usize,
    equivalent: &[(&str, &str)],
    check: impl AsyncFn(&Store, &'static str, &str) -> Result<(), String>,
) {
    let redis = Redis::start();
    let store = redis.store();
    let mut survivors = BTreeSet::new();
    let mut all = 0;
    for (script, text) in scripts {
        // The script as it is passes, or the death of a mutant would say nothing.
        assert_eq!(check(&store, script, text).await, Ok(()), "{script}");
        for mutant in lua::mutants(text) {
            all += 1;
            if check(&store, script, &mutant.text).await.is_ok() {
                survivors.insert(mutant.name);
            }
        }
    }
    let equivalent: BTreeSet<String> = equivalent.iter().map(|(name, _)| (*name).to_owned()).collect();
    assert_eq!(survivors, equivalent, "of {all} changes");
    assert!(all > least, "only {all} changes");
}
