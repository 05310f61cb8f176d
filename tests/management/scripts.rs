//! The scripts behind the limits, the blocked addresses and the notices of thresholds: the effect of each on the store.
//! The checks detect every mutant of a script.

use domain::blocked::BLOCKED_MAX;
use domain::rate::Rate;
use domain::threshold::{Threshold, Watched};
use harness::scripts::{Checked, all_are_noticed, execute};
use harness::{Store, same};
use std::collections::BTreeMap;
use store::api_key::script::count::{Allowed, CountOutcome, WindowState, count};
use store::blocked::script::{BlockChange, Changed, change};
use store::keys::{self, AccountKeys};
use store::script::names::InputNames;
use store::script::{Script, ScriptKind, WhenFull};
use store::threshold::notice::Notice;

const COUNT: &str = include_str!("../../shared/store/src/api_key/count.lua");
const CHANGE: &str = include_str!("../../shared/store/src/blocked/change.lua");
const NOTICED: &str = include_str!("../../shared/store/src/threshold/notice.lua");
/// The time of these tests, and the minute in which it is.
const NOW_MS: u64 = 1_800_000_012_345;
const MINUTE_MS: &str = "1800000000000";
const DAY_MS: u64 = 24 * 3600 * 1000;

/// Equivalent mutants: the changed script has the same effect.
const EQUIVALENT: &[(&str, &str)] = &[
    (
        "if rest >= 0 and rest <= left then open, used, left = true, tonumber(call('GET', KEYS[1])), rest end | 9: >= -> >",
        LAST_MS,
    ),
    (
        "if rest >= 0 and rest <= left then open, used, left = true, tonumber(call('GET', KEYS[1])), rest end | 12: 0 -> 1",
        LAST_MS,
    ),
    (
        "if rest >= 0 and rest <= left then open, used, left = true, tonumber(call('GET', KEYS[1])), rest end | 23: <= -> <",
        "only in the millisecond in which a window opens is all of it left, and no test can hit that one",
    ),
];
const LAST_MS: &str =
    "only in the last millisecond of a window is there none left, and no test can wait for that one";

async fn counted(store: &Store, key: &str, allowed: Option<(Rate, u64)>) -> Result<CountOutcome, String> {
    let allowed = allowed.map(|(rate, limit)| Allowed { rate, limit });
    let counted = count(store, &AccountKeys::new("acct_1"), key, allowed).await;
    counted.map_err(|error| format!("{error:?}"))
}

/// The state of a window, `left_ms` before its end.
const fn window_state(limit: u64, remaining: u64, left_ms: u64) -> WindowState {
    WindowState {
        limit,
        remaining,
        left_ms,
        ends_at_ms: NOW_MS + left_ms,
    }
}

/// Checks that the window ends between `least` and `most` milliseconds from now. Returns the milliseconds.
fn left(counted: CountOutcome, least: u64, most: u64) -> Result<u64, String> {
    match counted {
        CountOutcome::Passed(stands) | CountOutcome::Over(stands)
            if (least..=most).contains(&stands.left_ms) =>
        {
            Ok(stands.left_ms)
        }
        other => Err(format!("{other:?} does not end in {least} to {most} ms")),
    }
}

async fn counts(store: &Store) -> Checked {
    let keys = AccountKeys::new("acct_1");
    let (record, counter) = (
        keys.api_key("key_1"),
        keys.management_rate(Rate::PerMinute, "key_1"),
    );
    let three = Some((Rate::PerMinute, 3));
    let _: String = execute(store, &["FLUSHALL"]).await?;
    same!(counted(store, "key_1", three).await?, CountOutcome::Gone);
    same!(execute::<u64>(store, &["DBSIZE"]).await?, 0);
    let _: u64 = execute(store, &["HSET", &record, "id", "key_1"]).await?;

    let first = counted(store, "key_1", three).await?;
    same!(first, CountOutcome::Passed(window_state(3, 2, 60_000)));
    same!(execute::<String>(store, &["GET", &counter]).await?, "1");
    same!(
        execute::<String>(store, &["HGET", &record, "last_used"]).await?,
        MINUTE_MS
    );
    same!(
        (50_000..=60_000).contains(&execute::<u64>(store, &["PTTL", &counter]).await?),
        true
    );
    let _: u64 = execute(store, &["PEXPIRE", &counter, "30000"]).await?;
    let _: u64 = execute(store, &["HSET", &record, "last_used", "1799999940000"]).await?;
    for remaining in [1, 0] {
        let next = counted(store, "key_1", three).await?;
        let left = left(next, 20_000, 30_000)?;
        same!(next, CountOutcome::Passed(window_state(3, remaining, left)));
    }
    same!(
        execute::<String>(store, &["HGET", &record, "last_used"]).await?,
        MINUTE_MS
    );
    for _ in 0..2 {
        let over = counted(store, "key_1", three).await?;
        let left = left(over, 20_000, 30_000)?;
        same!(over, CountOutcome::Over(window_state(3, 0, left)));
    }
    same!(execute::<String>(store, &["GET", &counter]).await?, "3");
    same!(
        (1..=30_000).contains(&execute::<u64>(store, &["PTTL", &counter]).await?),
        true
    );
    let raised = counted(store, "key_1", Some((Rate::PerMinute, 5))).await?;
    let raised_left = left(raised, 20_000, 30_000)?;
    same!(raised, CountOutcome::Passed(window_state(5, 1, raised_left)));

    // The minute is recorded once.
    let _: String = execute(store, &["CONFIG", "RESETSTAT"]).await?;
    counted(store, "key_1", three).await?;
    let commands: String = execute(store, &["INFO", "commandstats"]).await?;
    same!(
        commands.contains("cmdstat_evalsha:") || commands.contains("cmdstat_eval:"),
        true
    );
    same!(commands.contains("cmdstat_hset:"), false);

    // A counter that ends later than its window is from a clock that was ahead.
    let _: String = execute(store, &["SET", &counter, "3", "PX", "120000"]).await?;
    let anew = counted(store, "key_1", three).await?;
    same!(anew, CountOutcome::Passed(window_state(3, 2, 60_000)));
    same!(
        (50_000..=60_000).contains(&execute::<u64>(store, &["PTTL", &counter]).await?),
        true
    );
    // A counter without an expiry is ignored.
    let _: String = execute(store, &["SET", &counter, "3"]).await?;
    let anew = counted(store, "key_1", three).await?;
    same!(anew, CountOutcome::Passed(window_state(3, 2, 60_000)));
    same!(execute::<String>(store, &["GET", &counter]).await?, "1");
    same!(execute::<i64>(store, &["PTTL", &counter]).await? > 0, true);
    uncounted(store, &keys, &record).await
}

/// Requests that are counted elsewhere, or not at all.
async fn uncounted(store: &Store, keys: &AccountKeys, record: &str) -> Checked {
    let counter = keys.management_rate(Rate::PerMinute, "key_1");
    let _: u64 = execute(store, &["DEL", &counter]).await?;
    let none = counted(store, "key_1", Some((Rate::PerMinute, 0))).await?;
    same!(none, CountOutcome::Over(window_state(0, 0, 60_000)));
    let of_day = counted(store, "key_1", Some((Rate::PerDay, 2))).await?;
    same!(of_day, CountOutcome::Passed(window_state(2, 1, DAY_MS)));
    let _: u64 = execute(store, &["HDEL", record, "last_used"]).await?;
    same!(counted(store, "key_1", None).await?, CountOutcome::Uncounted);
    same!(
        execute::<String>(store, &["HGET", record, "last_used"]).await?,
        MINUTE_MS
    );
    same!(execute::<u64>(store, &["EXISTS", &counter]).await?, 0);
    // An unlimited key has no counter, even if an old one remains.
    let _: u64 = execute(store, &["RPUSH", &counter, "no number"]).await?;
    let _: u64 = execute(store, &["PEXPIRE", &counter, "60000"]).await?;
    same!(counted(store, "key_1", None).await?, CountOutcome::Uncounted);

    let _: u64 = execute(store, &["DEL", &counter]).await?;
    let _: u64 = execute(store, &["HDEL", record, "last_used"]).await?;
    let _: u64 = execute(store, &["HSET", record, "revoked_at", "1"]).await?;
    for allowed in [Some((Rate::PerMinute, 3)), None] {
        same!(counted(store, "key_1", allowed).await?, CountOutcome::Gone);
    }
    same!(execute::<u64>(store, &["EXISTS", &counter]).await?, 0);
    same!(execute::<u64>(store, &["HEXISTS", record, "last_used"]).await?, 0);
    Ok(())
}

type List = BTreeMap<String, String>;

async fn list(store: &Store) -> Result<List, String> {
    execute(store, &["HGETALL", keys::BLOCKED]).await
}

/// A field of the list; empty if it is absent.
fn field<'a>(list: &'a List, name: &str) -> &'a str {
    list.get(name).map_or("", String::as_str)
}

async fn changed(store: &Store, range: &str, what: BlockChange<'_>) -> Result<Changed, String> {
    let changed = change(store, range.parse().unwrap(), what).await;
    changed.map_err(|error| format!("{error:?}"))
}

async fn changes(store: &Store) -> Checked {
    const RANGE: &str = "203.0.113.0/24";
    let block = BlockChange::Block(None);
    let _: String = execute(store, &["FLUSHALL"]).await?;
    same!(
        changed(store, RANGE, BlockChange::Unblock).await?,
        Changed::AlreadySo
    );
    let none = list(store).await?;
    same!(none.keys().collect::<Vec<_>>(), ["version"]);
    same!(counted_to(&none)?, 1);
    same!(changed(store, RANGE, block).await?, Changed::Done);
    let first = list(store).await?;
    same!(first.len(), 2);
    same!(field(&first, RANGE), "1800000012345 ");
    same!(counted_to(&first)?, 2);
    let _: String = execute(store, &["CONFIG", "RESETSTAT"]).await?;
    same!(changed(store, RANGE, block).await?, Changed::AlreadySo);
    same!(&list(store).await?, &first);
    same!(
        changed(store, "::/64", BlockChange::Unblock).await?,
        Changed::AlreadySo
    );
    same!(list(store).await?, first);
    // Each call wrote nevertheless, so that a wait for the disk or a replica covers it.
    let commands: String = execute(store, &["INFO", "commandstats"]).await?;
    same!(commands.contains("cmdstat_hset:calls=2,"), true);

    // The range was blocked at another time than now.
    let _: u64 = execute(store, &["HSET", keys::BLOCKED, RANGE, "17 "]).await?;
    for reason in ["a 1", "b  2"] {
        let before = list(store).await?;
        let with = BlockChange::Block(Some(reason));
        same!(changed(store, RANGE, with).await?, Changed::Done);
        let after = list(store).await?;
        same!(field(&after, RANGE), format!("17 {reason}"));
        same!(counted_to(&after)?, counted_to(&before)? + 1);
        for same in [with, block] {
            same!(changed(store, RANGE, same).await?, Changed::AlreadySo);
        }
        same!(list(store).await?, after);
    }
    same!(
        changed(store, "::/64", BlockChange::Block(Some("x"))).await?,
        Changed::Done
    );
    let before = list(store).await?;
    same!(field(&before, "::/64"), "1800000012345 x");
    same!(changed(store, RANGE, BlockChange::Unblock).await?, Changed::Done);
    let after = list(store).await?;
    same!(counted_to(&after)?, counted_to(&before)? + 1);
    same!(after.keys().collect::<Vec<_>>(), ["::/64", "version"]);
    same!(
        changed(store, RANGE, BlockChange::Unblock).await?,
        Changed::AlreadySo
    );
    same!(list(store).await?, after);
    crowded(store).await
}

/// The count in the list's version, whose random part has 16 digits.
fn counted_to(list: &List) -> Result<u64, String> {
    let version = field(list, "version");
    let (count, random) = version.split_once('-').unwrap_or_default();
    same!(random.len(), 16);
    count.parse().map_err(|error| format!("{version}: {error}"))
}

/// A full list of ranges.
async fn crowded(store: &Store) -> Checked {
    let block = BlockChange::Block(None);
    for with_version in [false, true] {
        let _: String = execute(store, &["FLUSHALL"]).await?;
        let mut fill = redis::cmd("HSET");
        fill.arg(keys::BLOCKED);
        for number in 1..BLOCKED_MAX {
            fill.arg(format!("2001:db8::{number:x}/128")).arg("1 ");
        }
        if with_version {
            fill.arg("version").arg("v");
        }
        let filled: Result<u64, _> = store.command(&fill).await;
        filled.map_err(|error| format!("{error:?}"))?;
        same!(changed(store, "10.0.0.1/32", block).await?, Changed::Done);
        let full = list(store).await?;
        same!(changed(store, "10.0.0.2/32", block).await?, Changed::TooMany);
        same!(list(store).await?, full);
        same!(changed(store, "10.0.0.1/32", block).await?, Changed::AlreadySo);
        let reason = BlockChange::Block(Some("x"));
        same!(changed(store, "10.0.0.1/32", reason).await?, Changed::Done);
        same!(
            changed(store, "10.0.0.1/32", BlockChange::Unblock).await?,
            Changed::Done
        );
        same!(changed(store, "10.0.0.2/32", block).await?, Changed::Done);
    }
    Ok(())
}

/// Each threshold is recorded once for a limit, an agent and a period, and removed a day after the end of the period.
async fn notices(store: &Store) -> Checked {
    const DAYS: u64 = NOW_MS / DAY_MS;
    let keys = AccountKeys::new("acct_1");
    let noticed = async |watched, agent, at_ms: u64| {
        let notice = Notice {
            watched,
            threshold: Threshold::Most,
            agent,
        };
        let noticed = notice.record(store, &keys.live(), at_ms).await;
        noticed.map_err(|error| format!("{error:?}"))
    };
    let _: String = execute(store, &["FLUSHALL"]).await?;
    for (watched, agent) in [
        (Watched::Day, Some("a")),
        (Watched::Day, Some("b")),
        (Watched::Plan, None),
    ] {
        same!(noticed(watched, agent, NOW_MS).await?, true);
        same!(noticed(watched, agent, NOW_MS + 5).await?, false);
    }
    let day = keys.live().notices(&format!("d{DAYS}"));
    let found: BTreeMap<String, String> = execute(store, &["HGETALL", &day]).await?;
    let now = NOW_MS.to_string();
    let expected = [("day 80 a".to_owned(), now.clone()), ("day 80 b".to_owned(), now)];
    same!(found, BTreeMap::from(expected));
    same!(
        execute::<u64>(store, &["EXPIRETIME", &day]).await?,
        (DAYS + 2) * (DAY_MS / 1000)
    );
    // The next day is another period.
    same!(noticed(Watched::Day, Some("a"), NOW_MS + DAY_MS).await?, true);
    same!(noticed(Watched::Plan, None, NOW_MS + DAY_MS).await?, false);
    same!(execute::<u64>(store, &["DBSIZE"]).await?, 3);
    Ok(())
}

async fn check(store: &Store, script: &'static str, text: &str) -> Checked {
    let clock = format!("local now_ms, call, format = {NOW_MS}, redis.call, string.format\n");
    let parts = [&clock, text];
    let store = store.replacing(Script::new(
        script,
        ScriptKind::Timeless,
        WhenFull::Run,
        InputNames::default(),
        &parts,
    ));
    match script {
        "api_key_count" => counts(&store).await,
        "threshold_notice" => notices(&store).await,
        _ => changes(&store).await,
    }
}

#[tokio::test]
async fn every_changed_script_is_noticed() {
    let scripts = [
        ("api_key_count", COUNT),
        ("blocked_change", CHANGE),
        ("threshold_notice", NOTICED),
    ];
    all_are_noticed(&scripts, 100, EQUIVALENT, check).await;
}
