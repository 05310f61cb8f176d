//! The scripts on a store whose clock is far from this process's: none does anything by such a clock, whenever the
//! store was last checked.

use super::Payer;
use crate::fixture::settlement;
use crate::scripts::CLOCK_BOUND_LUA;
use harness::scripts::{dump, mutants};
use harness::{Redis, Seed};
use redis::Value;
use store::call::settle::Settled;
use store::call::void::void;
use store::script::all::all;
use store::script::names::InputNames;
use store::script::{Script, ScriptKind, WhenFull};
use store::versions::AccountVersion;
use store::{Store, StoreError};

/// `store.max_clock_difference_ms` by default, in seconds.
const BOUND_SECONDS: i64 = 300;
/// Longest time between a test's readings of the two clocks, in seconds.
const SLACK_SECONDS: i64 = 60;
/// At least as many keys, and arguments, as any script takes.
const MOST: usize = 60;

/// The script with a clock that is ahead by `seconds`.
fn moved(script: &Script, seconds: i64) -> Script {
    const CLOCK: &str = "local clock = call('TIME')\n";
    assert_eq!(script.source().matches(CLOCK).count(), 1, "{}", script.name());
    let moved = format!("{CLOCK}clock[1] = clock[1] + {seconds}\n");
    script.with_source(&script.source().replace(CLOCK, &moved))
}

/// A store whose clock is ahead by `seconds` for every script. The callers' clock is ahead as well, as on one machine.
fn moved_with_its_callers(store: &Store, seconds: i64) -> Store {
    const REFUSAL: &str = "if ahead > bound or -ahead > bound then";
    let scripts = all().into_iter().filter(|script| script.bounds_clock());
    scripts.fold(store.clone(), |store, script| {
        let moved = moved(script, seconds);
        assert_eq!(moved.source().matches(REFUSAL).count(), 1, "{}", script.name());
        store.replacing(moved.with_source(&moved.source().replace(REFUSAL, "if false then")))
    })
}

/// A store whose clock is ahead by `seconds` for every script.
fn all_moved(store: &Store, seconds: i64) -> Store {
    let scripts = all().into_iter().filter(|script| script.bounds_clock());
    scripts.fold(store.clone(), |store, script| {
        store.replacing(moved(script, seconds))
    })
}

#[tokio::test]
async fn no_script_does_anything_by_a_clock_beyond_the_bound() {
    let redis = Redis::start();
    let store = redis.store();
    let keys: Vec<String> = (0..MOST).map(|at| format!("{{b0001}}/k{at}")).collect();
    let keys: Vec<&str> = keys.iter().map(String::as_str).collect();
    let mut count = 0;
    for script in all().into_iter().filter(|script| script.bounds_clock()) {
        count += 1;
        for seconds in [
            BOUND_SECONDS + SLACK_SECONDS,
            -BOUND_SECONDS - SLACK_SECONDS,
            86_400 * 400,
            -86_400 * 400,
        ] {
            let store = store.replacing(moved(script, seconds));
            let answer = store.script::<Value>(script, &keys, &["1"; MOST]).await;
            let Err(StoreError::ClockDiffers(found)) = answer else {
                panic!("{} at {seconds} s: {answer:?}", script.name());
            };
            assert_eq!(found.allowed_ms, 300_000);
            let off = (found.ahead_ms - seconds * 1000).abs();
            assert!(off < SLACK_SECONDS * 1000, "{seconds} s: {found:?}");
            assert_eq!(redis.command::<u64>(&["DBSIZE"]), 0, "{} wrote", script.name());
        }
        for seconds in [0, BOUND_SECONDS - SLACK_SECONDS, SLACK_SECONDS - BOUND_SECONDS] {
            let store = store.replacing(moved(script, seconds));
            let answer = store.script::<Value>(script, &keys, &["1"; MOST]).await;
            let is_refused = matches!(answer, Err(StoreError::ClockDiffers(_)));
            assert!(!is_refused, "{} at {seconds} s: {answer:?}", script.name());
            let _: String = redis.command(&["FLUSHALL"]);
        }
    }
    assert!(count > 50, "only {count} scripts");
}

/// Under a wrong clock nothing changes: the call is denied, and settlement and void take place later.
#[tokio::test]
async fn a_second_with_a_wrong_clock_leaves_nothing_behind() {
    let redis = Redis::start();
    let store = redis.store();
    let payer = Payer::new(&Seed::new(&store).await).await;
    let (settled, voided) = (payer.approve(&store, 100).await, payer.approve(&store, 100).await);
    let before = dump(&store).await.unwrap();
    for days in [41, -41] {
        let wrong = all_moved(&store, days * 86_400);
        let settle = settlement(settled.clone(), 100, 150);
        for error in [
            payer.authorize(&wrong, &payer.new_name(), 100).await.unwrap_err(),
            settle.execute(&settled.keys(), None, &wrong).await.unwrap_err(),
            void(&wrong, &voided, AccountVersion::default())
                .await
                .unwrap_err(),
        ] {
            assert!(matches!(error, StoreError::ClockDiffers(_)), "{error:?}");
            assert!(!error.may_have_run() && error.broken_script().is_none());
        }
        assert_eq!(dump(&store).await.unwrap(), before);
    }
    let settle = settlement(settled, 100, 150);
    assert_eq!(
        settle.execute(&settle.name.keys(), None, &store).await.unwrap(),
        Settled::Done
    );
    void(&store, &voided, AccountVersion::default()).await.unwrap();
    assert_eq!(payer.charged().await, 150);
}

/// A clock that goes ahead by months for as long as it takes to make a call, and comes back, leaves the day's counters
/// as they were: what was charged stays charged, and what settles later is taken from it.
#[tokio::test]
async fn a_day_that_the_clock_left_and_came_back_to_is_charged_as_before() {
    const DAY_SECONDS: i64 = 86_400;
    let redis = Redis::start();
    let store = redis.store();
    let payer = Payer::new(&Seed::new(&store).await).await;
    let held = payer.approve(&store, 100).await;
    for days in [41, 60, 400, 1_000, -41] {
        payer
            .approve(&moved_with_its_callers(&store, days * DAY_SECONDS), 7)
            .await;
        assert_eq!(payer.agent.counters().await.day_nanos, 100, "after {days} days");
    }
    let settle = settlement(held, 100, 40);
    assert_eq!(
        settle.execute(&settle.name.keys(), None, &store).await.unwrap(),
        Settled::Done
    );
    assert_eq!(payer.agent.counters().await.day_nanos, 40);
}

/// Runs the fragment alone, at a time and with arguments of the test.
fn checked(redis: &Redis, bound_lua: &str) -> Result<(), String> {
    const NOW_MS: i64 = 1_000_000;
    let text = [
        &format!("local now_ms, format = {NOW_MS}, string.format\n"),
        bound_lua,
        "return format('%d %s', #ARGV, ARGV[#ARGV])\n",
    ];
    let script = Script::new(
        "bound",
        ScriptKind::Timeless,
        WhenFull::Run,
        InputNames::default(),
        &text,
    );
    let run = |ahead: i64, bound: &str| -> String {
        let at = (NOW_MS - ahead).to_string();
        let answer = redis.try_command::<String>(&["EVAL", script.source(), "0", "a", "b", &at, bound]);
        answer.unwrap_or_else(|error| format!("{:?} {:?}", error.code(), error.detail()))
    };
    for (ahead, bound, expected) in [
        (0, "1", "2 b"),
        (300, "300", "2 b"),
        (-300, "300", "2 b"),
        (301, "300", "Some(\"CLOCK\") Some(\"301 300\")"),
        (-301, "300", "Some(\"CLOCK\") Some(\"-301 300\")"),
    ] {
        let found = run(ahead, bound);
        if found != expected {
            return Err(format!("{ahead} of {bound}: {found}"));
        }
    }
    Ok(())
}

#[test]
fn the_bound_itself_is_allowed_and_each_small_change_of_that_is_noticed() {
    let redis = Redis::start();
    assert_eq!(checked(&redis, CLOCK_BOUND_LUA), Ok(()));
    let mutants = mutants(CLOCK_BOUND_LUA);
    assert!(mutants.len() > 5, "only {} changes", mutants.len());
    let unnoticed: Vec<String> = mutants
        .into_iter()
        .filter(|mutant| checked(&redis, &mutant.text).is_ok())
        .map(|mutant| mutant.name)
        .collect();
    assert!(unnoticed.is_empty(), "{unnoticed:#?}");
}
