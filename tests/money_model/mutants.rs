//! Each small change to a script that moves money must be noticed by the checks of this directory.

mod equivalent;
mod texts;

use crate::mutants::texts::Recipe;
use crate::random::Case;
use crate::world::Checked;
use crate::{directed, lua, random};
use harness::Redis;
use std::collections::BTreeSet;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};
use store::Store;

/// Random cases that each changed script has to survive.
const CASES: u32 = 8;
/// Stores and threads.
const WORKERS: usize = 2;
/// Bytes of stack of each of them.
const STACK: usize = 16 << 20;
/// A changed script that keeps the checks busy longer than this has been noticed.
const LONGEST: Duration = Duration::from_secs(60);

struct Mutant {
    /// The script's file, and the change.
    name: String,
    recipe: &'static Recipe,
    text: String,
}

/// Every change of every part that is changed.
fn all() -> Vec<Mutant> {
    let mut all = Vec::new();
    for recipe in texts::RECIPES {
        let texts = recipe.texts();
        for (at, part) in recipe.parts.iter().enumerate() {
            if !recipe.changed.contains(&part.name) {
                continue;
            }
            for mutant in lua::mutants(&texts[at]) {
                let mut texts = texts.clone();
                texts[at] = mutant.text;
                all.push(Mutant {
                    name: format!("{}: {}", part.name, mutant.name),
                    recipe,
                    text: texts.concat(),
                });
            }
        }
    }
    all
}

/// The scripts as they are.
fn unchanged() -> Vec<Mutant> {
    let recipes = texts::RECIPES.iter();
    let same = recipes.map(|recipe| Mutant {
        name: recipe.script().to_owned(),
        recipe,
        text: recipe.texts().concat(),
    });
    same.collect()
}

/// The checks, those that are meant for the script first.
async fn checks(store: &Store, mutant: &Mutant, cases: &[Case]) -> Checked {
    let store = store.replacing(mutant.recipe.made_of(&mutant.text));
    directed::check(mutant.recipe.script(), &store).await?;
    for case in cases {
        random::play(&store, case).await?;
    }
    Ok(())
}

/// Those of `mutants` that nothing notices.
fn survivors(mutants: &[Mutant]) -> BTreeSet<String> {
    let cases = random::fixed_cases(CASES);
    let (next, survivors) = (AtomicUsize::new(0), Mutex::new(BTreeSet::new()));
    let worker = || {
        let redis = Redis::start();
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .unwrap();
        runtime.block_on(async {
            let store = redis.store();
            while let Some(mutant) = mutants.get(next.fetch_add(1, Ordering::Relaxed)) {
                if let Ok(Ok(())) = tokio::time::timeout(LONGEST, checks(&store, mutant, &cases)).await {
                    survivors.lock().unwrap().insert(mutant.name.clone());
                }
            }
        });
    };
    std::thread::scope(|scope| {
        for _ in 0..WORKERS {
            // The checks are one large future in a build without optimisation.
            let thread = std::thread::Builder::new().stack_size(STACK);
            thread.spawn_scoped(scope, worker).unwrap();
        }
    });
    survivors.into_inner().unwrap()
}

#[test]
#[ignore = "long: make verify runs it"]
fn every_changed_script_is_noticed() {
    let started = Instant::now();
    // The scripts as they are pass the same checks in the same way, or the death of a mutant would say nothing.
    let unchanged = unchanged();
    assert_eq!(survivors(&unchanged).len(), unchanged.len());
    let mutants = all();
    assert!(mutants.len() > 800, "only {} changes", mutants.len());
    let survivors = survivors(&mutants);
    let equivalent: BTreeSet<String> = equivalent::LIST
        .iter()
        .map(|(name, _reason)| (*name).to_owned())
        .collect();
    let unnoticed: Vec<&String> = survivors.difference(&equivalent).collect();
    assert!(
        unnoticed.is_empty(),
        "{} of {} changes went unnoticed: {unnoticed:#?}",
        unnoticed.len(),
        mutants.len()
    );
    let wrong: Vec<&String> = equivalent.difference(&survivors).collect();
    assert!(
        wrong.is_empty(),
        "listed as equivalent, but noticed or no longer a change: {wrong:#?}"
    );
    println!(
        "{} changes, {} equivalent, {:?}",
        mutants.len(),
        survivors.len(),
        started.elapsed()
    );
}
