//! Checks of the store's scripts and of their mutants: a check must fail for each small change of a script.

mod mutants;
mod quickest_first;
mod snapshot;

pub use mutants::{Mutant, mutants};
pub use quickest_first::QuickestFirst;
pub use snapshot::{Content, Expected, Record, Window, compare, dump, install};

use crate::Redis;
use domain::period::Period;
use parking_lot::Mutex;
use redis::FromRedisValue;
use std::collections::BTreeSet;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;
use store::Store;
use store::script::all::all;
use store::script::names::InputNames;
use store::script::{Script, ScriptKind, WhenFull};

/// Stores and threads of [`survivors`].
const WORKERS: usize = 2;
/// Bytes of stack of each thread. A long check is one large future in a build without optimisation.
const STACK: usize = 16 << 20;
/// A changed script counts as noticed if its check runs longer than this.
const LONGEST: Duration = Duration::from_secs(60);

/// Result of a check; the error is a sentence.
pub type Checked = Result<(), String>;

/// Returns `Err` from a check, with the line, unless both values are equal.
#[macro_export]
macro_rules! same {
    ($found:expr, $expected:expr) => {
        let (found, expected) = ($found, $expected);
        if found != expected {
            return Err(format!("{}: {found:?} is not {expected:?}", line!()));
        }
    };
}

/// Executes a command.
///
/// # Errors
/// The command and the store's error.
pub async fn execute<T: FromRedisValue>(store: &Store, words: &[&str]) -> Result<T, String> {
    let mut command = redis::cmd(words[0]);
    command.arg(&words[1..]);
    let reply = store.command(&command).await;
    reply.map_err(|error| format!("{words:?}: {error:?}"))
}

/// The same store for a process that crashes at the script `name`: that script and all later steps do not run.
pub fn crashing_at(store: &Store, name: &'static str) -> Store {
    let parts = ["return {'crash'}"];
    store.replacing(Script::new(
        name,
        ScriptKind::Timeless,
        WhenFull::Run,
        InputNames::default(),
        &parts,
    ))
}

/// The period of the store's clock.
///
/// # Errors
/// The store's error.
pub async fn period(store: &Store) -> Result<Period, String> {
    let (seconds, micros): (u64, u64) = execute(store, &["TIME"]).await?;
    Ok(Period::at(seconds * 1000 + micros / 1000))
}

/// Runs a check that must not cross midnight: runs it again if the period changed meanwhile.
///
/// # Errors
/// The error of the check.
pub async fn within_one_day(store: &Store, check: impl AsyncFn(Period) -> Checked) -> Checked {
    loop {
        let before = period(store).await?;
        let checked = check(before).await;
        if period(store).await? == before {
            return checked;
        }
    }
}

/// The names of the script's keys and arguments.
pub fn inputs(script: &str) -> InputNames {
    let found = all().into_iter().find(|known| known.name() == script);
    found.expect("a script of the store").inputs()
}

/// Runs `check` with each of `scripts` unchanged, then with each mutant. Asserts that there are more than `least`
/// mutants, and that exactly those listed as `equivalent`, each with its reason, pass. The texts have positions in
/// place of names, so that each position is mutated too.
pub async fn all_are_noticed(
    scripts: &[(&'static str, &str)],
    least: usize,
    equivalent: &[(&str, &str)],
    check: impl AsyncFn(&Store, &'static str, &str) -> Checked,
) {
    let redis = Redis::start();
    let store = redis.store();
    let mut survivors = BTreeSet::new();
    let mut all = 0;
    for (script, text) in scripts {
        let text = inputs(script).substitute(text);
        // The unchanged script must pass, or a failing mutant would prove nothing.
        assert_eq!(check(&store, script, &text).await, Ok(()), "{script}");
        for mutant in mutants(&text) {
            all += 1;
            if check(&store, script, &mutant.text).await.is_ok() {
                survivors.insert(mutant.name);
            }
        }
    }
    assert!(all > least, "only {all} changes");
    only_equivalent(&survivors, equivalent, all);
}

/// The names of those of `mutants` that pass `check`, which gets an empty store of its worker.
pub fn survivors<M: Sync>(
    mutants: &[M],
    name: fn(&M) -> &str,
    check: impl AsyncFn(&Store, &M) -> Checked + Sync,
) -> BTreeSet<String> {
    let (next, survivors) = (AtomicUsize::new(0), Mutex::new(BTreeSet::new()));
    let worker = || {
        let redis = Redis::start();
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .expect("a runtime");
        runtime.block_on(async {
            let store = redis.store();
            while let Some(mutant) = mutants.get(next.fetch_add(1, Ordering::Relaxed)) {
                if let Ok(Ok(())) = tokio::time::timeout(LONGEST, check(&store, mutant)).await {
                    let mut survivors = survivors.lock();
                    survivors.insert(name(mutant).to_owned());
                }
            }
        });
    };
    std::thread::scope(|scope| {
        for _ in 0..WORKERS {
            let thread = std::thread::Builder::new().stack_size(STACK);
            thread.spawn_scoped(scope, worker).expect("a thread");
        }
    });
    survivors.into_inner()
}

/// Asserts that the survivors of `all` changes are exactly those listed as equivalent, each with its reason.
#[track_caller]
pub fn only_equivalent(survivors: &BTreeSet<String>, equivalent: &[(&str, &str)], all: usize) {
    let equivalent: BTreeSet<String> = equivalent.iter().map(|(name, _)| (*name).to_owned()).collect();
    let unnoticed: Vec<&String> = survivors.difference(&equivalent).collect();
    assert!(
        unnoticed.is_empty(),
        "{} of {all} changes went unnoticed: {unnoticed:#?}",
        unnoticed.len()
    );
    let wrong: Vec<&String> = equivalent.difference(survivors).collect();
    assert!(
        wrong.is_empty(),
        "listed as equivalent, but noticed or no longer a change: {wrong:#?}"
    );
}
