//! Each small change to a script must be noticed by the checks of this directory.

mod equivalent;

use crate::lua;
use crate::scripts::Texts;
use crate::world::Checked;
use crate::{directed, precedence, random};
use harness::Redis;
use random::Case;
use std::collections::BTreeSet;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};
use store::Store;

/// Random cases that each changed script has to survive.
const CASES: u32 = 30;
/// Stores and threads.
const WORKERS: usize = 2;
/// A changed script that keeps the checks busy longer than this has been noticed.
const LONGEST: Duration = Duration::from_secs(60);

struct Mutant {
    name: String,
    texts: Texts,
    of_period: bool,
}

fn all() -> Vec<Mutant> {
    type Field = fn(&mut Texts) -> &mut String;
    let parts: [(&str, Field); 11] = [
        ("authorize", |texts| &mut texts.authorize),
        ("prune", |texts| &mut texts.prune),
        ("run", |texts| &mut texts.run),
        ("resolve", |texts| &mut texts.resolve),
        ("lacks_writes", |texts| &mut texts.lacks_writes),
        ("extend", |texts| &mut texts.extend),
        ("settle", |texts| &mut texts.settle),
        ("void", |texts| &mut texts.void),
        ("reap", |texts| &mut texts.reap),
        ("denial_window", |texts| &mut texts.denial_window),
        ("period", |texts| &mut texts.period),
    ];
    let mut all = Vec::new();
    for (part, field) in parts {
        let source = field(&mut Texts::real()).clone();
        for mutant in lua::mutants(&source) {
            let mut texts = Texts::real();
            *field(&mut texts) = mutant.text;
            let name = format!("{part}: {}", mutant.name);
            all.push(Mutant {
                name,
                texts,
                of_period: part == "period",
            });
        }
    }
    all
}

/// The checks, the quickest to notice something first.
async fn checks(store: &Store, mutant: &Mutant, cases: &[Case]) -> Checked {
    let scripts = mutant.texts.build();
    if mutant.of_period {
        directed::calendar(store, &scripts).await?;
    }
    directed::all(store, &scripts).await?;
    precedence::pairs(store, &scripts).await?;
    for case in cases {
        random::play(store, &scripts, case).await?;
    }
    Ok(())
}

#[test]
#[ignore = "long: make verify runs it"]
fn every_changed_script_is_noticed() {
    let started = Instant::now();
    let mutants = all();
    assert!(mutants.len() > 300, "only {} changes", mutants.len());
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
            scope.spawn(worker);
        }
    });
    let survivors = survivors.into_inner().unwrap();
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
